"""How often each character occurs in strings that are counted."""

from __future__ import annotations

from dask_bpe.kernels._jit import given_i64s, i64s, kernel, none, text_type
from dask_bpe.kernels.utf8 import code_point


@kernel(none, text_type, given_i64s, given_i64s, i64s)
def count_characters(values, offsets, counts, out):
    """Add the characters of all strings, each as often as its string, to out : int64[0x110000], by code point.

    Bytes that are not UTF-8 are no character.
    """
    for k in range(counts.size):
        at, end = offsets[k], offsets[k + 1]
        while at < end:
            point, length = code_point(values, at, end)
            if point >= 0:
                out[point] += counts[k]
            at += length
