"""Encoding and training as bars of MB/s."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import OURS, Contest, Figures, Row
from benchmarks.report import title
from dask_bpe.pages import theme

# From dark to light, so that greys can be told apart too.
_COLOURS = {
    OURS: theme.LIGHT["c0"],
    "gigatoken": theme.LIGHT["c1"],
    "rustbpe": theme.LIGHT["c2"],
    "tiktoken": theme.LIGHT["c5"],
    "tokenizers": theme.LIGHT["c4"],
}
_BAR, _GAP = 1.0, 0.9


def draw(figures: Figures, path: Path) -> None:
    """A panel for encoding with each vocabulary and one for training, in each a group of bars for every text."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "bench"  # the same figures make the same file
    matplotlib.rcParams["font.size"] = 10
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    panels = list(_panels(figures))
    if not panels:
        return
    columns = min(len(panels), 2)
    lines = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(
        lines, columns, figsize=(5.6 * columns, 0.9 + lines * 3.6), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (heading, contests) in zip(axes.flat, panels, strict=False):
        # Panels of the same job have the same scale.
        alike = [contest for _, others in panels for contest in others if contest.job == contests[0].job]
        _panel(axis, heading, contests, max((row.speed for contest in alike for row in _shown(contest)), default=1.0))
    names = [name for name in _COLOURS if any(contest.row(name) for _, contests in panels for contest in contests)]
    patches = [Patch(color=_COLOURS[name]) for name in names]
    figure.legend(patches, [title(name) for name in names], loc="outside upper center", ncols=len(names), frameon=False)
    where = f"{figures.machine['cores']} cores, {figures.machine['cpu']}"
    figure.supxlabel(f"Longer is better. Medians after a warm-up; the slowest once. {where}.", fontsize=9)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _panels(figures: Figures) -> Sequence[tuple[str, list[Contest]]]:
    by_vocabulary: dict[str, list[Contest]] = {}
    for contest in figures.results.get("encode", []):
        by_vocabulary.setdefault(contest.labels["vocabulary"], []).append(contest)
    panels = [(f"Encoding to disk, {name}", contests) for name, contests in by_vocabulary.items()]
    if training := figures.results.get("train"):
        panels.append((f"Training {training[0].labels['ids']} ids", training))
    return panels


def _shown(contest: Contest) -> list[Row]:
    """The contestants that have a colour and a figure."""
    rows = [contest.row(name) for name in _COLOURS]
    return [row for row in rows if row is not None and not row.problem]


def _panel(axis: Any, heading: str, contests: Sequence[Contest], fastest: float) -> None:
    """Bars from the top to the bottom, and their speeds in figures: the slow ones are hardly to be seen."""
    at, ticks = 0.0, []
    for contest in contests:
        rows = _shown(contest)
        ticks.append(at + (len(rows) - 1) * _BAR / 2)
        for row in rows:
            axis.barh(at, row.speed, _BAR, color=_COLOURS[row.name], edgecolor="white", linewidth=0.8)
            label = f"{row.speed:.0f}" if row.speed >= 10 else f"{row.speed:.1f}"
            weight = "bold" if row.name == OURS else "normal"
            axis.text(row.speed + fastest * 0.012, at, label, va="center", fontsize=9, fontweight=weight)
            at += _BAR
        at += _GAP
    axis.set_yticks(ticks, [contest.labels["text"] for contest in contests])
    axis.invert_yaxis()
    axis.set_xlim(0, fastest * 1.12)
    axis.set_xlabel("MB of text per second", fontsize=9)
    axis.set_title(heading, fontsize=11, loc="left", fontweight="bold")
    theme.tidy(axis, grid="x", rule=theme.LIGHT["rule"])
