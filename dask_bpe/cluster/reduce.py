"""Counts added up in the memory of workers, in trees, one per bucket: none ever holds all distinct pre-tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import dask
import dask.bag as db
from dask.core import get_dependencies

from dask_bpe.cluster import schedule
from dask_bpe.cluster.compute import DIED, compute_all
from dask_bpe.cluster.laps import Laps
from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.errors import IncompleteError
from dask_bpe.heaps import HEAPS_EXPONENT

if TYPE_CHECKING:
    from distributed import Client


def n_sums(n_parts: int, split_every: int) -> int:
    """Tasks of the tree that adds up so many parts."""
    sums = 1
    while n_parts > split_every:
        n_parts = -(-n_parts // split_every)
        sums += n_parts
    return sums


def n_sums_in_memory(n_parts: int, n_buckets: int, split_every: int) -> int:
    """Tasks that add up, of `reduce_in_memory`."""
    sums = 0
    for size in _group_sizes(n_parts, n_buckets, split_every):
        n_parts = -(-n_parts // size)
        sums += n_parts
    return sums + n_buckets * n_sums(n_parts, split_every)


def reduce_in_memory(
    counted: db.Bag, n_buckets: int, split_every: int, job: str, client: Client | None, name_of: Callable[[int], str]
) -> PretokenCounts:
    """Add up a bag of counts; `n_buckets` results come to this process, which joins them.

    To deal all partitions to buckets would take a task for each bucket of each. So neighbours are added up first, as
    long as their sum is no larger than a bucket. All is one graph, so that counts are added up where they are, and
    forgotten; when a part of it fails for good nothing is left.

    job : to report under.
    name_of : says what partition it is that has some number.

    Raises
    ------
    IncompleteError
        The workers that had a task died, one after the other.
    ClusterError
        When there have been no workers for a minute.
    """
    # Optimized by itself: together with what follows, it would be done once for each bucket.
    (counted,) = dask.optimize(counted)
    parts = counted
    for size in _group_sizes(counted.npartitions, n_buckets, split_every):
        parts = _in_groups(parts, size, job)
    add = partial(_add_up_items, job=job, whole=n_buckets == 1)
    shares = [parts]
    if n_buckets > 1:
        dealt = parts.map(PretokenCounts.deal, n_buckets)
        shares = [dealt.pluck(bucket) for bucket in range(n_buckets)]
    sums = [share.reduction(_combine_items, add, split_every=split_every) for share in shares]
    try:
        return combine(compute_all([total.to_delayed(optimize_graph=False) for total in sums], client))
    except IncompleteError as error:
        raise IncompleteError(_what_died(error, counted, name_of)) from error


def _what_died(error: IncompleteError, counted: db.Bag, name_of: Callable[[int], str]) -> str:
    """Which task of a graph it was, as far as Dask knows: it blames all that a worker had when it died."""
    died, graph = getattr(error.__cause__, "task", None), dict(counted.__dask_graph__())
    for number, key in enumerate(counted.__dask_keys__()):
        needed = [key]
        while needed:
            key = needed.pop()
            if key == died:
                return f"{name_of(number)} could not be counted: {DIED} (or because of a task beside it)"
            if key in graph:
                needed += get_dependencies(graph, key)
                del graph[key]
    return str(error)


def _group_sizes(n_parts: int, n_buckets: int, split_every: int) -> list[int]:
    """How many neighbours are added up by one task before they are dealt to buckets, level by level.

    By Heaps' law the sum of a group has as many distinct pre-tokens as a bucket when there are n_buckets ** (1 / 0.62)
    groups.
    """
    n_groups, sizes = math.ceil(n_buckets ** (1 / HEAPS_EXPONENT)), []
    while n_buckets > 1 and n_parts > n_groups:
        sizes.append(min(split_every, -(-n_parts // n_groups)))
        n_parts = -(-n_parts // sizes[-1])
    return sizes


def _in_groups(counted: db.Bag, size: int, job: str) -> db.Bag:
    """A bag whose partitions are the sums of so many neighbouring ones each."""
    parts, add = counted.to_delayed(optimize_graph=False), dask.delayed(_add_up_partitions, pure=False)
    return db.from_delayed([add(parts[start : start + size], job) for start in range(0, len(parts), size)])


def _add_up_partitions(partitions: Sequence[Sequence[PretokenCounts]], job: str) -> list[PretokenCounts]:
    return [_add_up_items(chain.from_iterable(partitions), job, whole=False)]


def _combine_items(parts: Iterable[PretokenCounts]) -> PretokenCounts:
    return combine(parts)


def _add_up_items(parts: Iterable[PretokenCounts], job: str, whole: bool) -> PretokenCounts:
    with schedule.task(job):
        laps = Laps(job)
        counts = combine(parts)
        laps.end("reducing")
        schedule.report(job, 1)
        if whole:
            schedule.grown(job, counts.n_bytes, len(counts))
    return counts
