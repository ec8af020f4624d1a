"""What would have made a run faster: rules over its figures. Each gives a sentence with the figures that speak for it,
or nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from dask_bpe.pages.cells import format_bytes, format_seconds
from dask_bpe.run_report.evidence import Evidence

# Runs shorter than this are over before anything is worth a change.
_WORTH_SECONDS = 5.0
# Shares from which a rule speaks.
_MUCH, _MOST = 0.3, 0.5
# Tasks for each thread, so that all of them end at about the same time.
_TASKS_PER_THREAD = 2
# Shards smaller than this, if they are many, cost more to open than to read.
_SMALL_SHARD, _MANY_SHARDS = 16 << 20, 64
# Shares of the whole time from which the beginning and the end of a job are worth a word, and seconds.
_AT_AN_END, _WORTH_START = 0.1, 2.0


def findings(evidence: Evidence) -> list[str]:
    """Sentences, those first that would change most; one that says so when there is nothing."""
    if evidence.run["seconds"] < _WORTH_SECONDS:
        return [
            f"The run took {format_seconds(evidence.run['seconds'])}: too short to say what would have been faster."
        ]
    found = [sentence for rule in _RULES if (sentence := rule(evidence))]
    return found or ["Nothing stands out: all threads were busy to the end, and no stage took what it should not."]


def _lost_runs(evidence: Evidence) -> str | None:
    lost = [run for run in evidence.runs if run["state"] != "finished"]
    if not lost:
        return None
    last = next((run["error"] for run in reversed(lost) if run["error"]), "it was killed")
    return (
        f"{len(lost)} of {len(evidence.runs)} runs did not come to their end (the last one: {last}). What they had done"
        " was not done again, but for the partitions that they were at."
    )


def _one_task(evidence: Evidence) -> str | None:
    """A partition that is so large that the others wait for it."""
    total, threads = sum(evidence.partition_bytes), evidence.run["threads"]
    if not total or threads < 2:
        return None
    largest, path = evidence.largest_partition()
    if largest <= 2 * total / threads or largest < _SMALL_SHARD:
        return None
    return (
        f"One task read {largest / total:.0%} of the input ({format_bytes(largest)} of {path}), while {threads}"
        f" threads could each have had {1 / threads:.0%}: a compressed file cannot be divided. Give it in parts of"
        f" {format_bytes(total / threads / _TASKS_PER_THREAD)} or less, or uncompressed."
    )


def _few_partitions(evidence: Evidence) -> str | None:
    n, threads = evidence.run["partitions"]["total"], evidence.run["threads"]
    if not n or threads < 2 or n >= _TASKS_PER_THREAD * threads:
        return None
    return (
        f"There were {n} partitions for {threads} threads: at the end some had nothing to do. Smaller blocks"
        " (--block-size, block_bytes) give each thread several."
    )


def _idle(evidence: Evidence) -> str | None:
    """Threads that had no task while tasks were to be done."""
    spent, room = sum(evidence.run["spent"].values()), evidence.run["threads"] * _seconds_of_tasks(evidence)
    if not spent or not room:
        return None
    idle = 1 - spent / room
    if idle < _MUCH:
        return None
    return (
        f"Threads had work for {1 - idle:.0%} of the time of the tasks ({format_seconds(spent)} of"
        f" {format_seconds(room)}): {idle:.0%} went by while workers started, or waited for a task or for each other."
    )


def _start(evidence: Evidence) -> str | None:
    """The time until the first text was done."""
    curve, seconds = evidence.run["curves"]["throughput"], evidence.run["seconds"]
    first = next((at for at, rate in zip(curve["seconds"], curve["all"], strict=True) if rate), 0.0)
    if first < _AT_AN_END * seconds or first < _WORTH_START:
        return None
    return (
        f"The first text was done after {format_seconds(first)}, {first / seconds:.0%} of the time: workers had to load"
        " the kernels, or to compile them on a machine that is new. With longer jobs, or a cluster that is kept, it"
        " matters less."
    )


def _slowest(evidence: Evidence) -> str | None:
    slowest, seconds = evidence.run["partitions"]["slowest"], _seconds_of_tasks(evidence)
    if not slowest or evidence.run["partitions"]["total"] < 2 * _TASKS_PER_THREAD:
        return None
    first = slowest[0]
    if first["seconds"] < _MOST * seconds or first["seconds"] < _WORTH_SECONDS:
        return None
    return (
        f"Partition {first['partition']} took {format_seconds(first['seconds'])} of the {format_seconds(seconds)} in"
        " which all were done: look at its text, or at the worker it was on."
    )


def _reading(evidence: Evidence) -> str | None:
    share = share_of(evidence, "reading")
    if share < _MOST:
        return None
    speed = evidence.run["figures"].get("bytes", 0) / 1e6 / evidence.run["spent"]["reading"]
    return (
        f"Reading took {share:.0%} of the tasks' time, {speed:,.0f} MB of text a second and thread: the storage, or the"
        " decompression, is what binds. Faster storage or a lighter compression (zstd, lz4) helps; more threads help"
        " only if the storage serves them."
    )


def _writing(evidence: Evidence) -> str | None:
    share = share_of(evidence, "writing")
    if share < _MUCH:
        return None
    parquet = evidence.manifest is not None and evidence.manifest.format == "parquet"
    way = "--format bin writes the same tokens several times as fast" if parquet else "the storage is what binds"
    return f"Writing shards took {share:.0%} of the tasks' time: {way}."


def _flush(evidence: Evidence) -> str | None:
    seconds = evidence.seconds_of("writing")
    share = seconds / evidence.run["seconds"]
    if share < _AT_AN_END:
        return None
    return (
        f"{share:.0%} of the time ({format_seconds(seconds)}) went by at the end, in flushing shards to the disk and"
        " writing the manifest: the disk takes in less than the threads make."
    )


def _small_shards(evidence: Evidence) -> str | None:
    shards = () if evidence.manifest is None else evidence.manifest.shards
    if len(shards) < _MANY_SHARDS or evidence.manifest is None:
        return None
    mean = evidence.manifest.bytes / len(shards)
    if mean >= _SMALL_SHARD:
        return None
    return (
        f"The {len(shards):,} shards have {format_bytes(mean)} each: larger blocks (--block-size) make fewer files,"
        " which are opened and flushed faster, and read faster in a training."
    )


def _merging(evidence: Evidence) -> str | None:
    seconds = evidence.seconds_of("merging")
    share = seconds / evidence.run["seconds"]
    if share < _MOST:
        return None
    distinct = evidence.run["figures"].get("distinct", 0)
    return (
        f"The merges took {share:.0%} of the time ({format_seconds(seconds)}, {distinct:,} distinct pre-tokens) on one"
        " thread of this process: more workers change nothing. --min-count 2 drops rare pre-tokens and says how many"
        " merges that cannot have changed."
    )


def _reducing(evidence: Evidence) -> str | None:
    share = share_of(evidence, "reducing")
    if share < _MUCH:
        return None
    return (
        f"Adding up the counts took {share:.0%} of the tasks' time: larger blocks (--block-size)"
        " make fewer counts to add, and --min-count 2 smaller ones at the end."
    )


def share_of(evidence: Evidence, activity: str) -> float:
    """The share of an activity in the time of the tasks."""
    total = sum(evidence.run["spent"].values())
    return evidence.run["spent"].get(activity, 0.0) / total if total else 0.0


def _seconds_of_tasks(evidence: Evidence) -> float:
    """How long tasks that read text ran, by the clock."""
    return evidence.seconds_of("counting") + evidence.seconds_of("encoding")


_RULES: tuple[Callable[[Evidence], str | None], ...] = (
    _one_task,
    _few_partitions,
    _idle,
    _start,
    _slowest,
    _reading,
    _writing,
    _merging,
    _reducing,
    _flush,
    _small_shards,
    _lost_runs,
)
