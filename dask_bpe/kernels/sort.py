"""Order byte strings: by their first eight bytes as one integer, then byte by byte where those are equal."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64s, i64s, kernel, none, step, text_type, u8s, u64s


@kernel(none, text_type, given_i64s, u64s)
def prefixes(values, offsets, out):
    """The first eight bytes of every string, big-endian, padded with zeros: uint64[n]."""
    for k in range(out.size):
        word = np.uint64(0)
        start, end = offsets[k], offsets[k + 1]
        for i in range(8):
            word <<= np.uint64(8)
            if start + i < end:
                word |= np.uint64(values[start + i])
        out[k] = word


@step
def _less(values, offsets, a, b):
    start_a, start_b = offsets[a], offsets[b]
    length_a, length_b = offsets[a + 1] - start_a, offsets[b + 1] - start_b
    for i in range(min(length_a, length_b)):
        x, y = values[start_a + i], values[start_b + i]
        if x != y:
            return x < y
    return length_a < length_b


@kernel(none, text_type, given_i64s, u64s, i64s, i64s)
def sort_equal_prefixes(values, offsets, keys, order, spare):
    """Finish an order by prefix: merge-sort every run of equal prefixes. spare: int64[n]."""
    start = 0
    while start < order.size:
        end = start + 1
        while end < order.size and keys[order[end]] == keys[order[start]]:
            end += 1
        width = 1
        while width < end - start:
            for left in range(start, end, 2 * width):
                middle, right = min(left + width, end), min(left + 2 * width, end)
                i, j = left, middle
                for k in range(left, right):
                    if i < middle and (j >= right or not _less(values, offsets, order[j], order[i])):
                        spare[k] = order[i]
                        i += 1
                    else:
                        spare[k] = order[j]
                        j += 1
            for k in range(start, end):
                order[k] = spare[k]
            width *= 2
        start = end


@kernel(none, text_type, given_i64s, i64s, u8s, i64s)
def take_strings(values, offsets, order, out, bounds):
    """Write the strings in the given order to `out`, their offsets to `bounds` (int64[n + 1])."""
    write = 0
    bounds[0] = 0
    for k in range(order.size):
        start = offsets[order[k]]
        length = offsets[order[k] + 1] - start
        for i in range(length):
            out[write + i] = values[start + i]
        write += length
        bounds[k + 1] = write
