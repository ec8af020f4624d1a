"""A plot as data: what is drawn over what, in which units. `svg` draws it, `markdown` and JSON give its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt

    Values: TypeAlias = Sequence[Any] | npt.NDArray[Any]

Kind = Literal["line", "points", "bars", "area"]


@dataclass(frozen=True)
class Axis:
    """What an axis shows, its unit (empty for plain numbers), and whether it is logarithmic."""

    label: str
    unit: str = ""
    log: bool = False

    @property
    def title(self) -> str:
        """`text read, MB`."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


@dataclass(frozen=True)
class Series:
    """Values over places: `x` are numbers, or names for bars; `y` numbers, as many. `name` stands in the legend."""

    name: str
    x: Values
    y: Values


@dataclass(frozen=True)
class Plot:
    """One idea, drawn.

    Attributes
    ----------
    kind : "line"; "points"; "bars", which lie when their `x` are names and stand when they are numbers; "area", series
        on top of each other over the same `x`.
    caption : what one should see.
    """

    kind: Kind
    x: Axis
    y: Axis
    series: Sequence[Series]
    caption: str = ""

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "kind": self.kind,
            "x": vars(self.x),
            "y": vars(self.y),
            "series": [{"name": line.name, "x": plain(line.x), "y": plain(line.y)} for line in self.series],
            "caption": self.caption,
        }


def plain(values: Values) -> list[Any]:
    """Python's own numbers and strings, of an array or any other sequence."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def points(plot: Plot) -> list[tuple[str, list[Any], list[Any]]]:
    """Name, x and y of each series, without the points that a logarithmic axis has no place for."""
    found = []
    for series in plot.series:
        pairs = zip(plain(series.x), plain(series.y), strict=True)
        kept = [(x, y) for x, y in pairs if not ((plot.x.log and x <= 0) or (plot.y.log and y <= 0))]
        found.append((series.name, [x for x, _ in kept], [y for _, y in kept]))
    return found


def thin(n: int, most: int, *, log: bool = False) -> list[int]:
    """At most `most` (two or more) of the places 0..n-1, with the first and the last, evenly spread; or their ranks'
    logarithms evenly spread, as far as whole numbers allow."""
    if n <= most:
        return list(range(n))
    if log:
        return sorted({round(n ** (step / (most - 1))) - 1 for step in range(most)})
    return [step * (n - 1) // (most - 1) for step in range(most)]
