"""Plots as SVG that stands within a page: its text is text, its colours are the page's, its ids its own.

matplotlib draws in colours that nothing else has, and the CSS variables of the page take their places; so one drawing
does for dark and light. The same plot makes the same bytes.
"""

from __future__ import annotations

import io
import itertools
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from dask_bpe.errors import ParameterError
from dask_bpe.pages.cells import visible
from dask_bpe.pages.plot import Plot, plain, points, thin
from dask_bpe.pages.theme import SERIES, format_tick, tidy

# Inches of 72 points: as wide as a phone, so that letters are as large there as elsewhere.
_WIDTH, _HEIGHT, _LINE = 5.4, 3.1, 0.27
_NAMES = ("ink", "muted", "rule", "ground", *SERIES)
# Drawn in these; whatever has one of them is a variable's.
_MARKERS = {name: f"#fe{number:02x}fe" for number, name in enumerate(_NAMES)}
_RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dask_bpe",
    "text.parse_math": False,  # corpora and file names hold dollars
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.labelcolor": _MARKERS["muted"],
    "xtick.labelcolor": _MARKERS["muted"],
    "ytick.labelcolor": _MARKERS["muted"],
    "text.color": _MARKERS["ink"],
    "axes.labelsize": 10.5,
    "legend.fontsize": 10.5,
    "lines.solid_capstyle": "round",
}
# Of more points than these one sees no more, and a page is read over slow lines too.
_MOST_OF_LINE, _MOST_POINTS = 300, 120
# matplotlib's settings are those of the process.
_ONE_AT_A_TIME = threading.Lock()


def has_matplotlib() -> bool:
    """Whether plots can be drawn."""
    return find_spec("matplotlib") is not None


def draw(plot: Plot, prefix: str) -> str:
    """The plot as an `<svg>` element whose ids begin with `prefix`, which no other plot of the page has; "" when it has
    no points.

    Raises
    ------
    ParameterError
        matplotlib is missing.
    """
    if not has_matplotlib():
        raise ParameterError(
            "plots need matplotlib: pip install 'dask-bpe[plot]'; Markdown and JSON give their figures without it"
        )
    if not any(xs for _, xs, _ in points(plot)):
        return ""
    from matplotlib.figure import Figure

    legend = len(plot.series) > 1
    with _settings():
        height = _HEIGHT + legend * _LINE
        if _lies(plot):
            height = 0.9 + legend * _LINE + _LINE * max(2, len(plot.series[0].x) * max(1, len(plot.series) * 0.7))
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        _DRAW[plot.kind](axes, plot)
        _label(axes, plot)
        if legend:
            figure.legend(loc="outside upper left", ncols=min(4, len(plot.series)), frameon=False, handlelength=1.2)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _adapt(buffer.getvalue(), prefix)


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib

    with _ONE_AT_A_TIME, matplotlib.rc_context(_RC), warnings.catch_warnings():
        # The reader's fonts draw the text, not those that matplotlib looks into.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _lies(plot: Plot) -> bool:
    """Whether bars run from left to right, beside their names."""
    return plot.kind == "bars" and any(isinstance(name, str) for name in plot.series[0].x)


def _colour(number: int) -> str:
    return _MARKERS[SERIES[number % len(SERIES)]]


def _seen(plot: Plot, most: int) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Name, x and y of what is drawn of each series."""
    for name, xs, ys in points(plot):
        places = thin(len(xs), most, log=plot.x.log)
        yield visible(name), [xs[at] for at in places], [ys[at] for at in places]


def _lines(axes: Any, plot: Plot) -> None:
    for number, (name, x, y) in enumerate(_seen(plot, _MOST_OF_LINE)):
        axes.plot(x, y, color=_colour(number), linewidth=1.8, label=name)


def _points(axes: Any, plot: Plot) -> None:
    for number, (name, x, y) in enumerate(_seen(plot, _MOST_POINTS)):
        axes.plot(x, y, "o", color=_colour(number), markersize=3.2, markeredgewidth=0, label=name)


def _area(axes: Any, plot: Plot) -> None:
    names, xs, ys = zip(*_seen(plot, _MOST_OF_LINE), strict=True)
    axes.stackplot(xs[0], ys, labels=names, colors=[_colour(number) for number in range(len(names))])
    axes.margins(x=0)


def _bars(axes: Any, plot: Plot) -> None:
    n = len(plot.series)
    if not _lies(plot):
        for number, series in enumerate(plot.series):
            places = plain(series.x)
            step = min((b - a for a, b in itertools.pairwise(places)), default=1)
            width = 0.85 * step / n
            shifted = [x + (number - (n - 1) / 2) * width for x in places]
            axes.bar(shifted, series.y, width, color=_colour(number), label=visible(series.name))
        return
    thickness = 0.75 / n
    for number, series in enumerate(plot.series):
        places = [at + (number - (n - 1) / 2) * thickness for at in range(len(series.x))]
        axes.barh(places, series.y, thickness, color=_colour(number), label=visible(series.name))
    axes.set_yticks(range(len(plot.series[0].x)), [visible(str(name)) for name in plot.series[0].x])
    axes.invert_yaxis()


_DRAW: dict[str, Callable[[Any, Plot], None]] = {"line": _lines, "points": _points, "area": _area, "bars": _bars}


def _label(axes: Any, plot: Plot) -> None:
    """Names and units, scales, ticks: the values of bars that lie stand on the axis below."""
    below, beside = (plot.y, plot.x) if _lies(plot) else (plot.x, plot.y)
    axes.set_xlabel(visible(below.title), loc="right")
    if not _lies(plot):
        axes.set_title(visible(beside.title), loc="left", fontsize=10.5, color=_MARKERS["muted"])
    for axis, which in ((below, "x"), (beside, "y")):
        _scale(axes, axis.log, which, named=_lies(plot) and which == "y")
    if not plot.y.log and plot.kind != "points":
        (axes.set_xlim if _lies(plot) else axes.set_ylim)(0 if _least(plot) >= 0 else None)
    tidy(axes, grid="x" if _lies(plot) else "y", rule=_MARKERS["rule"])


def _scale(axes: Any, log: bool, which: str, *, named: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    if named:
        return
    axis = getattr(axes, f"{which}axis")
    if log:
        getattr(axes, f"set_{which}scale")("log")
        least, most = getattr(axes, f"get_{which}lim")()
        # Of few decades the numbers between them say more.
        axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if most < 200 * least else (1,), numticks=7))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(format_tick))


def _least(plot: Plot) -> float:
    return min((float(y) for series in plot.series for y in plain(series.y)), default=0.0)


_DROPPED = re.compile(
    r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|\s*font-family: [^;\"]*;?| xmlns:xlink=\"[^\"]*\"", re.S
)
_ID = re.compile(r' id="([^"]*)"')
_DECIMALS = re.compile(r"(?<=[ \"])-?\d+\.\d{3,}(?=[ \"\n])")
_SIZE = re.compile(r' width="[\d.]+pt" height="[\d.]+pt"')


def _adapt(text: str, prefix: str) -> str:
    """What matplotlib has written, as an element of a page."""
    text = _DROPPED.sub("", text[text.index("<svg") :]).replace("xlink:href", "href")
    text = _SIZE.sub("", text, count=1)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))
    text = _ID.sub(lambda found: f' id="{prefix}{found[1]}"' if found[1] in used else "", text)
    text = re.sub(r'(url\(|href=")#', rf"\g<1>#{prefix}", text)
    for name, marker in _MARKERS.items():
        text = text.replace(marker, f"var(--{name})")
    text = _DECIMALS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)
    return re.sub(r"\n\s*", "\n", text)
