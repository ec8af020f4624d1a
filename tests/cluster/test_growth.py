"""The fit of Heaps' law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.cluster.planning.growth import Growth
from dask_bpe.heaps import HEAPS_EXPONENT


@given(st.floats(0.5, 50.0), st.floats(0.3, 0.95))
def test_a_law_is_found_again(scale: float, exponent: float) -> None:
    sizes = [10**k for k in range(6, 13)]
    growth = Growth.fit([(n, round(scale * n**exponent)) for n in sizes])
    assert growth.exponent == pytest.approx(exponent, abs=0.01)
    assert growth.of(10**13) == pytest.approx(min(1e13, scale * 10 ** (13 * exponent)), rel=0.1)
    assert growth.residual < 0.02


def test_it_is_the_least_square() -> None:
    rng = np.random.default_rng(1)
    sizes = np.logspace(5, 8, 12)
    points = [(int(n), int(3.45 * n**0.62 * rng.lognormal(0, 0.1))) for n in sizes]
    growth = Growth.fit(points)
    x, y = np.log(np.array(points, float).T)
    slope, level = np.polyfit(x, y, 1)
    assert growth.exponent == pytest.approx(slope)
    assert growth.scale == pytest.approx(np.exp(level))
    assert growth.residual == pytest.approx(0.1, rel=0.7)


def test_words_drawn_by_zipfs_law_are_predicted() -> None:
    """A tenth of a text says how many words there are in all of it."""
    rng = np.random.default_rng(2)
    words = rng.zipf(1.6, 1_000_000)
    seen = [len(np.unique(words[:n])) for n in (1_000, 4_000, 16_000, 100_000, 1_000_000)]
    growth = Growth.fit([*zip((1_000, 4_000, 16_000, 100_000), seen[:4], strict=True)])
    assert growth.of(1_000_000) == pytest.approx(seen[4], rel=0.2)
    assert growth.exponent == pytest.approx(1 / 1.6, abs=0.08)


@pytest.mark.parametrize("points", [[(1000, 80)], [(1000, 80), (2000, 120)], [(1000, 80)] * 5])
def test_of_few_points_only_the_scale_is_taken(points: list[tuple[int, int]]) -> None:
    growth = Growth.fit(points)
    assert growth.exponent == HEAPS_EXPONENT
    assert growth.of(1000) == pytest.approx(80, rel=0.1)


def test_of_nothing_nothing_grows() -> None:
    assert Growth.fit([(0, 0)]).of(10**9) == 0.0


def test_never_more_than_there_are_bytes() -> None:
    growth = Growth.fit([(10**k, 9 * 10**k) for k in range(1, 5)])
    assert growth.at([0, 1, 100]).tolist() == [0, 1, 100]
