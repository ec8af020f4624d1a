"""One output of a notebook that follows a job, and sums it up at the end.

IPython's own display updates it in place: that works in Jupyter, VS Code and Colab with nothing to install or enable,
and what is saved with the notebook is the last state. Widgets would need all of that, and leave nothing behind.
"""

from __future__ import annotations

from typing import Any, ClassVar

from dask_bpe.monitor.amounts import format_amount, format_part, format_rate, format_seconds
from dask_bpe.monitor.view import View
from dask_bpe.pages import Block, Facts, Link, Meters, Text
from dask_bpe.pages.document import Value
from dask_bpe.pages.html import render_output
from dask_bpe.progress import JobState, Snapshot
from dask_bpe.progress.snapshot import Stage

_VERBS = {
    "train": "Training on",
    "count": "Counting",
    "encode": "Encoding to",
    "verify": "Verifying",
    "plan": "Planning for",
}


class NotebookOutput(View):
    """The stages of the job, what it has done, and what it has said."""

    interval: ClassVar[float] = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def begin(self, job: JobState) -> None:
        """See `Progress.begin`."""
        from IPython import display

        show: Any = display.display
        self._handle = show(_bundle(job.snapshot()), raw=True, display_id=True)
        super().begin(job)

    def show(self, snapshot: Snapshot) -> None:
        """See `View.show`."""
        self._handle.update(_bundle(snapshot), raw=True)


def _bundle(snapshot: Snapshot) -> dict[str, str]:
    """The output, for notebooks and for what shows text only."""
    return {"text/html": render(snapshot), "text/plain": describe(snapshot)}


def render(snapshot: Snapshot) -> str:
    """HTML; all that comes from the corpus is escaped."""
    blocks: list[Block] = [Meters([_meter(stage) for stage in snapshot["stages"]])]
    rows = _rows(snapshot)
    if rows:
        blocks.append(Facts(rows))
    blocks += [Text(line) for line in snapshot["said"][-3:]]
    if snapshot["page"]:
        blocks.append(Link("The job on the dashboard", snapshot["page"]))
    return render_output(describe(snapshot), blocks)


def describe(snapshot: Snapshot) -> str:
    """One line: what the job does, how long, how it ended and what that means."""
    what = f"{_VERBS.get(snapshot['kind'], snapshot['kind'])} {snapshot['name']}".strip()
    time = format_seconds(snapshot["seconds"])
    if snapshot["state"] == "interrupted":
        kept = "the same call goes on" if snapshot["folder"] else "nothing was kept"
        return f"{what}: interrupted after {time}; {kept}"
    if snapshot["state"] == "failed":
        return f"{what}: failed after {time}: {snapshot['error']}"
    return f"{what}: {time}" if snapshot["state"] == "running" else f"{what}: done in {time}"


def _meter(stage: Stage) -> tuple[str, float | None, str]:
    unit, done, total = stage["unit"], stage["done"], stage["total"]
    running = stage["state"] == "running"
    # A stage that ended early (no pair left to merge) has still ended.
    share = 1.0 if stage["state"] == "finished" else min(1.0, done / total) if total else None
    words = [format_part(done, total if running else None, unit)]
    rate = (stage["rate_now"] if running else None) or stage["rate"]
    if rate is not None and unit in ("B", "merges"):
        words.append(format_rate(rate, unit))
    if stage["seconds_left"] is not None:
        words.append(f"{format_seconds(stage['seconds_left'])} left")
    if not running:
        words.append(format_seconds(stage["seconds"]))
    return stage["name"], share, ", ".join(words)


def _rows(snapshot: Snapshot) -> list[tuple[str, Value]]:
    figures, memory = snapshot["figures"], snapshot["memory"]
    names = (
        *(("documents", "documents"), ("distinct", "distinct pre-tokens"), ("merges", "merges")),
        *(("tokens", "tokens"), ("shards", "shards"), ("quarantined", "documents not read")),
    )
    rows: list[tuple[str, Value]] = [(label, figures[name]) for name, label in names if figures.get(name)]
    if figures.get("tokens") and figures.get("bytes"):
        rows.append(("bytes per token", figures["bytes"] / figures["tokens"]))
    if snapshot["n_workers"]:
        limit = memory["workers_limit"]
        of = f" of {format_amount(limit, 'B')}" if limit else ""
        rows.append((f"{snapshot['n_workers']:,} workers", f"{format_amount(memory['workers'] or 0, 'B')}{of}"))
    else:
        rows.append(("memory", format_amount(memory["driver"], "B")))
    return rows
