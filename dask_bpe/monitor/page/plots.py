"""The curves of the page: a figure each, which shows a snapshot's points and nothing when there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from bokeh.models import (
    AdaptiveTicker,
    ColumnDataSource,
    CustomJSTickFormatter,
    DataRange1d,
    HoverTool,
    NoOverlap,
)
from bokeh.plotting import figure

from dask_bpe.monitor.page import style
from dask_bpe.monitor.worker_totals import SPREAD
from dask_bpe.progress.snapshot import Curves

Data = dict[str, Sequence[Any]]

# `1,500,000` is `1.5 M`.
_SHORT = """
const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
for (const [size, name] of units)
  if (Math.abs(tick) >= size) return (tick / size).toLocaleString("en", {maximumFractionDigits: 2}) + " " + name;
return tick.toLocaleString("en", {maximumSignificantDigits: 3});
"""
_CLOCK = """
const s = Math.max(0, tick), pad = (n) => String(Math.floor(n)).padStart(2, "0");
const short = Math.floor(s % 3600 / 60) + ":" + pad(s % 60);
return s < 3600 ? short : Math.floor(s / 3600) + ":" + short.padStart(5, "0");
"""


@dataclass
class Plot:
    """A figure, what it draws, and how that follows from the curves of a snapshot.

    Attributes
    ----------
    title : HTML above the figure, given the curves: what it shows, with a legend where there are several lines.
    data : columns for the figure.
    least : points that make a curve.
    """

    figure: Any
    source: Any
    title: Callable[[Curves], str]
    data: Callable[[Curves], Data]
    least: int = 2

    def show(self, curves: Curves) -> bool:
        """Draw the curves; whether there is anything to see. Nothing is no data: an axis could not show it."""
        data = self.data(curves)
        seen = all(len(column) >= self.least for column in data.values())
        if seen and data != self.source.data:
            self.source.data = data
        return seen


def throughput() -> Plot:
    """Bytes of text a second over time, of all and of each worker."""
    plot, source = _figure("time since the job began (h:min:s)", "MB/s", ("xs", "ys", "color", "width", "name"))
    plot.xaxis.formatter = CustomJSTickFormatter(code=_CLOCK)
    plot.xaxis.ticker = AdaptiveTicker(base=60, mantissas=[1, 2, 5, 10, 15, 20, 30], min_interval=1)
    plot.multi_line(
        xs="xs", ys="ys", line_color="color", line_width="width", line_join="round", line_cap="round", source=source
    )
    return Plot(plot, source, _throughput_title, _throughput_data, least=1)


def _lines(curves: Curves) -> list[tuple[str, str, Sequence[float]]]:
    """Name, colour and rates of each line, the one that is drawn last at the end."""
    curve = curves["throughput"]
    workers = curve["workers"]
    names = [name for name in SPREAD if name in workers] or sorted(workers)
    prefix = "" if set(names) <= set(SPREAD) else "worker "
    own = [
        (f"{prefix}{name}", colour, workers[name])
        for name, colour in zip(names, style.LINES, strict=False)
        if name in workers
    ]
    return [*(own if len(own) > 1 else []), ("all together", style.ALL, curve["all"])]


def _throughput_title(curves: Curves) -> str:
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour, _ in reversed(_lines(curves))
    )
    return f'<h2>Throughput</h2><div class="legend">{items}</div>'


def _throughput_data(curves: Curves) -> Data:
    seconds = curves["throughput"]["seconds"]
    if len(seconds) < 2:
        return {"xs": [], "ys": [], "color": [], "width": [], "name": []}
    lines = _lines(curves)
    return {
        "xs": [seconds for _ in lines],
        "ys": [[rate / 1e6 for rate in rates] for _, _, rates in lines],
        "color": [colour for _, colour, _ in lines],
        "width": [1.4] * (len(lines) - 1) + [2.6],
        "name": [name for name, _, _ in lines],
    }


def growth() -> Plot:
    """Distinct pre-tokens against bytes."""
    plot, source = _curve(
        "text of a part of the corpus (bytes)", "distinct pre-tokens", style.GREEN, log="xy", marks=True
    )
    return Plot(
        plot,
        source,
        lambda _: "<h2>Vocabulary growth<small>distinct pre-tokens by the size of the text</small></h2>",
        lambda curves: {"x": curves["growth"]["bytes"], "y": curves["growth"]["distinct"]},
        least=1,
    )


def merge_counts() -> Plot:
    """How often the pair that was merged occurred, against its rank."""
    plot, source = _curve("rank of the merge", "occurrences of the pair", style.ORANGE, log="xy")
    return Plot(
        plot,
        source,
        lambda _: "<h2>Count of the merged pair<small>by rank</small></h2>",
        lambda curves: _positive(curves["merges"]["rank"], curves["merges"]["count"]),
    )


def tokens_left() -> Plot:
    """Tokens of the corpus after each merge."""
    plot, source = _curve("merges made", "tokens of the corpus", style.SKY)
    return Plot(
        plot,
        source,
        lambda _: "<h2>Tokens left<small>in the counted text</small></h2>",
        lambda curves: {"x": curves["merges"]["rank"], "y": curves["merges"]["tokens_left"]},
    )


def compression() -> Plot:
    """Bytes of text per token so far."""
    plot, source = _curve("text encoded (bytes)", "bytes per token", style.PINK, from_zero=False)
    return Plot(
        plot,
        source,
        lambda _: "<h2>Compression<small>bytes per token, of all so far</small></h2>",
        lambda curves: {"x": curves["compression"]["bytes"], "y": curves["compression"]["bytes_per_token"]},
    )


def _positive(x: Sequence[int], y: Sequence[int]) -> Data:
    """What a logarithmic axis can show."""
    rows = [row for row in zip(x, y, strict=True) if min(row) > 0]
    return {"x": [row[0] for row in rows], "y": [row[1] for row in rows]}


def _curve(
    x: str, y: str, colour: str, log: str = "", marks: bool = False, from_zero: bool = True
) -> tuple[Any, ColumnDataSource]:
    plot, source = _figure(x, y, ("x", "y"), log, from_zero)
    plot.line("x", "y", line_color=colour, line_width=2.4, line_join="round", source=source)
    if marks:
        plot.scatter("x", "y", size=6, color=colour, source=source)
    plot.add_tools(HoverTool(tooltips=[(x, "@x{0,0}"), (y, "@y{0,0.[00]}")], mode="vline", line_policy="nearest"))
    return plot, source


def _figure(
    x: str, y: str, columns: Sequence[str], log: str = "", from_zero: bool = True
) -> tuple[Any, ColumnDataSource]:
    """An empty figure with axes and units, and its data."""
    ranges = {"y_range": DataRange1d(start=0)} if from_zero and "y" not in log else {}
    plot = figure(
        height=230,
        sizing_mode="stretch_width",
        x_axis_label=x,
        y_axis_label=y,
        x_axis_type="log" if "x" in log else "linear",
        y_axis_type="log" if "y" in log else "linear",
        output_backend="svg",  # a canvas keeps traces of a layout in a card that was hidden
        toolbar_location=None,
        tools="",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        margin=0,
        min_border_left=6,
        min_border_right=14,
        **ranges,
    )
    for axis in (plot.xaxis, plot.yaxis):
        axis.formatter = CustomJSTickFormatter(code=_SHORT)
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = style.FONT
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
        axis.axis_label_text_color = axis.major_label_text_color = style.CANVAS_TEXT
        axis.axis_line_color = axis.major_tick_line_color = style.CANVAS_GRID
        axis.minor_tick_line_color = None
        axis.major_label_policy = NoOverlap()
    plot.grid.grid_line_color = style.CANVAS_GRID
    return plot, ColumnDataSource(data={column: [] for column in columns})
