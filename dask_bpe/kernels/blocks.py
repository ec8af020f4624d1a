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
from dask_bpe.kernels.lanes import (
    LANES,
    bits,
    compress64,
    expand64,
    gather8,
    load8,
    look_up64,
    set_positions,
    spread_bits,
    store_bytes8,
    test64,
)  # fmt: skip
from dask_bpe.kernels.simd import bits64, count_ones, count_trailing_zeros
from dask_bpe.kernels.utf8 import class_at, decode_lanes, spread, spread_beyond

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


@inlined
def _classes_by_lanes(text, base, high, classes, kinds, places):
    """Of a block with 72 bytes of its segment before it: the classes of its characters beyond ASCII to `kinds`, where
    they begin, the bytes behind their first ones, and those in the next block. Eight characters at a time."""
    leads = bits64(text, base, 64) & high  # a byte of 0xC0 or more begins each character, and none is inside one
    set_positions(places, 0, np.uint64(base), leads)
    valid = three = four = _NONE
    for k in range(0, count_ones(leads), LANES):
        points, lengths = decode_lanes(gather8(text, load8(places, k)))
        store_bytes8(kinds, k, gather8(classes, points))  # of what is not valid that of NUL: punctuation
        shift = np.uint64(k)
        valid |= bits(lengths > np.uint64(1)) << shift
        three |= bits(lengths > np.uint64(2)) << shift
        four |= bits(lengths > np.uint64(3)) << shift
    valid, three, four = spread_bits(valid, leads), spread_bits(three, leads), spread_bits(four, leads)
    return leads, spread(valid, three, four) & ~valid, spread_beyond(valid, three, four)


@step
def _classes_one_by_one(text, base, end, todo, classes, kinds):
    """The same wherever the segment ends; `todo` are the bytes beyond ASCII of characters that begin in the block."""
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
            leads, inner, beyond = _classes_by_lanes(text, base, high, classes, kinds, places)
        else:
            leads, inner, beyond = _classes_one_by_one(text, base, end, high & ~spill, classes, kinds)
        starts &= ~(inner | spill)
        found = compress64(expand64(found, kinds, leads), starts)
    return test64(found), starts, beyond
