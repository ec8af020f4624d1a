"""Counts of partitions added up in trees, one per bucket: so that no worker ever holds all distinct pre-tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import dask
import dask.bag as db
from dask.delayed import Delayed

from dask_bpe.cluster import schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.count_files import Result, finish, finished, read_counts, write_counts
from dask_bpe.cluster.count_plan import NAME
from dask_bpe.cluster.laps import Laps
from dask_bpe.counts import HEAPS_EXPONENT, PretokenCounts, combine
from dask_bpe.errors import OutputError
from dask_bpe.io import paths
from dask_bpe.io.inputs import Bad

if TYPE_CHECKING:
    from distributed import Client

# So often a worker may be lost, or a read fail, before a task counts as failed.
_RETRIES = 2


@dataclass(frozen=True)
class Counting:
    """What all tasks of a job that keeps its counts need.

    Attributes
    ----------
    count : makes the counts of the blocks of a partition; adds the documents that cannot be read to a list.
    work, counts : the work folder, and the folder of the counts in it.
    plan : the digest of the plan.
    n_buckets : buckets.
    counting, reducing : the names to report parts and sums under.
    """

    count: Callable[[int, Sequence[Block], list[Bad]], PretokenCounts]
    work: str
    counts: str
    plan: str
    n_buckets: int
    counting: str
    reducing: str


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
    counted: db.Bag, n_buckets: int, split_every: int, job: str, client: Client | None
) -> PretokenCounts:
    """Add up a bag of counts; `n_buckets` results come to this process, which joins them. `job`: to report under.

    To deal all partitions to buckets would take a task for each bucket of each. So neighbours are added up first, as
    long as their sum is no larger than a bucket.
    """
    for size in _group_sizes(counted.npartitions, n_buckets, split_every):
        counted = _in_groups(counted, size, job)
    add = partial(_add_up_items, job=job, whole=n_buckets == 1)
    if n_buckets == 1:
        total = counted.reduction(_combine_items, add, split_every=split_every)
        counts: PretokenCounts = schedule.compute(total, client)
        return counts
    dealt = counted.map(PretokenCounts.deal, n_buckets)
    # Not optimized: each bucket by itself, counting would be made one task with what follows, and done for each.
    buckets = [
        dealt.pluck(bucket).reduction(_combine_items, add, split_every=split_every).to_delayed(optimize_graph=False)
        for bucket in range(n_buckets)
    ]
    return combine(compute_all(buckets, client))


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
    parts, add = counted.to_delayed(), dask.delayed(_add_up_partitions, pure=False)
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


def reduce_in_folder(
    partitions: Sequence[Sequence[Block]], shared: Counting, split_every: int, client: Client | None
) -> list[Result]:
    """Count partitions and add up the counts, all of it in the files of a folder; a result per bucket.

    What is there already and intact is not done again.

    Raises
    ------
    InputError, OutputError, VocabularyError
        The last for a file that was damaged after it had been looked at.
    """
    common = dask.delayed(shared, traverse=False)
    count, add = dask.delayed(_count_part, pure=False), dask.delayed(_add_up, pure=False)
    parts = [count(number, part, common) for number, part in enumerate(partitions)]
    roots: list[Delayed] = []
    for bucket in range(shared.n_buckets):
        nodes, level = parts, 0
        while len(nodes) > split_every:
            level += 1
            nodes = [
                add(
                    nodes[start : start + split_every],
                    bucket,
                    f"tree-{bucket:03d}-{level}-{number:05d}",
                    f"{shared.plan} by {split_every}",
                    common,
                )
                for number, start in enumerate(range(0, len(nodes), split_every))
            ]
        # However it was added up, the counts of a bucket are the same.
        roots.append(add(nodes, bucket, root_name(bucket), shared.plan, common))
    return compute_all(roots, client)


def part_name(number: int) -> str:
    """The name of the result of a partition."""
    return f"part-{number:05d}"


def root_name(bucket: int) -> str:
    """The name of the result with all counts of a bucket."""
    return f"bucket-{bucket:03d}"


def finished_roots(counts: str, plan: str, n_buckets: int) -> list[Result] | None:
    """The results of all buckets, if an earlier run has come so far; else None. Raises OutputError."""
    roots: list[Result] = []
    for bucket in range(n_buckets):
        root = finished(counts, root_name(bucket), plan)
        if root is None:
            return None
        roots.append(root)
    return roots


def compute_all(items: Sequence[Delayed], client: Client | None) -> list[Any]:
    """Compute Dask collections together, each result by itself, where `schedule.compute` would."""
    if client is None:
        return list(dask.compute(*items, scheduler=dask.config.get("scheduler", None) or "threads"))
    return schedule.results_of(client.compute(list(items), retries=_RETRIES), client)


def _count_part(number: int, part: Sequence[Block], shared: Counting) -> Result:
    _see(shared.work)
    name = part_name(number)
    done = finished(shared.counts, name, shared.plan)
    if done is not None:
        schedule.report(shared.counting, sum(block.stop - block.start for block in part), resumed=1)
        return done
    bad: list[Bad] = []
    counts = shared.count(number, part, bad)
    with schedule.task(shared.counting):
        laps = Laps(shared.counting)
        files = [
            write_counts(shared.counts, f"{name}-{bucket:03d}.parquet", dealt)
            for bucket, dealt in enumerate(counts.deal(shared.n_buckets))
        ]
        laps.end("writing")
        return finish(shared.counts, name, shared.plan, files, bad)


def _see(work: str) -> None:
    """Refuse to count where the work folder is not that of the driver. Raises OutputError."""
    try:
        paths.size_of(paths.join(work, NAME))
    except OSError as error:
        raise OutputError(
            f"{work}: a worker does not see this work folder: it must be one that all machines share, or a URL"
        ) from error


def _add_up(parts: Sequence[Result], bucket: int, name: str, belongs: str, shared: Counting) -> Result:
    with schedule.task(shared.reducing):
        schedule.report(shared.reducing, 1)
        laps = Laps(shared.reducing)
        files = [part.file_of(bucket) for part in parts]
        done = finished(shared.counts, name, belongs)
        if done is not None:
            return done
        # One after the other: what is added up so far, the next one and their sum are all that is held.
        total = read_counts(shared.counts, files[0])
        for file in files[1:]:
            total = combine([total, read_counts(shared.counts, file)])
        written = write_counts(shared.counts, f"{name}.parquet", total)
        laps.end("reducing")
        return finish(shared.counts, name, belongs, [written])
