"""Where text stops being UTF-8."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import i64, kernel, step, text_type
from dask_bpe.kernels.bytes64 import bits64, misplaced64
from dask_bpe.kernels.utf8 import code_point


@step
def _first_invalid(text, start, end):
    """The first byte of ``text[start:end]`` that begins no valid character, or -1; `start` begins one."""
    at = start
    while at < end:
        point, length = code_point(text, at, text.size)
        if point < 0:
            return at
        at += length
    return np.int64(-1)


@step
def _character_start(text, at):
    """Where the character begins that `at` is in, the text before being valid."""
    while at > 0 and text[at] & np.uint8(0xC0) == np.uint8(0x80):
        at -= 1
    return at


@kernel(i64, text_type, i64)
def first_invalid(text, by_vectors):
    """The first byte of `text` that begins no valid character, or -1; `by_vectors`: 64 bytes at a time, or one (0)."""
    # A block looks back three bytes; before it stand whole characters.
    base = np.int64(0)
    while by_vectors and base < min(3, text.size):
        point, length = code_point(text, base, text.size)
        if point < 0:
            return base
        base += length
    begin, unfinished = base, np.uint64(0)
    while by_vectors and base + 64 <= text.size:
        high = bits64(text, base, 128)
        if high | unfinished != 0 and misplaced64(text, base) != 0:
            return _first_invalid(text, _character_start(text, base - 1) if base > begin else begin, text.size)
        unfinished = high >> np.uint64(61)
        base += 64
    return _first_invalid(text, _character_start(text, base - 1) if base > begin else begin, text.size)
