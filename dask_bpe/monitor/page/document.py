"""What a browser gets: cards with panels and plots, brought up to date every second from the last snapshot of a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bokeh.layouts import column
from bokeh.models import Column, Div
from distributed.dashboard.components.scheduler import env
from jinja2 import ChoiceLoader, FileSystemLoader

from dask_bpe.monitor.page import panels, plots, style
from dask_bpe.progress import Snapshot

if TYPE_CHECKING:
    from dask_bpe.monitor.plugin import JobPlugin, KnownJob

_MILLISECONDS = 1000
# Dask's templates, and ours, which extends one of them.
_TEMPLATES = env.overlay(loader=ChoiceLoader([FileSystemLoader(Path(__file__).parent), env.loader]))


def show_jobs(plugin: JobPlugin, variables: dict[str, Any], document: Any) -> None:
    """Fill the document of a browser: of the job that its address names, `?job=train-1a2b3c4d`, else of the latest."""
    arguments = document.session_context.request.arguments
    named = [value.decode(errors="replace") for value in arguments.get("job", [])]
    page = _Page()
    document.add_root(page.root)
    document.template = _TEMPLATES.get_template("page.html")
    document.template_variables.update(variables, style=style.PAGE)

    def update() -> None:
        known = _chosen(plugin, named)
        page.show([job.snapshot for job in plugin.jobs.values()], known)
        document.title = _title(known)

    update()
    document.add_periodic_callback(update, _MILLISECONDS)


def _chosen(plugin: JobPlugin, named: list[str]) -> KnownJob | None:
    """The job that is asked for, else the latest that runs, else the latest."""
    if named and named[-1] in plugin.jobs:
        return plugin.jobs[named[-1]]
    latest = sorted(plugin.jobs.values(), key=lambda job: job.snapshot["began"])
    running = [job for job in latest if job.snapshot["state"] == "running" and not job.silent]
    return next(iter(running[-1:] or latest[-1:]), None)


def _title(known: KnownJob | None) -> str:
    if known is None:
        return "dask_bpe"
    snapshot = known.snapshot
    stage = next((stage for stage in snapshot["stages"] if stage["state"] == "running" and stage["total"]), None)
    how = snapshot["state"] if stage is None else f"{stage['name']} {stage['done'] / (stage['total'] or 1):.0%}"
    return f"{snapshot['kind']}: {how}"


class _Page:
    """The cards of one browser's page."""

    def __init__(self) -> None:
        self._head, self._links = _panel(), _panel()
        self._plots: list[tuple[Any, Any, plots.Plot]] = []
        self._panels: list[tuple[Any, Any, Callable[[Snapshot], str], Callable[[Snapshot], bool]]] = []
        cards = [
            column(self._head, self._links, stylesheets=[style.BARE]),
            self._panel_card(12, panels.tiles, lambda snapshot: bool(snapshot["figures"])),
            self._panel_card(12, panels.stages, lambda snapshot: bool(snapshot["stages"])),
            self._plot_card(8, plots.throughput()),
            self._panel_card(4, panels.memory, lambda _: True),
            self._plot_card(4, plots.growth()),
            self._plot_card(4, plots.merge_counts()),
            self._plot_card(4, plots.tokens_left()),
            self._plot_card(6, plots.compression()),
            self._panel_card(6, lambda s: panels.partitions(s["partitions"]), lambda s: s["partitions"]["total"] > 0),
            self._panel_card(6, panels.merges, lambda snapshot: bool(snapshot["merges"])),
            self._panel_card(12, panels.quarantine, lambda snapshot: bool(snapshot["quarantined"])),
            self._panel_card(12, panels.said, lambda snapshot: bool(snapshot["said"])),
        ]
        self._cards = cards[1:]
        self.root = Column(children=cards, sizing_mode="stretch_width", stylesheets=[style.GRID])

    def show(self, jobs: list[Snapshot], known: KnownJob | None) -> None:
        """Show a job, and links to all."""
        if known is None:
            self._write(self._head, panels.nothing_yet())
            for card in self._cards:
                card.visible = False
            return
        snapshot = known.snapshot
        latest_first = sorted(jobs, key=lambda job: -job["began"])
        self._write(self._head, panels.head(snapshot, known.silent))
        self._write(self._links, panels.job_links(latest_first, snapshot["id"]))
        for card, div, text, wanted in self._panels:
            card.visible = wanted(snapshot)
            self._write(div, text(snapshot) if card.visible else "")
        for card, div, plot in self._plots:
            card.visible = plot.show(snapshot["curves"])
            self._write(div, plot.title(snapshot["curves"]))
            if card.visible and plot.figure not in card.children:
                # Not before: an axis without data complains in the browser's console.
                card.children = [div, plot.figure]

    def _write(self, div: Any, text: str) -> None:
        """Only what has changed goes to the browser: a reader's selection stays."""
        if div.text != text:
            div.text = text

    def _panel_card(self, width: int, text: Callable[[Snapshot], str], wanted: Callable[[Snapshot], bool]) -> Any:
        div = _panel()
        card = _card(width, div)
        self._panels.append((card, div, text, wanted))
        return card

    def _plot_card(self, width: int, plot: plots.Plot) -> Any:
        div = _panel()
        card = _card(width, div)
        self._plots.append((card, div, plot))
        return card


def _panel() -> Any:
    # Dollars in a text are no formulas.
    return Div(text="", margin=0, sizing_mode="stretch_width", stylesheets=[style.PANEL], disable_math=True)


def _card(width: int, *children: Any) -> Any:
    return Column(children=list(children), visible=False, stylesheets=[style.card(width)])
