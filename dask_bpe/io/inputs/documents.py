"""Documents on their way from a file to the kernels, and what is said of those that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
# What a document costs beside its text: with it a batch of empty documents has an end too.
_COST = 64


@dataclass(frozen=True, eq=False)
class Documents:
    """Some documents of one file, in its order, one after the other. Each of them is valid UTF-8.

    Attributes
    ----------
    values : uint8[n_bytes]
        The texts, end to end; perhaps not writable.
    offsets : int64[n + 1]
        Document ``i`` is ``values[offsets[i]:offsets[i + 1]]``; ``offsets[0] == 0``.
    positions : int64[n]
        Where each stands: the byte where its line (JSONL) or record (WARC) begins, in the decompressed file;
        the number of its row in the file (tables), counted from 0.
    ids : list of str, or None
        The documents' own ids, if they were asked for.
    """

    values: Bytes
    offsets: Int64s
    positions: Int64s
    ids: list[str] | None = None

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class Bad:
    """A document, or the rest of a file, that could not be read.

    Attributes
    ----------
    source : path or URL of the file.
    position : as in `Documents`; None for the file as a whole.
    line : number of the line in the file, from 1, where it is known (JSONL read from the start of the file).
    reason : one line.
    """

    source: str
    position: int | None
    line: int | None
    reason: str


class Batch:
    """Gathers pieces of a file until there are enough of them for a batch."""

    def __init__(self, batch_bytes: int, with_ids: bool) -> None:
        self._room = batch_bytes
        self._with_ids = with_ids
        self._clear()

    def fits(self, n_bytes: int) -> bool:
        """Whether so many bytes more go into the batch; an empty one takes anything."""
        return not self._positions or self._filled + n_bytes <= self._room

    def add(self, values: Bytes, lengths: Int64s, positions: Int64s, ids: list[str] | None) -> None:
        """Documents laid end to end in `values` (uint8), their lengths in bytes and positions (int64[n])."""
        self._values.append(values)
        self._lengths.append(lengths)
        self._positions.append(positions)
        self._filled += len(values) + _COST * len(positions)
        if self._ids is not None and ids is not None:
            self._ids += ids

    def take(self) -> Documents | None:
        """What has been gathered, or None if that is nothing; the batch is empty again."""
        if not self._positions:
            return None
        values = self._values[0] if len(self._values) == 1 else np.concatenate(self._values)
        lengths = np.concatenate(self._lengths)
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        documents = Documents(values, offsets, np.concatenate(self._positions), self._ids)
        self._clear()
        return documents

    def _clear(self) -> None:
        self._values: list[Bytes] = []
        self._lengths: list[Int64s] = []
        self._positions: list[Int64s] = []
        self._ids: list[str] | None = [] if self._with_ids else None
        self._filled = 0
