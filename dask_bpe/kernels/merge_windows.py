"""The merges of pre-tokens of any length, window by window.

This rests on what is true for every list of merges in every order: until a merge has crossed a place of the text, the
merges on one side of it are those of that side alone, for each of them was the lowest of all and so the lowest of its
side, and none altered the other side.

Hence tokens are the encoding of their bytes if, and only if, every two neighbours are the encoding of theirs. If they
are, suppose a merge crosses a place between two of the tokens, and take the first one that does. Until then the merges
in its two tokens are those of these two alone, which therefore would cross the place too; and they do not.

So where two windows overlap and have a token in common, what the one has up to it and the other from it on is the
encoding of both: all neighbours were neighbours in a window.

(github/rust-gems, crate bpe, found this for ranks in the order of training, and encodes by longest matches, checking
each pair of neighbours. That took three times as long as `merge_in_place` where merges compete, as in random digits.)
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step
from dask_bpe.kernels.lanes import LANES
from dask_bpe.kernels.merge_lanes import LANE_WORDS, merge_lanes
from dask_bpe.kernels.merging import merge_by_heap, merge_in_place
from dask_bpe.kernels.simd import load_u64
from dask_bpe.kernels.table import hash_long

# Bytes of a window: twice those of the longest token of a run, 128 spaces in o200k_base, or its end is never certain.
WINDOW = 256
# Windows that are remembered: texts that take so long to repeat are none that a generator of tests thinks of.
RECENT = 64
# Bytes of a window that is too short the first time.
WIDE = 1 << 12

# How a window is merged; if it was too short, as the next one of these.
_BY_SMALL, _WHOLE, _LONG = 0, 1, 2
# Bytes of the small windows that are merged in lanes, and from where one begins to where the next one does: of random
# digits one stretch in 500 has a place where two have no token in common, with steps of 24 bytes one in 17.
_SMALL = WINDOW // LANES
_STEP = 5 * _SMALL // 8
# Bytes of a stretch of text that small windows in all lanes cover.
STRETCH = (LANES - 1) * _STEP + _SMALL


@inlined
def _is_certain(begin, width):
    """Whether a token begins in the first three quarters of a window: what comes after it seldom alters it."""
    return 4 * begin <= 3 * width


@inlined
def _certain(n, width, begins):
    """Of the n ids of a window: how many stand before the last certain one, and the bytes of these."""
    k = n - 1
    while not _is_certain(np.int64(begins[k]), width):
        k -= 1
    return k, np.int64(begins[k])


@inlined
def _join(small, counts, n_lanes, lengths, out, first):
    """Join small windows, as `merge_lanes` leaves them, where one and the next have a token in common.

    out : uint32[]: the ids are written from `first` on, and others after them. Returns how many ids all of the text
    has, -1 if two windows have nothing in common. Then: how many are certain whatever comes after the text, and the
    bytes of these; 0 and 0 if the first two windows have nothing in common.
    """
    n = kept = covered = np.int64(0)
    lane = i = begin = np.int64(0)
    # The token of the next window that is compared.
    j, other = np.int64(0), np.int64(_STEP)
    while i < np.int64(counts[lane]):
        token = small[LANES * i + lane]
        if lane + 1 < n_lanes:
            while other < begin:
                other += np.int64(lengths[small[LANES * j + lane + 1]])
                j += 1
            if other == begin and small[LANES * j + lane + 1] == token:
                lane, i = lane + 1, j
                j, other = np.int64(0), (lane + 1) * _STEP
                continue
        if _is_certain(begin - lane * _STEP, _SMALL):
            kept, covered = n, begin
        out[first + n] = np.uint32(token)
        n += 1
        i += 1
        begin += np.int64(lengths[token])
    if lane + 1 < n_lanes:
        n = np.int64(-1)
        if lane == 0:
            kept = covered = np.int64(0)
    return n, kept, covered


@step
def _merge_small(text, start, length, byte_ids, pairs, lengths, scratch, out, first):
    """Merge a stretch of at most STRETCH bytes by small windows that overlap; returns what `_join` does."""
    small, counts = scratch.heap[:LANE_WORDS], scratch.heap[LANE_WORDS : LANE_WORDS + LANES]
    counts[:] = np.uint64(0)
    n_lanes = begin = size = np.int64(0)
    while begin + size < length:
        begin = n_lanes * _STEP
        size = min(length - begin, _SMALL)
        counts[n_lanes] = np.uint64(size)
        for i in range(size):
            small[LANES * i + n_lanes] = np.uint64(byte_ids[text[start + begin + i]])
        n_lanes += 1
    merge_lanes(small, counts, min(length, _SMALL), pairs, scratch.best[:LANE_WORDS])
    return _join(small, counts, n_lanes, lengths, out, first)


@step
def _recent_window(text, start, small, anew, byte_ids, pairs, lengths, scratch):
    """Where the certain ids of a window stand in ``scratch.recent_ids``; merges it if it is not there.

    small : whether it is merged by small ones. anew : whether it is merged in any case.
    """
    recent, recent_ids = scratch.recent, scratch.recent_ids
    slot = np.int64(hash_long(text, start, WINDOW) & np.uint64(RECENT - 1))
    at, place = slot * (WINDOW + 2), slot * WINDOW
    known = not anew and recent_ids[at] > 0
    for i in range(0, WINDOW, 8):
        if load_u64(text, start + i) != load_u64(recent, place + i):
            known = False
            break
    if not known:
        kept = covered = np.int64(0)
        if small:
            _, kept, covered = _merge_small(text, start, STRETCH, byte_ids, pairs, lengths, scratch, recent_ids, at + 2)
        if kept == 0:
            ids, best = scratch.ids, scratch.best
            n = merge_in_place(text, start, WINDOW, byte_ids, pairs, ids, best, scratch.links, scratch.heap)
            kept, covered = _certain(n, WINDOW, best)
            for i in range(kept + 1):
                recent_ids[at + 2 + i] = ids[i]
        for i in range(WINDOW):
            recent[place + i] = text[start + i]
        recent_ids[at], recent_ids[at + 1] = kept, covered
    return at


@step
def merge_in_windows(text, start, length, byte_ids, pairs, lengths, in_lanes, scratch, ids, first):
    """The merges of `merging.merge_by_scan`, in time and memory that a text without end would not make larger.

    A window begins with a token of the one before it, one that is not near its end. If it really begins with that
    token, what is written so far is right; if not, the window before was too short, and a wider one takes its place;
    if that does not help, this one is made wider. Runs and other periods are looked up: their windows are the same
    again.

    lengths : uint32[], bytes of each token. in_lanes : whether windows are merged eight at a time.
    ids : uint32[>= first + length]: the ids are written from `first` on. Returns how many they are, or -1 if a window
    as long as the scratch arrays is too short: begin again with longer ones.
    """
    first_kind = _LONG if scratch.ids.size > WIDE else _BY_SMALL if in_lanes else _WHOLE
    kind = last_kind = first_kind
    n = begin = n_before = before = np.int64(0)  # the ids and bytes in front of this window, and of the last one
    while True:
        left = length - begin
        is_last = False
        source, at, kept, covered = scratch.ids, np.int64(0), np.int64(0), np.int64(0)
        best, links, heap = scratch.best, scratch.links, scratch.heap
        if kind == _LONG:
            width = min(left, source.size)
            is_last = width == left
            kept = merge_by_heap(text, start + begin, width, byte_ids, pairs, source, best, links, heap, 1)
            if not is_last:
                kept, covered = _certain(kept, width, best)
        elif left > WINDOW:
            source = scratch.recent_ids
            small, anew = kind == _BY_SMALL, kind != first_kind
            at = _recent_window(text, start + begin, small, anew, byte_ids, pairs, lengths, scratch)
            kept, covered = np.int64(source[at]), np.int64(source[at + 1])
            at += 2
        elif kind == _BY_SMALL:
            width = min(left, STRETCH)
            all_ids, kept, covered = _merge_small(
                text, start + begin, width, byte_ids, pairs, lengths, scratch, source, at
            )
            is_last = width == left and all_ids > 0
            kept = all_ids if is_last else kept
        else:
            is_last = True
            kept = merge_in_place(text, start + begin, left, byte_ids, pairs, source, best, links, heap)
        disagrees = n > 0 and kept > 0 and source[at] != ids[first + n]
        if disagrees and last_kind != _LONG:
            # Once: where the window in front of that one begins is not known any more.
            n, begin, kind, last_kind = n_before, before, last_kind + 1, _LONG
            continue
        if disagrees or kept == 0:
            if kind == _LONG:
                return np.int64(-1)
            kind += 1
            continue
        if is_last:
            for i in range(kept):
                ids[first + n + i] = source[at + i]
            return n + kept
        for i in range(kept + 1):
            ids[first + n + i] = source[at + i]
        n_before, before, last_kind = n, begin, kind
        n, begin, kind = n + kept, begin + covered, first_kind
