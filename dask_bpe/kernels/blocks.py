"""64 bytes at a time as masks of characters by what they are: what the scanners of `scan_cl100k` and `scan_o200k` read.

Bit i of a mask stands for character i of a block, not for byte i: a block of ASCII has 64 characters, one of Chinese
21 or 22. So characters of several bytes need no rules of their own; where the tokens begin is told in characters too,
and becomes a mask of bytes at last. A character belongs to the block in which its first byte lies.

classes : uint8[0x110000 + 8], for every code point the bits below, and for the end of the text at `END`. What is no
bit of `LOWER`, `UPPER`, `NUMBER`, `SPACE` or `SINGLE` is punctuation, as far as patterns know: bytes that are no UTF-8
are.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step
from dask_bpe.kernels.bytes64 import compress64, expand64, look_up64, test64
from dask_bpe.kernels.simd import count_trailing_zeros
from dask_bpe.kernels.utf8 import class_at, classes_by_lanes

# Letters of a pattern that does not tell case are LOWER; those that go with both cases are LOWER and UPPER.
LOWER, UPPER, NUMBER, SPACE = 1, 2, 4, 8
# What punctuation takes behind it, if it is SPACE too a newline; the space; the apostrophe.
NEWLINE, BLANK, QUOTE = 16, 32, 64
# A digit that is a pre-token by itself, for patterns that have it; a combining mark, for those that tell them.
SINGLE = MARK = 128
END = 0x110000

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_NONE = np.uint64(0)


@step
def _classes_one_by_one(text, base, end, todo, classes, kinds):
    """`classes_by_lanes` wherever the segment ends; `todo`: bytes beyond ASCII of characters that begin here."""
    leads = inner = beyond = _NONE
    n = 0
    while todo != 0:
        at = count_trailing_zeros(todo)
        kinds[n], length = class_at(text, base + at, end, classes)
        n += 1
        lead = _ONE << np.uint64(at)
        whole = ((_ONE << np.uint64(length)) - _ONE) << np.uint64(at)
        todo &= ~whole
        leads |= lead
        inner |= whole & ~lead
        if at + length > 64:
            beyond = (_ONE << np.uint64(at + length - 64)) - _ONE
    return leads, inner, beyond


@inlined
def read_block(text, base, end, classes, spill, kinds, places):
    """Masks of the characters that begin in ``text[base:base + 64]``, within a segment that ends at `end`.

    spill : the bytes of the block, as bits, that belong to a character that began before it.
    kinds : uint8[64], places : uint64[64], any contents.
    Returns the masks of the eight bits in their order, the bytes with which characters begin, and the next block's
    spill.
    """
    inside = _ALL
    if base + 64 > end:
        inside = (_ONE << np.uint64(end - base)) - _ONE
    found, high = look_up64(classes, text, base, inside)
    starts, beyond = inside, _NONE
    if high != 0:
        if base + 72 <= end:
            leads, _, inner, beyond = classes_by_lanes(text, base, high, classes, kinds, places)
        else:
            leads, inner, beyond = _classes_one_by_one(text, base, end, high & ~spill, classes, kinds)
        starts &= ~(inner | spill)
        found = compress64(expand64(found, kinds, leads), starts)
    return test64(found), starts, beyond


@inlined
def read_next(text, base, end, classes, spill, kinds, places):
    """`read_block` behind another block of a segment, or what stands behind its last one: the end, as white space.

    Returns whether any character begins there too, and where the first one does: at `end`, if none.
    """
    if base < end:
        masks, starts, beyond = read_block(text, base, end, classes, spill, kinds, places)
        if starts != 0:  # there may be no more than what a last character spills
            return True, base + count_trailing_zeros(starts), masks, starts, beyond
    return False, end, (_NONE, _NONE, _NONE, _ONE, _NONE, _NONE, _NONE, _NONE), _NONE, _NONE
