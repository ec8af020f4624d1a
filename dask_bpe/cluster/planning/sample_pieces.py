"""Which pieces of a corpus are looked at to know how the whole will do: random ones, the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from dask_bpe.cluster import blocks
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.contents import Content, Reading
from dask_bpe.io.inputs import Bad, InputFormat
from dask_bpe.io.source import SourceFile, read_range

_SEED = 0
_MOST_PIECES, _LEAST_PIECE = 64, 1 << 16
# Of a Parquet file so much in one piece: it gives the row groups that begin there, and those may be large.
_TABLE = 64 << 20
# Small files that one piece runs across.
_MOST_FILES = 4096


@dataclass(frozen=True)
class Piece:
    """Parts of one or more files of one format that are read together.

    Attributes
    ----------
    blocks : the parts.
    head : 0, or how many bytes are wanted of the only block, a file that cannot be read from the middle.
    """

    blocks: tuple[Block, ...]
    head: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes on disk."""
        return self.head or sum(block.stop - block.start for block in self.blocks)


def choose(files: Sequence[SourceFile], n_bytes: int, how: InputFormat) -> list[Piece]:
    """Up to 64 pieces of about `n_bytes` together, spread evenly over the files, in a random order.

    Of a file that cannot be read from the middle the beginning stands for all of it, as large as all pieces that
    fall on it; of a Parquet file a large part. When `n_bytes` is all there is, so are the pieces.
    """
    sizes = np.array([file.size for file in files], np.int64)
    ends = np.cumsum(sizes)
    total = int(ends[-1])
    n_bytes = min(n_bytes, total)
    n_pieces = min(max(n_bytes // _LEAST_PIECE, 1), _MOST_PIECES)
    rng = np.random.default_rng(_SEED)
    # One in each of as many equal parts of the corpus, somewhere.
    parts = [number * total // n_pieces for number in range(n_pieces + 1)]
    rest = total - n_bytes
    pieces: list[Piece] = []
    heads: dict[int, int] = {}
    tables: dict[int, Block] = {}
    for (first, last), place in zip(pairwise(parts), rng.uniform(0.0, 1.0, n_pieces).tolist(), strict=True):
        left_out = rest * (last - first) // total
        start = first + int(place * (left_out + 1))
        run = _run(files, ends, start, start + last - first - left_out, how, heads, tables)
        for _, alike in groupby(run, key=lambda block: format_name(block.path, how)):
            pieces.append(Piece(tuple(alike)))
    pieces += [Piece((block,)) for block in tables.values()]
    for number, head in heads.items():
        block = _block(files[number], 0, files[number].size)
        pieces.append(Piece((block,), head) if head < files[number].size else Piece((block,)))
    return [pieces[k] for k in rng.permutation(len(pieces)).tolist()]


def _run(
    files: Sequence[SourceFile],
    ends: npt.NDArray[np.int64],
    start: int,
    stop: int,
    how: InputFormat,
    heads: dict[int, int],
    tables: dict[int, Block],
) -> list[Block]:
    """Bytes of the corpus as parts of its files; what falls on files that are read as a whole goes to `heads`, and on
    Parquet files to `tables`."""
    parts: list[Block] = []
    begin = int(np.searchsorted(ends, start, "right"))
    for number in range(begin, min(begin + _MOST_FILES, len(files))):
        if start >= stop:
            break
        file, end = files[number], int(ends[number])
        first, last = start - (end - file.size), min(stop, end) - (end - file.size)
        if how.kind_of(file.path) == "parquet" and how.splittable(file.path):
            tables.setdefault(
                number, _block(file, max(0, min(first, file.size - _TABLE)), min(first + _TABLE, file.size))
            )
        elif how.splittable(file.path):
            if last > first:
                parts.append(_block(file, first, last))
        else:
            heads[number] = heads.get(number, 0) + last - first
        start = max(start, end)
    return parts


def read_piece(piece: Piece, reading: Reading) -> Iterator[Content | Bad]:
    """What a piece holds; of the head of a file that is not compressed, as many bytes of text."""
    done = 0
    for block in piece.blocks:
        for item in blocks.read(block, reading):
            yield item
            done += len(item.text) if isinstance(item, Content) else 0
            if piece.head and done >= piece.head:
                return


def format_name(path: str, how: InputFormat) -> str:
    """What the format of a file is called, its compression included."""
    kind, compression = how.kind_of(path), how.compression_of(path)
    return kind if compression is None else f"{kind} in {compression}"


def _block(file: SourceFile, start: int, stop: int) -> Block:
    return Block(0, file.path, file.size, start, stop, file.version)


@contextmanager
def beginning(piece: Piece, how: InputFormat) -> Iterator[Piece]:
    """A piece that can be read: of one that wants the head of a compressed file, a file of its own with so much of it.

    What was begun at its end is cut short then, and reads as damaged: the quarantine takes it.
    """
    (block, *_) = piece.blocks
    if not piece.head or how.compression_of(block.path) is None:
        yield piece
        return
    with TemporaryDirectory(prefix="dask-bpe-plan-") as folder:
        copy = Path(folder) / Path(block.path).name
        copy.write_bytes(read_range(block.path, 0, piece.head).data)
        yield Piece((replace(block, path=str(copy), size=piece.head, stop=piece.head, version=""),))
