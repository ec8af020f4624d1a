"""Count distinct byte strings in a hash table (see `table`).

Word 2 of an entry is the count, word 3 the position where the string occurred first. A table is

    index : uint64[power of 2]    entries : uint64[4 * capacity]
    values : uint8[], offsets : int64[]   the strings of 16 bytes or more
    used : int64[3]   entries, long strings, bytes of long strings

Kernels that fill a table stop in front of a batch for which there might be no room and return `FULL`;
the caller makes the arrays larger and calls again: where they were is kept in `cursor`.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64s, i64, i64s, inlined, kernel, none, step, text_type, u8s, u64s
from dask_bpe.kernels.simd import prefetch
from dask_bpe.kernels.table import INDEX, LONG, LOWER, TOP, WIDTH, add_entry, find, key_of

DONE, FULL = 0, 1
# Pre-tokens whose entries are asked for before the first of them is looked at.
BATCH = 256


@inlined
def _add(text, start, length, low, high, word, weight, first, index, entries, values, offsets, used):
    """Add `weight` to the count of one string."""
    at, slot = find(text, start, length, low, high, word, index, entries, values, offsets)
    if at < 0:
        at = add_entry(text, start, length, low, high, word, slot, index, entries, values, offsets, used)
        entries[at + 2] = np.uint64(weight)
        entries[at + 3] = np.uint64(first)
    else:
        entries[at + 2] += np.uint64(weight)
        entries[at + 3] = min(entries[at + 3], np.uint64(first))


@inlined
def _length_of(high, offsets):
    if high >> TOP == LONG:
        index = np.int64(high & INDEX)
        return offsets[index + 1] - offsets[index]
    return np.int64(high >> TOP)


@inlined
def _has_room(count, n_bytes, index, entries, values, offsets, used):
    """Whether `count` more strings of `n_bytes` together surely fit; the index stays at most 5/8 full."""
    return (
        (used[0] + count) * WIDTH <= entries.size
        and (used[0] + count) * 8 <= index.size * 5
        and used[1] + count < offsets.size
        and used[2] + n_bytes <= values.size
    )


@step
def _count_batch(text, starts, ends, origin, keys, index, entries, values, offsets, used):
    """Count at most BATCH strings ``text[starts[k]:ends[k]]``; keys: uint64[3 * BATCH] for the batch."""
    mask = np.uint64(index.size - 1)
    for k in range(starts.size):
        low, high, word = key_of(text, starts[k], ends[k] - starts[k])
        keys[3 * k], keys[3 * k + 1], keys[3 * k + 2] = low, high, word
        prefetch(index, np.int64(word & mask))
    for k in range(starts.size):
        place = index[np.int64(keys[3 * k + 2] & mask)] & LOWER
        prefetch(entries, np.int64(place) * WIDTH - WIDTH)
    for k in range(starts.size):
        start = starts[k]
        low, high, word = keys[3 * k], keys[3 * k + 1], keys[3 * k + 2]
        _add(
            text,
            start,
            ends[k] - start,
            low,
            high,
            word,
            1,
            origin + start,
            index,
            entries,
            values,
            offsets,
            used,
        )


@kernel(i64, text_type, i64s, i64s, i64, i64s, u64s, u64s, u64s, u8s, i64s, i64s)
def count_spans(text, starts, ends, origin, cursor, keys, index, entries, values, offsets, used):
    """Count the strings ``text[starts[k]:ends[k]]``, none of them empty, from ``k = cursor[0]`` on.

    `origin` is the position of ``text[0]`` in the corpus. Returns DONE or FULL.
    """
    while cursor[0] < starts.size:
        first = cursor[0]
        last = min(first + BATCH, starts.size)
        n_bytes = 0
        for k in range(first, last):
            n_bytes += ends[k] - starts[k]
        if not _has_room(last - first, n_bytes, index, entries, values, offsets, used):
            return FULL
        _count_batch(text, starts[first:last], ends[first:last], origin, keys, index, entries, values, offsets, used)
        cursor[0] = last
    return DONE


@kernel(i64, text_type, given_i64s, given_i64s, given_i64s, i64s, u64s, u64s, u8s, i64s, i64s)
def add_strings(strings, bounds, counts, firsts, cursor, index, entries, values, offsets, used):
    """Add a ragged array of distinct strings with their counts and first positions to a table."""
    while cursor[0] < counts.size:
        k = cursor[0]
        start, length = bounds[k], bounds[k + 1] - bounds[k]
        if not _has_room(1, length, index, entries, values, offsets, used):
            return FULL
        low, high, word = key_of(strings, start, length)
        _add(
            strings,
            start,
            length,
            low,
            high,
            word,
            counts[k],
            firsts[k],
            index,
            entries,
            values,
            offsets,
            used,
        )
        cursor[0] = k + 1
    return DONE


@kernel(i64, u64s, i64, i64s)
def total_bytes(entries, count, offsets):
    """Bytes of the first `count` strings of a table."""
    total = np.int64(0)
    for number in range(count):
        total += _length_of(entries[number * WIDTH + 1], offsets)
    return total


@kernel(none, u64s, text_type, i64s, u8s, i64s, i64s, i64s)
def extract(entries, values, offsets, strings, bounds, counts, firsts):
    """Write a table's strings, counts and first positions to flat arrays, in the table's order."""
    write = 0
    bounds[0] = 0
    for number in range(counts.size):
        at = number * WIDTH
        high = entries[at + 1]
        length = _length_of(high, offsets)
        if high >> TOP == LONG:
            begin = offsets[np.int64(high & INDEX)]
            for i in range(length):
                strings[write + i] = values[begin + i]
        else:
            for i in range(length):
                word = entries[at] if i < 8 else high
                strings[write + i] = np.uint8(word >> np.uint64(8 * (i % 8)))
        write += length
        bounds[number + 1] = write
        counts[number], firsts[number] = np.int64(entries[at + 2]), np.int64(entries[at + 3])
