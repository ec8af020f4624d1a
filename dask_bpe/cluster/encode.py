"""Text to token shards: a bag of blocks, each encoded by a worker into one shard, then the manifest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import dask
import dask.bag as db
import numpy as np
import numpy.typing as npt

from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.blocks import Block, Content, Errors, Reading
from dask_bpe.cluster.count import Source, as_documents, as_paths
from dask_bpe.encoder import NOTHING, SLICE_BYTES, Encoder, slices
from dask_bpe.errors import InputError, ParameterError
from dask_bpe.io.manifest import Manifest, clear_output, clear_temporary, prepare_output
from dask_bpe.io.shards import Shard, Span, open_writer, writer_class
from dask_bpe.io.source import list_files
from dask_bpe.pretokenize import SpecialTokens
from dask_bpe.progress import Progress
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from distributed import Client

    from dask_bpe.io.shards import ShardWriter


@dataclass(frozen=True)
class EncodeReport:
    """What `encode_corpus` wrote.

    Attributes
    ----------
    path : the folder.
    n_bytes, n_documents, n_invalid : the text: bytes, documents, invalid UTF-8 sequences mended.
    n_tokens, max_id : tokens written, and the largest id among them.
    n_shards, dtype : shards, and the type of an id in them.
    seconds : from the listing of the source to the manifest.
    peak_memory : largest resident size of a process that took part, in bytes.
    """

    path: str
    n_bytes: int
    n_documents: int
    n_invalid: int
    n_tokens: int
    max_id: int
    n_shards: int
    dtype: str
    seconds: float
    peak_memory: int


@dataclass(frozen=True)
class _Output:
    """Where and how the shards of a job are written."""

    folder: str
    format: str
    dtype: str
    separator: int | None
    special_tokens_in_text: str


@dataclass(frozen=True)
class _Part:
    """What a task reports of its block."""

    shard: Shard | None
    n_bytes: int
    n_documents: int
    n_invalid: int
    peak_memory: int


def encode_corpus(
    source: Source,
    tokenizer: Tokenizer,
    out: str | os.PathLike[str],
    format: str = "bin",  # noqa: A002
    *,
    dtype: npt.DTypeLike | None = None,
    separator: str | None = None,
    special_tokens_in_text: Literal["text", "encode"] = "text",
    errors: Errors = "replace",
    block_bytes: int | None = None,
    client: Client | None = None,
    progress: Progress | None = None,
) -> EncodeReport:
    """Encode a corpus into shards of token ids, with document bounds and a manifest.

    The shards hold, one after the other, the ids of the text: those that `Tokenizer.encode` gives for a whole
    file, whatever the blocks. `open_tokens` reads them. A tokenizer with a normalizer cuts files at separators
    only; one whose special tokens look at the text around them reads a file as a whole.

    Parameters
    ----------
    source : a path, a folder, a glob, a URL, or a list of those: text files, in which special tokens are special
        tokens. Or a `dask.bag.Bag` of str, or any other iterable of str: a document each; the separator, if there
        is one, is put after every document.
    tokenizer : what encodes.
    out : a folder that is empty or does not exist.
    format : "bin" (uint16 or uint32 without a header, and an index) or "parquet".
    dtype : "uint16" or "uint32"; by default uint16 when every id of the vocabulary fits.
    separator : the special token that ends a document; by default "<|endoftext|>" if the tokenizer has it, else its
        first special token, else none: then a file is a document.
    special_tokens_in_text : what the text of a special token is in a document of a bag or an iterable. "text": text, so
        that no document can forge the end of another one. "encode": the special token, as in `Tokenizer.encode`; a
        separator then ends a document wherever it stands. In files it always does: there it is the format.
    errors, block_bytes, client : how the text is read, see `count_pretokens`.
    progress : told of the bytes encoded, as stage "encoding".

    Raises
    ------
    InputError, OutputError, ParameterError, ClusterError
        Nothing is left in `out` then.
    """
    began = time.perf_counter()
    if not isinstance(tokenizer, Tokenizer):
        raise ParameterError(f"tokenizer is of type {type(tokenizer).__name__}: a Tokenizer was expected")
    vocabulary = tokenizer.vocabulary
    writer_class(format)
    if special_tokens_in_text not in ("text", "encode"):
        raise ParameterError(f"special_tokens_in_text is {special_tokens_in_text!r}: 'text' or 'encode' was expected")
    output_dtype = _checked_dtype(dtype, vocabulary)
    which = _separator_index(separator, vocabulary)
    view = progress or Progress()
    specials = tuple(vocabulary.special_tokens)
    separators = frozenset() if which is None else frozenset({which})
    client = schedule.active_client(client)
    paths = as_paths(source)
    files = [] if paths is None else list_files(paths)
    total = sum(file.size for file in files)
    size = blocks.block_size(total, schedule.n_threads(client), block_bytes) if files else blocks.TEXTS_BYTES
    rules = tuple(vocabulary.added_rules.items())
    reading = Reading(vocabulary.cut_pattern, specials, separators, errors, size, rules)
    separator_id = None if which is None else vocabulary.special_tokens[specials[which]]
    documents = as_documents(source) if paths is None and not isinstance(source, db.Bag) else iter(())
    folder, made = prepare_output(out)
    target = _Output(folder, format, output_dtype, separator_id, special_tokens_in_text)
    try:
        with schedule.job("encoding", total if files else None, "B", view, client) as job:
            if paths is not None:
                parts = _encode_files(blocks.divide(files, size), reading, vocabulary, target, job, client)
            elif isinstance(source, db.Bag):
                parts = _encode_bag(source, reading, vocabulary, target, job, client)
            else:
                parts = _encode_texts(documents, reading, vocabulary, target, job)
        shards = tuple(part.shard for part in parts if part.shard is not None)
        if not shards:
            raise InputError("the source holds no text: there is nothing to encode")
        options = {"separator": None if which is None else specials[which], "errors": errors}
        manifest = Manifest(format, output_dtype, vocabulary.fingerprint(), len(vocabulary), options, shards)
        clear_temporary(folder)  # of workers that died: their tasks were done again
        manifest.write(folder)
    except BaseException:
        clear_output(folder, made=made)
        raise
    return EncodeReport(
        path=folder,
        n_bytes=sum(part.n_bytes for part in parts),
        n_documents=sum(part.n_documents for part in parts),
        n_invalid=sum(part.n_invalid for part in parts),
        n_tokens=manifest.tokens,
        max_id=manifest.max_id,
        n_shards=len(shards),
        dtype=output_dtype,
        seconds=time.perf_counter() - began,
        peak_memory=max([schedule.peak_memory(), *(part.peak_memory for part in parts)]),
    )


def _checked_dtype(dtype: npt.DTypeLike | None, vocabulary: Vocabulary) -> str:
    wanted = vocabulary.checked_dtype(dtype)
    if wanted.name not in ("uint16", "uint32"):
        raise ParameterError(f"dtype {wanted.name} cannot be written: uint16 or uint32 was expected")
    return wanted.name


def _separator_index(separator: str | None, vocabulary: Vocabulary) -> int | None:
    specials = list(vocabulary.special_tokens)
    if separator is not None:
        if separator not in specials:
            raise ParameterError(f"separator {separator!r} is not a special token: those are {specials}")
        return specials.index(separator)
    if not specials:
        return None
    return specials.index("<|endoftext|>") if "<|endoftext|>" in specials else 0


def _encode_files(
    parts: list[Block],
    reading: Reading,
    vocabulary: Vocabulary,
    target: _Output,
    job: str,
    client: Client | None,
) -> list[_Part]:
    bag = db.from_sequence(parts, npartitions=len(parts))
    return _compute(bag.map_partitions(_encode_blocks, **_shared(reading, vocabulary, target, job)), client)


def _encode_bag(
    bag: db.Bag, reading: Reading, vocabulary: Vocabulary, target: _Output, job: str, client: Client | None
) -> list[_Part]:
    numbers = db.from_sequence(range(bag.npartitions), npartitions=bag.npartitions)
    encoded = bag.map_partitions(_encode_partition, numbers, **_shared(reading, vocabulary, target, job))
    return _compute(encoded, client)


def _shared(reading: Reading, vocabulary: Vocabulary, target: _Output, job: str) -> dict[str, Any]:
    """What all tasks need. The vocabulary is one key of the graph: it travels to a worker once, not per task."""
    shared = dask.delayed(vocabulary, name=f"vocabulary-{vocabulary.fingerprint()}", traverse=False)
    return {"reading": reading, "vocabulary": shared, "target": target, "job": job}


def _compute(encoded: db.Bag, client: Client | None) -> list[_Part]:
    return list(schedule.compute(encoded, client))


def _encode_texts(
    texts: Iterable[str], reading: Reading, vocabulary: Vocabulary, target: _Output, job: str
) -> list[_Part]:
    contents = _text_contents(texts, reading, target, blocks.TEXTS_BYTES)
    return [
        _write_shard(_text_ids(content, reading, vocabulary, target), content, index, vocabulary, target, job, ())
        for index, content in enumerate(contents)
    ]


def _text_contents(texts: Iterable[str], reading: Reading, target: _Output, size: int) -> Iterator[Content]:
    """Documents given as texts; what separators within them end counts as documents too."""
    encode = target.special_tokens_in_text == "encode"
    specials = SpecialTokens(reading.special_tokens, dict(reading.rules)) if encode else None
    for content in blocks.texts_to_contents(texts, specials, reading.errors, size):
        yield replace(content, n_documents=int(_ends_document(content, reading).sum()))


def _ends_document(content: Content, reading: Reading) -> npt.NDArray[np.bool_]:
    """After which segments of texts a document ends."""
    return np.isin(content.special, [-1, *reading.separators])


def _encode_blocks(
    parts: Iterable[Block], reading: Reading, vocabulary: Vocabulary, target: _Output, job: str
) -> list[_Part]:
    with schedule.task(job):
        return [_encode_block(block, reading, vocabulary, target, job) for block in parts]


def _encode_block(block: Block, reading: Reading, vocabulary: Vocabulary, target: _Output, job: str) -> _Part:
    content = blocks.load(block, reading)
    sources = (Span(block.path, content.start, content.stop),)
    ids = _file_ids(content, reading, vocabulary)
    part = _write_shard(ids, content, block.index, vocabulary, target, job, sources)
    schedule.report(job, block.stop - block.start - len(content.text))
    return part


def _encode_partition(
    texts: Iterable[str],
    numbers: Iterable[int],
    reading: Reading,
    vocabulary: Vocabulary,
    target: _Output,
    job: str,
) -> list[_Part]:
    (number,) = numbers
    documents = list(texts)
    size = 1 << 62  # one content, one shard
    with schedule.task(job):
        return [
            _write_shard(_text_ids(content, reading, vocabulary, target), content, number, vocabulary, target, job, ())
            for content in _text_contents(documents, reading, target, size)
        ]


_Piece = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], int]


def _write_shard(
    pieces: Iterator[_Piece],
    content: Content,
    index: int,
    vocabulary: Vocabulary,
    target: _Output,
    job: str,
    sources: tuple[Span, ...],
) -> _Part:
    """Write pieces (ids, ends of documents among them, bytes of text) as one shard.

    Not flushed to the disk: that held the thread for a quarter of the time and more. The rename is what protects
    from a process that dies; after a power failure the sizes and checksums of the manifest tell.
    """
    writer: ShardWriter
    with open_writer(
        target.format,
        target.folder,
        index,
        target.dtype,
        sources=sources,
        continues=content.continues,
        fingerprint=vocabulary.fingerprint(),
        durable=False,
    ) as writer:
        for ids, ends, n_bytes in pieces:
            writer.write(ids, ends, source=content.where)
            schedule.report(job, n_bytes)
        shard = writer.close()
    return _Part(
        shard,
        content.stop - content.start or len(content.text),
        content.n_documents,
        content.n_invalid,
        schedule.peak_memory(),
    )


def _file_ids(content: Content, reading: Reading, vocabulary: Vocabulary) -> Iterator[_Piece]:
    """Ids of a block of a file: its segments, and the special tokens where they stand."""
    encoder = Encoder.of(vocabulary)
    special_ids = np.array(list(vocabulary.special_tokens.values()), np.uint32)
    after = np.append(special_ids[content.special], NOTHING)
    is_end = np.append(np.isin(content.special, list(reading.separators)), False)
    out = np.empty(2 * SLICE_BYTES, np.uint32)
    for first, last in slices(*content.segments):
        segments = content.segments[:, first:last]
        ids, offsets = encoder.encode_segments(content.text, segments[0], segments[1], after[first:last], out)
        ends = offsets[1:][is_end[first:last]]
        if last == len(after) and content.ends_document and len(ids) > (ends[-1] if len(ends) else 0):
            ends = np.append(ends, len(ids))
        yield ids, ends, int(segments[1, -1] - segments[0, 0])


def _text_ids(content: Content, reading: Reading, vocabulary: Vocabulary, target: _Output) -> Iterator[_Piece]:
    """Ids of documents that were given as texts, each ended by the separator if there is one."""
    encoder = Encoder.of(vocabulary)
    separator = NOTHING if target.separator is None else target.separator
    # The last one is what index -1 finds.
    after = np.array([*vocabulary.special_tokens.values(), separator], np.uint32)[content.special]
    is_end = _ends_document(content, reading)
    out = np.empty(2 * SLICE_BYTES, np.uint32)
    for first, last in slices(*content.segments):
        segments = content.segments[:, first:last]
        ids, offsets = encoder.encode_segments(content.text, segments[0], segments[1], after[first:last], out)
        yield ids, offsets[1:][is_end[first:last]], int(segments[1, -1] - segments[0, 0])
