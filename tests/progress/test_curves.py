"""Curves of a job: bounded, and what is kept of them is true."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.progress.curves import Largest, LogGrid, Meter, Thinned


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 1000)), min_size=1, max_size=300), st.integers(4, 40))
def test_a_thinned_series_keeps_the_average_between_its_rows(steps: list[tuple[int, int]], limit: int) -> None:
    curve = Thinned(limit, interval=1.0)
    now, total, totals = 0.0, 0, {}
    for seconds, amount in steps:
        now, total = now + seconds, total + amount
        totals[now] = total
        if curve.due(now):
            curve.add(now, {"all": total})
    times = [time for time, _ in curve.rows]
    assert 0 < len(times) < limit
    assert times == sorted(times)
    # The oracle has forgotten nothing.
    expected = [(totals[b] - totals[a]) / (b - a) for a, b in itertools.pairwise(times)]
    assert curve.rates("all") == pytest.approx(expected)


def test_rows_are_spaced_evenly_after_thinning() -> None:
    curve = Thinned(10, interval=1.0)
    for second in range(1000):
        if curve.due(second):
            curve.add(second, {"all": second})
    times = [time for time, _ in curve.rows]
    assert len(times) >= 5
    assert len(set(np.diff(times))) == 1


def test_a_column_that_begins_later_has_done_nothing_before() -> None:
    curve = Thinned()
    curve.add(0, {"all": 0})
    curve.add(1, {"all": 10, "late": 4})
    curve.add(2, {"all": 30})  # no news of it: it has done what it had
    curve.add(3, {"all": 60, "late": 9})
    assert curve.rates("late") == [4, 0, 5]
    assert curve.rates("all") == [10, 20, 30]


@given(st.lists(st.integers(0, 700), min_size=1, max_size=12))
def test_the_grid_does_not_depend_on_how_rows_come(sizes: list[int]) -> None:
    grid, whole = LogGrid(), LogGrid()
    n = sum(sizes)
    values = np.arange(n, dtype=np.int64) * 7
    start = 0
    for size in sizes:
        grid.add(start + 1, values[start : start + size])
        start += size
    whole.add(1, values)
    assert grid.points() == whole.points()
    # The first number of every step of the logarithm, and the last of all.
    kept, before = [], None
    for number in range(1, n + 1):
        step = math.floor(12 * math.log2(number))
        if step != before:
            kept.append(number)
        before = step
    assert [number for number, _ in grid.points()] == sorted({*kept, n} - {0})
    assert all(value == 7 * (number - 1) for number, value in grid.points())


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**9)), max_size=200))
def test_the_largest_of_every_step_is_kept(points: list[tuple[int, int]]) -> None:
    curve = Largest()
    steps = defaultdict(list)
    for x, y in points:
        curve.add(x, y)
        if x and y:
            steps[math.floor(12 * math.log2(x))].append(y)
    kept = curve.points()
    assert kept == sorted(kept)
    assert sorted(y for _, y in kept) == sorted(max(ys) for ys in steps.values())
    curve.end(10**6, 1000)
    assert curve.points()[-1] == (10**6, 1000)
    assert all(y <= 1000 for _, y in curve.points())


def test_rates_now_and_on_average() -> None:
    meter = Meter(100.0, window=10.0)
    assert meter.average() is None
    assert meter.recent(100.0) is None
    for second in range(1, 31):
        meter.see(100.0 + second, 10 * second)  # ten a second for half a minute
    for second in range(31, 51):
        meter.see(100.0 + second, 300 + 40 * (second - 30))
    assert meter.average() == pytest.approx(1100 / 50)
    assert meter.recent(150.0) == pytest.approx(40)
    # It stands still: what it does now falls, what it did while it ran stays.
    assert meter.recent(155.0) == pytest.approx(20, rel=0.1)
    assert meter.recent(500.0) == pytest.approx(0)
    assert meter.average() == pytest.approx(1100 / 50)
