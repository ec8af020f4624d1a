"""Turn pre-tokens into token ids: a cache of whole pre-tokens, and the merges where it misses.

The cache is a hash table (see `table`) behind a small one (see `front`). Words 2 and 3 of an entry hold up to four
ids, NOTHING in the place of those that there are not:

    word 2   id 0 | id 1 << 32
    word 3   id 2 | id 3 << 32     more than four: word 2 is their place in `overflow`, word 3 their number | MANY << 32

A full cache stops the kernel (`CACHE_FULL`); the caller makes room and calls again.
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
from dask_bpe.kernels.front import BATCH, batch_type, look_up, put_in_front
from dask_bpe.kernels.lanes import LANES, store_quads
from dask_bpe.kernels.merge_lanes import LANE_WORDS, merge_lanes
from dask_bpe.kernels.merge_pieces import merge_in_pieces, merge_piece
from dask_bpe.kernels.merge_windows import merge_in_windows
from dask_bpe.kernels.merging import NOTHING, scratch_type
from dask_bpe.kernels.simd import copy16, prefetch
from dask_bpe.kernels.table import LONG, TOP, WIDTH, add_entry, find, guess, key_of, rebuild_index

DONE, CACHE_FULL, SCRATCH_FULL = 0, 1, 2
# Longer pre-tokens are merged each time they come: they hardly ever come again.
CACHED_BYTES = 128

# New pre-tokens of a batch that are merged in lanes at least: fewer are merged one by one.
FEWEST = 3
# Longer ones are merged from seam to seam, and those that are not cached in windows, for runs have no seams. Phrases of
# 20 to 24 bytes took 5 % less time from seam to seam, words of Thai with o200k_base as much more.
WHOLE_BYTES = 24

# Room behind ids: they are read and written sixteen at a time.
SPARE = 16

# Ids that an entry holds itself, and what stands in the place of the last of them when there are more.
INLINE, MANY = 4, np.uint32(0xFFFFFFFE)

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Rules(NamedTuple):
    """What a pre-token becomes.

    byte_ids : uint32[256], id of each single byte. pairs : uint64[2 * capacity + FILTER_WORDS], see `fill_pairs`.
    lengths : uint32[number of ids], the bytes of each token. crossed : uint64[power of 2], see `seams`.

    The others are a table like the cache, asked before anything is merged: pre-tokens that are a token as a whole
    though merging gives something else; word 2 is the id. It is read only; without such tokens its index is one 0.
    """

    byte_ids: Any
    pairs: Any
    lengths: Any
    crossed: Any
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


rules_type = named(Rules, u32s, u64s, u32s, u64s, u64s, u64s, u8s, i64s)
cache_type = named(Cache, u64s, u64s, u64s, u8s, i64s, u32s, i64s)


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


@kernel(none, i64, cache_type)
def keep_first(count, cache):
    """Forget all entries of a cache but the first `count`."""
    entries, offsets, used = cache.entries, cache.offsets, cache.used
    strings = ids = np.int64(0)
    for at in range(0, count * WIDTH, WIDTH):
        strings += np.int64(entries[at + 1] >> TOP == LONG)
        if entries[at + 3] >> _HALF == MANY:
            ids = max(ids, np.int64(entries[at + 2] + (entries[at + 3] & _LOW)))
    used[0], used[1], used[2], used[3] = count, strings, offsets[strings], ids
    cache.index[:] = np.uint64(0)
    rebuild_index(entries, count, cache.index)
    # Its entries may point to ids that are no more.
    cache.front[:] = np.uint64(0)


@step
def _merged(text, start, length, low, high, word, wide, rules, scratch, out, write):
    """Write the ids of a pre-token that is met for the first time to ``out[write:]``, which has room for its bytes.

    low, high, word : what `key_of` gives. Returns the number of ids, -1 if there is too little scratch.
    """
    if rules.whole_index.size > 1:
        at, _ = find(
            text, start, length, low, high, word, rules.whole_index, rules.whole_entries, rules.whole_values,
            rules.whole_offsets,
        )  # fmt: skip
        if at >= 0:
            out[write] = np.uint32(rules.whole_entries[at + 2])
            return np.int64(1)
    if length <= WHOLE_BYTES:
        return merge_piece(text, start, length, rules, scratch, out, write)
    if length <= CACHED_BYTES:
        return merge_in_pieces(text, start, length, wide, rules, scratch, out, write)
    return merge_in_windows(text, start, length, rules.byte_ids, rules.pairs, rules.lengths, wide, scratch, out, write)


@step
def _remember(at, n, entries, overflow, used):
    """Write to its new entry at `at` the n ids of a pre-token, which stand in `overflow` behind those in use."""
    place = used[3]
    if n > INLINE:
        entries[at + 2] = np.uint64(place)
        entries[at + 3] = np.uint64(n) | np.uint64(MANY) << _HALF
        used[3] += n
        return
    for i in range(n, INLINE):
        overflow[place + i] = NOTHING
    for i in range(2):
        entries[at + 2 + i] = np.uint64(overflow[place + 2 * i]) | np.uint64(overflow[place + 2 * i + 1]) << _HALF


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
    """Write the ids of pre-token k of a batch; four at once, always. Returns the ids written."""
    pair, rest = values[2 * k], values[2 * k + 1]
    if rest >> _HALF == MANY:
        n, place = np.int64(rest & _LOW), np.int64(pair)
        for i in range(0, n, SPARE):
            copy16(overflow, place + i, out, write + i)
        return write + n
    n = np.int64(1)
    out[write] = np.uint32(pair & _LOW)
    out[write + 1] = np.uint32(pair >> _HALF)
    out[write + 2] = np.uint32(rest & _LOW)
    out[write + 3] = np.uint32(rest >> _HALF)
    for i in range(1, INLINE):
        n += np.int64(out[write + i] != NOTHING)
    return write + n


@inlined
def _emit(values, overflow, start, stop, wide, write, out):
    """Write the ids of pre-tokens start..stop of a batch. Returns the ids written.

    Four at a time where none of them has more than four ids, as in nearly all groups of English.
    """
    k = start
    if wide:
        while k + 4 <= stop:
            written = store_quads(out, write, values, 2 * k, NOTHING, MANY)
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


@step
def _merge_in_lanes(text, starts, ends, first, last, rules, cache, batch, scratch):
    """Merge the fresh pre-tokens first..last of a batch, at most LANES of LANE_BYTES, for which there are entries."""
    ids, lengths, longest = scratch.heap[:LANE_WORDS], scratch.heap[LANE_WORDS : LANE_WORDS + LANES], np.int64(0)
    lengths[:] = np.uint64(0)
    for lane in range(last - first):
        k = batch.missed[batch.fresh[first + lane]]
        start, length = starts[k], ends[k] - starts[k]
        lengths[lane], longest = np.uint64(length), max(longest, length)
        for i in range(length):
            ids[LANES * i + lane] = np.uint64(rules.byte_ids[text[start + i]])
    merge_lanes(ids, lengths, longest, rules.pairs, scratch.best[:LANE_WORDS])
    for lane in range(last - first):
        n, write = np.int64(lengths[lane]), cache.used[3]
        for i in range(n):
            cache.overflow[write + i] = np.uint32(ids[LANES * i + lane])
        _remember(np.int64(batch.places[batch.fresh[first + lane]]), n, cache.entries, cache.overflow, cache.used)


@step
def _merge_fresh(text, starts, ends, count, wide, rules, cache, batch, scratch):
    """Merge the `count` fresh pre-tokens of a batch, for which there are entries without ids."""
    keys, fresh = batch.keys, batch.fresh
    in_lanes = np.int64(0)
    for i in range(count):
        m = fresh[i]
        k = batch.missed[m]
        start, length = starts[k], ends[k] - starts[k]
        if wide and length <= WHOLE_BYTES and rules.whole_index.size == 1 and count >= FEWEST:
            fresh[in_lanes] = m
            in_lanes += 1
            continue
        low, high, word = keys[np.uint64(2) * k], keys[np.uint64(2) * k + np.uint64(1)], batch.hashes[k]
        n = _merged(text, start, length, low, high, word, wide, rules, scratch, cache.overflow, cache.used[3])
        _remember(np.int64(batch.places[m]), n, cache.entries, cache.overflow, cache.used)
    for first in range(0, in_lanes, LANES):
        _merge_in_lanes(text, starts, ends, first, min(first + LANES, in_lanes), rules, cache, batch, scratch)


@step
def encode_spans(text, spans, count, cursor, stops, bounds, rules, cache, batch, scratch, after, wide, out):
    """Encode the pre-tokens ``text[spans[0, k]:spans[1, k]]`` for k from ``cursor[0]`` to `count`.

    cursor : int64[3]: next pre-token, ids written so far, segments ended so far.
    stops : int64[n], not decreasing: the number of pre-tokens after which each segment ends; those up to
    `count` end here. bounds : int64[n], written: the number of ids after which it ends.
    after : uint32[n], an id to write where each segment ends, NOTHING for none; may be empty: nothing anywhere.
    wide : whether the vectors of `lanes` are used.
    out : uint32[], room for an id for every byte and every segment, and SPARE more.
    Returns DONE, CACHE_FULL, or SCRATCH_FULL: pre-token ``cursor[0]`` needs longer scratch arrays.
    """
    front, index, entries = cache.front, cache.index, cache.entries
    values, offsets, overflow, used = cache.values, cache.offsets, cache.overflow, cache.used
    keys, hashes, found, missed = batch.keys, batch.hashes, batch.found, batch.missed
    places, fresh = batch.places, batch.fresh
    one, two = np.uint64(1), np.uint64(2)
    while cursor[0] < count:
        first, last = cursor[0], min(cursor[0] + BATCH, count)
        starts, ends = spans[0, first:last], spans[1, first:last]
        misses = look_up(text, starts, ends, wide, front, index, batch)
        n_bytes = 0
        for m in range(misses):
            length = ends[missed[m]] - starts[missed[m]]
            if length > CACHED_BYTES:
                last, misses = first + np.int64(missed[m]), m
                break
            n_bytes += length
            places[m] = guess(hashes[missed[m]], index)
            prefetch(entries, places[m])
        if not _has_room(misses, n_bytes, index, entries, values, offsets, overflow, used):
            return CACHE_FULL
        # Those that are known first, in a loop that is nothing else.
        unknown = np.uint64(0)
        for m in range(misses):
            k, at = missed[m], places[m]
            low, high = keys[two * k], keys[two * k + one]
            if entries[at] == low and entries[at + one] == high:
                second, third = entries[at + two], entries[at + two + one]
                found[two * k], found[two * k + one] = second, third
                prefetch(overflow, second if third >> _HALF == MANY else np.uint64(0))
                put_in_front(low, high, hashes[k], second, third, front)
            else:
                missed[unknown] = k
                unknown += one
        n_fresh = np.uint64(0)
        for m in range(unknown):
            k = missed[m]
            start, length = starts[k], ends[k] - starts[k]
            low, high, word = keys[two * k], keys[two * k + one], hashes[k]
            at, slot = find(text, start, length, low, high, word, index, entries, values, offsets)
            if at < 0:
                at = add_entry(text, start, length, low, high, word, slot, index, entries, values, offsets, used)
                fresh[n_fresh] = m
                n_fresh += one
            places[m] = np.uint64(at)
        _merge_fresh(text, starts, ends, np.int64(n_fresh), wide, rules, cache, batch, scratch)
        for m in range(unknown):
            k, at = missed[m], places[m]
            second, third = entries[at + two], entries[at + two + one]
            found[two * k], found[two * k + one] = second, third
            put_in_front(keys[two * k], keys[two * k + one], hashes[k], second, third, front)
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
            low = high = word = np.uint64(0)
            if rules.whole_index.size > 1:
                low, high, word = key_of(text, start, length)
            n = _merged(text, start, length, low, high, word, wide, rules, scratch, out, cursor[1])
            if n < 0:
                return SCRATCH_FULL
            cursor[0], cursor[1] = last + 1, cursor[1] + n
        while cursor[2] < stops.size and stops[cursor[2]] <= cursor[0]:
            _end_segment(cursor, after, bounds, out)
    while cursor[2] < stops.size and stops[cursor[2]] <= count:
        _end_segment(cursor, after, bounds, out)
    return DONE


encode_batch = on_demand(
    encode_spans, i64, text_type, i64m, i64, i64s, i64s, i64s, rules_type, cache_type, batch_type,
    scratch_type, u32s, i64, u32s,
)  # fmt: skip
