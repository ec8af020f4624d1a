"""Turn pre-tokens into token ids: a cache of whole pre-tokens, and the merges where it misses.

The cache is a hash table (see `table`) behind a small one (see `front`). Words 2 and 3 of an entry hold up to three
ids:

    word 2   id 0 | id 1 << 32
    word 3   id 2 | number of ids << 32     more than three: word 2 is their place in `overflow`

A full cache stops the kernel (`CACHE_FULL`); the caller enlarges or empties it and calls again.
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
    step,
    text_type,
    u8s,
    u32s,
    u64s,
)  # fmt: skip
from dask_bpe.kernels.front import BATCH, batch_type, look_up, put_in_front
from dask_bpe.kernels.lanes import store_quads
from dask_bpe.kernels.simd import copy16, prefetch
from dask_bpe.kernels.table import LOWER, WIDTH, add_entry, find, key_of

DONE, CACHE_FULL, SCRATCH_FULL = 0, 1, 2
NOTHING = np.uint32(0xFFFFFFFF)
# Longer pre-tokens are merged each time they come: they hardly ever come again.
CACHED_BYTES = 128
# Pre-tokens up to this length are merged by `merge_by_scan`, up to CACHED_BYTES by `merge_in_place`, and longer ones
# by `merge_by_heap`. The first has the least upkeep. The second reads more and moves nothing: phrases of 30 to 128
# bytes took a fifth less time than by the two others, words of up to 16 some 5 % more.
SCANNED_BYTES = 32

# Room behind ids: they are read and written sixteen at a time.
SPARE = 16

# The filter of pairs: 2 ** 20 bits, which the L2 cache holds. With 50,000 merges one pair in twenty passes that is
# none, with 280,000 one in four.
FILTER_WORDS = 1 << 14
_FILTER_SHIFT = np.uint64(44)

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _SIX, _LAST = np.uint64(1), np.uint64(6), np.uint64(63)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Rules(NamedTuple):
    """What a pre-token becomes.

    byte_ids : uint32[256], id of each single byte. pairs : uint64[2 * capacity + FILTER_WORDS], open addressing: left
    id << 32 | right id, then rank << 32 | id; behind it a bit for every hash, set if a pair has it.

    The others are a table like the cache, asked before anything is merged: pre-tokens that are a token as a whole
    though merging gives something else; word 2 is the id. It is read only; without such tokens its index is one 0.
    """

    byte_ids: Any
    pairs: Any
    whole_index: Any
    whole_entries: Any
    whole_values: Any
    whole_offsets: Any


class Cache(NamedTuple):
    """The ids of the pre-tokens that were met.

    front : see `front`. index : uint64[power of 2], entries : uint64[4 * capacity]: see `table`. values : uint8[],
    offsets : int64[]: strings of 16 bytes or more. overflow : uint32[], SPARE of them never used. used : int64[4]:
    entries, long strings, their bytes, ids in overflow.
    """

    front: Any
    index: Any
    entries: Any
    values: Any
    offsets: Any
    overflow: Any
    used: Any


class Scratch(NamedTuple):
    """For merging: uint32[n], uint64[n], int64[2 * n], uint64[3 * n]; n is at least CACHED_BYTES."""

    ids: Any
    best: Any
    links: Any
    heap: Any


rules_type = named(Rules, u32s, u64s, u64s, u64s, u8s, i64s)
cache_type = named(Cache, u64s, u64s, u64s, u8s, i64s, u32s, i64s)
scratch_type = named(Scratch, u32s, u64s, i64s, u64s)


@inlined
def pair_slot(key):
    """Hash of a pair of ids: its high bits are the place in the filter, its low ones that in the table."""
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
    bit = word >> _FILTER_SHIFT
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

    Of a pair that comes twice the last one holds, as it does in GPT-2's encoder, Hugging Face's and minbpe.
    """
    n_table = pairs.size - FILTER_WORDS
    pairs[:n_table] = _EMPTY
    pairs[n_table:] = np.uint64(0)
    mask = np.uint64(n_table // 2 - 1)
    for row in range(merges.shape[0]):
        key = np.uint64(merges[row, 0]) << _HALF | np.uint64(merges[row, 1])
        word = pair_slot(key)
        bit = word >> _FILTER_SHIFT
        pairs[n_table + np.int64(bit >> _SIX)] |= _ONE << (bit & _LAST)
        slot = word & mask
        while pairs[np.int64(slot) * 2] != _EMPTY and pairs[np.int64(slot) * 2] != key:
            slot = (slot + _ONE) & mask
        at = np.int64(slot) * 2
        pairs[at] = key
        pairs[at + 1] = np.uint64(ranks[row]) << _HALF | np.uint64(merges[row, 2])


@step
def merge_by_scan(text, start, length, byte_ids, pairs, ids, best):
    """Merge the lowest rank first, the leftmost of equal ones, until nothing merges. Returns the count of ids.

    ids : uint32[>= length], receives the ids. best : uint64[>= length], the merge of every id and its
    right neighbour (`find_pair`).
    """
    for i in range(length):
        ids[i] = byte_ids[text[start + i]]
    for i in range(length - 1):
        best[i] = find_pair(ids[i], ids[i + 1], pairs)
    n = length
    while n > 1:
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
        ids[n] = ids[i]
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
def merge_by_heap(text, start, length, byte_ids, pairs, ids, best, links, heap):
    """The same merges as `merge_by_scan` in O(n log n), for pre-tokens of any length.

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
    while size > 0:
        top = heap[0]
        size = _pop(heap, size)
        at = np.int64(top & _LOW)
        if best[at] == _EMPTY or best[at] >> _HALF != top >> _HALF:
            continue
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
        ids[n] = ids[i]
        n += 1
        i = links[2 * i + 1]
    return n


@kernel(none, text_type, i64s, i64s, u64s, u64s, u8s, i64s, i64s)
def fill_whole(text, bounds, token_ids, index, entries, values, offsets, used):
    """Enter the tokens ``text[bounds[k]:bounds[k + 1]]`` with their ids, int64[n], in an empty table."""
    for k in range(token_ids.size):
        start, length = bounds[k], bounds[k + 1] - bounds[k]
        low, high, word = key_of(text, start, length)
        at, slot = find(text, start, length, low, high, word, index, entries, values, offsets)
        if at < 0:
            at = add_entry(text, start, length, low, high, word, slot, index, entries, values, offsets, used)
            entries[at + 2] = np.uint64(token_ids[k])


@step
def _merged(text, start, length, low, high, word, rules, scratch):
    """Ids of a pre-token that is met for the first time, written to ``scratch.ids``; returns their number."""
    if rules.whole_index.size > 1:
        at, _ = find(
            text, start, length, low, high, word, rules.whole_index, rules.whole_entries, rules.whole_values,
            rules.whole_offsets,
        )  # fmt: skip
        if at >= 0:
            scratch.ids[0] = np.uint32(rules.whole_entries[at + 2])
            return np.int64(1)
    ids, best, links, heap = scratch.ids, scratch.best, scratch.links, scratch.heap
    if length <= SCANNED_BYTES:
        return merge_by_scan(text, start, length, rules.byte_ids, rules.pairs, ids, best)
    if length <= CACHED_BYTES:
        return merge_in_place(text, start, length, rules.byte_ids, rules.pairs, ids, best, links, heap)
    return merge_by_heap(text, start, length, rules.byte_ids, rules.pairs, ids, best, links, heap)


@step
def _remember(at, ids, n, entries, overflow, used):
    """Write the ids of a pre-token to its new entry at `at`; the caller has seen that there is room."""
    count = np.uint64(n) << _HALF
    if n <= 3:
        second = np.uint64(ids[1]) if n > 1 else np.uint64(0)
        third = np.uint64(ids[2]) if n > 2 else np.uint64(0)
        entries[at + 2] = np.uint64(ids[0]) | second << _HALF
        entries[at + 3] = third | count
    else:
        entries[at + 2] = np.uint64(used[3])
        entries[at + 3] = count
        for i in range(n):
            overflow[used[3] + i] = ids[i]
        used[3] += n


@inlined
def _has_room(count, n_bytes, index, entries, values, offsets, overflow, used):
    return (
        (used[0] + count) * WIDTH <= entries.size
        and (used[0] + count) * 8 <= index.size * 5
        and used[1] + count < offsets.size
        and used[2] + n_bytes <= values.size
        and used[3] + n_bytes + SPARE <= overflow.size
    )


@inlined
def _emit_one(values, overflow, k, write, out):
    """Write the ids of pre-token k of a batch; three at once, always. Returns the ids written."""
    pair, rest = values[2 * k], values[2 * k + 1]
    n = np.int64(rest >> _HALF)
    out[write] = np.uint32(pair & _LOW)
    out[write + 1] = np.uint32(pair >> _HALF)
    out[write + 2] = np.uint32(rest & _LOW)
    if n > 3:
        place = np.int64(pair)
        for i in range(0, n, SPARE):
            copy16(overflow, place + i, out, write + i)
    return write + n


@inlined
def _emit(values, overflow, start, stop, wide, write, out):
    """Write the ids of pre-tokens start..stop of a batch. Returns the ids written.

    Four at a time where none of them has more than three ids, as in nearly all groups of English.
    """
    k = start
    if wide:
        while k + 4 <= stop:
            written = store_quads(out, write, values, 2 * k)
            write += written
            if written < 0:
                write -= written
                for i in range(k, k + 4):
                    write = _emit_one(values, overflow, i, write, out)
            k += 4
    for i in range(k, stop):
        write = _emit_one(values, overflow, i, write, out)
    return write


@inlined
def _end_segment(cursor, after, bounds, out):
    """Write what comes after the segment whose last id has been written, and where it ends."""
    segment = cursor[2]
    if segment < after.size and after[segment] != NOTHING:
        out[cursor[1]] = after[segment]
        cursor[1] += 1
    bounds[segment] = cursor[1]
    cursor[2] = segment + 1


@kernel(i64, text_type, i64m, i64, i64s, i64s, i64s, rules_type, cache_type, batch_type, scratch_type, u32s, i64, u32s)
def encode_spans(text, spans, count, cursor, stops, bounds, rules, cache, batch, scratch, after, wide, out):
    """Encode the pre-tokens ``text[spans[0, k]:spans[1, k]]`` for k from ``cursor[0]`` to `count`.

    cursor : int64[3]: next pre-token, ids written so far, segments ended so far.
    stops : int64[n], not decreasing: the number of pre-tokens after which each segment ends; those up to
    `count` end here. bounds : int64[n], written: the number of ids after which it ends.
    after : uint32[n], an id to write where each segment ends, NOTHING for none; may be empty: nothing anywhere.
    wide : whether the vectors of `lanes` are used.
    out : uint32[], room for an id for every byte and every segment, and SPARE more.
    Returns DONE, CACHE_FULL, or SCRATCH_FULL: pre-token ``cursor[0]`` is longer than the scratch arrays.
    """
    front, index, entries = cache.front, cache.index, cache.entries
    values, offsets, overflow, used = cache.values, cache.offsets, cache.overflow, cache.used
    hashes, missed = batch.hashes, batch.missed
    mask = np.uint64(index.size - 1)
    while cursor[0] < count:
        first, last = cursor[0], min(cursor[0] + BATCH, count)
        starts, ends = spans[0, first:last], spans[1, first:last]
        misses = look_up(text, starts, ends, wide, front, index, batch)
        n_bytes = 0
        for m in range(misses):
            length = ends[missed[m]] - starts[missed[m]]
            if length > CACHED_BYTES:
                last, misses = first + missed[m], m
                break
            n_bytes += length
            place = index[np.int64(hashes[missed[m]] & mask)] & LOWER
            prefetch(entries, np.int64(place) * WIDTH - WIDTH)
        if not _has_room(misses, n_bytes, index, entries, values, offsets, overflow, used):
            return CACHE_FULL
        for m in range(misses):
            k = missed[m]
            start, length = starts[k], ends[k] - starts[k]
            low, high, word = batch.keys[2 * k], batch.keys[2 * k + 1], hashes[k]
            at, slot = find(text, start, length, low, high, word, index, entries, values, offsets)
            if at < 0:
                n = _merged(text, start, length, low, high, word, rules, scratch)
                at = add_entry(text, start, length, low, high, word, slot, index, entries, values, offsets, used)
                _remember(at, scratch.ids, n, entries, overflow, used)
            batch.found[2 * k], batch.found[2 * k + 1] = entries[at + 2], entries[at + 3]
            put_in_front(low, high, word, entries[at + 2], entries[at + 3], front)
        done = np.int64(0)
        while cursor[2] < stops.size and stops[cursor[2]] <= last:
            stop = max(stops[cursor[2]] - first, done)
            cursor[1] = _emit(batch.found, overflow, done, stop, wide, cursor[1], out)
            _end_segment(cursor, after, bounds, out)
            done = stop
        cursor[1] = _emit(batch.found, overflow, done, last - first, wide, cursor[1], out)
        cursor[0] = last
        if last < count and spans[1, last] - spans[0, last] > CACHED_BYTES:
            start, length = spans[0, last], spans[1, last] - spans[0, last]
            if length > scratch.ids.size:
                return SCRATCH_FULL
            low, high, word = key_of(text, start, length)
            n = _merged(text, start, length, low, high, word, rules, scratch)
            for i in range(n):
                out[cursor[1] + i] = scratch.ids[i]
            cursor[0], cursor[1] = last + 1, cursor[1] + n
        while cursor[2] < stops.size and stops[cursor[2]] <= cursor[0]:
            _end_segment(cursor, after, bounds, out)
    while cursor[2] < stops.size and stops[cursor[2]] <= count:
        _end_segment(cursor, after, bounds, out)
    return DONE
