"""Counting that can be interrupted: plan, partitions, sums and the whole are files of a work folder, in this order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from typing import TYPE_CHECKING

import dask

from dask_bpe import machine
from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.compute import compute
from dask_bpe.cluster.contents import Reading
from dask_bpe.cluster.count_files import Result, left_out, read_counts
from dask_bpe.cluster.count_plan import CountJob, CountPlan
from dask_bpe.cluster.memory import fit_in, memory_per_task, n_buckets
from dask_bpe.cluster.reduce import n_sums
from dask_bpe.cluster.reduce_durably import Counting, add_up, count_partitions, finished_roots, part_name
from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.errors import IncompleteError, InputError, OutputError
from dask_bpe.heaps import expected_distinct
from dask_bpe.io import failures, paths, quarantine, records
from dask_bpe.io.atomic import File, atomic_write
from dask_bpe.io.failures import Failure, write_failures
from dask_bpe.io.folders import make_folder
from dask_bpe.io.source import SourceFile
from dask_bpe.io.work_folder import WorkFolder
from dask_bpe.progress import JobState

if TYPE_CHECKING:
    from distributed import Client

WHOLE, RECORD = "counts.parquet", "counts.json"
KIND = "dask_bpe.counts.whole"
VERSION = 1
# Blocks that are counted twice to learn how the number of distinct pre-tokens grows.
_SAMPLED = 4
# So many of the partitions that failed are named by the error.
_NAMED = 3


def count_in_folder(
    files: Sequence[SourceFile],
    reading: Reading,
    count: Callable[..., PretokenCounts],
    folder: WorkFolder,
    *,
    block_bytes: int | None,
    max_bytes: int | None,
    split_every: int,
    min_count: int,
    memory_per_worker: int | None,
    client: Client | None,
    job: JobState,
) -> PretokenCounts:
    """Count files, keeping all that is done in a work folder, and going on from what is there.

    count : makes the counts of a partition, ``count(blocks, bad, job=...)``. The others are those of
        `count_pretokens`.

    Raises
    ------
    InputError, OutputError, ParameterError, VocabularyError, ClusterError
    IncompleteError
        Some partitions failed for good; the others are counted.
    """
    wanted = CountJob.of(files, reading, max_bytes)
    plan = CountPlan.read(folder, wanted, block_bytes)
    if plan is not None:
        whole = _read_whole(folder, plan, min_count)
        if whole is not None:
            return whole
        roots = finished_roots(folder.counts, plan.digest, plan.n_buckets)
        if roots is not None:
            return _join(roots, folder, plan, min_count)
    client = schedule.active_client(client)
    total = sum(file.size for file in files)
    total = total if max_bytes is None else min(total, max_bytes)
    with schedule.job("counting", total, "B", job, client) as counting:
        if plan is None:
            size = blocks.block_size(total, schedule.n_threads(client), block_bytes)
            parts = blocks.gather(blocks.divide(files, size, max_bytes, reading.how), size)
            buckets = _choose_buckets(parts, total, count, memory_per_task(client, memory_per_worker), client)
            plan = CountPlan(wanted.to_json(), size, buckets, tuple(map(tuple, parts)))
            plan.write(folder)
        make_folder(folder.counts)
        job.divide(len(plan.partitions))
        sums = plan.n_buckets * n_sums(len(plan.partitions), split_every)
        with schedule.job("reducing", sums, "sums", job, client) as reducing:
            shared = Counting(
                partial(count, job=counting),
                reading.on_error != "raise",
                folder.path,
                folder.counts,
                plan.digest,
                plan.n_buckets,
                counting,
                reducing,
            )
            counted, failed = count_partitions(plan.partitions, shared, client, job)
            _record(failed, plan, folder)
            roots = add_up(counted, shared, split_every, client)
    return _join(roots, folder, plan, min_count)


def _record(failed: Mapping[int, str], plan: CountPlan, folder: WorkFolder) -> None:
    """Keep a list of the partitions that failed, as long as there are any. Raises IncompleteError then."""
    found = [(number, plan.partitions[number], failed[number]) for number in sorted(failed)]
    write_failures(
        folder.path,
        (
            Failure(number, reason, [(block.path, block.start, block.stop) for block in part])
            for number, part, reason in found
        ),
    )
    if found:
        named = [f"number {number}, {blocks.name_of(part)}: {reason}" for number, part, reason in found[:_NAMED]]
        more = f"; and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        raise IncompleteError(
            f"{len(found):,} of {len(plan.partitions):,} partitions could not be counted: {'; '.join(named)}{more}"
            f" (listed in {folder / failures.NAME}). The rest is counted: the same call again counts only these"
        )


def _read_whole(folder: WorkFolder, plan: CountPlan, min_count: int) -> PretokenCounts | None:
    """The counts of an earlier run that came to its end; None if there are none, or not these, or they are damaged."""
    try:
        content = records.find(folder / RECORD, KIND, VERSION)
        if content is None or (content["plan"], content["min_count"]) != (plan.digest, min_count):
            return None
        if not File(*content["file"]).is_whole(folder.path):
            return None
    except OSError as error:
        raise OutputError(f"cannot read {folder / WHOLE}: {paths.one_line(error)}") from error
    return PretokenCounts.from_parquet(folder / WHOLE)


def _join(roots: Sequence[Result], folder: WorkFolder, plan: CountPlan, min_count: int) -> PretokenCounts:
    """Make one of the counts of all buckets, without the rare ones, and keep it."""
    files = [root.files[0] for root in roots]
    if min_count == 1:
        # Both sides of the last sum, and the sum; then the order of first occurrence.
        rows, n_bytes = sum(file.n_strings for file in files), sum(file.n_bytes for file in files)
        fit_in(f"joining {rows:,} distinct pre-tokens", 2 * (32 * rows + n_bytes) + 16 * rows, machine.memory_limit())
    counts = combine([read_counts(folder.counts, file).at_least(min_count) for file in files]).ranked()
    if counts.n_quarantined:
        bad = left_out(folder.counts, map(part_name, range(len(plan.partitions))))
        with atomic_write(folder / quarantine.NAME) as file:
            file.write(quarantine.to_lines(bad))
    size, checksum = counts.to_parquet(folder / WHOLE)
    written = File(WHOLE, size, checksum)
    content = {"plan": plan.digest, "min_count": min_count, "file": list(astuple(written))}
    records.write(folder / RECORD, KIND, VERSION, content)
    folder.clear_sums()
    folder.clear_temporary()  # of workers that died
    return counts


def _choose_buckets(
    parts: Sequence[Sequence[Block]],
    total: int,
    count: Callable[..., PretokenCounts],
    memory: int,
    client: Client | None,
) -> int:
    """Into how many buckets the pre-tokens are dealt: one, unless a worker could not hold them all."""
    expected = float(expected_distinct(total))
    if n_buckets(4 * expected, memory) == 1 or len(parts) <= _SAMPLED:
        return n_buckets(2 * expected, memory)
    # How fast they grow differs by languages more than by anything else: so a sample says it.
    sample = [parts[k * len(parts) // _SAMPLED] for k in range(_SAMPLED)]
    counted = [dask.delayed(count, pure=False)(part, [], job="sampling") for part in sample]
    try:
        part_bytes, part, whole_bytes, whole = compute(dask.delayed(_distinct, pure=False)(counted), client)
    except (IncompleteError, InputError):
        return n_buckets(2 * expected, memory)  # what cannot be counted will be named when all the rest is
    return n_buckets(_extrapolated(part_bytes, part, whole_bytes, whole, total), memory)


def _distinct(counts: Sequence[PretokenCounts]) -> tuple[float, float, float, float]:
    """Bytes and distinct pre-tokens of a part, on average, and of all parts together."""
    whole, n = combine(counts), len(counts)
    return whole.n_bytes / n, sum(map(len, counts)) / n, float(whole.n_bytes), float(len(whole))


def _extrapolated(part_bytes: float, part: float, whole_bytes: float, whole: float, total: int) -> float:
    """Distinct pre-tokens of `total` bytes by Heaps' law through two points. The power falls: it is an upper bound."""
    if not part or whole_bytes <= part_bytes:
        return float(expected_distinct(total))
    power = math.log(whole / part) / math.log(whole_bytes / part_bytes)
    return float(whole * (max(total, whole_bytes) / whole_bytes) ** power)
