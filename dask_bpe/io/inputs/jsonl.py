"""Documents of JSON Lines: one object a line, the text in one of its fields.

    {"id": 17, "meta": {"lang": "en"}, "text": "It was the best of times, ..."}

Lines end with ``\\n`` (a ``\\r`` before it is space to JSON); empty ones are skipped, and so is a byte order mark
at the start of the file. A line belongs to the byte range that it starts in.

Measured on one core (a busy one; English, documents of 5 kB), in MB of text a second: plain 290, gzip 120, zstd 225.
Most of it is orjson; a line of 400 MB takes 2.2 times its size in memory, the text it gives included.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import orjson

from dask_bpe.errors import CorruptError
from dask_bpe.io.inputs import json_line, json_long
from dask_bpe.io.inputs.compression import ByteReader, Compression, open_stream
from dask_bpe.io.inputs.documents import Bad, Documents
from dask_bpe.io.inputs.json_line import Unreadable
from dask_bpe.io.source import read_range

_BOM = b"\xef\xbb\xbf"
# Beyond its end a range is read for its last line only: at first so much, then twice as much, and so on.
_BEYOND = 64 << 10


def read_jsonl(
    path: str,
    start: int,
    stop: int,
    size: int,
    compression: Compression | None,
    field: str,
    id_field: str | None,
    batch_bytes: int,
) -> Iterator[Documents | Bad]:
    """Documents of the lines that start in bytes [start, stop) of a file; of a compressed one, all.

    Bad lines come before the good ones that were read with them. Raises InputError when the storage fails.
    """
    if compression is None:
        # The byte before the range tells whether a line starts with the range.
        blocks = _Blocks(_RangeReader(path, start, stop, size), batch_bytes, max(start - 1, 0), stop, start > 0)
    else:
        blocks = _Blocks(open_stream(path, compression), batch_bytes, 0, None, False)
    lines = _Lines(path, field, id_field, 1 if start == 0 else None)
    try:
        # No name holds a block or its documents while the next block is read: they may be very large.
        while blocks.load():
            yield from lines.read(blocks.start, blocks.take())
    except CorruptError as error:
        yield Bad(path, blocks.position, lines.number, str(error).removeprefix(f"{path}: "))
    finally:
        blocks.close()


class _RangeReader:
    """The bytes of a plain file from before a range to the end of the file, for as long as they are asked for."""

    def __init__(self, path: str, start: int, stop: int, size: int) -> None:
        self._path = path
        self._position = max(start - 1, 0)
        self._stop = stop
        self._size = size
        self._beyond = _BEYOND

    def read(self, n: int) -> bytes:
        """Up to `n` bytes, fewer at the end of the range; behind it ever larger pieces. Raises InputError."""
        left = self._stop - self._position
        if left <= 0:
            left = self._beyond
            self._beyond *= 2
        end = min(self._position + min(n, left), self._size)
        data = read_range(self._path, self._position, end).tobytes()
        self._position = end
        return data

    def close(self) -> None:
        """Nothing stays open between two calls of `read`."""


class _Blocks:
    """Whole lines of a file, about `block_bytes` at a time; a line longer than two blocks comes alone.

    With `skip` what stands before the first line end is left out. Lines that start at `stop` or later are.

    Attributes
    ----------
    start : where the block that was loaded last starts in the file.
    position : where the next one does.
    """

    def __init__(self, reader: ByteReader, block_bytes: int, position: int, stop: int | None, skip: bool) -> None:
        self.start = self.position = position
        self._reader = reader
        self._block_bytes = block_bytes
        self._stop = stop
        self._skip = skip
        self._held: list[bytes] = []  # from `position` on, without a line end
        self._n_held = 0
        self._ahead = b""  # read, not looked at
        self._loaded = b""

    def load(self) -> bool:
        """Read the next block; False after the last."""
        while self._stop is None or self.position < self._stop:
            piece = self._ahead or self._reader.read(self._block_bytes)
            self._ahead = b""
            if self._skip and piece:
                end = piece.find(b"\n") + 1
                self._skip = not end
                self.position += end or len(piece)
                self._ahead = piece[end:] if end else b""
                continue
            cut = (piece.find(b"\n") if self._n_held >= self._block_bytes else piece.rfind(b"\n")) + 1
            if piece and not cut:
                self._held.append(piece)
                self._n_held += len(piece)
                continue
            self._held.append(piece[:cut])
            alone = self._n_held >= self._block_bytes
            self._ahead = piece[cut:] if alone else b""
            return self._join(b"" if alone else piece[cut:])
        return False

    def take(self) -> bytes:
        """The block that was loaded; it is not kept here."""
        block, self._loaded = self._loaded, b""
        return block

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def _join(self, rest: bytes) -> bool:
        """Load what is held, up to the last line that starts before the stop; hold `rest` from now on."""
        block = b"".join(self._held)
        self._held = [rest] if rest else []
        self._n_held = len(rest)
        if self._stop is not None and self.position + len(block) > self._stop:
            end = block.find(b"\n", self._stop - self.position - 1) + 1
            block = block[:end] if end else block
        self.start = self.position
        self.position += len(block)
        self._loaded = block
        return bool(block)


class _Lines:
    """Makes documents of lines; `number` is that of the next line, None where nobody knows it."""

    def __init__(self, path: str, field: str, id_field: str | None, number: int | None) -> None:
        self.number = number
        self._path = path
        self._field = field
        self._id_field = id_field

    def read(self, position: int, block: bytes) -> list[Documents | Bad]:
        """What is bad in a block that starts at a position, then what is good."""
        if position == 0 and block.startswith(_BOM):
            block = b"   " + block[3:]  # as long, and space to JSON
        if len(block) > json_long.LONG_LINE and block.find(b"\n", 0, -1) < 0:
            return self._read_long(position, block)
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        starts = np.full(len(lines), position, np.int64)
        starts[1:] += np.cumsum([len(line) + 1 for line in lines[:-1]], dtype=np.int64)
        texts: list[bytes] = []
        ids: list[str] = []
        left_out: list[int] = []
        found: list[Documents | Bad] = []
        for k, line in enumerate(lines):
            try:
                text, own = self._read_line(line)
            except Unreadable as error:
                left_out.append(k)
                if line.strip():
                    found.append(self._bad(int(starts[k]), k, error))
            else:
                texts.append(text)
                if own is not None:
                    ids.append(own)
        if self.number is not None:
            self.number += len(lines)
        if texts:
            offsets = np.zeros(len(texts) + 1, np.int64)
            np.cumsum([len(text) for text in texts], out=offsets[1:])
            values = np.frombuffer(b"".join(texts), np.uint8)
            positions = np.delete(starts, left_out)
            found.append(Documents(values, offsets, positions, None if self._id_field is None else ids))
        return found

    def _read_line(self, line: bytes) -> tuple[bytes, str | None]:
        if self._id_field is None:
            try:
                return orjson.loads(line)[self._field].encode(), None
            except (ValueError, LookupError, TypeError, AttributeError):
                pass  # to read it step by step, and to know what to say of it, is for the few
        return json_line.text_and_id(line, self._field, self._id_field)

    def _read_long(self, position: int, line: bytes) -> list[Documents | Bad]:
        try:
            text, own = json_long.text_and_id(line, self._field, self._id_field)
        except Unreadable as error:
            found: Documents | Bad = self._bad(position, 0, error)
        else:
            ids = None if own is None else [own]
            found = Documents(text, np.array([0, len(text)]), np.array([position]), ids)
        if self.number is not None:
            self.number += 1
        return [found]

    def _bad(self, position: int, index: int, error: Unreadable) -> Bad:
        number = None if self.number is None else self.number + index
        return Bad(self._path, position, number, str(error))
