"""Blocks of a corpus: how it is divided, and how a worker reads its part.

A block is a range of nominal positions in a file. Of plain text, the worker that has it finds its true ends
(`pretokenize.cut`) and reads what lies between. Of formats that hold documents it gets the documents that begin there
(`io.inputs`). Compressed files are one block each, read piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from dask_bpe.cluster.contents import (
    Content,
    Reading,
    describe,
    make_valid,
    of_documents,
    placed,
    specials_in_documents,
    specials_of,
    take_apart,
)
from dask_bpe.cluster.stream import cut_stream
from dask_bpe.errors import InputError, whole_number
from dask_bpe.io.inputs import Bad, Documents, InputFormat, read_documents
from dask_bpe.io.source import SourceFile, read_range, version_of
from dask_bpe.pretokenize import get_pattern
from dask_bpe.pretokenize.cut import Cutter

_LEAST, _USUAL, _MOST = 1 << 20, 64 << 20, 256 << 20
_MANY_BLOCKS = 10_000
# Compressed text is read by so much at a time where nothing is said of blocks: counting waits for no document's start.
_STREAMED = 8 << 20
# Small files that are read by one task.
_MOST_FILES = 4096


@dataclass(frozen=True)
class Block:
    """A range of nominal positions in one file.

    `size` and `version` are those of the file when the job was planned; `index` ascends in the order of the corpus.
    """

    index: int
    path: str
    size: int
    start: int
    stop: int
    version: str = ""


def block_size(total: int, n_threads: int, asked: int | None) -> int:
    """Bytes of a block: four or more for every thread, but not many thousands of blocks.

    Raises
    ------
    ParameterError
        When `asked` is not a whole number of at least 1.
    """
    if asked is not None:
        return whole_number("block_bytes", asked)
    usual = min(max(total // (4 * n_threads), _LEAST), _USUAL)
    return min(max(usual, total // _MANY_BLOCKS), _MOST)


def divide(
    files: Iterable[SourceFile], size: int, limit: int | None = None, how: InputFormat | None = None
) -> list[Block]:
    """Blocks of about `size` bytes; of all files together only the first `limit` bytes, if given.

    A file that cannot be read from the middle (compressed, say) is one block.

    Raises
    ------
    InputError
        These bytes hold no character.
    """
    blocks: list[Block] = []
    before = 0
    for file in files:
        whole = how is not None and not how.splittable(file.path)
        end = file.size if limit is None or whole else min(file.size, limit - before)
        if 0 < end < file.size:
            end = _character_start(file.path, end)
        for start in range(0, max(end, 0), max(end, 1) if whole else size):
            stop = end if whole else min(start + size, end)
            blocks.append(Block(len(blocks), file.path, end, start, stop, file.version))
        before += file.size
    if limit is not None and not blocks:
        raise InputError(f"no text input: the first {limit} bytes hold no whole character")
    return blocks


def gather(blocks: Iterable[Block], size: int) -> list[list[Block]]:
    """Neighbouring blocks that are small together, as partitions of up to about `size` bytes."""
    partitions: list[list[Block]] = []
    room = 0
    for block in blocks:
        n_bytes = block.stop - block.start
        if not partitions or n_bytes > room or len(partitions[-1]) >= _MOST_FILES:
            partitions.append([])
            room = size
        partitions[-1].append(block)
        room -= n_bytes
    return partitions


def n_bytes(partition: Iterable[Block]) -> int:
    """Nominal size of a partition."""
    return sum(block.stop - block.start for block in partition)


def name_of(partition: Sequence[Block]) -> str:
    """What people know a partition by: its files, and which bytes of a file that has more."""
    first, last = partition[0], partition[-1]
    if len(partition) > 1:
        return f"{first.path} to {last.path} ({len(partition):,} files)"
    return (
        first.path
        if first.stop - first.start == first.size
        else f"{first.path}, bytes {first.start:,} to {first.stop:,}"
    )


def _character_start(path: str, position: int) -> int:
    """The last position up to `position` where a character of a file starts, if it is within reach."""
    start = max(position - 3, 0)
    before = read_range(path, start, position + 1)
    for at in range(len(before) - 1, -1, -1):
        if before[at] & 0xC0 != 0x80:
            return start + at
    return position


def read(block: Block, reading: Reading) -> Iterator[Content | Bad]:
    """What a block holds, in order, in pieces that fit into memory, and what of it cannot be read.

    Raises
    ------
    InputError
        The file has changed since the job was planned, or cannot be read (then an OSError is its cause); under
        ``on_error="raise"`` whatever a document lacks, naming the file and where.
    """
    if block.version and version_of(block.path)[1] != block.version:
        raise InputError(f"{block.path}: changed since the job was planned: begin the job anew (overwrite)")
    for item in _read(block, reading):
        if isinstance(item, Bad) and reading.on_error == "raise":
            raise InputError(describe(item))
        yield item


def _read(block: Block, reading: Reading) -> Iterator[Content | Bad]:
    how = reading.how
    if how.kind_of(block.path) != "text":
        specials = specials_in_documents(reading)
        for item in read_documents(block.path, block.start, block.stop, block.size, how):
            if isinstance(item, Documents):
                yield from make_valid(of_documents(item, block.path, specials, reading), reading)
            else:
                yield item
    elif how.compression_of(block.path) is None:
        yield from make_valid(load(block, reading), reading)
    else:
        specials = specials_of(reading)
        # The cutter waits for a document start as long as a block is.
        make = partial(
            Cutter, specials=specials, separators=reading.separators, pattern=get_pattern(reading.cut_pattern),
            patience=reading.patience, others=tuple(map(get_pattern, reading.others)),
        )  # fmt: skip
        for piece in cut_stream(block.path, how.compression_of(block.path), make, reading.patience or _STREAMED):
            if isinstance(piece, Bad):
                yield piece
                continue
            content = take_apart(piece.text, specials, reading.separators, ends_document=piece.ends_document)
            content = placed(content, block.path, piece.start, continues=piece.continues)
            yield from make_valid(content, reading)


def load(block: Block, reading: Reading) -> Content:
    """Read a block of plain text and take it apart. It may be empty: all of it then belongs to its neighbours."""
    specials = specials_of(reading)
    cutter = Cutter(
        partial(read_range, block.path),
        block.size,
        specials,
        reading.separators,
        get_pattern(reading.cut_pattern),
        reading.patience,
        tuple(map(get_pattern, reading.others)),
    )
    first, last = cutter.at_or_after(block.start), cutter.at_or_after(block.stop)
    text = read_range(block.path, first.position, last.position)
    content = take_apart(text, specials, reading.separators, ends_document=last.starts_document)
    return placed(content, block.path, first.position, continues=not first.starts_document and len(text) > 0)
