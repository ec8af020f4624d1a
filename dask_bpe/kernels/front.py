"""A small table of the short pre-tokens that came last, before the large tables of `count` and `encode`.

A line is 64 bytes: two entries of four words, the one that came last in front. Words 0 and 1 of an entry are its key
(see `table`), words 2 and 3 the user's. The L2 cache holds it, where a look into the large tables is one or two reads
of memory. Of 2**13 lines (512 kB) English misses 7 % of its pre-tokens, code 2 %, many languages 12 %; of 2**15 lines
3, 1 and 9 %.

    front : uint64[8 * lines]

Pre-tokens are looked up in batches:

    keys : uint64[2 * BATCH]   words 0 and 1 of each       hashes : uint64[BATCH]
    found : uint64[2 * BATCH]  words 2 and 3 of each       missed : uint64[BATCH]  which are not in the table
    places : uint64[BATCH]     where the entries of the missed ones are to be looked for
    fresh : uint64[BATCH]      those of the missed ones that no table had
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dask_bpe.kernels._jit import inlined, named, u64s
from dask_bpe.kernels.lanes import LANES, bits, load8, load_pairs8, match_pair, pack16, store8
from dask_bpe.kernels.simd import count_trailing_zeros, prefetch
from dask_bpe.kernels.table import LONG_KEY, SHORT, WIDTH, key_of, mix

# Pre-tokens that are looked up before those that were not there are searched for: their reads of memory overlap.
# With 128 there are too few of them (5 to 10 % slower), with 512 their arrays press on the L1 cache (0 to 8 %).
BATCH = 256
# Words of a line.
LINE = 2 * WIDTH

_ONE, _FOUR, _SHORT = np.uint64(1), np.uint64(4), np.uint64(SHORT)
_ENTRIES = np.uint64(0b10001)


class Batch(NamedTuple):
    """The arrays of a batch."""

    keys: Any
    hashes: Any
    found: Any
    missed: Any
    places: Any
    fresh: Any

    @classmethod
    def empty(cls) -> Batch:
        """Arrays of any contents."""
        return cls(*(np.empty(n, np.uint64) for n in _SIZES))


_SIZES = 2 * BATCH, BATCH, 2 * BATCH, BATCH, BATCH, BATCH
batch_type = named(Batch, u64s, u64s, u64s, u64s, u64s, u64s)


@inlined
def line_of(word, front):
    """Where the line of a string with this hash begins."""
    return (word & np.uint64(front.size // LINE - 1)) * np.uint64(LINE)


@inlined
def match(front, line, keys, k):
    """Which of the two entries of a line has key k: bit 0 is for the first, bit 4 for the second."""
    equal = match_pair(front, line, keys, 2 * k)
    # Both words of the key are equal.
    return equal & (equal >> _ONE) & _ENTRIES


@inlined
def make_keys(text, starts, ends, wide, front, batch):
    """Write the keys and the hashes of pre-tokens ``text[starts[k]:ends[k]]``, at most BATCH, to `batch`.

    Their lines of `front` are asked for: without it encoding took 5 to 14 % longer, counting a sixth.
    """
    keys, hashes = batch.keys, batch.hashes
    in_lanes = np.int64(0)
    if wide:
        in_lanes = starts.size // LANES * LANES
        # Keys without a branch, hashes eight at a time; then those of the long ones.
        for k in range(in_lanes):
            pack16(text, starts[k], min(ends[k] - starts[k], SHORT), keys, 2 * k)
        for group in range(0, in_lanes, LANES):
            low, high = load_pairs8(keys, 2 * group)
            store8(hashes, group, mix(low, high))
            longer = bits(load8(ends, group) - load8(starts, group) > _SHORT)
            while longer != 0:
                k = group + count_trailing_zeros(longer)
                longer &= longer - _ONE
                keys[2 * k], keys[2 * k + 1], hashes[k] = key_of(text, starts[k], ends[k] - starts[k])
    for k in range(in_lanes, starts.size):
        keys[2 * k], keys[2 * k + 1], hashes[k] = key_of(text, starts[k], ends[k] - starts[k])
    # In a loop of its own: in the one that makes the hashes it gained half as much.
    for k in range(starts.size):
        prefetch(front, line_of(hashes[k], front))


@inlined
def look_up(text, starts, ends, wide, front, index, batch):
    """Find a batch of pre-tokens ``text[starts[k]:ends[k]]``, at most BATCH, in the front table.

    All of `batch` is written. What is found is chosen without a branch; the list of what is missed grows by 0 or 1.
    Returns the length of that list, after asking for the places in `index` where the search for those goes on.
    """
    make_keys(text, starts, ends, wide, front, batch)
    keys, hashes, found, missed = batch.keys, batch.hashes, batch.found, batch.missed
    misses = np.uint64(0)
    for k in range(starts.size):
        at = line_of(hashes[k], front)
        entry = match(front, at, keys, k)
        at += (entry >> _FOUR) * np.uint64(WIDTH)
        found[2 * k], found[2 * k + 1] = front[at + np.uint64(2)], front[at + np.uint64(3)]
        missed[misses] = np.uint64(k)
        misses += np.uint64(entry == 0)
    mask = np.uint64(index.size - 1)
    for m in range(misses):
        prefetch(index, hashes[missed[m]] & mask)
    return np.int64(misses)


@inlined
def put_in_front(low, high, word, second, third, front):
    """Make an entry the first of its line, unless its string is long; the one that was there becomes the second."""
    at = np.int64(line_of(word, front))
    # It may be there by now: a batch can miss a pre-token twice.
    if high != LONG_KEY and (front[at] != low or front[at + 1] != high):
        for i in range(WIDTH):
            front[at + WIDTH + i] = front[at + i]
        front[at], front[at + 1], front[at + 2], front[at + 3] = low, high, second, third
