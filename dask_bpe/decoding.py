"""From ids back to bytes and text: all at once, or piece by piece as a model produces them."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError
from dask_bpe.kernels.gather import gather
from dask_bpe.ragged import Ragged

# Below this many ids a join of Python bytes is quicker than going through arrays.
_FEW = 64


class TokenTable:
    """The bytes of every id, ready to be looked up."""

    def __init__(self, tokens: tuple[bytes, ...]) -> None:
        """The table of `tokens`: id -> bytes, empty where no token has the id."""
        self._tokens = tokens
        self._has_gaps = not all(tokens)

    @cached_property
    def _flat(self) -> tuple[Ragged, npt.NDArray[np.int64]]:
        """The tokens, with the padding that `gather` asks for, and their lengths."""
        ragged = Ragged.from_list((*self._tokens, bytes(8)))
        return ragged, np.diff(ragged.offsets)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of bytes of every id."""
        return self._flat[1]

    def decode(self, ids: Iterable[int] | npt.NDArray[np.integer[Any]]) -> bytes:
        """The bytes of the ids, one after the other.

        Raises ParameterError naming the first id that is not one, and its position.
        """
        if not isinstance(ids, np.ndarray):
            if not isinstance(ids, Iterable):
                raise ParameterError(f"token ids must be several, not {ids!r}: give [{ids!r}]")
            ids = ids if isinstance(ids, list | tuple) else list(ids)
            if len(ids) < _FEW:
                return self._join(ids)
            ids = np.asarray(ids)
        if ids.size == 0:
            return b""
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ParameterError(f"token ids must be integers in one dimension, not {ids.dtype} {ids.shape}")
        if ids.min() < 0 or ids.max() >= len(self._tokens):
            at = int(np.flatnonzero((ids < 0) | (ids >= len(self._tokens)))[0])
            raise self._unknown(ids[at], at)
        ragged, lengths = self._flat
        ids = ids.astype(np.int64)
        sizes = lengths.take(ids)
        if self._has_gaps and not sizes.all():
            at = int(np.flatnonzero(sizes == 0)[0])
            raise self._unknown(ids[at], at)
        size = int(sizes.sum())
        out = np.empty(size // 8 + 1, np.uint64)
        gather(ragged.values, ragged.offsets, ids, out)
        return out.view(np.uint8)[:size].tobytes()

    def _join(self, ids: list[int] | tuple[int, ...]) -> bytes:
        try:
            if ids and min(ids) >= 0:
                tokens = [self._tokens[index] for index in ids]
                if not self._has_gaps or all(tokens):
                    return b"".join(tokens)
        except IndexError:
            pass
        except TypeError:
            raise ParameterError(f"token ids must be integers, not {ids!r}") from None
        for at, index in enumerate(ids):
            if not 0 <= index < len(self._tokens) or not self._tokens[index]:
                raise self._unknown(index, at)
        return b""

    def _unknown(self, index: Any, at: int) -> ParameterError:
        inside = 0 <= index < len(self._tokens)
        return ParameterError(
            f"token id {index} at position {at} is unknown; ids go from 0 to {len(self._tokens) - 1}"
            + (", and no token has this one" if inside else "")
        )


class IncrementalDecoder:
    """Text of ids that arrive one by one; a character whose bytes are not all there yet is held back.

    What all calls return, joined, is the `decode` of all ids at once: invalid bytes become U+FFFD.
    """

    def __init__(self, table: TokenTable) -> None:
        """A decoder that has seen nothing yet."""
        self._table = table
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def decode(self, ids: int | np.integer[Any] | Iterable[int] | npt.NDArray[np.integer[Any]]) -> str:
        """The text that one more id, or several, complete. Raises ParameterError for an unknown id."""
        several = (int(ids),) if isinstance(ids, int | np.integer) else ids
        return self._decoder.decode(self._table.decode(several))

    def flush(self) -> str:
        """What was held back, as U+FFFD since nothing completes it; the decoder starts anew."""
        return self._decoder.decode(b"", final=True)
