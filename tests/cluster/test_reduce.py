"""Counts added up in the memory of the workers: the same in any number of buckets, and by few tasks."""

from __future__ import annotations

from typing import Any

import dask
import dask.bag as db
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.cluster import reduce, schedule
from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.progress import JobState

# The parts that were made, in the order in which they were.
MADE: list[int] = []


def counts_of(number: int) -> PretokenCounts:
    MADE.append(number)
    return PretokenCounts.from_mapping({f"{word}".encode(): word + number + 1 for word in range(number % 7 + 1)})


def add_up(n_parts: int, n_buckets: int, split_every: int) -> PretokenCounts:
    """The sum of so many counts."""
    counted = db.from_sequence(range(n_parts), npartitions=n_parts).map(counts_of)
    job = JobState("testing")
    with (
        dask.config.set(scheduler="synchronous"),
        schedule.job("reducing", reduce.n_sums_in_memory(n_parts, n_buckets, split_every), "sums", job, None) as name,
    ):
        total = reduce.reduce_in_memory(counted, n_buckets, split_every, name, None, str)
    (stage,) = job.snapshot()["stages"]
    assert stage["done"] == stage["total"]
    return total


@given(n_parts=st.integers(1, 40), n_buckets=st.integers(1, 5), split_every=st.integers(2, 9))
def test_any_number_of_buckets_gives_the_sum(n_parts: int, n_buckets: int, split_every: int) -> None:
    MADE.clear()
    total = add_up(n_parts, n_buckets, split_every)
    assert sorted(MADE) == list(range(n_parts))
    expected = combine(list(map(counts_of, range(n_parts))))
    assert total.strings.to_list() == expected.strings.to_list()
    assert total.counts.tolist() == expected.counts.tolist()


@pytest.mark.parametrize("n_buckets", [1, 2, 16])
def test_a_few_tasks_for_each_partition(n_buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n_tasks: list[int] = []

    def counted_tasks(items: Any, client: None) -> list[PretokenCounts]:
        graph = dask.base.collections_to_expr(items).__dask_graph__()
        n_tasks.append(len(graph))
        return [counts_of(3)] * n_buckets

    monkeypatch.setattr(reduce, "compute_all", counted_tasks)
    counted = db.from_sequence(range(1_000), npartitions=1_000).map(counts_of)
    reduce.reduce_in_memory(counted, n_buckets, 8, "testing", None, str)
    assert n_tasks[0] < 16 * 1_000
