"""Text to counts of pre-tokens: a bag of blocks, counted by workers and added up in a tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import dask.bag as db
import numpy as np
import numpy.typing as npt

from dask_bpe.cluster import blocks, contents, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.contents import END, Content, Errors, OnError, Reading, describe
from dask_bpe.cluster.count_durably import count_in_folder
from dask_bpe.cluster.memory import memory_per_task, n_buckets
from dask_bpe.cluster.reduce import reduce_in_memory
from dask_bpe.counts import CountTable, PretokenCounts, expected_distinct
from dask_bpe.errors import InputError, ParameterError, whole_number
from dask_bpe.io.inputs import Bad, InputFormat
from dask_bpe.io.source import list_files
from dask_bpe.io.work_folder import WorkFolder, open_work_folder
from dask_bpe.pretokenize import PatternSpec, Scanner, SpecialTokens, get_pattern
from dask_bpe.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# A bag is an iterable too; it has no types that a checker could tell it by.
Source: TypeAlias = Paths | Iterable[str]
Int64s = npt.NDArray[np.int64]

# Partition k of a bag of texts stands at k << _PARTITION in the corpus: nobody knows its size beforehand.
_PARTITION = 44
# So many documents that cannot be read a task names.
_NAMED = 5
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
    on_error : about documents that cannot be read: "quarantine" leaves them out and counts them, "raise" stops.
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
    progress : told of the bytes counted, as stage "counting".

    Returns
    -------
    PretokenCounts, the same for any `block_bytes`, `split_every`, memory, cluster or order of execution.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
    OutputError, VocabularyError
        About `work_dir`: it cannot be used, another job works in it or was begun in it; a file in it was damaged.
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
        "progress": progress,
    }
    if work_dir is None:
        return count_within(source, None, **options)
    with open_work_folder(work_dir, overwrite=overwrite) as folder:
        return count_within(source, folder, **options)


def count_within(
    source: Source,
    folder: WorkFolder | None,
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
    progress: Progress | None,
) -> PretokenCounts:
    """`count_pretokens` in a work folder that is open, or without one."""
    whole_number("split_every", split_every, 2)
    whole_number("max_bad", max_bad, 0)
    whole_number("min_count", min_count)
    if max_bytes is not None:
        whole_number("max_bytes", max_bytes)
    specials = SpecialTokens(special_tokens)
    spec = get_pattern(pattern).spec
    everything = frozenset(range(len(specials.tokens)))
    reading = Reading(
        spec,
        specials.tokens,
        everything,
        errors,
        0,
        on_error=on_error,
        how=input_format or InputFormat(),
        special_tokens_in_text="encode",
    )
    view = progress or Progress()
    source = as_bag(source)
    paths = None if isinstance(source, db.Bag) else as_paths(source)
    if paths is None:
        if folder is not None:
            raise ParameterError(
                f"{folder.path}: a work_dir is for files: a bag or an iterable may give another text the next time"
            )
        client = schedule.active_client(client)
        if isinstance(source, db.Bag):
            memory = memory_per_task(client, memory_per_worker)
            counts = _count_bag(source, reading, split_every, memory, client, view)
        else:
            counts = _count_texts(source, reading, view)
        return _few_bad(counts, max_bad).at_least(min_count).ranked()
    files = list_files(paths)
    if folder is not None:
        counts = count_in_folder(
            files,
            reading,
            partial(_count_partition, reading=reading),
            folder,
            block_bytes=block_bytes,
            max_bytes=max_bytes,
            split_every=split_every,
            min_count=min_count,
            memory_per_worker=memory_per_worker,
            client=client,
            progress=view,
        )
        return _few_bad(counts, max_bad)
    client = schedule.active_client(client)
    total = sum(file.size for file in files)
    total = total if max_bytes is None else min(total, max_bytes)
    size = blocks.block_size(total, schedule.n_threads(client), block_bytes)
    parts = blocks.gather(blocks.divide(files, size, max_bytes, reading.how), size)
    buckets = n_buckets(2 * expected_distinct(total), memory_per_task(client, memory_per_worker))
    with schedule.job("counting", total, "B", view, client) as job:
        bag = db.from_sequence(parts, npartitions=len(parts))
        counted = bag.map_partitions(_count_partitions, reading=reading, job=job)
        counts = reduce_in_memory(counted, buckets, split_every, client)
    return _few_bad(counts, max_bad).at_least(min_count).ranked()


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


def _count_partitions(parts: Iterable[Sequence[Block]], reading: Reading, job: str) -> list[PretokenCounts]:
    return [_count_partition(part, reading, job) for part in parts]


def _count_partition(part: Sequence[Block], reading: Reading, job: str) -> PretokenCounts:
    """The counts of the blocks that a task reads."""
    with schedule.task(job):
        table = CountTable(expected_distinct(sum(block.stop - block.start for block in part)))
        scanner = Scanner(get_pattern(reading.pattern))
        totals = np.zeros(4, np.int64)
        for block in part:
            for content in blocks.read(block, reading):
                if isinstance(content, Bad):
                    totals[3] += 1
                    _say(content, int(totals[3]), job)
                else:
                    totals += _count(content, table, scanner, block.origin + content.start)
            schedule.report(job, block.stop - block.start)
    return _freeze(table, reading, totals)


def _say(bad: Bad, number: int, job: str) -> None:
    """Counts hold no list of what could not be read: the first of every task are named."""
    if number <= _NAMED:
        more = " (and perhaps more there)" if number == _NAMED else ""
        schedule.say(job, f"cannot be read: {describe(bad)}{more}")


def _count(content: Content, table: CountTable, scanner: Scanner, origin: int) -> Int64s:
    """Count a content; what it adds to bytes, documents, invalid sequences and documents that cannot be read."""
    table.add_segments(content.text, content.segments, scanner, origin)
    return np.array((content.stop - content.start, _n_documents(content), content.n_invalid, 0))


def _n_documents(content: Content) -> int:
    """Documents that begin in a content. In a text file every special token ends one, in a document none does."""
    return content.n_documents if content.in_place else int(np.count_nonzero(content.special == END))


def _freeze(table: CountTable, reading: Reading, totals: Int64s) -> PretokenCounts:
    n_bytes, n_documents, n_invalid, n_quarantined = totals.tolist()
    return table.freeze(
        pattern=reading.pattern,
        special_tokens=reading.special_tokens,
        n_bytes=n_bytes,
        n_documents=n_documents,
        n_invalid=n_invalid,
        n_unmatched=table.n_unmatched,
        n_quarantined=n_quarantined,
    )


def _count_bag(
    bag: db.Bag, reading: Reading, split_every: int, memory: int, client: Client | None, progress: Progress
) -> PretokenCounts:
    """Counts of a bag of texts, whose size nobody knows: its partitions are taken to be large ones."""
    numbers = db.from_sequence(range(bag.npartitions), npartitions=bag.npartitions)
    buckets = n_buckets(2 * expected_distinct(bag.npartitions * _BAG_PARTITION), memory)
    with schedule.job("counting", None, "B", progress, client) as job:
        counted = bag.map_partitions(_count_texts_of, numbers, reading=reading, job=job)
        counts = reduce_in_memory(counted, buckets, split_every, client)
    return _not_empty(counts)


def _count_texts_of(texts: Iterable[str], numbers: Iterable[int], reading: Reading, job: str) -> list[PretokenCounts]:
    (number,) = numbers
    return [_count_documents(texts, reading, lambda n: schedule.report(job, n), number << _PARTITION)]


def _count_texts(texts: Source, reading: Reading, progress: Progress) -> PretokenCounts:
    documents = as_documents(texts)
    progress.start("counting", None, "B")
    counts = _count_documents(documents, reading, lambda n: progress.advance("counting", n), 0)
    progress.finish("counting")
    return _not_empty(counts)


def _count_documents(texts: Iterable[str], reading: Reading, report: Any, origin: int) -> PretokenCounts:
    table, scanner = CountTable(), Scanner(get_pattern(reading.pattern))
    totals = np.zeros(4, np.int64)
    for content in contents.texts_to_contents(texts, "documents", reading, contents.TEXTS_BYTES):
        if isinstance(content, Bad):
            totals[3] += 1
        else:
            totals += _count(content, table, scanner, origin + int(totals[0]))
            report(len(content.text))
    return _freeze(table, reading, totals)


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
