"""Counts of partitions, and these added up, in the files of a folder: what is there is not done again.

Every partition is a task of its own, and so is every sum; they hand each other names of files, not counts. All
partitions are counted before the first are added up, level by level: what fails for good then stops nothing else, and
what is slow is begun twice. A task may run twice at the same time: both write the same bytes, under names of their own
until they are complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask

from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.count_files import CountFile, Result, finish, finished, read_counts, write_counts
from dask_bpe.cluster.count_plan import NAME
from dask_bpe.cluster.laps import Laps
from dask_bpe.cluster.run import partitioned, run
from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.errors import IncompleteError, InputError, OutputError
from dask_bpe.io import paths
from dask_bpe.io.inputs import Bad
from dask_bpe.progress import JobState

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Counting:
    """What all tasks of a job that keeps its counts need.

    Attributes
    ----------
    count : makes the counts of the blocks of a partition; adds the documents that cannot be read to a list.
    patient : whether a partition whose storage fails for good is left for another run; else it stops the job.
    work, counts : the work folder, and the folder of the counts in it.
    plan : the digest of the plan.
    n_buckets : buckets.
    counting, reducing : the names to report parts and sums under.
    """

    count: Callable[[Sequence[Block], list[Bad]], PretokenCounts]
    patient: bool
    work: str
    counts: str
    plan: str
    n_buckets: int
    counting: str
    reducing: str


@dataclass(frozen=True)
class Sum:
    """Files of the counts of a bucket that one task adds up, and what the result is called and `belongs` to."""

    name: str
    belongs: str
    files: tuple[CountFile, ...]


@dataclass(frozen=True)
class Done:
    """What a task reports: what it left, and what that cost; `resumed` if an earlier run had done it."""

    number: int
    result: Result
    seconds: float = 0.0
    worker: str = ""
    resumed: bool = False


@dataclass(frozen=True)
class Failed:
    """A partition or a sum that could not be made, and why. The others go on."""

    number: int
    reason: str


def count_partitions(
    partitions: Sequence[Sequence[Block]], shared: Counting, client: Client | None, state: JobState
) -> tuple[list[Result], dict[int, str]]:
    """Count what an earlier run has not: the results in order, and why others have none, by their numbers.

    `state` is told what became of each. Raises InputError, OutputError, ClusterError.
    """

    def tell(report: Done | Failed) -> None:
        if isinstance(report, Failed):
            state.partition(report.number, "failed")
        else:
            state.partition(report.number, "resumed" if report.resumed else "done", report.seconds, report.worker)

    # Those that take longest begin first: none of them is left to the end.
    order = sorted(enumerate(partitions), key=lambda item: -blocks.n_bytes(item[1]))
    return _compute(order, _count_parts, shared, client, tell)


def add_up(parts: Sequence[Result], shared: Counting, split_every: int, client: Client | None) -> list[Result]:
    """Add up the counts of all partitions, a result per bucket.

    Raises
    ------
    OutputError, ClusterError
    VocabularyError
        A file was damaged after it had been looked at.
    IncompleteError
        Some sums could not be made; the others that wait for none of these are.
    """
    buckets, level = [[part.file_of(bucket) for part in parts] for bucket in range(shared.n_buckets)], 0
    while True:
        level += 1
        last = len(buckets[0]) <= split_every
        size = len(buckets[0]) if last else split_every
        sums = [
            # However it was added up, the counts of a bucket are the same.
            Sum(root_name(bucket), shared.plan, tuple(files))
            if last
            else Sum(
                f"tree-{bucket:03d}-{level}-{start // size:05d}",
                f"{shared.plan} by {split_every}",
                tuple(files[start : start + size]),
            )
            for bucket, files in enumerate(buckets)
            for start in range(0, len(files), size)
        ]
        results, failed = _compute(list(enumerate(sums)), _add_up_files, shared, client)
        if failed:
            first = min(failed)
            raise IncompleteError(
                f"{len(failed)} of {len(sums)} sums of counts could not be made; the first, {sums[first].name}:"
                f" {failed[first]}. All is counted: the same call goes on from there"
            )
        if last:
            return results
        per_bucket = len(results) // shared.n_buckets
        buckets = [
            [result.files[0] for result in results[first : first + per_bucket]]
            for first in range(0, len(results), per_bucket)
        ]


def _compute(
    items: Sequence[tuple[int, Any]],
    function: Callable[..., list[Done | Failed]],
    shared: Counting,
    client: Client | None,
    tell: Callable[[Done | Failed], None] = lambda _: None,
) -> tuple[list[Result], dict[int, str]]:
    """The results of the tasks of numbered items in the order of their numbers, and why others have none."""
    results: dict[int, Result] = {}
    failed: dict[int, str] = {}

    def collect(report: Done | Failed) -> None:
        if report.number in results:
            return
        tell(report)
        if isinstance(report, Failed):
            failed[report.number] = report.reason
        else:
            results[report.number] = report.result

    # As one key of the graph it travels to a worker once, not per task.
    told = dask.delayed(shared, name=f"counting-{shared.plan}-{shared.counting}", traverse=False)
    make = partitioned(items, function, shared=told)
    run(make, len(items), client, collect, lambda n, reason: Failed(items[n][0], reason))
    return [results[number] for number in sorted(results)], failed


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


def _count_parts(parts: Iterable[tuple[int, Sequence[Block]]], shared: Counting, attempt: int) -> list[Done | Failed]:
    """A partition of the bag. The number of the attempt tells Dask that a task is to be done anew."""
    with schedule.task(shared.counting):
        return [_count_part(number, part, shared) for number, part in parts]


def _count_part(number: int, part: Sequence[Block], shared: Counting) -> Done | Failed:
    began = time.perf_counter()
    _see(shared.work)
    name, bad = part_name(number), list[Bad]()
    done = finished(shared.counts, name, shared.plan)
    if done is not None:
        schedule.report(shared.counting, blocks.n_bytes(part))
        return Done(number, done, resumed=True)
    try:
        counts = shared.count(part, bad)
    except InputError as error:
        # Storage that failed for good: the other partitions may do better.
        if not shared.patient or not isinstance(error.__cause__, OSError):
            raise
        return Failed(number, str(error))
    schedule.report(shared.counting)  # raises when the job is over: then another one may work in the folder
    laps = Laps(shared.counting)
    files = [
        write_counts(shared.counts, f"{name}-{bucket:03d}.parquet", dealt)
        for bucket, dealt in enumerate(counts.deal(shared.n_buckets))
    ]
    laps.end("writing")
    result = finish(shared.counts, name, shared.plan, files, bad)
    return Done(number, result, time.perf_counter() - began, schedule.worker_name())


def _see(work: str) -> None:
    """Refuse to count where the work folder is not that of the driver. Raises OutputError."""
    try:
        paths.size_of(paths.join(work, NAME))
    except OSError as error:
        raise OutputError(
            f"{work}: a worker does not see this work folder: it must be one that all machines share, or a URL"
        ) from error


def _add_up_files(sums: Iterable[tuple[int, Sum]], shared: Counting, attempt: int) -> list[Done | Failed]:
    """A partition of the bag, see `_count_parts`."""
    with schedule.task(shared.reducing):
        return [Done(number, _add_up(item, shared)) for number, item in sums]


def _add_up(item: Sum, shared: Counting) -> Result:
    schedule.report(shared.reducing, 1)
    laps = Laps(shared.reducing)
    done = finished(shared.counts, item.name, item.belongs)
    if done is not None:
        return done
    # One after the other: what is added up so far, the next one and their sum are all that is held.
    total = read_counts(shared.counts, item.files[0])
    for file in item.files[1:]:
        total = combine([total, read_counts(shared.counts, file)])
    schedule.report(shared.reducing)
    written = write_counts(shared.counts, f"{item.name}.parquet", total)
    laps.end("reducing")
    return finish(shared.counts, item.name, item.belongs, [written])
