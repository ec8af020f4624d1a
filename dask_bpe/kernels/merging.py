"""The merges of a pre-token: always of the two neighbours of the lowest rank, the leftmost of equal ones.

Three loops give the same ids; `merge_lanes` gives them for eight short texts at once, `merge_windows` for texts of any
length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dask_bpe.kernels._jit import (
    i64,
    i64m,
    i64s,
    inlined,
    kernel,
    named,
    none,
    on_demand,
    step,
    text_type,
    u8s,
    u32s,
    u64s,
)

NOTHING = np.uint32(0xFFFFFFFF)

# Pre-tokens up to this length are merged by `merge_by_scan`, longer ones by `merge_in_place`. The first has the least
# upkeep. The second reads more and moves nothing: phrases of 30 to 128 bytes took a fifth less time than by the others,
# words of up to 16 some 5 % more.
SCANNED_BYTES = 32

# The filter of pairs: 2 ** 20 bits, which the L2 cache holds. With 50,000 merges one pair in twenty passes that is
# none, with 200,000 one in six.
FILTER_WORDS = 1 << 14
FILTER_SHIFT = np.uint64(44)

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _SIX, _LAST = np.uint64(1), np.uint64(6), np.uint64(63)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Scratch(NamedTuple):
    """For merging: uint32[n], uint64[n], int64[2 * n], uint64[3 * n], where n is as large as the longest text.

    Those of `merge_windows`: n is WIDE or more. recent : uint8[RECENT * WINDOW], the windows that were met last, each
    at the place of its hash; recent_ids : uint32[RECENT * (WINDOW + 2)]: how many ids of it are certain, their bytes,
    and these ids and one more. Zeros at first.

    Those of `merge_pieces`: pieces : uint64[4 * power of 2], zeros at first. seams : int64[], see `seams`.
    """

    ids: Any
    best: Any
    links: Any
    heap: Any
    recent: Any
    recent_ids: Any
    pieces: Any
    seams: Any


scratch_type = named(Scratch, u32s, u64s, i64s, u64s, u8s, u32s, u64s, i64s)


@inlined
def pair_slot(key):
    """Hash of a pair of ids, also of eight in lanes: high bits for the place in the filter, low ones for the table."""
    word = key * np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> _HALF)


@inlined
def find_pair(left, right, pairs):
    """rank << 32 | id of the merge of two ids, all ones when they don't merge.

    Most pairs that are asked for don't, and the filter knows that without a read of memory: a tenth less time for
    English met for the first time, a fifth less for phrases. A table of its own for pairs of bytes gained nothing.
    """
    key = np.uint64(left) << _HALF | np.uint64(right)
    word = pair_slot(key)
    n_table = np.uint64(pairs.size - FILTER_WORDS)
    bit = word >> FILTER_SHIFT
    if (pairs[n_table + (bit >> _SIX)] >> (bit & _LAST)) & _ONE == 0:
        return _EMPTY
    mask = (n_table >> _ONE) - _ONE
    slot = word & mask
    while True:
        at = np.int64(slot) * 2
        if pairs[at] == key:
            return pairs[at + 1]
        if pairs[at] == _EMPTY:
            return _EMPTY
        slot = (slot + _ONE) & mask


@kernel(none, i64m, i64s, u64s)
def fill_pairs(merges, ranks, pairs):
    """Write merges (int64[n, 3]: left, right, id) and their ranks, int64[n], to `pairs`, of any contents.

    pairs : uint64[2 * capacity + FILTER_WORDS], open addressing: left id << 32 | right id, then rank << 32 | id;
    behind it a bit for every hash, set if a pair has it.

    Of a pair that comes twice the last one holds, as it does in GPT-2's encoder, Hugging Face's and minbpe.
    """
    n_table = pairs.size - FILTER_WORDS
    pairs[:n_table] = _EMPTY
    pairs[n_table:] = np.uint64(0)
    mask = np.uint64(n_table // 2 - 1)
    for row in range(merges.shape[0]):
        key = np.uint64(merges[row, 0]) << _HALF | np.uint64(merges[row, 1])
        word = pair_slot(key)
        bit = word >> FILTER_SHIFT
        pairs[n_table + np.int64(bit >> _SIX)] |= _ONE << (bit & _LAST)
        slot = word & mask
        while pairs[np.int64(slot) * 2] != _EMPTY and pairs[np.int64(slot) * 2] != key:
            slot = (slot + _ONE) & mask
        at = np.int64(slot) * 2
        pairs[at] = key
        pairs[at + 1] = np.uint64(ranks[row]) << _HALF | np.uint64(merges[row, 2])


@step
def merge_by_scan(text, start, length, byte_ids, pairs, ids, best, least):
    """Merge the lowest rank first, the leftmost of equal ones, until nothing merges or `least` ids are left.

    Returns the count of ids.

    ids : uint32[>= length], receives the ids. best : uint64[>= length], the merge of every id and its
    right neighbour (`find_pair`).
    """
    for i in range(length):
        ids[i] = byte_ids[text[start + i]]
    for i in range(length - 1):
        best[i] = find_pair(ids[i], ids[i + 1], pairs)
    n = length
    while n > least:
        lowest, at = _EMPTY, 0
        for i in range(n - 1):
            if best[i] < lowest:
                lowest, at = best[i], i
        if lowest == _EMPTY:
            break
        n -= 1
        ids[at] = np.uint32(lowest & _LOW)
        for i in range(at + 1, n):
            ids[i] = ids[i + 1]
        for i in range(at + 1, n - 1):
            best[i] = best[i + 1]
        if at > 0:
            best[at - 1] = find_pair(ids[at - 1], ids[at], pairs)
        if at < n - 1:
            best[at] = find_pair(ids[at], ids[at + 1], pairs)
    return n


@inlined
def _offer(at, after, ids, pairs, best, ranked):
    """Look up the merge of the ids at two places, the right one of which may be none."""
    ranked[at] = _EMPTY
    if after >= 0:
        best[at] = find_pair(ids[at], ids[after], pairs)
        if best[at] != _EMPTY:
            ranked[at] = (best[at] & ~_LOW) | np.uint64(at)


@step
def merge_in_place(text, start, length, byte_ids, pairs, ids, best, links, ranked):
    """The same merges as `merge_by_scan`, without moving what stands after them.

    best receives the place where each id begins.
    links : int64[2 * length]: left and right neighbour of every id that is left, -1 for none. ranked : uint64[length]:
    rank << 32 | place of every merge, all ones for none: their least is found several at a time, and is the leftmost.
    """
    for i in range(length):
        ids[i] = byte_ids[text[start + i]]
        links[2 * i], links[2 * i + 1] = i - 1, i + 1
    links[2 * length - 1] = -1
    for i in range(length):
        _offer(i, links[2 * i + 1], ids, pairs, best, ranked)
    while True:
        lowest = _EMPTY
        for i in range(length):
            lowest = min(lowest, ranked[i])
        if lowest == _EMPTY:
            break
        at = np.int64(lowest & _LOW)
        gone = links[2 * at + 1]
        after = links[2 * gone + 1]
        before = links[2 * at]
        ids[at] = np.uint32(best[at] & _LOW)
        ranked[gone] = _EMPTY
        links[2 * at + 1] = after
        if after >= 0:
            links[2 * after] = at
        _offer(at, after, ids, pairs, best, ranked)
        if before >= 0:
            _offer(before, at, ids, pairs, best, ranked)
    n = 0
    i = 0
    while i >= 0:
        ids[n], best[n] = ids[i], np.uint64(i)
        n += 1
        i = links[2 * i + 1]
    return n


@step
def _push(heap, size, word):
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if heap[parent] <= word:
            break
        heap[child] = heap[parent]
        child = parent
    heap[child] = word
    return size + 1


@step
def _pop(heap, size):
    """Take the least word away from heap[:size]; the caller has read heap[0]."""
    size -= 1
    word = heap[size]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= word:
            break
        heap[parent] = heap[child]
        parent = child
    heap[parent] = word
    return size


@step
def merge_by_heap(text, start, length, byte_ids, pairs, ids, best, links, heap, least):
    """The same merges as `merge_by_scan` in O(n log n), for pre-tokens of any length.

    best receives the place where each id begins.
    links : int64[2 * length]: left and right neighbour of every id that is left, -1 and `length` at the
    ends. heap : uint64[3 * length]: rank << 32 | position, stale entries included; one is stale when
    the pair at its position has another rank by now.
    """
    for i in range(length):
        ids[i] = byte_ids[text[start + i]]
        links[2 * i], links[2 * i + 1] = i - 1, i + 1
    size = 0
    for i in range(length):
        best[i] = find_pair(ids[i], ids[i + 1], pairs) if i + 1 < length else _EMPTY
        if best[i] != _EMPTY:
            size = _push(heap, size, (best[i] & ~_LOW) | np.uint64(i))
    left = length
    while size > 0 and left > least:
        top = heap[0]
        size = _pop(heap, size)
        at = np.int64(top & _LOW)
        if best[at] == _EMPTY or best[at] >> _HALF != top >> _HALF:
            continue
        left -= 1
        gone = links[2 * at + 1]
        after = links[2 * gone + 1]
        before = links[2 * at]
        ids[at] = np.uint32(best[at] & _LOW)
        best[gone] = _EMPTY
        links[2 * at + 1] = after
        best[at] = _EMPTY
        if after < length:
            links[2 * after] = at
            best[at] = find_pair(ids[at], ids[after], pairs)
            if best[at] != _EMPTY:
                size = _push(heap, size, (best[at] & ~_LOW) | np.uint64(at))
        if before >= 0:
            best[before] = find_pair(ids[before], ids[at], pairs)
            if best[before] != _EMPTY:
                size = _push(heap, size, (best[before] & ~_LOW) | np.uint64(before))
    n = 0
    i = 0
    while i < length:
        ids[n], best[n] = ids[i], np.uint64(i)
        n += 1
        i = links[2 * i + 1]
    return n


@step
def _find_last_merges(text, bounds, byte_ids, pairs, scratch, merges, ranks):
    """The merges that ever take place: of each token ``text[bounds[k]:bounds[k + 1]]`` that merging makes, the last.

    What merging makes of the bytes of a token alone is what it makes of them wherever the token comes about. The
    ranks of o200k_base allow 446,000 merges for 200,000 tokens, and of each only one takes place: without the others
    `pairs` has 8 MB, not 17.

    scratch : long enough for the longest token. merges : int64[n, 3] and ranks : int64[n], written, as `fill_pairs`
    reads them. Returns their number.
    """
    ids, best = scratch.ids, scratch.best
    m = 0
    for token in range(bounds.size - 1):
        start, length = bounds[token], bounds[token + 1] - bounds[token]
        if length <= SCANNED_BYTES:
            n = merge_by_scan(text, start, length, byte_ids, pairs, ids, best, 2)
        else:
            n = merge_by_heap(text, start, length, byte_ids, pairs, ids, best, scratch.links, scratch.heap, 2)
        if n == 2:
            found = find_pair(ids[0], ids[1], pairs)
            if found != _EMPTY and found & _LOW == np.uint64(token):
                merges[m, 0], merges[m, 1], merges[m, 2] = ids[0], ids[1], token
                ranks[m] = np.int64(found >> _HALF)
                m += 1
    return m


find_last_merges = on_demand(_find_last_merges, i64, text_type, i64s, u32s, u64s, scratch_type, i64m, i64s)
