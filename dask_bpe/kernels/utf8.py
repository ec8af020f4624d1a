"""Reading UTF-8 one code point at a time, bytes that are not UTF-8 included."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step
from dask_bpe.kernels.bytes64 import bits64, set_positions
from dask_bpe.kernels.lanes import LANES, bits, choose, gather8, load8, store_bytes8
from dask_bpe.kernels.simd import count_ones, spread_bits

# Class of a code point in the table `classes` (uint8[0x110000]); what is none of them is OTHER.
OTHER, LETTER, NUMBER, SPACE = 0, 1, 2, 3

_BYTE, _TAIL = np.uint64(0xFF), np.uint64(0x3F)


@inlined
def _continues(text, index, end):
    return index < end and (text[index] & np.uint8(0xC0)) == np.uint8(0x80)


@step
def code_point(text, index, end):
    """Code point at `index` and its length in bytes; (-1, 1) for a byte that begins no valid character.

    What is valid is what Python's decoder takes: no overlong forms, no surrogates, nothing above
    U+10FFFF, nothing cut off by `end`. ``surrogateescape`` turns each byte of an invalid sequence into
    one lone surrogate, of class other: the same answer as -1 here, byte by byte.
    """
    lead = np.int64(text[index])
    if lead < 0x80:
        return lead, 1
    if lead < 0xC2 or lead > 0xF4 or not _continues(text, index + 1, end):
        return -1, 1
    second = np.int64(text[index + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    if not _continues(text, index + 2, end):
        return -1, 1
    third = np.int64(text[index + 2]) & 0x3F
    if lead < 0xF0:
        point = (lead & 0x0F) << 12 | second << 6 | third
        if point < 0x800 or 0xD800 <= point <= 0xDFFF:
            return -1, 1
        return point, 3
    if not _continues(text, index + 3, end):
        return -1, 1
    point = (lead & 0x07) << 18 | second << 12 | third << 6 | (np.int64(text[index + 3]) & 0x3F)
    if point < 0x10000 or point > 0x10FFFF:
        return -1, 1
    return point, 4


@inlined
def decode_lanes(words):
    """Code points and lengths of the characters that eight words begin with, as `code_point` has them; 0 and 0 where
    none is valid. The words are little-endian; their first bytes are 0xC0 or more."""
    first = words & _BYTE
    second, third = (words >> np.uint64(8)) & _TAIL, (words >> np.uint64(16)) & _TAIL
    fourth = (words >> np.uint64(24)) & _TAIL
    of_two = (first & np.uint64(0x1F)) << np.uint64(6) | second
    of_three = (first & np.uint64(0x0F)) << np.uint64(12) | second << np.uint64(6) | third
    of_four = (first & np.uint64(0x07)) << np.uint64(18) | second << np.uint64(12) | third << np.uint64(6) | fourth
    two = (words & np.uint64(0xC000)) == np.uint64(0x8000)
    two = two & (first < np.uint64(0xE0)) & (of_two > np.uint64(0x7F))
    three = (words & np.uint64(0xC0C000)) == np.uint64(0x808000)
    three = three & (first > np.uint64(0xDF)) & (first < np.uint64(0xF0)) & (of_three > np.uint64(0x7FF))
    three = three & ((of_three ^ np.uint64(0xD800)) > np.uint64(0x7FF))
    four = (words & np.uint64(0xC0C0C000)) == np.uint64(0x80808000)
    four = four & (first > np.uint64(0xEF)) & (first < np.uint64(0xF8)) & (of_four > np.uint64(0xFFFF))
    four = four & (of_four < np.uint64(0x110000))
    none = words ^ words
    points = choose(two, of_two, choose(three, of_three, choose(four, of_four, none)))
    lengths = choose(
        two, none + np.uint64(2), choose(three, none + np.uint64(3), choose(four, none + np.uint64(4), none))
    )
    return points, lengths


@step
def class_at(text, index, end, classes):
    """Class of the code point at `index` and its length in bytes."""
    point, length = code_point(text, index, end)
    if point < 0:
        return np.uint8(OTHER), length
    return classes[point], length


@inlined
def classes_by_lanes(text, base, high, classes, kinds, places):
    """The classes of the characters beyond ASCII that begin in a block of 64 bytes, eight at a time.

    high : the bytes above 127 among ``text[base:base + 64]``; 72 bytes of the text are there. kinds : uint8[64],
    written: their classes, in order; of a byte of 0xC0 or more with which no valid character begins, the class of NUL.
    places : uint64[64], any contents.
    Returns masks: the bytes of 0xC0 or more; those with which a valid character begins; its further bytes; and those of
    the next block that belong to the last of them.
    """
    leads = bits64(text, base, 64) & high  # one of them begins each character, and none is inside one
    set_positions(places, 0, np.uint64(base), leads)
    valid = three = four = np.uint64(0)
    for k in range(0, count_ones(leads), LANES):
        points, lengths = decode_lanes(gather8(text, load8(places, k)))
        store_bytes8(kinds, k, gather8(classes, points))
        shift = np.uint64(k)
        valid |= bits(lengths > np.uint64(1)) << shift
        three |= bits(lengths > np.uint64(2)) << shift
        four |= bits(lengths > np.uint64(3)) << shift
    valid, three, four = spread_bits(valid, leads), spread_bits(three, leads), spread_bits(four, leads)
    inner = valid << np.uint64(1) | three << np.uint64(2) | four << np.uint64(3)
    beyond = valid >> np.uint64(63) | three >> np.uint64(62) | four >> np.uint64(61)
    return leads, valid, inner, beyond
