"""What the benchmark must reach: each job names its bars, here they are judged and printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.figures import Contest
from benchmarks.report import table, title


@dataclass(frozen=True)
class Measured:
    """A figure that counts for a bar: where it was found, and why there is none if there is none."""

    value: float
    place: str
    problem: str = ""


@dataclass(frozen=True)
class Bar:
    """A bar and the figures that it is for; the worst of them decides.

    Attributes
    ----------
    what : in words.
    wanted : the least value, or with `most` the greatest.
    unit : of the values; "x" for a ratio.
    measured : the figures; none if nothing was measured.
    """

    what: str
    wanted: float
    unit: str
    measured: tuple[Measured, ...]
    most: bool = False

    def _failing(self, found: Measured) -> float:
        """How far a figure is from the bar: the more the worse."""
        return found.value if self.most else -found.value

    @property
    def worst(self) -> Measured | None:
        """The figure that decides; one that is refused is worse than any."""
        refused = [found for found in self.measured if found.problem]
        return max(refused or self.measured, key=self._failing, default=None)

    @property
    def verdict(self) -> str:
        """Reached, missed, or not measured."""
        worst = self.worst
        if worst is None:
            return "not measured"
        if worst.problem:
            return "MISSED"
        return "reached" if self._failing(worst) <= (self.wanted if self.most else -self.wanted) else "MISSED"


def faster_than(peer: str, wanted: float, what: str, contests: Iterable[Contest]) -> Bar:
    """A bar for how many times faster ours is than a peer in every contest that it took part in."""
    return Bar(f"{what}, times {title(peer)}", wanted, "x", tuple(_ratios(peer, contests)))


def _ratios(peer: str, contests: Iterable[Contest]) -> Iterator[Measured]:
    for contest in contests:
        row = contest.row(peer)
        if row is not None:
            yield Measured(row.slower or 0.0, contest.place, row.problem or ("" if row.slower else "no ratio"))


def bars_table(bars: Iterable[Bar]) -> str:
    """A line for every bar."""
    lines = []
    for bar in bars:
        worst = bar.worst
        found, place = "", ""
        if worst is not None:
            found = worst.problem or _amount(worst.value, bar.unit)
            several = len({measured.place for measured in bar.measured}) > 1
            place = f"worst of {len(bar.measured)}: {worst.place}" if several else worst.place
        wanted = f"{'at most' if bar.most else 'at least'} {_amount(bar.wanted, bar.unit)}"
        lines.append([bar.what, wanted, found, place, bar.verdict])
    return table(["bar", "wanted", "measured", "where", ""], lines, left=(0, 3, 4))


def _amount(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return f"{number}{unit}" if unit == "x" else f"{number} {unit}"
