"""The time of the jobs over the number of workers, drawn by matplotlib."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dask_bpe.cluster.planning.plan import Plan
from dask_bpe.errors import OutputError, ParameterError
from dask_bpe.io.paths import one_line
from dask_bpe.pages import theme
from dask_bpe.pages.svg import has_matplotlib

_FORMATS = (".pdf", ".png", ".svg")
_STAGES = (
    *(("counting", theme.LIGHT["c0"]), ("reducing", theme.LIGHT["c3"])),
    *(("merging", theme.LIGHT["c1"]), ("encoding", theme.LIGHT["c2"])),
)
_INK, _MUTED, _RULE = theme.LIGHT["ink"], theme.LIGHT["muted"], theme.LIGHT["rule"]
_TICKS = (
    *((1e-3, "1 ms"), (3e-3, "3 ms"), (0.01, "10 ms"), (0.03, "30 ms"), (0.1, "0.1 s"), (0.3, "0.3 s"), (1, "1 s")),
    *((3, "3 s"), (10, "10 s"), (30, "30 s"), (60, "1 min"), (180, "3 min"), (600, "10 min"), (1800, "30 min")),
    *((3600, "1 h"), (10_800, "3 h"), (36_000, "10 h"), (86_400, "1 d"), (259_200, "3 d"), (864_000, "10 d")),
)
_MOST_TICKS = 8
# Labels at the ends of lines lie at least so far apart, as a share of the height.
_APART = 0.045


def check_plot(path: str) -> None:
    """Refuse a plot that cannot be drawn, before any work.

    Raises
    ------
    ParameterError
        matplotlib is missing, or the name says none of the formats.
    """
    if Path(path).suffix.lower() not in _FORMATS:
        raise ParameterError(f"{path}: a plot is a file of {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")
    if not has_matplotlib():
        raise ParameterError("a plot needs matplotlib: pip install 'dask-bpe[plot]'")


def draw(plan: Plan, path: str) -> None:
    """Draw a plan: seconds of the jobs and their stages over workers, both logarithmic.

    Raises
    ------
    ParameterError, OutputError
    """
    check_plot(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    rows = [row for row in plan.rows if row.total > 0]
    workers = np.array([row.workers for row in rows], np.float64)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    totals = np.array([row.total for row in rows])
    least = min(min(getattr(row, stage) for stage, _ in _STAGES) for row in rows)
    bottom = max(least, totals.min() / 1e3) / 1.5
    ideal = totals[0] / workers * workers[0]
    lines = [("total", _INK, totals, 2.5), *((s, c, np.array([getattr(r, s) for r in rows]), 1.5) for s, c in _STAGES)]
    axes.plot(workers, ideal, color=_MUTED, linewidth=1.2, linestyle=(0, (4, 3)))
    for _, colour, seconds, thickness in lines:
        axes.plot(workers, seconds, color=colour, linewidth=thickness, marker="o", markersize=3.5)
    axes.set_ylim(bottom, totals.max() * 1.6)
    axes.set_xlim(workers[0] / 1.2, workers[-1] * 1.2)
    ticks = [(at, text) for at, text in _TICKS if bottom <= at <= totals.max() * 1.6]
    ticks = ticks[:: 1 + len(ticks) // _MOST_TICKS]
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    decades = [10**k for k in range(5) if workers[0] <= 10**k <= workers[-1]]
    axes.set_xticks(decades, [f"{n:,}" for n in decades])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    theme.tidy(axes, grid="both", rule=_RULE)
    axes.set_xlabel(f"workers of {plan.forecast.threads:,} thread{'s' * (plan.forecast.threads != 1)}")
    title = f"Train {plan.sample.vocab_size:,} ids on {plan.text_bytes / 1e9:,.3g} GB of text, and encode it"
    axes.set_title(title, loc="left", fontsize=11, color=_INK)
    # The dashed line is named where it leaves the picture, below or to the right.
    leaves = min(totals[0] * workers[0] / bottom, workers[-1])
    axes.annotate(
        "as if all work were divided", (leaves, totals[0] * workers[0] / leaves), (2, 5),
        textcoords="offset points", color=_MUTED, fontsize=9, va="bottom",
        ha="left" if leaves < workers[-1] / 10 else "right",
    )  # fmt: skip
    ends = [(seconds[-1], name, colour) for name, colour, seconds, _ in lines]
    low, high = np.log(axes.get_ylim())
    last = -np.inf
    for at, name, colour in sorted(ends, key=lambda item: item[0]):
        place = (np.log(max(at, np.exp(low))) - low) / (high - low)
        if at < np.exp(low):
            continue  # it has left the picture
        last = place = max(place, last + _APART)
        axes.annotate(
            name, (1.0, place), (4, 0), xycoords="axes fraction", textcoords="offset points", color=colour, va="center",
            fontsize=10, weight="bold" if name == "total" else "normal", annotation_clip=False,
        )  # fmt: skip
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {one_line(error)}") from error
