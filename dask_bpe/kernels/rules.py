"""Rules that the patterns of `scan_cl100k` and `scan_o200k` share, on masks of the characters of a block."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step
from dask_bpe.kernels.blocks import END, NEWLINE, SPACE
from dask_bpe.kernels.simd import count_leading_zeros
from dask_bpe.kernels.utf8 import class_at

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)
_LONG_S = 0x17F  # which ignoring case is an s


@inlined
def _lower(byte):
    return byte | np.uint8(0x20)


@step
def contraction(text, index, end):
    """Length in bytes of the contraction whose apostrophe stands at `index`, in any case, 0 if there is none."""
    if index + 1 >= end:
        return 0
    first = _lower(text[index + 1])
    if first == ord("s") or first == ord("d") or first == ord("m") or first == ord("t"):
        return 2
    if index + 2 >= end:
        return 0
    if text[index + 1] == _LONG_S >> 6 | 0xC0 and text[index + 2] == _LONG_S & 0x3F | 0x80:
        return 3
    second = _lower(text[index + 2])
    if first == ord("l") and second == ord("l"):
        return 3
    if (first == ord("v") or first == ord("r")) and second == ord("e"):
        return 3
    return 0


@inlined
def fill(members, seeds):
    """The seeds and the members behind them, each as far as its run of members goes. Seeds are members."""
    return (members & ~(members + seeds)) | seeds


@inlined
def every_third(digits, old, old_thirds):
    """The digits of a block with which groups of three begin, counted from where each run begins.

    old, old_thirds : the last two digits of the block before, and the last three of its groups' beginnings.
    """
    third = digits & (digits << _ONE | old >> _ONE) & (digits << _TWO | old)
    begin = (digits & ~(digits << _ONE | old >> _ONE)) | (third & old_thirds)
    begins = begin
    while begin != 0:
        begin = begin << _THREE & third
        begins |= begin
    return begins


@inlined
def _highest(mask):
    return _ONE << np.uint64(63 - count_leading_zeros(mask))


@inlined
def goes_on(valid, members, begins):
    """Whether the last run of members that begins at one of `begins`, not none, reaches the end of the block."""
    return (valid & ~members) < _highest(begins)


@step
def without_last(begins):
    """All bits but the highest."""
    return begins & ~_highest(begins)


@step
def not_ended_by(members, begins, enders):
    """Those of `begins`, beginnings of runs of members, whose run is not followed by one of `enders`."""
    ended = (members + begins) & ~members & enders
    while ended != 0:
        before = (ended & (~ended + _ONE)) - _ONE
        begins &= ~_highest(begins & before)
        ended &= ended - _ONE
    return begins


@step
def newline_follows(text, at, end, classes):
    """Whether there is a newline before the end of the white space that goes on at `at`."""
    while at < end:
        kind, length = class_at(text, at, end, classes)
        if kind & SPACE == 0:
            return False
        if kind & NEWLINE != 0:
            return True
        at += length
    return classes[END] & NEWLINE != 0


@inlined
def after_last_newline(text, following, end, classes, valid, blank, newlines, old_newline):
    """The beginnings of white space behind the last newline of its run, if there is any.

    blank : white space but newlines. old_newline : whether one was the last character before the block.
    following : where the character after this block begins.
    """
    lines = blank & (newlines << _ONE | old_newline)
    if lines != 0:
        if goes_on(valid, blank, lines) and newline_follows(text, following, end, classes):
            lines = without_last(lines)
        lines = not_ended_by(blank, lines, newlines)
    return lines
