"""Colours of pages and plots, light and dark, and what all plots share.

The series' colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which people who see fewer colours
can tell apart; on dark ground lighter ones of the same hues, in the same order.
"""

from __future__ import annotations

from typing import Any

LIGHT = {
    "ground": "#ffffff",
    "raised": "#f5f6f8",
    "ink": "#1b1f24",
    "muted": "#57606a",
    "rule": "#dde1e6",
    "c0": "#0072b2",
    "c1": "#d55e00",
    "c2": "#009e73",
    "c3": "#cc79a7",
    "c4": "#e69f00",
    "c5": "#56b4e9",
    "c6": "#7f7f7f",
}
DARK = {
    "ground": "#14171a",
    "raised": "#1d2126",
    "ink": "#e6e9ec",
    "muted": "#9ea7b0",
    "rule": "#333a41",
    "c0": "#56b4e9",
    "c1": "#f2803e",
    "c2": "#2cc49b",
    "c3": "#de9cc1",
    "c4": "#e8b54a",
    "c5": "#a5d8f5",
    "c6": "#a0a0a0",
}
SERIES = tuple(name for name in LIGHT if name.startswith("c"))


def variables(colours: dict[str, str]) -> str:
    """The colours as variables of CSS."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def tidy(axes: Any, *, grid: str, rule: str) -> None:
    """Leave of a matplotlib axes what is needed: two spines, faint lines across the values."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(rule)
    axes.grid(axis=grid, color=rule, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0)


def format_tick(value: float, _: int | None = None) -> str:
    """A number at an axis: `0.25`, `40`, `15,000`, `200k`, `3M`, `1.5G`."""
    for scale, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e5, "k")):
        if abs(value) >= scale:
            return f"{value / (1e3 if suffix == 'k' else scale):.4g}{suffix}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
