"""Reading UTF-8 one code point at a time, bytes that are not UTF-8 included."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step

# Class of a code point in the table `classes` (uint8[0x110000]); what is none of them is OTHER.
OTHER, LETTER, NUMBER, SPACE = 0, 1, 2, 3


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


@step
def class_at(text, index, end, classes):
    """Class of the code point at `index` and its length in bytes."""
    point, length = code_point(text, index, end)
    if point < 0:
        return np.uint8(OTHER), length
    return classes[point], length
