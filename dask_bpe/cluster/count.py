"""Text to counts of pre-tokens: a bag of blocks, counted by workers and added up in a tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import dask.bag as db

from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.contents import Errors, OnError, Reading
from dask_bpe.cluster.count_durably import count_in_folder
from dask_bpe.cluster.count_partition import count_partition, count_partitions, count_texts, count_texts_of
from dask_bpe.cluster.memory import memory_per_task, n_buckets
from dask_bpe.cluster.recorded import recorded
from dask_bpe.cluster.reduce import n_sums_in_memory, reduce_in_memory
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import IncompleteError, InputError, ParameterError, whole_number
from dask_bpe.heaps import expected_distinct
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.source import SourceFile, list_files
from dask_bpe.io.work_folder import WorkFolder, open_work_folder
from dask_bpe.monitor import automatic
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.progress import JobState, Progress, watch

if TYPE_CHECKING:
    from distributed import Client

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# A bag is an iterable too; it has no types that a checker could tell it by.
Source: TypeAlias = Paths | Iterable[str]

# What a partition of a bag is taken to hold, in bytes.
_BAG_PARTITION = 64 << 20


def count_pretokens(
    source: Source,
    *,
    pattern: PatternSpec = "gpt2",
    special_tokens: Sequence[str] = (),
    input_format: InputFormat | None = None,
    errors: Errors = "replace",
    on_error: OnError = "quarantine",
    max_bad: int = 1000,
    block_bytes: int | None = None,
    max_bytes: int | None = None,
    split_every: int = 8,
    min_count: int = 1,
    work_dir: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    memory_per_worker: int | None = None,
    client: Client | None = None,
    progress: Progress | None = None,
) -> PretokenCounts:
    """Count the distinct pre-tokens of a corpus.

    Parameters
    ----------
    source : a path, a folder, a glob, a URL, or a list of those, of files of the formats that `encode_corpus` reads;
        a `dask.bag.Bag` of str or a column of a Dask data frame, a document each; or any other iterable of str, a
        document each, which is read once, in this process.
    pattern : how text is split: "gpt2", a regular expression, or None for whole documents.
    special_tokens : texts that cut the text first and are not counted.
    input_format : which kind of files these are and where in them the text is; by default their names tell.
    errors : about invalid UTF-8: "replace" (by U+FFFD), "skip", or "strict": the document cannot be read.
    on_error : about documents that cannot be read: "quarantine" leaves them out and counts them, and lists them in the
        file ``quarantine.jsonl`` of `work_dir`; without one the first of every task are named. "raise" stops.
    max_bad : more such documents than this are an error.
    block_bytes : text per task; by default chosen by the size of the corpus.
    max_bytes : use only the beginning of the corpus, up to the last whole character. Files only.
    split_every : how many counts are added up by one task of the tree.
    min_count : pre-tokens that occur less often in the whole corpus are dropped, see `PretokenCounts.dropped`.
    work_dir : a folder, or a URL, that all workers see. What is done is kept there, so that the same call goes on where
        an interrupted one stopped, with the same partitions on any cluster, and ends with the same counts. Files only.
        It may be deleted afterwards; it holds a few bytes for a hundred of text.
    overwrite : start again in a `work_dir` in which something was begun.
    memory_per_worker : bytes that a worker may use, by default its Dask limit. Where all distinct pre-tokens are more
        than it can hold, they are dealt to buckets by their hash, and each is added up by itself.
    client : the cluster to run on; by default the active one, else the threads of this process.
    progress : told of the job, see `encode_corpus`; its stages are "planning", "counting" and "reducing".

    Returns
    -------
    PretokenCounts, the same for any `block_bytes`, `split_every`, memory, cluster or order of execution.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
    OutputError, VocabularyError
        About `work_dir`: it cannot be used, another job works in it or was begun in it; a file in it was damaged.
    IncompleteError
        Partitions failed for good: the workers that had them died, or, with a `work_dir`, their storage. In a
        `work_dir` all others are counted, ``failed.jsonl`` lists these, and the same call again counts only them.
    """
    options: dict[str, Any] = {
        "pattern": pattern,
        "special_tokens": special_tokens,
        "input_format": input_format,
        "errors": errors,
        "on_error": on_error,
        "max_bad": max_bad,
        "block_bytes": block_bytes,
        "max_bytes": max_bytes,
        "split_every": split_every,
        "min_count": min_count,
        "memory_per_worker": memory_per_worker,
        "client": client,
    }
    whole = nullcontext() if work_dir is None else open_work_folder(work_dir, overwrite=overwrite)
    with (
        watch("count", named(source), progress or automatic()) as job,
        whole as folder,
        nullcontext() if folder is None else recorded(job, folder.path),
    ):
        return count_within(source, folder, job, **options)


def named(source: Source) -> str:
    """A source in a few words."""
    paths = None if isinstance(source, db.Bag) else as_paths(source)
    if paths is None:
        return f"a bag of {source.npartitions:,} partitions" if isinstance(source, db.Bag) else "an iterable of texts"
    names = [str(path) for path in (paths if isinstance(paths, list | tuple) else [paths])]
    return f"{names[0]} and {len(names) - 1:,} more" if len(names) > 1 else "".join(names)


def count_within(
    source: Source,
    folder: WorkFolder | None,
    job: JobState,
    *,
    pattern: PatternSpec,
    special_tokens: Sequence[str],
    input_format: InputFormat | None,
    errors: Errors,
    on_error: OnError,
    max_bad: int,
    block_bytes: int | None,
    max_bytes: int | None,
    split_every: int,
    min_count: int,
    memory_per_worker: int | None,
    client: Client | None,
) -> PretokenCounts:
    """`count_pretokens` in a work folder that is open, or without one, as part of a job."""
    whole_number("split_every", split_every, 2)
    whole_number("max_bad", max_bad, 0)
    whole_number("min_count", min_count)
    if max_bytes is not None:
        whole_number("max_bytes", max_bytes)
    reading = _reading(pattern, special_tokens, input_format, errors, on_error)
    source = as_bag(source)
    paths = None if isinstance(source, db.Bag) else as_paths(source)
    options: dict[str, Any] = {
        "block_bytes": block_bytes,
        "max_bytes": max_bytes,
        "split_every": split_every,
        "memory_per_worker": memory_per_worker,
        "client": client,
        "job": job,
    }
    if paths is not None and folder is not None:
        files = listed(paths, job)
        count = partial(count_partition, reading=reading)
        counts = _few_bad(count_in_folder(files, reading, count, folder, min_count=min_count, **options), max_bad)
    else:
        if folder is not None:
            raise ParameterError(
                f"{folder.path}: a work_dir is for files: a bag or an iterable may give another text the next time"
            )
        if paths is not None:
            counts = _count_files(listed(paths, job), reading, **options)
        elif isinstance(source, db.Bag):
            client = schedule.active_client(client)
            counts = _count_bag(source, reading, split_every, memory_per_task(client, memory_per_worker), client, job)
        else:
            counts = _count_texts(source, reading, job)
        counts = _few_bad(counts, max_bad).at_least(min_count).ranked()
    job.settle(figures_of(counts))
    return counts


def _reading(
    pattern: PatternSpec,
    special_tokens: Sequence[str],
    input_format: InputFormat | None,
    errors: Errors,
    on_error: OnError,
) -> Reading:
    specials = SpecialTokens(special_tokens)
    return Reading(
        get_pattern(pattern).spec,
        specials.tokens,
        frozenset(range(len(specials.tokens))),
        errors,
        0,
        on_error=on_error,
        how=input_format or InputFormat(),
        special_tokens_in_text="encode",
    )


def figures_of(counts: PretokenCounts) -> dict[str, int]:
    """What a snapshot says of counts."""
    return {
        "bytes": counts.n_bytes,
        "documents": counts.n_documents,
        "invalid": counts.n_invalid,
        "quarantined": counts.n_quarantined,
        "pretokens": counts.total,
        "distinct": len(counts),
    }


def listed(paths: Paths, job: JobState) -> list[SourceFile]:
    """The files of a source; a stage of its own, since there may be many on a slow storage. Raises InputError."""
    job.start("planning", None, "files")
    files = list_files(paths)
    job.advance("planning", len(files))
    job.finish("planning")
    return files


def _count_files(
    files: Sequence[SourceFile],
    reading: Reading,
    *,
    block_bytes: int | None,
    max_bytes: int | None,
    split_every: int,
    memory_per_worker: int | None,
    client: Client | None,
    job: JobState,
) -> PretokenCounts:
    """Counts of files, in the memory of the workers."""
    client = schedule.active_client(client)
    total = sum(file.size for file in files)
    total = total if max_bytes is None else min(total, max_bytes)
    size = blocks.block_size(total, schedule.n_threads(client), block_bytes)
    parts = blocks.gather(blocks.divide(files, size, max_bytes, reading.how), size)
    buckets = n_buckets(2 * expected_distinct(total), memory_per_task(client, memory_per_worker))
    job.divide(len(parts))
    with (
        schedule.job("counting", total, "B", job, client) as counting,
        schedule.job("reducing", n_sums_in_memory(len(parts), buckets, split_every), "sums", job, client) as reducing,
    ):
        bag = db.from_sequence(list(enumerate(parts)), npartitions=len(parts))
        counted = bag.map_partitions(count_partitions, reading=reading, job=counting)
        try:
            counts = reduce_in_memory(
                counted, buckets, split_every, reducing, client, lambda number: blocks.name_of(parts[number])
            )
        except IncompleteError as error:
            raise IncompleteError(
                f"{error}. Nothing is kept: with a work_dir (--work-dir) all the rest would be counted, and stay"
            ) from error
    job.partitions_done()
    return counts


def as_bag(source: Source) -> Source:
    """A column of a Dask data frame as a bag of its values; any other source as it is.

    Raises
    ------
    InputError
        For a data frame: which of its columns is meant, it does not say.
    """
    if isinstance(source, db.Bag) or not hasattr(source, "to_bag"):
        return source
    if hasattr(source, "columns") and getattr(source, "ndim", 1) == 2:
        raise InputError(
            f"a data frame with the columns {list(source.columns)}: give the one with the text, frame[...]"
        )
    bag: Source = source.to_bag()
    return bag


def as_paths(source: Source) -> Paths | None:
    """The source if it is a path or a list of paths; None if it gives documents."""
    return source if isinstance(source, str | os.PathLike | list | tuple) else None


def as_documents(texts: Source) -> Iterator[str]:
    """The documents of a source that is neither paths nor a bag. Raises InputError when it has none."""
    try:
        return iter(cast("Iterable[str]", texts))
    except TypeError:
        raise InputError(
            f"a source of type {type(texts).__name__} holds no text: give paths, a bag or an iterable of str"
        ) from None


def _count_bag(
    bag: db.Bag, reading: Reading, split_every: int, memory: int, client: Client | None, job: JobState
) -> PretokenCounts:
    """Counts of a bag of texts, whose size nobody knows: its partitions are taken to be large ones."""
    n_parts = bag.npartitions
    numbers = db.from_sequence(range(n_parts), npartitions=n_parts)
    buckets = n_buckets(2 * expected_distinct(n_parts * _BAG_PARTITION), memory)
    job.divide(n_parts)
    with (
        schedule.job("counting", None, "B", job, client) as counting,
        schedule.job("reducing", n_sums_in_memory(n_parts, buckets, split_every), "sums", job, client) as reducing,
    ):
        counted = bag.map_partitions(count_texts_of, numbers, reading=reading, job=counting)
        counts = reduce_in_memory(
            counted, buckets, split_every, reducing, client, lambda number: f"partition {number} of the bag"
        )
        job.reach("counting", counts.n_bytes)
    job.partitions_done()
    return _not_empty(counts)


def _count_texts(source: Source, reading: Reading, job: JobState) -> PretokenCounts:
    """Counts of an iterable, which is read here."""
    texts = as_documents(source)
    with schedule.job("counting", None, "B", job, None) as counting:
        return _not_empty(count_texts(texts, reading, counting, 0))


def _few_bad(counts: PretokenCounts, most: int) -> PretokenCounts:
    if counts.n_quarantined > most:
        raise InputError(
            f"{counts.n_quarantined} documents cannot be read, more than max_bad={most}: mend them, or allow more;"
            " on_error='raise' says which is the first"
        )
    if counts.n_quarantined and not counts.n_documents:
        raise InputError(
            f"no text input: none of the {counts.n_quarantined} documents can be read; on_error='raise' says why"
        )
    return counts


def _not_empty(counts: PretokenCounts) -> PretokenCounts:
    if counts.n_bytes == 0:
        raise InputError("the source holds no text: there is nothing to count")
    return counts
