"""Compressed files, read as what they hold.

The suffix of a name says what a file is compressed with. Members of a gzip file, and frames and streams of the
others, follow each other as one text, perhaps padded with zeros. Data that is cut short is found out, and data
that was altered where it has a checksum; that a file was cut exactly between two members, none can know.

The standard library decompresses (zstd came to it with Python 3.14, ``backports.zstd`` is the same before; lz4 needs
the package of that name), without the GIL. What lost is Arrow's CompressedInputStream: as fast, but the last
64 KiB before a damage it does not give, and bz2 streams of no bytes it takes for damage.

Measured on one core (a busy one; JSONL of English), in MB of text a second: lz4 970, zstd 500, gzip 150-180, xz 53,
bz2 19.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Literal, Protocol

from dask_bpe.errors import CorruptError, InputError, ParameterError
from dask_bpe.io import paths
from dask_bpe.io.inputs.stored import StoredFile

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression = Literal["gzip", "zstd", "xz", "bz2", "lz4"]
SUFFIXES: dict[str, Compression] = {
    ".gz": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".xz": "xz",
    ".bz2": "bz2",
    ".lz4": "lz4",
}
_PIECE = 64 << 10
# What decompressors raise about the data: `StoredFile` has kept the failures of the storage apart.
_DAMAGE = (EOFError, OSError, RuntimeError, lzma.LZMAError, zlib.error, zstd.ZstdError)


def compression_of(path: str) -> Compression | None:
    """What a file is compressed with, by the suffix of its name; None for all others."""
    name = file_name(path).lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def without_compression(path: str) -> str:
    """The name of a file without the suffix of its compression: ``a.txt`` for ``folder/a.txt.gz``."""
    name = file_name(path)
    suffix = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)]


def file_name(path: str) -> str:
    """The last part of a path or URL, without the query of a URL."""
    if paths.is_remote(path):
        path = path.split("?", 1)[0]
    return path.replace("\\", "/").rsplit("/", 1)[-1]


class ByteReader(Protocol):
    """What bytes are read from in order."""

    def read(self, n: int, /) -> bytes:
        """The next `n` bytes or fewer; ``b""`` at the end."""

    def close(self) -> None:
        """Let go of the file."""


def open_stream(path: str, compression: Compression | None) -> StoredFile | DecompressedFile:
    """The bytes of a file (local path or URL), decompressed, as a reader with ``read(n)`` and ``close()``.

    ``read`` gives `n` bytes or fewer, and ``b""`` at the end; then the file has been found whole. The readers
    are context managers as well.

    Raises
    ------
    InputError
        From here and from ``read``: the storage failed, with an OSError as ``__cause__``.
    CorruptError
        From ``read``: the data is damaged or cut short. All that could be decompressed has been given out by
        then: to the byte before missing data, to within 64 KiB before altered data.
    ParameterError
        A package is missing.
    """
    file = StoredFile(path)
    return file if compression is None else DecompressedFile(file, compression)


class DecompressedFile:
    """Reads a compressed file; see `open_stream`."""

    def __init__(self, file: StoredFile, compression: Compression) -> None:
        self.path = file.path
        self.position = 0
        """Bytes given out so far."""
        self._compression = compression
        self._file = file
        self._pieces = _pieces(file, compression)
        self._rest = b""
        self._error: InputError | None = None

    def read(self, n: int) -> bytes:
        """The next `n` bytes of what the file holds; fewer only at the end and before damage."""
        parts = [self._rest]
        filled = len(self._rest)
        while filled < n and self._error is None and (piece := self._next()):
            parts.append(piece)
            filled += len(piece)
        data = b"".join(parts)
        self._rest = data[n:]
        # Once failed, always failed: a reader that asks again must not take the failure for the end.
        if n and not data and self._error is not None:
            raise self._error
        self.position += min(n, len(data))
        return data[:n] if self._rest else data

    def close(self) -> None:
        """Close the file; harmless when it is closed."""
        self._pieces.close()
        self._file.close()

    def __enter__(self) -> DecompressedFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _next(self) -> bytes:
        try:
            return next(self._pieces, b"")
        except InputError as error:
            self._error = error
        except _DAMAGE as error:
            self._error = CorruptError(
                f"{self.path}: the {self._compression} data is damaged or cut short "
                f"({paths.one_line(error)}); what comes before could be read"
            )
        return b""


def _pieces(file: StoredFile, compression: Compression) -> Generator[bytes, None, None]:
    """What a file holds, piece by piece. The pieces are the same however the file is read."""
    new = _decompressor_of(compression)
    data = file.read(_PIECE)
    while data:
        decompressor = new()
        while not decompressor.eof:
            if decompressor.needs_input and not data:
                data = file.read(_PIECE)
                if not data:
                    raise EOFError("it ends too early")
            if piece := decompressor.decompress(data, _PIECE):
                yield piece
            data = b""
        data = (decompressor.unused_data or b"").lstrip(b"\0")
        while not data and (more := file.read(_PIECE)):
            data = more.lstrip(b"\0")


class _Decompressor(Protocol):
    """One member, frame or stream; the ways of `bz2` and `lzma`."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes | None: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """A member of a gzip file; `zlib` has other ways than the other modules."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        piece = self._member.decompress(self._member.unconsumed_tail + data, max_length)
        # A full piece may have left something behind, also when all input has been taken.
        self.needs_input = not self._member.unconsumed_tail and len(piece) < max_length
        return piece


def _decompressor_of(compression: Compression) -> Callable[[], _Decompressor]:
    if compression == "lz4":
        try:
            from lz4.frame import LZ4FrameDecompressor
        except ImportError as error:
            raise ParameterError('files in lz4 need the package lz4: pip install "dask-bpe[lz4]"') from error
        return LZ4FrameDecompressor  # type: ignore[no-any-return]
    new: dict[str, Callable[[], _Decompressor]] = {
        "gzip": _Gzip,
        "zstd": zstd.ZstdDecompressor,
        "bz2": bz2.BZ2Decompressor,
        "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
    }
    return new[compression]
