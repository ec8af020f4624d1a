"""Count distinct byte strings in an open-addressing table (see `table`).

Word 2 of an entry is the count, word 3 the position where the string occurred first. A table is

    entries : uint64[4 * capacity]   capacity is a power of two
    values : uint8[], offsets : int64[]   the strings of 16 bytes or more
    used : int64[3]   entries, long strings, bytes of long strings

Kernels that fill a table stop in front of a batch for which there might be no room and return `FULL`;
the caller makes the table larger (`rehash`) and calls again: where they were is kept in `cursor`.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64s, i64, i64s, inlined, kernel, none, step, text_type, u64s, u8s
from dask_bpe.kernels.simd import prefetch
from dask_bpe.kernels.table import INDEX, LONG, LONG_KEY, TOP, WIDTH, find, keep_long, key_of, mix

DONE, FULL = 0, 1
# Pre-tokens whose entries are asked for before the first of them is looked at. 64 and 1024 lost 4 and 7 %.
BATCH = 256


@inlined
def _add(text, start, length, low, high, slot, weight, first, entries, values, offsets, used):  # type: ignore[no-untyped-def]
    """Add `weight` to the count of one string."""
    mask = np.int64(entries.size // WIDTH - 1)
    at = find(text, start, length, low, high, slot, entries, mask, values, offsets)
    if entries[at + 1] == 0:
        entries[at] = low
        entries[at + 1] = keep_long(text, start, length, values, offsets, used) if high == LONG_KEY else high
        entries[at + 3] = np.uint64(first)
        used[0] += 1
    elif entries[at + 3] > np.uint64(first):
        entries[at + 3] = np.uint64(first)
    entries[at + 2] += np.uint64(weight)


@inlined
def _slot_of(low, high):  # type: ignore[no-untyped-def]
    return low if high >> TOP == LONG else mix(low, high)


@inlined
def _length_of(high, offsets):  # type: ignore[no-untyped-def]
    if high >> TOP == LONG:
        index = np.int64(high & INDEX)
        return offsets[index + 1] - offsets[index]
    return np.int64(high >> TOP)


@inlined
def _has_room(count, n_bytes, entries, values, offsets, used):  # type: ignore[no-untyped-def]
    """Whether `count` more strings of `n_bytes` together surely fit; tables stay at most 5/8 full."""
    return (
        (used[0] + count) * 8 <= entries.size // WIDTH * 5
        and used[1] + count < offsets.size
        and used[2] + n_bytes <= values.size
    )


@step
def _count_batch(text, starts, ends, origin, keys, entries, values, offsets, used):  # type: ignore[no-untyped-def]
    """Count at most BATCH strings ``text[starts[k]:ends[k]]``; keys: uint64[3 * BATCH] for the batch."""
    mask = np.int64(entries.size // WIDTH - 1)
    for k in range(starts.size):
        low, high, word = key_of(text, starts[k], ends[k] - starts[k])
        keys[3 * k], keys[3 * k + 1], keys[3 * k + 2] = low, high, word
        prefetch(entries, (np.int64(word) & mask) * WIDTH)
    for k in range(starts.size):
        start = starts[k]
        slot = np.int64(keys[3 * k + 2])
        low, high = keys[3 * k], keys[3 * k + 1]
        _add(text, start, ends[k] - start, low, high, slot, 1, origin + start, entries, values, offsets, used)


@kernel(i64, text_type, i64s, i64s, i64, i64s, u64s, u64s, u8s, i64s, i64s)
def count_spans(text, starts, ends, origin, cursor, keys, entries, values, offsets, used):  # type: ignore[no-untyped-def]
    """Count the strings ``text[starts[k]:ends[k]]``, none of them empty, from ``k = cursor[0]`` on.

    `origin` is the position of ``text[0]`` in the corpus. Returns DONE or FULL.
    """
    while cursor[0] < starts.size:
        first = cursor[0]
        last = min(first + BATCH, starts.size)
        n_bytes = 0
        for k in range(first, last):
            n_bytes += ends[k] - starts[k]
        if not _has_room(last - first, n_bytes, entries, values, offsets, used):
            return FULL
        _count_batch(text, starts[first:last], ends[first:last], origin, keys, entries, values, offsets, used)
        cursor[0] = last
    return DONE


@kernel(i64, text_type, given_i64s, given_i64s, given_i64s, i64s, u64s, u8s, i64s, i64s)
def add_strings(strings, bounds, counts, firsts, cursor, entries, values, offsets, used):  # type: ignore[no-untyped-def]
    """Add a ragged array of distinct strings with their counts and first positions to a table."""
    while cursor[0] < counts.size:
        k = cursor[0]
        start, length = bounds[k], bounds[k + 1] - bounds[k]
        if not _has_room(1, length, entries, values, offsets, used):
            return FULL
        low, high, word = key_of(strings, start, length)
        slot = np.int64(word)
        _add(strings, start, length, low, high, slot, counts[k], firsts[k], entries, values, offsets, used)
        cursor[0] = k + 1
    return DONE


@kernel(none, u64s, text_type, i64s, u64s)
def rehash(old, values, offsets, new):  # type: ignore[no-untyped-def]
    """Move all entries of a table to a larger, empty one; the long strings stay where they are."""
    mask = np.int64(new.size // WIDTH - 1)
    for at in range(0, old.size, WIDTH):
        high = old[at + 1]
        if high != 0:
            slot = np.int64(_slot_of(old[at], high))
            while new[(slot & mask) * WIDTH + 1] != 0:
                slot += 1
            to = (slot & mask) * WIDTH
            for i in range(WIDTH):
                new[to + i] = old[at + i]


@kernel(i64, u64s, i64s)
def total_bytes(entries, offsets):  # type: ignore[no-untyped-def]
    """Bytes of all strings of a table."""
    total = 0
    for at in range(0, entries.size, WIDTH):
        high = entries[at + 1]
        if high != 0:
            total += _length_of(high, offsets)
    return total


@kernel(none, u64s, text_type, i64s, u8s, i64s, i64s, i64s)
def extract(entries, values, offsets, strings, bounds, counts, firsts):  # type: ignore[no-untyped-def]
    """Write a table's strings, counts and first positions to flat arrays, in the table's order."""
    n = 0
    write = 0
    bounds[0] = 0
    for at in range(0, entries.size, WIDTH):
        high = entries[at + 1]
        if high != 0:
            length = _length_of(high, offsets)
            if high >> TOP == LONG:
                begin = offsets[np.int64(high & INDEX)]
                for i in range(length):
                    strings[write + i] = values[begin + i]
            else:
                for i in range(length):
                    word = entries[at + i // 8]
                    if i >= 8:
                        word = high
                    strings[write + i] = np.uint8(word >> np.uint64(8 * (i % 8)))
            write += length
            n += 1
            bounds[n] = write
            counts[n - 1] = np.int64(entries[at + 2])
            firsts[n - 1] = np.int64(entries[at + 3])
