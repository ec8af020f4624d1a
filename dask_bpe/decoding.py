"""From ids back to bytes and text: all at once, or piece by piece as a model produces them."""

from __future__ import annotations

import codecs
import operator
from array import array
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError
from dask_bpe.kernels import gather as kernels
from dask_bpe.kernels import memory
from dask_bpe.ragged import Ragged

Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.integer[Any]]

# Below this many ids a join of Python bytes is quicker than the kernels.
_FEW = 64


class _Flat(NamedTuple):
    """The tokens as `kernels.gather` reads them.

    lengths : uint32[n + 1], sizes : uint8[n + 1], slots : uint8[16 * n], values : uint8[].
    """

    lengths: npt.NDArray[np.uint32]
    sizes: npt.NDArray[np.uint8]
    slots: npt.NDArray[np.uint8]
    values: npt.NDArray[np.uint8]


class TokenTable:
    """The bytes of every id, ready to be looked up."""

    def __init__(self, tokens: Sequence[bytes], left_out: Collection[int] = ()) -> None:
        """The table of `tokens`: id -> bytes, empty where no token has the id. Of ids `left_out` there are no bytes."""
        self._tokens = [(b"" if index in left_out else token) if token else None for index, token in enumerate(tokens)]

    @cached_property
    def _flat(self) -> _Flat:
        tokens = Ragged.from_list([*(token or b"" for token in self._tokens), bytes(kernels.SLOT)])
        sizes, places = np.diff(tokens.offsets)[:-1], tokens.offsets[:-2]
        lengths = np.append(sizes, kernels.UNKNOWN).astype(np.uint32)
        lengths[[index for index, token in enumerate(self._tokens) if token is None]] = kernels.UNKNOWN
        # On huge pages the copy takes a fifth less time.
        slots = memory.zeros(kernels.SLOT * len(sizes), np.uint8)
        rows = slots.reshape(-1, kernels.SLOT)
        rows[:] = np.lib.stride_tricks.sliding_window_view(tokens.values, kernels.SLOT)[places]
        rows[:, -1] = np.minimum(sizes, kernels.SLOT)
        is_long = sizes >= kernels.SLOT
        words = np.stack((places, sizes), axis=1).astype("<u8") | np.array((0, kernels.LONG_SLOT), "<u8")
        rows[is_long] = words[is_long].view(np.uint8)
        return _Flat(lengths, np.minimum(lengths, kernels.LARGE).astype(np.uint8), slots, tokens.values)

    @property
    def lengths(self) -> npt.NDArray[np.uint32]:
        """Number of bytes of every id that is one."""
        return self._flat.lengths

    def decode(self, ids: Iterable[int] | Ids) -> bytes:
        """The bytes of the ids, one after the other.

        Raises ParameterError naming the first id that is not one, and its position.
        """
        if not isinstance(ids, np.ndarray):
            if not isinstance(ids, Iterable):
                raise ParameterError(f"token ids must be several, not {ids!r}: give [{ids!r}]")
            ids = ids if isinstance(ids, list | tuple) else list(ids)
            if len(ids) < _FEW:
                return self._join(ids)
            ids = _to_array(ids)
        if ids.size and (ids.ndim != 1 or ids.dtype.kind not in "iu"):
            raise ParameterError(f"token ids must be integers in one dimension, not {ids.dtype} {ids.shape}")
        if ids.size < _FEW:
            return self._join(ids.tolist())
        return self._gathered(ids, np.array((0, len(ids))))[0]

    def decode_texts(self, ids: Ids, bounds: Int64s) -> list[str]:
        """The text of each ``ids[bounds[k]:bounds[k + 1]]``; `bounds` ascends from 0 to the number of ids.

        Raises ParameterError as `decode`.
        """
        data, ends = self._gathered(ids, bounds)
        return [data[start:end].decode("utf-8", "replace") for start, end in pairwise([0, *ends.tolist()])]

    def decode_batch(self, batch: Iterable[Iterable[int] | Ids] | tuple[Ids, Ids]) -> list[str]:
        """The texts of several lists of ids, or of the ids and offsets that `Tokenizer.decode_batch` takes.

        Raises ParameterError as `decode`, naming the text, and for offsets that do not fit.
        """
        if isinstance(batch, tuple) and len(batch) == 2 and all(isinstance(part, np.ndarray) for part in batch):
            ids, offsets = np.asarray(batch[0]), np.asarray(batch[1])
            _check_ragged(ids, offsets)
            return self.decode_texts(ids, offsets.astype(np.int64))
        if not isinstance(batch, Iterable):
            raise ParameterError(f"batch is {batch!r}: the ids of several texts were expected")
        rows = list(batch)
        with suppress(ParameterError):  # which is said again below, with the number of the text
            if flat := _flattened(rows):
                return self.decode_texts(*flat)
        texts = []
        for number, row in enumerate(rows):
            try:
                texts.append(self.decode(row).decode("utf-8", "replace"))
            except ParameterError as error:
                raise ParameterError(f"text {number}: {error}") from None
        return texts

    def _gathered(self, ids: Ids, bounds: Int64s) -> tuple[bytes, Int64s]:
        """The bytes of all ids, and where in them those of ``ids[bounds[k]:bounds[k + 1]]`` end."""
        lengths, sizes, slots, values = self._flat
        words = _to_words(ids)
        ends = np.zeros(len(bounds) - 1, np.int64)
        if kernels.text_ends[words.itemsize](words, bounds, sizes, lengths, ends):
            at = int(np.flatnonzero(lengths[np.minimum(words, len(self._tokens))] == kernels.UNKNOWN)[0])
            raise self._unknown(ids[at], at)
        data = memory.new_bytes(int(ends[-1]) if len(ends) else 0)
        kernels.gather[words.itemsize](words, slots, values, np.frombuffer(data, np.uint8))
        return data, ends

    def _join(self, ids: list[int] | tuple[int, ...]) -> bytes:
        tokens = self._tokens
        try:
            if not ids or min(ids) >= 0:
                return b"".join([tokens[index] for index in ids])  # type: ignore[misc]
        except (IndexError, TypeError):
            raise self._first_error(ids) from None
        raise self._first_error(ids)

    def _first_error(self, ids: list[int] | tuple[int, ...]) -> ParameterError:
        """What is wrong with ids of which one or more are not in the table."""
        try:
            for at, index in enumerate(map(operator.index, ids)):
                if not 0 <= index < len(self._tokens) or self._tokens[index] is None:
                    return self._unknown(index, at)
        except TypeError:
            pass
        return ParameterError(f"token ids must be integers, not {ids!r}")

    def _unknown(self, index: Any, at: int) -> ParameterError:
        inside = 0 <= index < len(self._tokens)
        return ParameterError(
            f"token id {index} at position {at} is unknown; ids go from 0 to {len(self._tokens) - 1}"
            + (", and no token has this one" if inside else "")
        )


def _check_ragged(ids: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> None:
    """Raise ParameterError unless `offsets` cut all of `ids` into texts."""
    if (
        ids.ndim != 1
        or offsets.ndim != 1
        or offsets.dtype.kind not in "iu"
        or not len(offsets)
        or (offsets[0], offsets[-1]) != (0, len(ids))
        or (offsets[1:] < offsets[:-1]).any()
    ):
        raise ParameterError(f"offsets do not go from 0 to {ids.size}, the number of ids, without going back")
    if ids.size and ids.dtype.kind not in "iu":
        raise ParameterError(f"token ids must be integers in one dimension, not {ids.dtype} {ids.shape}")


def _flattened(texts: Iterable[Any]) -> tuple[Ids, Int64s] | None:
    """The ids of several lists in one array, and where those of each begin; None if they are not all lists of uint32.

    An array of the standard library takes a list of int four times as fast as numpy does.
    """
    flat, bounds = array("I"), [0]
    try:
        for ids in texts:
            flat.fromlist(ids)
            bounds.append(len(flat))
    except (TypeError, OverflowError):
        return None
    return np.array(flat, copy=False), np.array(bounds)


def _to_array(ids: list[int] | tuple[int, ...]) -> npt.NDArray[Any]:
    try:
        return np.array(array("I", ids), copy=False)
    except (TypeError, OverflowError):
        return np.asarray(ids)


def _to_words(ids: Ids) -> Ids:
    """Ids as kernels take them: contiguous uint16, uint32 or uint64, negative ones as those that are too large."""
    if not ids.dtype.isnative or (ids.itemsize < 4 and ids.dtype != np.uint16):
        ids = ids.astype(np.int64)
    return np.ascontiguousarray(ids).view(f"u{ids.itemsize}")


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
