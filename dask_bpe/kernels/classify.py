"""Text as the classes that the tables of a pattern tell apart, see `transduce`: a byte for each byte of text."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step
from dask_bpe.kernels.bytes64 import bits64, expand64, fill64, look_up64, store64
from dask_bpe.kernels.lanes import WIDE
from dask_bpe.kernels.simd import count_leading_zeros, count_trailing_zeros
from dask_bpe.kernels.utf8 import classes_by_lanes, code_point


@inlined
def _classify_character(text, at, text_end, classes, n_classes, inside, place, room):
    """Write the class of the character beyond ASCII at `at`, and ``n_classes + 1`` for its other bytes."""
    point, length = code_point(text, at, text_end)
    inside[place] = classes[np.uint64(point if point >= 0 else 0xDC00 + np.int64(text[at]))]
    for k in range(1, min(length, room)):
        inside[place + np.uint64(k)] = np.uint8(n_classes + 1)
    return length


@step
def _classify_wide(text, base, byte_classes, classes, n_classes, inside, place, places):
    """The classes of 64 bytes and more at once.

    places : uint64[64], any contents. Returns how many of the 64 bytes are done: a character that goes on behind them
    is left; 0 if there is something that is no character.
    """
    found, high = look_up64(byte_classes, text, base, ~np.uint64(0))
    done, inner = np.int64(64), np.uint64(0)
    if high != 0:
        kinds = inside[place:]
        leads, valid, inner, beyond = classes_by_lanes(text, base, high, classes, kinds, places)
        if high & ~(valid | inner) != 0:
            return np.int64(0)
        found = expand64(found, kinds, leads)
        if beyond != 0:
            done = 63 - count_leading_zeros(leads)
    store64(inside, place, found)
    fill64(inside, place, np.uint8(n_classes + 1), inner)
    return done


@step
def classify(text, begin, end, text_end, byte_classes, classes, n_classes, inside, places):
    """Write the classes of the bytes of ``text[begin:end]``, ``n_classes + 1`` for those inside a character."""
    base = begin
    while base + 64 <= end:
        done = np.int64(0)
        if WIDE and base + 72 <= text_end:
            done = _classify_wide(text, base, byte_classes, classes, n_classes, inside, base - begin, places)
        if done == 0:
            done = _classify_block(text, base, text_end, byte_classes, classes, n_classes, inside, base - begin, end)
        base += done
    while base < end:
        if text[base] < 128:
            inside[base - begin] = byte_classes[text[base]]
            base += 1
        else:
            place = np.uint64(base - begin)
            base += _classify_character(text, base, text_end, classes, n_classes, inside, place, end - base)


@step
def _classify_block(text, base, text_end, byte_classes, classes, n_classes, inside, begin, end):
    """The classes of 64 bytes and of what goes on behind them; returns how many bytes that are."""
    here, place, high = np.uint64(base), np.uint64(begin), bits64(text, base, 128)
    for k in range(64):
        inside[place + np.uint64(k)] = byte_classes[text[here + np.uint64(k)]]
    while high != 0:
        at = count_trailing_zeros(high)
        to = place + np.uint64(at)
        length = _classify_character(text, base + at, text_end, classes, n_classes, inside, to, end - base - at)
        if at + length >= 64:
            return at + length
        high &= ~np.uint64(0) << np.uint64(at + length)
    return np.int64(64)
