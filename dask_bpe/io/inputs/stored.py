"""A file as readers of formats see it: on disk or behind a URL, with failures of the storage kept apart."""

from __future__ import annotations

from types import TracebackType

from dask_bpe.errors import InputError
from dask_bpe.io import paths
from dask_bpe.io.patience import patiently

_STEP = 64 << 20


class StoredFile:
    """A file open for reading, as Python files are; Arrow reads from it too.

    What goes wrong in reading, for good, is an InputError whose ``__cause__`` is an OSError: so an OSError which Arrow
    or a decompressor raises above it is known to be about what the file holds.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.closed = False
        try:
            self._file = patiently(lambda: paths.open_to_read(path))
        except OSError as error:
            raise self._failed(error) from error

    def read(self, n: int) -> bytes:
        """The next `n` bytes; fewer only where the file ends."""
        parts: list[bytes] = []
        left = n
        try:
            # In steps: Python makes room first, and a damaged file may ask for any number of bytes.
            while left and (part := self._step(min(left, _STEP))):
                parts.append(part)
                left -= len(part)
        except OSError as error:
            raise self._failed(error) from error
        except MemoryError:
            raise
        except Exception as error:
            # Clients of some servers have errors of their own for a lost connection.
            raise self._failed(error) from OSError(f"{type(error).__name__}: {paths.one_line(error)}")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _step(self, n: int) -> bytes:
        at = self._file.tell()

        def ask() -> bytes:
            self._file.seek(at)
            return bytes(self._file.read(n))

        return patiently(ask)

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a byte, counted from the start (0), from here (1) or from the end (2)."""
        return int(self._file.seek(position, whence))

    def tell(self) -> int:
        """The byte that is read next."""
        return int(self._file.tell())

    def close(self) -> None:
        """Close the file; harmless when it is closed."""
        self.closed = True
        self._file.close()

    def __enter__(self) -> StoredFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _failed(self, error: Exception) -> InputError:
        return InputError(f"cannot read {self.path}: {paths.one_line(error)}")
