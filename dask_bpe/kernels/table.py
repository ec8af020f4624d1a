"""Hash tables of byte strings, for `count` and `encode`: dense entries and an index to them.

An entry is four uint64, half a cache line; entries stand in the order in which their strings came, so the
frequent ones, which come early, lie together:

    word 0   the first 8 bytes              | the 64-bit hash of a string of 16 bytes or more
    word 1   bytes 8-14, length << 56       | LONG << 56, number of the string in a ragged side array
    word 2   }  the caller's
    word 3   }

Strings of up to 15 bytes (99 % of the pre-tokens of web text) are their own key: one comparison of 16 bytes,
no side array (packed keys: gigatoken). Longer ones are found by hash and compared byte by byte.

The index is an open-addressing array of uint64: upper half of the hash, number of the entry + 1; 0 is empty. It
leads past a stranger without a look at its entry, and can be made anew without moving one. One array of entries
at hashed places, half empty, was as fast and twice as large.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import i64, inlined, kernel, none, step, u64s
from dask_bpe.kernels.lanes import byte_swap
from dask_bpe.kernels.simd import load_u64

WIDTH = 4
SHORT = 15
LONG = np.uint64(0x80)
TOP = np.uint64(56)
INDEX = np.uint64((1 << 56) - 1)
HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
# Word 1 of a long string before it has an index: equal to no stored one.
LONG_KEY = LONG << TOP | INDEX
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)


@inlined
def mix(low, high):
    """Hash of 128 bits to 64: two multiplications; the low bits are as good as the high ones."""
    return byte_swap(low * _MIX_1 + high * _MIX_2)


@step
def _pack_at_end(text, start, length):
    low = high = np.uint64(0)
    for i in range(length):
        if i < 8:
            low |= np.uint64(text[start + i]) << np.uint64(8 * i)
        else:
            high |= np.uint64(text[start + i]) << np.uint64(8 * (i - 8))
    return low, high


@inlined
def pack(text, start, length):
    """Words 0 and 1 of a string of 1 to 15 bytes."""
    if start + 16 <= text.size:
        # Masks by selection, not by a branch on the length, which is a coin toss.
        cut_low = np.uint64(64 - 8 * min(length, 8))
        cut_high = np.uint64(64 - 8 * max(length - 8, 0))
        low = load_u64(text, start) & (_ALL >> cut_low)
        high = load_u64(text, start + 8) & ((_ALL >> np.uint64(1)) >> (cut_high - np.uint64(1)))
    else:
        low, high = _pack_at_end(text, start, length)
    return low, high | np.uint64(length) << TOP


@step
def hash_long(text, start, length):
    """64-bit hash of a string of 16 bytes or more, eight bytes at a time; the last eight may overlap."""
    word = np.uint64(length)
    for i in range(0, length - 7, 8):
        word = mix(load_u64(text, start + i), word)
    return mix(load_u64(text, start + length - 8), word)


@inlined
def key_of(text, start, length):
    """Word 0, word 1 (without an index for long strings) and the slot hash of a string."""
    if length <= SHORT:
        low, high = pack(text, start, length)
        return low, high, mix(low, high)
    low = hash_long(text, start, length)
    return low, LONG_KEY, low


@step
def same_long(text, start, length, values, offsets, index):
    """Whether the string equals string `index` of a ragged array."""
    at = offsets[index]
    if offsets[index + 1] - at != length:
        return False
    for i in range(0, length - 7, 8):
        if load_u64(text, start + i) != load_u64(values, at + i):
            return False
    return load_u64(text, start + length - 8) == load_u64(values, at + length - 8)


@step
def keep_long(text, start, length, values, offsets, used):
    """Append a long string to the ragged side array; word 1 of its entry. used: [_, strings, bytes]."""
    index, at = used[1], used[2]
    for i in range(length):
        values[at + i] = text[start + i]
    used[1] = index + 1
    used[2] = at + length
    offsets[index + 1] = at + length
    return LONG << TOP | np.uint64(index)


@inlined
def guess(word, index):
    """Where the entry of a string with this hash begins in `entries`, if it has one; any place, if it has none.

    Only the index is read: it takes two strings with the same 32 bits of their hashes to be wrong.
    """
    mask = np.uint64(index.size - 1)
    slot = word & mask
    place = index[slot]
    while place != 0 and place >> HALF != word >> HALF:
        slot = (slot + np.uint64(1)) & mask
        place = index[slot]
    return (max(place & LOWER, np.uint64(1)) - np.uint64(1)) * np.uint64(WIDTH)


@inlined
def find(text, start, length, low, high, word, index, entries, values, offsets):
    """Where the entry of a string begins in `entries`, or -1; and the slot of `index` where the search ended.

    low, high, word : what `key_of` gives for ``text[start:start + length]``.
    """
    mask = np.uint64(index.size - 1)
    slot = word & mask
    mark = word >> HALF
    while True:
        place = index[np.int64(slot)]
        if place == 0:
            return np.int64(-1), np.int64(slot)
        if place >> HALF == mark:
            at = np.int64((place & LOWER) - np.uint64(1)) * WIDTH
            if entries[at] == low:
                stored = entries[at + 1]
                if stored == high:
                    return at, np.int64(slot)
                is_long = high == LONG_KEY and stored >> TOP == LONG
                if is_long and same_long(text, start, length, values, offsets, np.int64(stored & INDEX)):
                    return at, np.int64(slot)
        slot = (slot + np.uint64(1)) & mask


@inlined
def add_entry(text, start, length, low, high, word, slot, index, entries, values, offsets, used):
    """Make an entry for a string that `find` did not find, and enter it at `slot`; returns where it begins.

    used : entries, long strings, their bytes. The caller has seen that there is room, and sets words 2 and 3.
    """
    at = used[0] * WIDTH
    used[0] += 1
    index[slot] = (word >> HALF) << HALF | np.uint64(used[0])
    entries[at] = low
    entries[at + 1] = keep_long(text, start, length, values, offsets, used) if high == LONG_KEY else high
    return at


@kernel(none, u64s, i64, u64s)
def rebuild_index(entries, count, index):
    """Enter the first `count` entries into an index that is empty (all 0)."""
    mask = np.uint64(index.size - 1)
    for number in range(count):
        low, high = entries[number * WIDTH], entries[number * WIDTH + 1]
        word = low if high >> TOP == LONG else mix(low, high)
        slot = word & mask
        while index[np.int64(slot)] != 0:
            slot = (slot + np.uint64(1)) & mask
        index[np.int64(slot)] = (word >> HALF) << HALF | np.uint64(number + 1)
