"""From segments of text to token ids, in one thread or several at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dask_bpe.kernels import encode as kernels
from dask_bpe.kernels import frame, front, lanes, memory, merging, table
from dask_bpe.kernels._jit import direct
from dask_bpe.normalizer import Normalizer
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.pretokenize.scanner import Batch, Cutting
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]

# Lines of the front table, 64 bytes each: 1 MB. A quarter of it lost 12 %, twice as many gained nothing.
_FRONT_LINES = 1 << 13
# Slots of the index of the cache at first, and bytes of all its arrays at most. Full arrays are made twice as large;
# past the limit all are emptied.
_FIRST, _MOST = 1 << 16, 1 << 28

# Text whose ids and what is made of them stay in the L2 cache.
SLICE_BYTES = 1 << 20

# Bytes behind a short text, so that vectors may be read at its end.
_BEHIND = 64

# Texts up to this many bytes are encoded in a `_Short`: what a call takes beside the encoding is 1 us then for 10.
SHORT = 1 << 13

NOTHING = merging.NOTHING
_T = TypeVar("_T")
_NOTHING_AFTER = np.empty(0, np.uint32)
_MAKING = threading.Lock()


class Encoder:
    """Encodes text with one vocabulary. Safe to use from many threads: each call takes a workspace of its own.

    A workspace keeps the ids of the pre-tokens it has met, within 256 MiB; it is reused by later calls.
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
        self, text: Text, starts: Int64s, ends: Int64s, after: Ids = _NOTHING_AFTER, out: Ids | None = None
    ) -> tuple[Ids, Int64s]:
        """Encode each segment ``text[starts[k]:ends[k]]`` on its own; special tokens are not looked for.

        A segment is what a normalizer is applied to: it must be all the text between two special tokens.

        Parameters
        ----------
        text : uint8[n], contiguous.
        starts, ends : int64[k].
        after : uint32[k], an id to put after each segment, such as that of the special token that ended it;
            `NOTHING` for none. Left out: none anywhere.
        out : uint32[n], where the ids are written if it is large enough; those returned are a part of it then. Memory
            that is used again need not be cleared by the system.

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
        # The kernels take arrays as they are, without a look at their types.
        text, after = np.ascontiguousarray(text, np.uint8), np.ascontiguousarray(after, np.uint32)
        segments = np.array((starts, ends), np.int64)
        room = int((segments[1] - segments[0]).sum()) + segments.shape[1] + kernels.SPARE
        if out is None or len(out) < room:
            out = np.empty(room, np.uint32)
        offsets = np.zeros(segments.shape[1] + 1, np.int64)
        workspace = self._workspace()
        written = workspace.encode(text, segments, after, self._rules, out, offsets)
        # Only a workspace whose call went well is used again: a MemoryError may leave one half made.
        self._idle.append(workspace.shrunk())
        return out[:written], offsets

    def encode_array(
        self, text: Text, starts: Int64s, ends: Int64s, after: Ids, dtype: npt.DTypeLike
    ) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The ids that `encode_segments` gives, in an array of `dtype`, which every id of the vocabulary must fit.

        For long texts: what is written and cast piece by piece needs new memory only for the result.
        """
        ids = np.empty(int((ends - starts).sum()) + len(starts), dtype)
        out = np.empty(2 * SLICE_BYTES, np.uint32)
        written = 0
        for first, last in slices(starts, ends):
            part = self.encode_segments(text, starts[first:last], ends[first:last], after[first:last], out)[0]
            ids[written : written + len(part)] = part
            written += len(part)
        ids.resize(written, refcheck=False)  # gives back what was never touched
        return ids

    def encode_text(self, data: bytes, take: Callable[[Ids], _T]) -> _T:
        """What `take` makes of the ids of one text, uint32[n], which is a segment of its own.

        `take` must copy: the memory of the ids is used again. Raises as `encode_segments`.
        """
        if len(data) <= SHORT and self._normalizer is None:
            workspace = self._workspace()
            ids = workspace.encode_short(data, self._rules)
            taken = None if ids is None else take(ids)
            self._idle.append(workspace)
            if taken is not None:
                return taken
        text = np.frombuffer(data, np.uint8)
        return take(self.encode_segments(text, np.zeros(1, np.int64), np.array([len(data)], np.int64))[0])

    def _workspace(self) -> _Workspace:
        """A workspace that nobody uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return _Workspace(Scanner(self._pattern, keep_all=True))


def slices(starts: Int64s, ends: Int64s, n_bytes: int = SLICE_BYTES) -> Iterator[tuple[int, int]]:
    """Ranges of segments, from one to another, of about `n_bytes` each."""
    first = 0
    while first < len(ends):
        last = int(np.searchsorted(ends, starts[first] + n_bytes, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last


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


def _rules_of(vocabulary: Vocabulary) -> kernels.Rules:
    merges = np.ascontiguousarray(vocabulary.merges, np.int64)
    by_token = vocabulary.ranks == "tokens"
    ranks = np.ascontiguousarray(merges[:, 2]) if by_token else np.arange(len(merges), dtype=np.int64)
    byte_ids = np.ascontiguousarray(vocabulary.byte_ids, np.uint32)
    pairs = _pairs(merges, ranks)
    whole: dict[bytes, int] = {}
    if by_token or vocabulary.whole_tokens:
        merges, ranks = _last_merges(vocabulary, byte_ids, pairs)
        pairs = _pairs(merges, ranks)
    if vocabulary.whole_tokens:
        # Only tokens that merging does not make are looked up: of most vocabularies none, of others a few hundred.
        # What merging makes of a token is not its id where ranks contradict each other or merges are missing.
        made = set(merges[:, 2].tolist())
        whole = {token: index for token, index in _whole_candidates(vocabulary).items() if index not in made}
    return kernels.Rules(byte_ids, pairs, *_whole_table(list(whole), np.array(list(whole.values()), np.int64)))


def _pairs(merges: Int64s, ranks: Int64s) -> npt.NDArray[np.uint64]:
    """The table of `merging.fill_pairs`."""
    size = (2 << max(4, (2 * len(merges)).bit_length())) + merging.FILTER_WORDS
    pairs: npt.NDArray[np.uint64] = memory.zeros(size)
    merging.fill_pairs(merges, ranks, pairs)
    return pairs


def _last_merges(vocabulary: Vocabulary, byte_ids: Ids, pairs: npt.NDArray[np.uint64]) -> tuple[Int64s, Int64s]:
    """The merges that ever take place, and their ranks; see `merging.find_last_merges`."""
    tokens = Ragged.from_list(vocabulary.tokens)
    merges, ranks = np.empty((len(tokens), 3), np.int64), np.empty(len(tokens), np.int64)
    scratch = _make_scratch(int(np.diff(tokens.offsets).max()))
    n = merging.find_last_merges(tokens.values, tokens.offsets, byte_ids, pairs, scratch, merges, ranks)
    return merges[:n], ranks[:n]


def _whole_candidates(vocabulary: Vocabulary) -> dict[bytes, int]:
    """The tokens of two bytes or more that a pre-token may be: special ones only if a merge makes them too."""
    reserved = set(vocabulary.special_tokens.values()).difference(vocabulary.merges[:, 2].tolist())
    candidates: dict[bytes, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        if len(token) > 1 and index not in reserved:
            candidates.setdefault(token, index)
    return candidates


def _whole_table(tokens: list[bytes], token_ids: Int64s) -> tuple[Any, ...]:
    """The four arrays of `kernels.encode` in which whole tokens are looked up."""
    texts = Ragged.from_list(tokens)
    n = len(texts)
    index = memory.zeros(1 << (2 * n).bit_length() if n else 1)
    entries = memory.zeros(table.WIDTH * max(n, 1))
    values, offsets = np.empty(len(texts.values) + 8, np.uint8), np.zeros(n + 1, np.int64)
    if n:
        kernels.fill_whole(
            texts.values, texts.offsets, token_ids, index, entries, values, offsets, np.zeros(4, np.int64)
        )
    return index, entries, values, offsets


class _Short(NamedTuple):
    """Short texts are copied to one place and encoded to another, by a kernel that finds everything in a frame.

    Attributes
    ----------
    run : the kernel, of the frame and the length of the text.
    frame : uint64[], see `kernels.frame`.
    text, out : uint8[] and uint32[], what the kernel reads and writes.
    alive : all arrays to which the frame points.
    """

    run: Callable[[npt.NDArray[np.uint64], int], int]
    frame: npt.NDArray[np.uint64]
    text: memoryview
    out: Ids
    alive: tuple[Any, ...]


class _Workspace:
    """The caches and scratch arrays of one thread; see `kernels.encode`."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._batch = front.Batch.empty()
        self._cursor, self._cut = np.zeros(3, np.int64), np.zeros(3, np.int64)
        self._scratch = _make_scratch(merging.WIDE)
        self._cache = _make_cache(_FIRST)
        self._short: _Short | None = None

    def shrunk(self) -> _Workspace:
        """This workspace, with scratch arrays as it had them at first."""
        if len(self._scratch.ids) > merging.WIDE:
            self._scratch, self._short = _make_scratch(merging.WIDE), None
        return self

    def encode(
        self,
        text: Text,
        segments: Int64s,
        after: Ids,
        rules: kernels.Rules,
        out: Ids,
        offsets: Int64s,
    ) -> int:
        """Write the ids of all segments to `out` and their bounds to `offsets`; returns the number of ids."""
        self._cursor.fill(0)
        cutting = self._scanner.begin(segments)
        if cutting is None:
            for batch in self._scanner.scan(text, segments):
                self._encode_batch(text, batch, after, rules, out, offsets)
            return int(self._cursor[1])
        self._cut.fill(0)
        keep, run = _kernels(cutting.by)
        while True:
            arguments = self._arguments(text, segments, cutting, offsets[1:], rules, after, out)
            words = _framed(keep, frame.Begun(segments, cutting.place, self._cut, self._cursor), arguments)
            state = run(words, -1)
            if state == kernels.DONE:
                self._scanner.end()
                return int(self._cursor[1])
            if state < 0:
                self._short = None
                cutting = self._scanner.go_on(state, text, segments, cutting)
            else:
                self._make_room(state)

    def _arguments(
        self, text: Text, segments: Int64s, cutting: Cutting, bounds: Int64s, rules: kernels.Rules, after: Ids, out: Ids
    ) -> tuple[Any, ...]:
        """The arguments of the kernels, in the order of `kernels.encode_by.ARGUMENTS`."""
        return (
            text, segments, cutting.place, *cutting.arguments, cutting.spans, cutting.stops, self._cut, self._cursor,
            bounds, rules, self._cache, self._batch, self._scratch, after, lanes.IN_USE, out,
        )  # fmt: skip

    def encode_short(self, data: bytes, rules: kernels.Rules) -> Ids | None:
        """The ids of a text of at most SHORT bytes, in memory that the next call writes over.

        None if no kernel knows the pattern, or if more room is needed than there is: `encode` makes it.
        """
        short = self._short
        if short is None:
            short = self._short = self._make_short(rules)
            if short is None:
                return None
        size = len(data)
        short.text[:size] = data
        state = short.run(short.frame, size)
        return short.out[: self._cursor[1]] if state == kernels.DONE else None

    def _make_short(self, rules: kernels.Rules) -> _Short | None:
        segments = np.zeros((2, 1), np.int64)
        cutting = self._scanner.begin(segments)
        if cutting is None:
            return None
        text, out = np.zeros(SHORT + _BEHIND, np.uint8), np.empty(SHORT + kernels.SPARE, np.uint32)
        arguments = self._arguments(text, segments, cutting, np.empty(1, np.int64), rules, _NOTHING_AFTER, out)
        keep, run = _kernels(cutting.by)
        kept = frame.Begun(segments, cutting.place, self._cut, self._cursor), arguments
        words = _framed(keep, *kept)
        return _Short(run, words, text.data, out, kept)

    def _encode_batch(
        self, text: Text, batch: Batch, after: Ids, rules: kernels.Rules, out: Ids, offsets: Int64s
    ) -> None:
        self._cursor[0] = self._cursor[2] = 0
        segments = slice(batch.first, batch.last)
        stops, bounds = batch.stops[segments], offsets[1:][segments]
        while state := kernels.encode_batch(
            text, batch.spans, batch.n_spans, self._cursor, stops, bounds, rules, self._cache, self._batch,
            self._scratch, after[segments], lanes.IN_USE, out,
        ):  # fmt: skip
            self._make_room(state)

    def _make_room(self, state: int) -> None:
        """Give a kernel that stopped what it needs to go on."""
        self._short = None
        if state == kernels.CACHE_FULL:
            self._cache = _enlarged(self._cache)
        else:
            self._scratch = _make_scratch(2 * len(self._scratch.ids))


@cache
def _kernels(by: str) -> tuple[Any, Any]:
    """What keeps the arguments of the kernel for text that this scanner cuts, and the kernel."""
    module = import_module(f"dask_bpe.kernels.encode_{by}")
    return direct(getattr(module, f"keep_{by}")), direct(getattr(module, f"encode_{by}"))


def _framed(keep: Any, begun: frame.Begun, arguments: tuple[Any, ...]) -> npt.NDArray[np.uint64]:
    """The frame of a call; see `kernels.frame`."""
    words = np.empty(keep(np.empty(0, np.uint64), (begun, arguments)), np.uint64)
    keep(words, (begun, arguments))
    return words


def _make_scratch(length: int) -> merging.Scratch:
    return merging.Scratch(
        np.empty(length, np.uint32),
        np.empty(length, np.uint64),
        np.empty(2 * length, np.int64),
        np.empty(3 * length, np.uint64),
        np.zeros(merging.RECENT * merging.WINDOW, np.uint8),
        np.zeros(merging.RECENT * (merging.WINDOW + 2), np.uint32),
    )


class _Sizes(NamedTuple):
    """How much a cache has room for: slots of its index, 5/8 of which may be filled; strings of 16 bytes or more, and
    the bytes of those; ids of pre-tokens that have more than three."""

    slots: int
    strings: int
    n_bytes: int
    ids: int

    @property
    def memory(self) -> int:
        """Bytes of all arrays."""
        return self.slots * (8 + 5 * table.WIDTH) + 8 * self.strings + self.n_bytes + 4 * self.ids


# What a batch may need.
_NEEDED = _Sizes(
    2 * front.BATCH, front.BATCH, front.BATCH * kernels.CACHED_BYTES, front.BATCH * kernels.CACHED_BYTES + kernels.SPARE
)


def _make_cache(slots: int) -> kernels.Cache:
    """An empty cache, with room for a long string in every fifth entry and two ids in `overflow`."""
    return _of_sizes(_Sizes(*map(max, (slots, slots // 8, slots, slots), _NEEDED)))


def _of_sizes(sizes: _Sizes) -> kernels.Cache:
    return kernels.Cache(
        front=memory.zeros(front.LINE * _FRONT_LINES),
        index=memory.zeros(sizes.slots),
        entries=memory.zeros(table.WIDTH * (sizes.slots // 8 * 5)),
        values=np.empty(sizes.n_bytes, np.uint8),
        offsets=np.zeros(sizes.strings, np.int64),
        overflow=np.empty(sizes.ids, np.uint32),
        used=np.zeros(4, np.int64),
    )


def _enlarged(cache: kernels.Cache) -> kernels.Cache:
    """A full cache with twice the room for what it lacks room for; past the limit an empty one."""
    sizes = _Sizes(len(cache.index), len(cache.offsets), len(cache.values), len(cache.overflow))
    n_entries, strings, n_bytes, ids = cache.used.tolist()
    wanted = [a + b for a, b in zip((n_entries * 8 // 5, strings, n_bytes, ids), _NEEDED, strict=True)]
    grown = _Sizes(*(2 * size if want >= size else size for size, want in zip(sizes, wanted, strict=True)))
    if grown.memory > _MOST:
        return _of_sizes(sizes)
    larger = cache._replace(
        values=_extended(cache.values, grown.n_bytes),
        offsets=_extended(cache.offsets, grown.strings),
        overflow=_extended(cache.overflow, grown.ids),
    )
    if grown.slots == sizes.slots:
        return larger
    index, entries = memory.zeros(grown.slots), memory.zeros(table.WIDTH * (grown.slots // 8 * 5))
    entries[: len(cache.entries)] = cache.entries
    table.rebuild_index(entries, n_entries, index)
    return larger._replace(index=index, entries=entries)


def _extended(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """An array with room at its end: itself if it has the length asked for."""
    if length == len(array):
        return array
    longer = np.empty(length, array.dtype)
    longer[: len(array)] = array
    return longer
