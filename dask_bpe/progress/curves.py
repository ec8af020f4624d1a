"""Series that stay short however long a job is: thinned as they grow, or kept on a logarithmic grid."""

from __future__ import annotations

import bisect
import math
from collections import deque
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

# Points of the grid for each doubling of a rank or of a number of bytes.
_PER_DOUBLING = 12


class Thinned:
    """Rows that come in the order of time. When there are `limit`, every second one goes, and from then on half as many
    are taken: those that are left are always spaced evenly."""

    def __init__(self, limit: int = 240, interval: float = 0.5) -> None:
        self.rows: list[tuple[float, dict[str, float]]] = []
        self._limit, self._interval = limit, interval
        self._next = -math.inf

    def due(self, now: float) -> bool:
        """Whether a row would be kept."""
        return now >= self._next

    def add(self, now: float, row: dict[str, float]) -> None:
        """Append a row."""
        self.rows.append((now, row))
        if len(self.rows) >= self._limit:
            # The last one stays: what comes next is compared with it.
            del self.rows[-2::-2]
            self._interval *= 2
        self._next = now + self._interval

    def replace_recent(self, now: float, row: dict[str, float]) -> None:
        """Append a row in the place of those that came just before: over an instant there is no speed."""
        while len(self.rows) > 1 and self.rows[-1][0] > now - 3 * self._interval:
            del self.rows[-1]
        self.add(now, row)

    def rates(self, name: str) -> list[float]:
        """How fast a column of running totals has grown between one row and the next: one number fewer than rows."""
        times, totals = self._column(name)
        return [
            max(0.0, after - before) / max(until - since, 1e-9)
            for (since, until), (before, after) in zip(pairwise(times), pairwise(totals), strict=True)
        ]

    def _column(self, name: str) -> tuple[list[float], list[float]]:
        """Times and totals; a total that is not in a row is that of the row before."""
        total, totals = 0.0, []
        for _, row in self.rows:
            total = row.get(name, total)
            totals.append(total)
        return [time for time, _ in self.rows], totals


class LogGrid:
    """Of rows numbered 1, 2, 3 ..., those on a grid that is even in the logarithm of the number, and the last."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self._last: tuple[int, ...] | None = None

    def add(self, first: int, *columns: Int64s) -> None:
        """Rows number `first` and following. int64[n] each."""
        if not len(columns[0]):
            return
        numbers = np.arange(first, first + len(columns[0]))
        on_grid = np.flatnonzero((numbers == 1) | (_step(numbers) != _step(np.maximum(numbers - 1, 1))))
        rows = np.stack([numbers, *columns], axis=1)
        self.rows += map(tuple, rows[on_grid].tolist())
        self._last = tuple(rows[-1].tolist())

    def points(self) -> list[tuple[int, ...]]:
        """Number and columns of all that are kept."""
        return [*self.rows, *([self._last] if self._last is not None and self._last not in self.rows[-1:] else [])]


def _step(numbers: Int64s) -> npt.NDArray[np.float64]:
    steps: npt.NDArray[np.float64] = np.floor(_PER_DOUBLING * np.log2(numbers))
    return steps


class Largest:
    """Points (x, y), of which the one with the largest y is kept for each step of the logarithm of x."""

    def __init__(self) -> None:
        self._points: dict[int, tuple[int, int]] = {}

    def add(self, x: int, y: int) -> None:
        """A point; ones at 0 are left out."""
        if x > 0 and y > 0:
            step = math.floor(_PER_DOUBLING * math.log2(x))
            self._points[step] = max(self._points.get(step, (x, y)), (x, y), key=lambda point: point[1])

    def end(self, x: int, y: int) -> None:
        """The last point: no other lies beyond it, nor above."""
        self._points = {step: point for step, point in self._points.items() if point[0] < x and point[1] <= y}
        self.add(x, y)

    def points(self) -> list[tuple[int, int]]:
        """In the order of x."""
        return sorted(self._points.values())


class Meter:
    """How fast a running total grows: in the last seconds, and while it has grown."""

    def __init__(self, began: float, total: int = 0, window: float = 10.0) -> None:
        self._began, self._first, self._window = began, total, window
        self._seen: deque[tuple[float, int]] = deque([(began, total)])
        self._last = (began, total)

    def see(self, now: float, total: int) -> None:
        """The total is so much now."""
        if total != self._last[1]:
            self._last = (now, total)
        # Two a second suffice.
        if now - self._seen[-1][0] >= 0.5:
            self._seen.append((now, total))
            while len(self._seen) > 2 and self._seen[1][0] <= now - self._window:
                self._seen.popleft()

    def average(self) -> float | None:
        """Growth a second from the beginning to the last time that it grew; None before it has."""
        until, total = self._last
        return (total - self._first) / (until - self._began) if until > self._began else None

    def recent(self, now: float) -> float | None:
        """Growth a second in about the last ten seconds; None before any has passed."""
        times = [time for time, _ in self._seen]
        since, before = self._seen[max(0, bisect.bisect_right(times, now - self._window) - 1)]
        return max(0.0, (self._last[1] - before) / (now - since)) if now > since else None
