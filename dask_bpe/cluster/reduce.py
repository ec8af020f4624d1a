"""Counts of partitions added up in trees, one per bucket: so that no worker ever holds all distinct pre-tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask
import dask.bag as db
from dask.delayed import Delayed

from dask_bpe.cluster import schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.count_files import Result, finish, finished, read_counts, write_counts
from dask_bpe.cluster.count_plan import NAME
from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.errors import OutputError
from dask_bpe.io import paths

if TYPE_CHECKING:
    from distributed import Client

# So often a worker may be lost, or a read fail, before a task counts as failed.
_RETRIES = 2


@dataclass(frozen=True)
class Counting:
    """What all tasks of a job that keeps its counts need.

    Attributes
    ----------
    count : makes the counts of the blocks of a partition.
    work, counts : the work folder, and the folder of the counts in it.
    plan : the digest of the plan.
    n_buckets : buckets.
    job : the name to report under.
    """

    count: Callable[[Sequence[Block]], PretokenCounts]
    work: str
    counts: str
    plan: str
    n_buckets: int
    job: str


def reduce_in_memory(counted: db.Bag, n_buckets: int, split_every: int, client: Client | None) -> PretokenCounts:
    """Add up a bag of counts; `n_buckets` results come to this process, which joins them."""
    if n_buckets == 1:
        total = counted.reduction(_combine_items, _combine_items, split_every=split_every)
        counts: PretokenCounts = schedule.compute(total, client)
        return counts
    dealt = counted.map(PretokenCounts.deal, n_buckets)
    buckets = [
        dealt.pluck(bucket).reduction(_combine_items, _combine_items, split_every=split_every).to_delayed()
        for bucket in range(n_buckets)
    ]
    return combine(compute_all(buckets, client))


def _combine_items(parts: Iterable[PretokenCounts]) -> PretokenCounts:
    return combine(parts)


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
    with schedule.task(shared.job):
        _see(shared.work)
        name = f"part-{number:05d}"
        done = finished(shared.counts, name, shared.plan)
        if done is not None:
            schedule.report(shared.job, sum(block.stop - block.start for block in part))
            return done
        dealt = shared.count(part).deal(shared.n_buckets)
        files = [
            write_counts(shared.counts, f"{name}-{bucket:03d}.parquet", counts) for bucket, counts in enumerate(dealt)
        ]
        return finish(shared.counts, name, shared.plan, files)


def _see(work: str) -> None:
    """Refuse to count where the work folder is not that of the driver. Raises OutputError."""
    try:
        paths.size_of(paths.join(work, NAME))
    except OSError as error:
        raise OutputError(
            f"{work}: a worker does not see this work folder: it must be one that all machines share, or a URL"
        ) from error


def _add_up(parts: Sequence[Result], bucket: int, name: str, belongs: str, shared: Counting) -> Result:
    with schedule.task(shared.job):
        files = [part.file_of(bucket) for part in parts]
        done = finished(shared.counts, name, belongs)
        if done is not None:
            return done
        # One after the other: what is added up so far, the next one and their sum are all that is held.
        total = read_counts(shared.counts, files[0])
        for file in files[1:]:
            total = combine([total, read_counts(shared.counts, file)])
        return finish(shared.counts, name, belongs, [write_counts(shared.counts, f"{name}.parquet", total)])
