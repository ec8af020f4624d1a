"""Ids back to bytes: how long the text will be, and the tokens laid end to end.

A token has a slot of 16 bytes:

    up to 15 bytes   the bytes, then anything, and the length in the last byte
    longer ones      int64 where it begins in `values`, then int64 its length | LONG_SLOT

so that one load and one store copy nearly every token; what is written behind its end, the next one overwrites.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dask_bpe.kernels._jit import (
    given_i64s,
    given_u16s,
    given_u32s,
    given_u64s,
    i64,
    i64s,
    inlined,
    kernel,
    none,
    text_type,
)  # fmt: skip
from dask_bpe.kernels.simd import copy_bytes, load_u64

SLOT = 16
LONG_SLOT = np.uint64(1 << 63)
# The length of an id that is none: the sum of a text with it is not looked at.
UNKNOWN = np.uint32(0xFFFFFFFF)
# The size of an id whose length is not below it.
LARGE = 255

_SHORT = SLOT - 1
_PLACE = LONG_SLOT - np.uint64(1)


def _by_width(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], dict[int, Any]]:
    """Compile for ids of uint16, uint32 and uint64, the first argument: kernels by the bytes of an id."""
    kinds = {2: given_u16s, 4: given_u32s, 8: given_u64s}
    return lambda function: {width: kernel(result, kind, *arguments)(function) for width, kind in kinds.items()}


@inlined
def _size(ids, k, sizes, last):
    return np.int64(sizes[min(np.uint64(ids[k]), last)])


@_by_width(i64, given_i64s, text_type, given_u32s, i64s)
def text_ends(ids, bounds, sizes, lengths, ends):
    """Write where in bytes the texts ``ids[bounds[k]:bounds[k + 1]]`` end, laid end to end, to ends : int64[n].

    lengths : uint32[n_ids + 1], the bytes of every id; UNKNOWN for those that are none and behind the last one.
    sizes : uint8[n_ids + 1], the same, LARGE for what does not fit. It stays in the cache: gathers of eight lengths
    took twice as long as one size after the other. With one branch for four of them decoding by 200,000 tokens takes an
    eighth less, by 50,000 the same. Returns the number of unknown ids.
    """
    last = np.uint64(lengths.size - 1)
    total = unknown = np.int64(0)
    for text in range(ends.size):
        k, stop = bounds[text], bounds[text + 1]
        while k < stop:
            if k + 4 <= stop:
                one, two = _size(ids, k, sizes, last), _size(ids, k + 1, sizes, last)
                three, four = _size(ids, k + 2, sizes, last), _size(ids, k + 3, sizes, last)
                if not ((one == LARGE) | (two == LARGE) | (three == LARGE) | (four == LARGE)):
                    total += one + two + three + four
                    k += 4
                    continue
            length = lengths[min(np.uint64(ids[k]), last)]
            unknown += np.int64(length == UNKNOWN)
            total += np.int64(length)
            k += 1
        ends[text] = total
    return unknown


@inlined
def _copy_long(slots, slot, values, out, at):
    """Copy a token of 16 bytes or more; returns its length. The last 16 bytes overlap what was copied before."""
    place, length = np.int64(load_u64(slots, slot)), np.int64(load_u64(slots, slot + 8) & _PLACE)
    last = length - SLOT
    for i in range(0, last, SLOT):
        copy_bytes(values, place + i, out, at + i, SLOT)
    copy_bytes(values, place + last, out, at + last, SLOT)
    return length


@inlined
def _copy(slots, slot, values, out, at):
    """Copy any token, no byte more; returns its length."""
    length = np.int64(slots[slot + _SHORT])
    if length > _SHORT:
        return _copy_long(slots, slot, values, out, at)
    for i in range(length):
        copy_bytes(slots, slot + i, out, at + i, 1)
    return length


@_by_width(none, text_type, text_type, text_type)
def gather(ids, slots, values, out):
    """Copy the tokens of `ids`, all known, to `out`, of which they fill every byte.

    slots : uint8[16 * n_ids], values : uint8[]: see the module. out : uint8[], and written to although its type does
    not say so: it may be the inside of `bytes` that nobody else has seen.
    Two at a time they take two thirds of the time, for one branch asks whether both are short; four gained no more.
    """
    at = k = np.int64(0)
    while k + 2 <= ids.size and at + 2 * SLOT <= out.size:
        one, two = np.int64(ids[k]) * SLOT, np.int64(ids[k + 1]) * SLOT
        first, second = np.int64(slots[np.uint64(one + _SHORT)]), np.int64(slots[np.uint64(two + _SHORT)])
        if first | second <= _SHORT:
            copy_bytes(slots, one, out, at, SLOT)
            copy_bytes(slots, two, out, at + first, SLOT)
            at += first + second
        else:
            at += _copy(slots, one, values, out, at)
            at += _copy(slots, two, values, out, at)
        k += 2
    while k < ids.size:
        at += _copy(slots, np.int64(ids[k]) * SLOT, values, out, at)
        k += 1
