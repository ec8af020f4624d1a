"""From segments of text to token ids, in one thread or several at once."""

from __future__ import annotations

import threading
from collections import deque
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.kernels import encode, memory, table
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.pretokenize.scanner import Batch
from dask_bpe.vocabulary import Vocabulary

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]

# Lines of the front table, 64 bytes each: 1 MB. A quarter of it lost 12 %, twice as many gained nothing. Slots of
# the index of the cache at first and at most, 28 bytes each with what they lead to: 2 MB and 60 MB. A cache
# that is full is enlarged, at its limit emptied.
_FRONT_LINES, _FIRST, _MOST = 1 << 14, 1 << 16, 1 << 21

# Scratch arrays for pre-tokens up to this length, 52 bytes a byte, are kept from call to call.
_KEPT_SCRATCH = 1 << 16

NOTHING = encode.NOTHING
_NOTHING_AFTER = np.empty(0, np.uint32)
_MAKING = threading.Lock()


class Encoder:
    """Encodes text with one vocabulary. Safe to use from many threads: each call takes a workspace of its own.

    A workspace keeps the ids of the pre-tokens it has met, within about 100 MB; it is reused by later calls.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pattern = get_pattern(vocabulary.pattern)
        self._byte_ids = np.ascontiguousarray(vocabulary.byte_ids, np.uint32)
        merges = np.ascontiguousarray(vocabulary.merges, np.int64)
        capacity = 1 << max(4, (2 * len(merges)).bit_length())
        self._pairs = memory.zeros(2 * capacity)
        self._pairs.fill(np.iinfo(np.uint64).max)
        encode.fill_pairs(merges, self._pairs)
        self._idle: deque[_Workspace] = deque()

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Encoder:
        """The encoder of this process for a vocabulary: its caches stay warm from one use to the next."""
        with _MAKING:
            return _encoder_of(vocabulary)

    def encode_segments(
        self, text: Text, starts: Int64s, ends: Int64s, after: Ids = _NOTHING_AFTER
    ) -> tuple[Ids, Int64s]:
        """Encode each segment ``text[starts[k]:ends[k]]`` on its own; special tokens are not looked for.

        Parameters
        ----------
        text : uint8[n], contiguous.
        starts, ends : int64[k].
        after : uint32[k], an id to put after each segment, such as that of the special token that ended it;
            `NOTHING` for none. Left out: none anywhere.

        Returns
        -------
        ids : uint32[m], those of all segments, one after the other.
        offsets : int64[k + 1], segment k, with what comes after it, is ``ids[offsets[k]:offsets[k + 1]]``.

        Raises
        ------
        InputError
            When the vocabulary's pattern leaves a part of the text unmatched.
        """
        segments = np.array((starts, ends), np.int64)
        out = np.empty(int((segments[1] - segments[0]).sum()) + segments.shape[1] + 3, np.uint32)
        offsets = np.zeros(segments.shape[1] + 1, np.int64)
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = _Workspace(Scanner(self._pattern, keep_all=True))
        written = workspace.encode(text, segments, after, self._byte_ids, self._pairs, out, offsets)
        # Only a workspace whose call went well is used again: a MemoryError may leave one half made.
        self._idle.append(workspace.shrunk())
        return out[:written], offsets


@lru_cache(maxsize=4)
def _encoder_of(vocabulary: Vocabulary) -> Encoder:
    return Encoder(vocabulary)


class _Workspace:
    """The caches and scratch arrays of one thread; see `kernels.encode`."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._keys = np.empty(3 * encode.BATCH, np.uint64)
        self._batch = np.empty(2 * encode.BATCH, np.uint64)
        self._missed = np.empty(encode.BATCH, np.int64)
        self._cursor = np.zeros(3, np.int64)
        self._resize_scratch(encode.CACHED_BYTES)
        self._make_cache(_FIRST)

    def _resize_scratch(self, length: int) -> None:
        # All or none: the kernel looks at the length of one of them.
        scratch = np.empty(length, np.uint32), np.empty(length, np.uint64)
        links, heap = np.empty(2 * length, np.int64), np.empty(3 * length, np.uint64)
        self._ids, self._best, self._links, self._heap = *scratch, links, heap

    def shrunk(self) -> _Workspace:
        """This workspace, without the scratch arrays of a pre-token that was extraordinarily long."""
        if len(self._ids) > _KEPT_SCRATCH:
            self._resize_scratch(encode.CACHED_BYTES)
        return self

    def _make_cache(self, slots: int) -> None:
        """An empty cache of so many slots, with room for what fills them up to 5/8: a string of 16 bytes or more
        in every eighth entry, and three ids on average."""
        least = encode.BATCH * encode.CACHED_BYTES
        self._front = memory.zeros(encode.LINE * _FRONT_LINES)
        self._index = memory.zeros(slots)
        self._entries = memory.zeros(table.WIDTH * (slots // 8 * 5))
        self._values = np.empty(max(4 * slots, least), np.uint8)
        self._offsets = np.zeros(slots // 8 + encode.BATCH, np.int64)
        self._overflow = np.empty(max(2 * slots, least), np.uint32)
        self._used = np.zeros(4, np.int64)

    def _enlarge_cache(self) -> None:
        """Make a full cache four times as large; at the limit start again with an empty one."""
        slots = len(self._index)
        if slots >= _MOST:
            self._make_cache(slots)
            return
        old: list[npt.NDArray[Any]] = [self._entries, self._values, self._offsets, self._overflow]
        used = self._used
        self._make_cache(4 * slots)
        new: list[npt.NDArray[Any]] = [self._entries, self._values, self._offsets, self._overflow]
        for larger, kept in zip(new, old, strict=True):
            larger[: len(kept)] = kept
        self._used = used
        table.rebuild_index(self._entries, int(used[0]), self._index)

    def encode(
        self,
        text: Text,
        segments: Int64s,
        after: Ids,
        byte_ids: Ids,
        pairs: npt.NDArray[np.uint64],
        out: Ids,
        offsets: Int64s,
    ) -> int:
        """Write the ids of all segments to `out` and their bounds to `offsets`; returns the number of ids."""
        written = 0
        for batch in self._scanner.scan(text, segments):
            bounds = offsets[batch.first + 1 : batch.last + 1]
            ends = after[batch.first : batch.last]
            written = self._encode_batch(text, batch, ends, byte_ids, pairs, out, bounds, written)
        return written

    def _encode_batch(
        self,
        text: Text,
        batch: Batch,
        after: Ids,
        byte_ids: Ids,
        pairs: npt.NDArray[np.uint64],
        out: Ids,
        bounds: Int64s,
        written: int,
    ) -> int:
        cursor = self._cursor
        cursor[:] = 0, written, 0
        stops = batch.stops[batch.first : batch.last]
        while True:
            state = encode.encode_spans(
                text, batch.spans, batch.n_spans, cursor, stops, bounds, byte_ids, pairs, self._keys, self._batch,
                self._missed, self._front, self._index, self._entries, self._values, self._offsets, self._overflow,
                self._used, self._ids, self._best, self._links, self._heap, after, out,
            )  # fmt: skip
            if state == encode.DONE:
                return int(cursor[1])
            if state == encode.CACHE_FULL:
                self._enlarge_cache()
            else:
                length = int(batch.spans[1, cursor[0]] - batch.spans[0, cursor[0]])
                self._resize_scratch(1 << length.bit_length())
