"""Seams: places in a string that no token of a vocabulary can cover.

A merge that crosses a place makes a token that has the bytes around it inside. Where there is no such token the two
sides merge each for itself, and what was made of a side may be used again, whatever stands beside it.

What is known of the tokens is a filter, `crossed`: uint64[power of 2]. A place inside a token has a key: the bytes
around it, up to three on each side, and how many they are (see `_KINDS`); of a key two bits are set in one word. Other
keys may have the same bits: then a seam is not seen, which costs time, not truth. Keys of two bytes on each side found
so few seams with o200k_base that five times as many bytes were left to be merged.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import i64s, inlined, kernel, none, step, text_type, u64s
from dask_bpe.kernels.lanes import LANES, bits, gather8, load8
from dask_bpe.kernels.simd import count_trailing_zeros, load_u64

# Bytes on each side of the largest keys.
_MOST = 3
# How many bytes before and after a place its key may have: of these as many as the token has. Beside a single one there
# are no more than two: few tokens begin or end inside a character.
_KINDS = (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3)

_ZERO, _ONE, _SIX, _LAST = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)


@inlined
def _around(text, at, start, stop):
    """The _MOST bytes before and after a place of a string, where it has them, and anything where it has not."""
    if at >= _MOST and at - _MOST + 8 <= text.size:
        return load_u64(text, at - _MOST)
    around = np.uint64(0)
    for i in range(max(at - _MOST, start), min(at + _MOST, stop)):
        around |= np.uint64(text[i]) << np.uint64(8 * (i - at + _MOST))
    return around


@inlined
def _key(around, before, after):
    """The key of a place, of the bytes that stand around it, _MOST before and after; also of eight."""
    kind = np.uint64(_MOST * before + after) << np.uint64(56)
    mask = (_ONE << np.uint64(8 * (before + after))) - _ONE
    return (around >> np.uint64(8 * (_MOST - before))) & mask | kind


@inlined
def _place_of(key, crossed):
    """The word of a key in the filter, and its two bits there; also of eight keys."""
    word = key * np.uint64(0x9E3779B97F4A7C15)
    word = word ^ (word >> np.uint64(32))
    one = key & _ZERO | _ONE
    mask = one << ((word >> _SIX) & _LAST) | one << (word & _LAST)
    return (word >> np.uint64(12)) & np.uint64(crossed.size - 1), mask


@kernel(none, text_type, i64s, i64s, u64s)
def fill_crossed(text, bounds, chosen, crossed):
    """Enter the places inside of the tokens ``text[bounds[k]:bounds[k + 1]]``, k in `chosen`, in a filter of zeros."""
    for k in chosen:
        start, stop = bounds[k], bounds[k + 1]
        for at in range(start + 1, stop):
            before, after = min(at - start, _MOST), min(stop - at, _MOST)
            if before == 1 or after == 1:
                before, after = min(before, 2), min(after, 2)
            place, mask = _place_of(_key(_around(text, at, start, stop), before, after), crossed)
            crossed[place] |= mask


@inlined
def _crosses(around, before, after, room_before, room_after, crossed):
    place, mask = _place_of(_key(around, before, after), crossed)
    return room_before >= before and room_after >= after and crossed[place] & mask == mask


@inlined
def _is_crossed(text, at, start, stop, crossed):
    """Whether a token may cover place `at` of the string ``text[start:stop]``."""
    around = _around(text, at, start, stop)
    for before, after in _KINDS:  # noqa: SIM110, kernels know no generators
        if _crosses(around, before, after, at - start, stop - at, crossed):
            return True
    return False


@inlined
def _crosses8(around, before, after, room_before, room_after, crossed):
    word, mask = _place_of(_key(around, before, after), crossed)
    fits = (room_before > np.uint64(before - 1)) & (room_after > np.uint64(after - 1))
    return fits & (gather8(crossed, word) & mask == mask)


@inlined
def _crossed8(text, places, start, stop, crossed):
    """The same of the first eight of `places`, as bits."""
    place = load8(places, 0)
    around = gather8(text, place - np.uint64(_MOST))
    before, after = place - np.uint64(start), (place & _ZERO | np.uint64(stop)) - place
    found = _crosses8(around, 3, 3, before, after, crossed)
    found = found | _crosses8(around, 2, 3, before, after, crossed)
    found = found | _crosses8(around, 3, 2, before, after, crossed)
    found = found | _crosses8(around, 2, 2, before, after, crossed)
    found = found | _crosses8(around, 2, 1, before, after, crossed)
    found = found | _crosses8(around, 1, 2, before, after, crossed)
    return bits(found | _crosses8(around, 1, 1, before, after, crossed))


@step
def find_seams(text, start, stop, wide, crossed, seams):
    """Write the seams of the string ``text[start:stop]`` that stand between characters, and `stop`, to `seams`.

    seams : int64[], room for as many as there are bytes, and for LANES besides.
    wide : whether the vectors of `lanes` are used. Returns how many they are.
    """
    n, at = np.int64(0), start + 1
    places = seams[seams.size - LANES :]
    while at < stop:
        if wide and at >= _MOST and stop + 8 <= text.size:
            found = np.int64(0)
            while found < LANES and at < stop:
                places[found] = at
                found += np.int64(text[at] & 0xC0 != 0x80)
                at += 1
            for i in range(found, LANES):
                places[i] = at - 1
            free = ~_crossed8(text, places, start, stop, crossed) & ((_ONE << np.uint64(found)) - _ONE)
            while free != 0:
                seams[n] = places[count_trailing_zeros(free)]
                n += 1
                free &= free - _ONE
        else:
            seams[n] = at
            n += np.int64(text[at] & 0xC0 != 0x80 and not _is_crossed(text, at, start, stop, crossed))
            at += 1
    seams[n] = stop
    return n + 1
