"""How often each pair of bytes stands side by side in strings that are counted."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64s, i64s, kernel, none, text_type


@kernel(none, text_type, given_i64s, given_i64s, i64s)
def add_byte_pairs(values, offsets, counts, out):
    """Add the pairs of bytes of all strings, each as often as its string, to out : int64[65536].

    The pair of a and b is at a << 8 | b. Overlapping ones count: "aaa" holds two.
    """
    for k in range(counts.size):
        for at in range(offsets[k], offsets[k + 1] - 1):
            out[np.int64(values[at]) << 8 | np.int64(values[at + 1])] += counts[k]
