"""Bytes whose place in a file is behind others that are not known yet: they wait on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import OutputError
from dask_bpe.io import paths

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# A multiple of every item size, so that an array may be read back piece by piece.
PIECE = 1 << 20


class Spill:
    """A nameless temporary file, written to its end and then read once. The system deletes it with the process.

    It lies in the output folder, where there has to be room for its bytes anyway; for an output on a remote file system
    in the folder for temporary files.
    """

    def __init__(self, folder: str) -> None:
        self.size = 0
        self._folder = folder
        try:
            self._file: Any = tempfile.TemporaryFile(dir=None if paths.is_remote(folder) else folder)  # noqa: SIM115
        except OSError as error:
            raise self._error(error) from error

    def write(self, data: ReadableBuffer) -> None:
        """Append bytes. Raises OutputError."""
        try:
            self.size += self._file.write(data)
        except OSError as error:
            raise self._error(error) from error

    def pieces(self) -> Iterator[bytes]:
        """What was written, PIECE bytes at a time (the last fewer). Raises OutputError."""
        try:
            self._file.seek(0)
            while piece := self._file.read(PIECE):
                yield piece
        except OSError as error:
            raise self._error(error) from error

    def close(self) -> None:
        """Give the space back; harmless when repeated."""
        self._file.close()

    def _error(self, error: OSError) -> OutputError:
        return OutputError(f"cannot write temporary data for {self._folder}: {paths.one_line(error)}")


def ends_of(sizes: Spill, begin: int) -> Iterator[npt.NDArray[np.uint32]]:
    """Where items of these sizes (uint32 each) end if the first one begins at `begin`; all below 2^32."""
    for piece in sizes.pieces():
        ends = begin + np.cumsum(np.frombuffer(piece, "<u4"), dtype=np.int64)
        begin = int(ends[-1])
        yield ends.astype("<u4")
