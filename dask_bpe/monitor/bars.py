"""Bars on a terminal: how much of each stage is done, how fast, how long it will take."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dask_bpe.monitor.amounts import format_amount, format_part, format_rate, format_seconds
from dask_bpe.monitor.view import View
from dask_bpe.progress import JobState, Snapshot
from dask_bpe.progress.snapshot import Stage

_BAR_WIDTH = 36


class Bars(View):
    """The stages of the job; those that have ended stay on the screen."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self._console = console or Console(stderr=True)
        self._live: Live | None = None

    def begin(self, job: JobState) -> None:
        """See `Progress.begin`."""
        self.close()
        self._job = job
        # It looks at the job by itself, four times a second.
        self._live = Live(console=self._console, get_renderable=lambda: render(job.snapshot()))
        self._live.start()

    def say(self, fact: str) -> None:
        """See `Progress.say`."""
        self._console.print(fact, markup=False, highlight=False)

    def end(self) -> None:
        """See `Progress.end`."""
        self.close()

    def close(self) -> None:
        """See `View.close`."""
        live, self._live, self._job = self._live, None, None
        if live is not None:
            live.stop()


def render(snapshot: Snapshot) -> RenderableType:
    """A row for each stage, and a line with what was found."""
    stages = Table.grid(padding=(0, 2, 0, 0))
    for stage in snapshot["stages"]:
        stages.add_row(*_row(stage))
    found = _found(snapshot)
    return Group(stages, Text(found, style="dim")) if found else stages


def _row(stage: Stage) -> tuple[RenderableType, ...]:
    running = stage["state"] == "running"
    # A stage that ended early (no pair left to merge) has still ended: its bar is full.
    total = (stage["total"] or 0) if running else stage["done"]
    bar = ProgressBar(max(1, total), stage["done"] if running else max(1, total), _BAR_WIDTH, running and not total)
    amount = format_part(stage["done"], total if running else None, stage["unit"])
    rate = (stage["rate_now"] if running else None) or stage["rate"]
    left = stage["seconds_left"]
    if not running:
        time = format_seconds(stage["seconds"])
    else:
        time = "" if left is None else f"{format_seconds(left)} left"
    return f"{stage['name']:<9}", bar, amount, "" if rate is None else format_rate(rate, stage["unit"]), time


def _found(snapshot: Snapshot) -> str:
    """`12,000 documents, 3 of them not read; memory 1.2 GB of 4.0 GB`."""
    figures, memory = snapshot["figures"], snapshot["memory"]
    parts = [format_amount(figures[name], name) for name in ("documents", "tokens", "shards") if name in figures]
    if figures.get("quarantined"):
        parts.append(f"{figures['quarantined']:,} documents not read")
    if memory["workers"] is not None:
        limit = memory["workers_limit"]
        of = f" of {format_amount(limit, 'B')}" if limit else ""
        parts.append(f"{snapshot['n_workers']} workers with {format_amount(memory['workers'], 'B')}{of}")
    return ", ".join(parts)
