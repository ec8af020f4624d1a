"""Deal strings to buckets by their hash: the same bucket on every machine and for every list that a string is in."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64s, i64, i64s, kernel, none, text_type
from dask_bpe.kernels.table import HALF, key_of

_MIX = np.uint64(0xFF51AFD7ED558CCD)


@kernel(none, text_type, given_i64s, i64, i64s)
def bucket_of(values, offsets, n_buckets, out):
    """Write the bucket of each string, none of them empty, to out : int64[n]; from 0 to `n_buckets` - 1, below 2**31.

    The hash of the tables is good in its low bits only, and those say where a string stands in a table: mixed once
    more, so that tables of what was dealt fill evenly too.
    """
    for k in range(out.size):
        _, _, word = key_of(values, offsets[k], offsets[k + 1] - offsets[k])
        mixed = (word ^ word >> HALF) * _MIX
        out[k] = np.int64((mixed >> HALF) * np.uint64(n_buckets) >> HALF)
