"""Cut text by the GPT-2 pattern one code point at a time, word for word as the pattern says.

What `scan` is held to by tests, and what scans when ``DASK_BPE_SIMD=0`` is set. A fifth as fast.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, kernel, step, text_type, u8s, u64s
from dask_bpe.kernels.scan import contraction
from dask_bpe.kernels.utf8 import SPACE, class_at


@step
def _run_end(text, index, end, classes, wanted):
    """End of the run of characters of class `wanted` from `index` on, and the start of its last one."""
    last = index
    while index < end:
        found, length = class_at(text, index, end, classes)
        if found != wanted:
            break
        last = index
        index += length
    return index, last


@step
def _next_cut(text, index, end, classes):
    """End of the pre-token that starts at `index`, by the pattern's alternatives in their order."""
    if text[index] == ord("'"):
        length = contraction(text, index, end)
        if length > 0:
            return index + length
    start = index
    if text[index] == ord(" ") and index + 1 < end:
        start = index + 1
    found, _ = class_at(text, start, end, classes)
    if found != SPACE:
        return _run_end(text, start, end, classes, found)[0]
    stop, last = _run_end(text, index, end, classes, np.uint8(SPACE))
    if stop == end or last == index:
        return stop
    return last


@kernel(i64, text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s)
def scan_gpt2_scalar(text, segments, cursor, classes, scratch, words, spans, stops):
    """Cut segments one code point at a time; see `scan`. `scratch` and `words` are not used."""
    found = 0
    while cursor[0] < segments.shape[1]:
        end = segments[1, cursor[0]]
        position = max(cursor[1], segments[0, cursor[0]])
        while position < end:
            if found == spans.shape[1]:
                cursor[1] = position
                return found
            spans[0, found] = position
            position = _next_cut(text, position, end, classes)
            spans[1, found] = position
            found += 1
        stops[cursor[0]] = found
        cursor[0] += 1
        cursor[1] = 0
    return found
