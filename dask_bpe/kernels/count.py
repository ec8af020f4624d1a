"""Count distinct byte strings in a hash table (see `table`) behind a small one (see `front`).

The small one holds counts of its own: a pre-token that is not there comes in without a look at the large one, and what
it drives out waits until there are many, whose reads of memory overlap. When the small one held the places of entries,
in which all occurrences were counted, and its lines were not asked for ahead, English took a third longer, code a
quarter, many languages a fifth.

Kernels stop in front of a batch for which there might be no room and return `FULL`; the caller makes the arrays larger
and calls again: where they were is kept in `cursor`.
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
    none,
    on_demand,
    step,
    text_type,
    u8s,
    u64s,
)  # fmt: skip
from dask_bpe.kernels.front import BATCH, batch_type, line_of, make_keys, match
from dask_bpe.kernels.simd import prefetch
from dask_bpe.kernels.table import INDEX, LONG, LONG_KEY, LOWER, TOP, WIDTH, add_entry, find, guess, key_of, mix

DONE, FULL = 0, 1
# Entries that wait; more than BATCH are added up.
WAITING = 2 * BATCH
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)


class Table(NamedTuple):
    """The counts of strings: of those that came last in `front`, of the others in `entries`.

    front : see `front`; word 2 of an entry is where the string occurred first since it came in, word 3 its tally: how
    often it has come and is not counted in `entries`. waiting : uint64[4 * WAITING], hashes : uint64[WAITING]: what was
    driven out of `front`. index : uint64[power of 2], entries : uint64[4 * capacity]: see `table`; word 2 is the count,
    word 3 the first position. values : uint8[], offsets : int64[]: the strings of 16 bytes or more, which are never in
    `front`. used : int64[4]: entries, long strings, their bytes; how many wait.
    """

    front: Any
    waiting: Any
    hashes: Any
    index: Any
    entries: Any
    values: Any
    offsets: Any
    used: Any


table_type = named(Table, u64s, u64s, u64s, u64s, u64s, u8s, i64s, i64s)


@inlined
def _has_room(count, n_bytes, counted):
    """Whether `count` more strings of `n_bytes` together surely fit; the index stays at most 5/8 full."""
    used = counted.used
    return (
        (used[0] + count) * WIDTH <= counted.entries.size
        and (used[0] + count) * 8 <= counted.index.size * 5
        and used[1] + count < counted.offsets.size
        and used[2] + n_bytes <= counted.values.size
    )


@inlined
def _add(text, start, length, low, high, word, count, first, counted):
    """Add to the count of a string for which there is room."""
    index, entries, values, offsets = counted.index, counted.entries, counted.values, counted.offsets
    at, slot = find(text, start, length, low, high, word, index, entries, values, offsets)
    if at < 0:
        at = add_entry(text, start, length, low, high, word, slot, index, entries, values, offsets, counted.used)
        entries[at + 2], entries[at + 3] = np.uint64(0), _NEVER
    entries[at + 2] += count
    entries[at + 3] = min(entries[at + 3], first)


@inlined
def _wait(at, counted):
    """Let the entry at `front[at]` wait if it has a tally, and ask for its place in the index."""
    front, waiting, used = counted.front, counted.waiting, counted.used
    if front[at + 3] != 0:
        for i in range(WIDTH):
            waiting[used[3] * WIDTH + i] = front[at + i]
        word = mix(front[at], front[at + 1])
        counted.hashes[used[3]] = word
        prefetch(counted.index, word & np.uint64(counted.index.size - 1))
        used[3] += 1


@step
def _add_waiting(counted):
    """Add up what waits, for which there is room."""
    waiting, hashes, used = counted.waiting, counted.hashes, counted.used
    for k in range(used[3]):
        prefetch(counted.entries, guess(hashes[k], counted.index))
    for k in range(used[3]):
        at = WIDTH * k
        low, high, first, tally = waiting[at], waiting[at + 1], waiting[at + 2], waiting[at + 3]
        _add(counted.values, 0, 0, low, high, hashes[k], tally, first, counted)
    used[3] = 0


@inlined
def _put_in_front(low, high, word, position, counted):
    """Make a short string that has come at `position` the first of its line, and drive out the second."""
    front = counted.front
    at = np.int64(line_of(word, front))
    # It may be there by now: a batch can miss a pre-token twice.
    if front[at] == low and front[at + 1] == high:
        front[at + 3] += np.uint64(1)
        return
    _wait(at + WIDTH, counted)
    for i in range(WIDTH):
        front[at + WIDTH + i] = front[at + i]
    front[at], front[at + 1], front[at + 2], front[at + 3] = low, high, position, np.uint64(1)


@step
def count_spans(text, spans, count, origin, cursor, counted, batch, wide):
    """Count the pre-tokens ``text[spans[0, k]:spans[1, k]]``, none of them empty, for k from ``cursor[0]`` to `count`.

    `origin` is the position of ``text[0]`` in the corpus; pre-tokens come in the order of their positions, from call
    to call. wide : whether the vectors of `lanes` are used. Returns DONE or FULL.
    """
    front, used = counted.front, counted.used
    keys, hashes, missed, tallies = batch.keys, batch.hashes, batch.missed, batch.places
    one, two = np.uint64(1), np.uint64(2)
    while cursor[0] < count:
        first, last = cursor[0], min(cursor[0] + BATCH, count)
        starts, ends = spans[0, first:last], spans[1, first:last]
        n_bytes = np.int64(0)
        for k in range(starts.size):
            n_bytes += ends[k] - starts[k]
        if not _has_room(used[3] + BATCH, n_bytes, counted):
            return FULL
        make_keys(text, starts, ends, wide, front, batch)
        misses = np.uint64(0)
        for k in range(starts.size):
            line = line_of(hashes[k], front)
            entry = match(front, line, keys, k)
            # The word of its tally, and in the lowest bit whether it has one.
            tallies[k] = (line + (entry >> two) + np.uint64(3)) << one | np.uint64(entry != 0)
            missed[misses] = np.uint64(k)
            misses += np.uint64(entry == 0)
        # In a loop of its own: a load of a line waits for a store into it just before (4 to 20 %).
        for k in range(starts.size):
            front[tallies[k] >> one] += tallies[k] & one
        n_long = np.uint64(0)
        for m in range(misses):
            k = missed[m]
            low, high, word = keys[two * k], keys[two * k + one], hashes[k]
            if high != LONG_KEY:
                _put_in_front(low, high, word, np.uint64(origin + starts[k]), counted)
            else:
                missed[n_long] = k
                n_long += one
                prefetch(counted.index, word & np.uint64(counted.index.size - 1))
        for m in range(n_long):
            k = missed[m]
            low, high, word = keys[two * k], keys[two * k + one], hashes[k]
            start, length = starts[k], ends[k] - starts[k]
            _add(text, start, length, low, high, word, one, np.uint64(origin + start), counted)
        if used[3] > WAITING - BATCH:
            _add_waiting(counted)
        cursor[0] = last
    return DONE


@kernel(none, table_type)
def settle(counted):
    """Add the tallies of `front`, whose entries stay, to the counts in `entries`, where there is room for all."""
    for at in range(0, counted.front.size, WIDTH):
        if counted.used[3] == WAITING:
            _add_waiting(counted)
        _wait(at, counted)
        counted.front[at + 3] = np.uint64(0)
    _add_waiting(counted)


@kernel(i64, text_type, given_i64s, given_i64s, given_i64s, i64s, table_type, batch_type)
def add_strings(strings, bounds, counts, firsts, cursor, counted, batch):
    """Add a ragged array of distinct strings with their counts and first positions to a table, from ``cursor[0]`` on.

    Returns DONE or FULL.
    """
    index, entries = counted.index, counted.entries
    keys, hashes = batch.keys, batch.hashes
    mask = np.uint64(index.size - 1)
    while cursor[0] < counts.size:
        first, last = cursor[0], min(cursor[0] + BATCH, counts.size)
        if not _has_room(last - first, bounds[last] - bounds[first], counted):
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
            count, position = np.uint64(counts[first + k]), np.uint64(firsts[first + k])
            _add(strings, start, length, low, high, word, count, position, counted)
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
