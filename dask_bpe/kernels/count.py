"""Count distinct byte strings in a hash table (see `table`) behind a small one (see `front`).

Word 2 of an entry is the count, word 3 the position where the string occurred first. Word 2 of an entry of the front
table is the place of the string's own entry, where its occurrences are counted: counting in the front table itself lost
4 to 20 %, for the load of a line waits for a store into it. Kernels stop in front of a batch for
which there might be no room and return `FULL`; the caller makes the arrays larger and calls again: where they were is
kept in `cursor`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dask_bpe.kernels._jit import (
    given_i64s,
    i64,
    i64m,
    i64s,
    inlined,
    kernel,
    named,
    on_demand,
    step,
    text_type,
    u8s,
    u64s,
)  # fmt: skip
from dask_bpe.kernels.front import BATCH, batch_type, look_up, put_in_front
from dask_bpe.kernels.simd import prefetch
from dask_bpe.kernels.table import INDEX, LONG, LOWER, TOP, WIDTH, add_entry, find, guess, key_of

DONE, FULL = 0, 1
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)


class Table(NamedTuple):
    """front : see `front`. index : uint64[power of 2], entries : uint64[4 * capacity]: see `table`. values : uint8[],
    offsets : int64[]: the strings of 16 bytes or more. used : int64[3]: entries, long strings, bytes of long strings.
    """

    front: Any
    index: Any
    entries: Any
    values: Any
    offsets: Any
    used: Any


table_type = named(Table, u64s, u64s, u64s, u8s, i64s, i64s)


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
def count_spans(text, spans, count, origin, cursor, counted, batch, wide):
    """Count the pre-tokens ``text[spans[0, k]:spans[1, k]]``, none of them empty, for k from ``cursor[0]`` to `count`.

    `origin` is the position of ``text[0]`` in the corpus. wide : whether the vectors of `lanes` are used.
    Returns DONE or FULL.
    """
    index, entries, values, offsets, used = (
        counted.index, counted.entries, counted.values, counted.offsets, counted.used
    )  # fmt: skip
    keys, hashes, found, missed, places = batch.keys, batch.hashes, batch.found, batch.missed, batch.places
    one, two = np.uint64(1), np.uint64(2)
    while cursor[0] < count:
        first, last = cursor[0], min(cursor[0] + BATCH, count)
        starts, ends = spans[0, first:last], spans[1, first:last]
        misses = look_up(text, starts, ends, wide, counted.front, index, batch)
        n_bytes = 0
        for m in range(misses):
            n_bytes += ends[missed[m]] - starts[missed[m]]
            places[m] = guess(hashes[missed[m]], index)
            prefetch(entries, places[m])
        if not _has_room(misses, n_bytes, index, entries, values, offsets, used):
            return FULL
        # Those that are known first, in a loop that is nothing else.
        unknown = np.uint64(0)
        for m in range(misses):
            k, at = missed[m], places[m]
            low, high = keys[two * k], keys[two * k + one]
            if entries[at] == low and entries[at + one] == high:
                found[two * k] = at
                put_in_front(low, high, hashes[k], at, np.uint64(0), counted.front)
            else:
                missed[unknown] = k
                unknown += one
        for m in range(unknown):
            k = missed[m]
            start, length = starts[k], ends[k] - starts[k]
            low, high, word = keys[two * k], keys[two * k + one], hashes[k]
            at, slot = find(text, start, length, low, high, word, index, entries, values, offsets)
            if at < 0:
                at = add_entry(text, start, length, low, high, word, slot, index, entries, values, offsets, used)
                entries[at + 2], entries[at + 3] = np.uint64(0), _NEVER
            found[two * k] = np.uint64(at)
            put_in_front(low, high, word, np.uint64(at), np.uint64(0), counted.front)
        for k in range(last - first):
            at = found[2 * k]
            entries[at + np.uint64(2)] += np.uint64(1)
            entries[at + np.uint64(3)] = min(entries[at + np.uint64(3)], np.uint64(origin + starts[k]))
        cursor[0] = last
    return DONE


@kernel(i64, text_type, given_i64s, given_i64s, given_i64s, i64s, table_type, batch_type)
def add_strings(strings, bounds, counts, firsts, cursor, counted, batch):
    """Add a ragged array of distinct strings with their counts and first positions to a table, from ``cursor[0]`` on.

    Returns DONE or FULL.
    """
    index, entries, values, offsets, used = (
        counted.index, counted.entries, counted.values, counted.offsets, counted.used
    )  # fmt: skip
    keys, hashes = batch.keys, batch.hashes
    mask = np.uint64(index.size - 1)
    while cursor[0] < counts.size:
        first, last = cursor[0], min(cursor[0] + BATCH, counts.size)
        if not _has_room(last - first, bounds[last] - bounds[first], index, entries, values, offsets, used):
            return FULL
        for k in range(last - first):
            start = bounds[first + k]
            keys[2 * k], keys[2 * k + 1], hashes[k] = key_of(strings, start, bounds[first + k + 1] - start)
            prefetch(index, np.int64(hashes[k] & mask))
        for k in range(last - first):
            prefetch(entries, np.int64(index[np.int64(hashes[k] & mask)] & LOWER) * WIDTH - WIDTH)
        for k in range(last - first):
            start, length = bounds[first + k], bounds[first + k + 1] - bounds[first + k]
            low, high, word = keys[2 * k], keys[2 * k + 1], hashes[k]
            at, slot = find(strings, start, length, low, high, word, index, entries, values, offsets)
            if at < 0:
                at = add_entry(strings, start, length, low, high, word, slot, index, entries, values, offsets, used)
                entries[at + 2], entries[at + 3] = np.uint64(0), _NEVER
            entries[at + 2] += np.uint64(counts[first + k])
            entries[at + 3] = min(entries[at + 3], np.uint64(firsts[first + k]))
        cursor[0] = last
    return DONE


@kernel(i64, u64s, i64, i64s)
def total_bytes(entries, count, offsets):
    """Bytes of the first `count` strings of a table."""
    total = np.int64(0)
    for number in range(count):
        high = entries[number * WIDTH + 1]
        if high >> TOP == LONG:
            index = np.int64(high & INDEX)
            total += offsets[index + 1] - offsets[index]
        else:
            total += np.int64(high >> TOP)
    return total


count_batch = on_demand(count_spans, i64, text_type, i64m, i64, i64, i64s, table_type, batch_type, i64)
