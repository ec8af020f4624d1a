"""From masks of the places where text is cut to the bounds of pre-tokens."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined
from dask_bpe.kernels.bytes64 import set_positions
from dask_bpe.kernels.lanes import WIDE
from dask_bpe.kernels.simd import count_ones, count_trailing_zeros


@inlined
def write_cuts(cuts, base, starts, ends, found):
    """End a pre-token and start the next at ``base + i`` for every bit i of `cuts`; returns how many have started.

    Room for 64 is needed. Packing the places in a vector made the whole scanner of GPT-2's pattern 1.8 times as fast
    as the loop over bits.
    """
    if WIDE:
        set_positions(starts, found, np.uint64(base), cuts)
        set_positions(ends, found - 1, np.uint64(base), cuts)
        return found + count_ones(cuts)
    while cuts != 0:
        cut = base + count_trailing_zeros(cuts)
        ends[found - 1] = cut
        starts[found] = cut
        found += 1
        cuts &= cuts - np.uint64(1)
    return found
