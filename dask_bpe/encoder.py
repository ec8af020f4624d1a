"""From segments of text to token ids, in one thread or several at once."""

from __future__ import annotations

import threading
from collections import deque
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.kernels import encode, memory, table
from dask_bpe.normalizer import Normalizer
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.pretokenize.scanner import Batch
from dask_bpe.ragged import Ragged
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


class _Rules(NamedTuple):
    """What a pre-token becomes, in the order of the arguments of `kernels.encode.encode_spans`."""

    byte_ids: Ids
    pairs: npt.NDArray[np.uint64]
    whole_index: npt.NDArray[np.uint64]
    whole_entries: npt.NDArray[np.uint64]
    whole_values: npt.NDArray[np.uint8]
    whole_offsets: Int64s


class Encoder:
    """Encodes text with one vocabulary. Safe to use from many threads: each call takes a workspace of its own.

    A workspace keeps the ids of the pre-tokens it has met, within about 100 MB; it is reused by later calls.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pattern = get_pattern(vocabulary.pattern)
        self._normalizer = Normalizer(vocabulary.normalizer) if vocabulary.normalizer else None
        self._rules = _rules_of(vocabulary)
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

        A segment is what a normalizer is applied to: it must be all the text between two special tokens.

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
        if self._normalizer is not None:
            text, starts, ends = _normalized(self._normalizer, text, starts, ends)
        segments = np.array((starts, ends), np.int64)
        out = np.empty(int((segments[1] - segments[0]).sum()) + segments.shape[1] + 3, np.uint32)
        offsets = np.zeros(segments.shape[1] + 1, np.int64)
        workspace = self._workspace()
        written = workspace.encode(text, segments, after, self._rules, out, offsets)
        # Only a workspace whose call went well is used again: a MemoryError may leave one half made.
        self._idle.append(workspace.shrunk())
        return out[:written], offsets

    def encode_text(self, data: bytes) -> Ids:
        """The ids of one text as a segment of its own: `encode_segments` without what only many segments need.

        Returns uint32[n], a view of a larger array. Raises as `encode_segments`.
        """
        text = np.frombuffer(data, np.uint8)
        if self._normalizer is not None:
            return self.encode_segments(text, np.zeros(1, np.int64), np.array([len(data)], np.int64))[0]
        out = np.empty(len(data) + 4, np.uint32)
        workspace = self._workspace()
        written = workspace.encode_whole(text, self._rules, out)
        self._idle.append(workspace.shrunk())
        return out[:written]

    def _workspace(self) -> _Workspace:
        """A workspace that nobody uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return _Workspace(Scanner(self._pattern, keep_all=True))


@lru_cache(maxsize=4)
def _encoder_of(vocabulary: Vocabulary) -> Encoder:
    return Encoder(vocabulary)


def _normalized(normalizer: Normalizer, text: Text, starts: Int64s, ends: Int64s) -> tuple[Text, Int64s, Int64s]:
    """The segments after the normalizer, in a text that holds nothing else."""
    if len(starts) == 0:
        return text, starts, ends
    if normalizer.keeps_ascii and text[int(starts.min()) : int(ends.max())].max(initial=0) < 0x80:
        return text, starts, ends
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    segments = Ragged.from_list(normalizer(text[start:end].tobytes()) for start, end in bounds)
    return segments.values, segments.offsets[:-1], segments.offsets[1:]


def _rules_of(vocabulary: Vocabulary) -> _Rules:
    merges = np.ascontiguousarray(vocabulary.merges, np.int64)
    by_token = vocabulary.ranks == "tokens"
    ranks = np.ascontiguousarray(merges[:, 2]) if by_token else np.arange(len(merges), dtype=np.int64)
    pairs = memory.zeros((2 << max(4, (2 * len(merges)).bit_length())) + encode.FILTER_WORDS)
    encode.fill_pairs(merges, ranks, pairs)
    byte_ids = np.ascontiguousarray(vocabulary.byte_ids, np.uint32)
    merging = _Rules(byte_ids, pairs, *_whole_table([], np.empty(0, np.int64)))
    if not vocabulary.whole_tokens:
        return merging
    # Only tokens that merging does not make are looked up: of most vocabularies none, of others a few hundred.
    # What merging makes of a token is not its id where ranks contradict each other or merges are missing.
    candidates = _whole_candidates(vocabulary)
    made, offsets = _merged(Ragged.from_list(candidates), merging)
    token_ids = np.array(list(candidates.values()), np.int64)
    differs = (np.diff(offsets) != 1) | (made[offsets[:-1]] != token_ids)
    return merging._replace(
        **dict(
            zip(
                ("whole_index", "whole_entries", "whole_values", "whole_offsets"),
                _whole_table(list(compress(candidates, differs)), token_ids[differs]),
                strict=True,
            )
        )
    )


def _whole_candidates(vocabulary: Vocabulary) -> dict[bytes, int]:
    """The tokens of two bytes or more that a pre-token may be: special ones only if a merge makes them too."""
    reserved = set(vocabulary.special_tokens.values()).difference(vocabulary.merges[:, 2].tolist())
    candidates: dict[bytes, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        if len(token) > 1 and index not in reserved:
            candidates.setdefault(token, index)
    return candidates


def _merged(texts: Ragged, rules: _Rules) -> tuple[Ids, Int64s]:
    """The ids of pre-tokens, and where those of each begin."""
    segments = np.array((texts.offsets[:-1], texts.offsets[1:]))
    out = np.empty(len(texts.values) + len(texts) + 3, np.uint32)
    offsets = np.zeros(len(texts) + 1, np.int64)
    workspace = _Workspace(Scanner(get_pattern(None), keep_all=True))
    written = workspace.encode(texts.values, segments, _NOTHING_AFTER, rules, out, offsets)
    return out[:written], offsets


def _whole_table(tokens: list[bytes], token_ids: Int64s) -> tuple[Any, ...]:
    """The four arrays of `kernels.encode` in which whole tokens are looked up."""
    texts = Ragged.from_list(tokens)
    n = len(texts)
    index = memory.zeros(1 << (2 * n).bit_length() if n else 1)
    entries = memory.zeros(table.WIDTH * max(n, 1))
    values, offsets = np.empty(len(texts.values) + 8, np.uint8), np.zeros(n + 1, np.int64)
    if n:
        encode.fill_whole(
            texts.values, texts.offsets, token_ids, index, entries, values, offsets, np.zeros(4, np.int64)
        )
    return index, entries, values, offsets


class _Workspace:
    """The caches and scratch arrays of one thread; see `kernels.encode`."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._keys = np.empty(3 * encode.BATCH, np.uint64)
        self._batch = np.empty(2 * encode.BATCH, np.uint64)
        self._missed = np.empty(encode.BATCH, np.int64)
        self._cursor = np.zeros(3, np.int64)
        self._whole, self._bounds = np.zeros((2, 1), np.int64), np.zeros(2, np.int64)
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
        rules: _Rules,
        out: Ids,
        offsets: Int64s,
    ) -> int:
        """Write the ids of all segments to `out` and their bounds to `offsets`; returns the number of ids."""
        written = 0
        for batch in self._scanner.scan(text, segments):
            bounds = offsets[batch.first + 1 : batch.last + 1]
            ends = after[batch.first : batch.last]
            written = self._encode_batch(text, batch, ends, rules, out, bounds, written)
        return written

    def encode_whole(self, text: Text, rules: _Rules, out: Ids) -> int:
        """Write the ids of a text that is one segment; returns their number."""
        self._whole[1, 0] = len(text)
        return self.encode(text, self._whole, _NOTHING_AFTER, rules, out, self._bounds)

    def _encode_batch(
        self,
        text: Text,
        batch: Batch,
        after: Ids,
        rules: _Rules,
        out: Ids,
        bounds: Int64s,
        written: int,
    ) -> int:
        cursor = self._cursor
        cursor[0], cursor[1], cursor[2] = 0, written, 0
        stops = batch.stops[batch.first : batch.last]
        while True:
            state = encode.encode_spans(
                text, batch.spans, batch.n_spans, cursor, stops, bounds, *rules, self._keys, self._batch, self._missed,
                self._front, self._index, self._entries, self._values, self._offsets, self._overflow, self._used,
                self._ids, self._best, self._links, self._heap, after, out,
            )  # fmt: skip
            if state == encode.DONE:
                return int(cursor[1])
            if state == encode.CACHE_FULL:
                self._enlarge_cache()
            else:
                length = int(batch.spans[1, cursor[0]] - batch.spans[0, cursor[0]])
                self._resize_scratch(1 << length.bit_length())
