"""Corpora measured with several tokenizers at once, on all partitions or on a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import dask
import dask.bag as db

from dask_bpe.analysis.measure import Amount, Cost, Part, join
from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.compute import compute
from dask_bpe.cluster.count import Source, as_bag, as_documents, as_paths
from dask_bpe.cluster.measure_partition import (
    Report,
    Task,
    Unread,
    Wanted,
    check_groups,
    measure_documents,
    measure_tasks,
)
from dask_bpe.cluster.planning.sample_pieces import choose
from dask_bpe.cluster.run import partitioned, run
from dask_bpe.errors import IncompleteError
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.source import SourceFile, list_files
from dask_bpe.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

# Bytes of a block, unless there would be very many.
_BLOCK, _MANY_BLOCKS = 16 << 20, 10_000
# Samples begin at a document start if there is one within so many bytes.
_PATIENCE = 1 << 20

Measured: TypeAlias = tuple[Amount, tuple[Cost, ...]]


@dataclass(frozen=True)
class Result:
    """What was measured.

    Attributes
    ----------
    groups : by name, the text and the cost with each tokenizer.
    unread : what could not be read.
    sampled : bytes of files that were read of those that there are; None if all were.
    """

    groups: dict[str, Measured]
    unread: Unread
    sampled: int | None


def measure(
    corpora: Mapping[str | None, Source],
    wanted: Wanted,
    *,
    sample: int | None = None,
    block_bytes: int | None = None,
    client: Client | None = None,
    progress: Progress | None = None,
) -> Result:
    """Measure corpora: paths, bags or iterables of str, each under its name.

    Documents of a corpus without a name (None) are measured under their own ids. Of files about `sample` bytes of each
    corpus are read, if that is given: up to 64 pieces spread over it, the same every time.

    Raises
    ------
    InputError, ClusterError
    IncompleteError
        A partition failed for good.
    """
    client = schedule.active_client(client)
    parts: dict[str, list[Part]] = {}
    unread = Unread()
    files: dict[str | None, list[SourceFile]] = {}
    for name, source in corpora.items():
        texts = as_bag(source)
        paths = None if isinstance(texts, db.Bag) else as_paths(texts)
        if paths is not None:
            files[name] = list_files(paths)
            continue
        measured = _measure_texts(texts, wanted, client)
        parts[str(name)] = [part for part, _ in measured]
        unread = sum((bad for _, bad in measured), unread)
    tasks, sampled = _tasks(files, wanted.reading.how, sample, schedule.n_threads(client), block_bytes)
    if tasks:
        patience = (block_bytes or _BLOCK) if sampled is None else _PATIENCE
        reading = replace(wanted.reading, patience=patience)
        reports = _run(tasks, replace(wanted, reading=reading), client, progress or Progress())
        parts |= _by_group(tasks, reports, wanted)
        unread = sum((report.unread for report in reports), unread)
    named = [name for name in corpora if name in parts]
    return Result({name: _joined(parts[name], wanted) for name in dict.fromkeys([*named, *parts])}, unread, sampled)


def _tasks(
    files: Mapping[str | None, Sequence[SourceFile]],
    how: InputFormat,
    sample: int | None,
    n_threads: int,
    block_bytes: int | None,
) -> tuple[list[Task], int | None]:
    """The partitions of all corpora, and how many bytes they are of if not of all."""
    total = sum(file.size for several in files.values() for file in several)
    size = blocks.block_size(total, n_threads, block_bytes)
    size = size if block_bytes else min(size, max(_BLOCK, total // _MANY_BLOCKS))
    tasks: list[Task] = []
    is_sample = False
    for name, several in files.items():
        if sample is None or sample >= sum(file.size for file in several):
            for part in blocks.gather(blocks.divide(several, size, how=how), size):
                tasks.append(Task(len(tasks), name, tuple(part)))
            continue
        is_sample = True
        for piece in choose(several, sample, how):
            tasks.append(Task(len(tasks), name, piece.blocks, piece))
    return tasks, sum(task.n_bytes for task in tasks) if is_sample else None


def _run(tasks: list[Task], wanted: Wanted, client: Client | None, view: Progress) -> list[Report]:
    """The reports of all tasks in their order."""
    reports: dict[int, Report] = {}
    with schedule.job("measuring", sum(task.n_bytes for task in tasks), "B", view, client) as job:
        # One key of the graph, see `encode`.
        shared = dask.delayed((wanted, job), name=f"wanted-{job}", traverse=False)

        def collect(report: Report) -> None:
            if report.failure:
                raise IncompleteError(f"partition {report.index} could not be measured: {report.failure}")
            reports[report.index] = report

        make = partitioned(tasks, measure_tasks, shared=shared)
        run(make, len(tasks), client, collect, lambda n, reason: Report(tasks[n].index, {}, failure=reason))
    return [reports[index] for index in sorted(reports)]


def _by_group(tasks: Sequence[Task], reports: Sequence[Report], wanted: Wanted) -> dict[str, list[Part]]:
    """The parts of each group in their order. What a sample has cut off stays so."""
    parts: dict[str, list[Part]] = {}
    for task, report in zip(tasks, reports, strict=True):
        for group, part in report.parts.items():
            parts.setdefault(group, []).append(Part(*_joined([part], wanted)) if task.piece else part)
        check_groups(len(parts), wanted.reading.how)
    return parts


def _joined(parts: Sequence[Part], wanted: Wanted) -> Measured:
    return join(parts, len(wanted.tokenizers), wanted.contexts)


def _measure_texts(texts: Source, wanted: Wanted, client: Client | None) -> list[tuple[Part, Unread]]:
    """The parts of a bag, or the one of an iterable that is read here."""
    if not isinstance(texts, db.Bag):
        return measure_documents(as_documents(texts), wanted)
    bag: Any = texts.map_partitions(measure_documents, wanted=dask.delayed(wanted, traverse=False))
    measured: list[tuple[Part, Unread]] = compute(bag, client)
    return measured
