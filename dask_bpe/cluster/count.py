"""Text to counts of pre-tokens: a bag of blocks, counted by workers and added up in a tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import dask.bag as db
import numpy as np

from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.blocks import Block, Content, Errors, Reading
from dask_bpe.counts import CountTable, PretokenCounts, combine
from dask_bpe.errors import InputError, whole_number
from dask_bpe.io.source import list_files
from dask_bpe.pretokenize import PatternSpec, Scanner, SpecialTokens, get_pattern
from dask_bpe.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# A bag is an iterable too; it has no types that a checker could tell it by.
Source: TypeAlias = Paths | Iterable[str]

# Partition k of a bag of texts stands at k << _PARTITION in the corpus: nobody knows its size beforehand.
_PARTITION = 44


def count_pretokens(
    source: Source,
    *,
    pattern: PatternSpec = "gpt2",
    special_tokens: Sequence[str] = (),
    errors: Errors = "replace",
    block_bytes: int | None = None,
    max_bytes: int | None = None,
    split_every: int = 8,
    client: Client | None = None,
    progress: Progress | None = None,
) -> PretokenCounts:
    """Count the distinct pre-tokens of a corpus.

    Parameters
    ----------
    source : a path, a folder, a glob, a URL, or a list of those; a `dask.bag.Bag` of str, a document each; or any
        other iterable of str, a document each, which is read once, in this process.
    pattern : how text is split: "gpt2", a regular expression, or None for whole documents.
    special_tokens : texts that cut the text first and are not counted.
    errors : about invalid UTF-8: "replace" (by U+FFFD), "skip", or "strict" (an error).
    block_bytes : text per task; by default chosen by the size of the corpus.
    max_bytes : use only the beginning of the corpus, up to the last whole character. Files only.
    split_every : how many counts are added up by one task of the tree.
    client : the cluster to run on; by default the active one, else the threads of this process.
    progress : told of the bytes counted, as stage "counting".

    Returns
    -------
    PretokenCounts, the same for any `block_bytes`, `split_every`, cluster or order of execution.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
    """
    whole_number("split_every", split_every, 2)
    specials = SpecialTokens(special_tokens)
    spec = get_pattern(pattern).spec
    everything = frozenset(range(len(specials.tokens)))
    reading = Reading(spec, specials.tokens, everything, errors, 0)
    view = progress or Progress()
    client = schedule.active_client(client)
    if isinstance(source, db.Bag):
        return _count_bag(source, reading, split_every, client, view)
    paths = as_paths(source)
    if paths is None:
        return _count_texts(source, reading, view)
    files = list_files(paths)
    total = sum(file.size for file in files)
    if max_bytes is not None and whole_number("max_bytes", max_bytes):
        total = min(total, max_bytes)
    size = blocks.block_size(total, schedule.n_threads(client), block_bytes)
    parts = blocks.divide(files, size, max_bytes)
    with schedule.job("counting", total, "B", view, client) as job:
        bag = db.from_sequence(parts, npartitions=len(parts))
        counted = bag.map_partitions(_count_blocks, reading=reading, job=job)
        return _add_up(counted, split_every, client)


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


def _add_up(counted: db.Bag, split_every: int, client: Client | None) -> PretokenCounts:
    total = counted.reduction(_combine_items, _combine_items, split_every=split_every)
    counts: PretokenCounts = schedule.compute(total, client)
    return counts.ranked()


def _combine_items(parts: Iterable[PretokenCounts]) -> PretokenCounts:
    return combine(parts)


def _count_blocks(parts: Iterable[Block], reading: Reading, job: str) -> list[PretokenCounts]:
    return [_count_block(block, reading, job) for block in parts]


def _count_block(block: Block, reading: Reading, job: str) -> PretokenCounts:
    with schedule.task(job):
        content = blocks.load(block, reading)
        table = CountTable(_expected_distinct(len(content.text)))
        _add(content, table, Scanner(get_pattern(reading.pattern)), block.origin + content.start)
        schedule.report(job, block.stop - block.start)
    return _freeze(table, reading, content.stop - content.start, content.n_documents, content.n_invalid)


def _add(content: Content, table: CountTable, scanner: Scanner, origin: int) -> None:
    table.add_segments(content.text, content.segments, scanner, origin)


def _expected_distinct(n_bytes: int) -> int:
    """Distinct pre-tokens of web text by Heaps' law, as measured on OpenWebText: 3.45 n ** 0.62."""
    return int(3.45 * n_bytes**0.62)


def _freeze(table: CountTable, reading: Reading, n_bytes: int, n_documents: int, n_invalid: int) -> PretokenCounts:
    return table.freeze(
        pattern=reading.pattern,
        special_tokens=reading.special_tokens,
        n_bytes=n_bytes,
        n_documents=n_documents,
        n_invalid=n_invalid,
        n_unmatched=table.n_unmatched,
    )


def _count_bag(
    bag: db.Bag, reading: Reading, split_every: int, client: Client | None, progress: Progress
) -> PretokenCounts:
    numbers = db.from_sequence(range(bag.npartitions), npartitions=bag.npartitions)
    with schedule.job("counting", None, "B", progress, client) as job:
        counted = bag.map_partitions(_count_partition, numbers, reading=reading, job=job)
        counts = _add_up(counted, split_every, client)
    return _not_empty(counts)


def _count_partition(texts: Iterable[str], numbers: Iterable[int], reading: Reading, job: str) -> list[PretokenCounts]:
    (number,) = numbers
    return [_count_documents(texts, reading, lambda n: schedule.report(job, n), number << _PARTITION)]


def _count_texts(texts: Source, reading: Reading, progress: Progress) -> PretokenCounts:
    documents = as_documents(texts)
    progress.start("counting", None, "B")
    counts = _count_documents(documents, reading, lambda n: progress.advance("counting", n), 0)
    progress.finish("counting")
    return _not_empty(counts.ranked())


def _count_documents(texts: Iterable[str], reading: Reading, report: Any, origin: int) -> PretokenCounts:
    table, scanner = CountTable(), Scanner(get_pattern(reading.pattern))
    specials = SpecialTokens(reading.special_tokens)
    totals = np.zeros(3, np.int64)
    for content in blocks.texts_to_contents(texts, specials, reading.errors, blocks.TEXTS_BYTES):
        _add(content, table, scanner, origin + int(totals[0]))
        totals += len(content.text), content.n_documents, content.n_invalid
        report(len(content.text))
    return _freeze(table, reading, *totals.tolist())


def _not_empty(counts: PretokenCounts) -> PretokenCounts:
    if counts.n_bytes == 0:
        raise InputError("the source holds no text: there is nothing to count")
    return counts
