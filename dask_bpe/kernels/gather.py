"""Strings out of a `Ragged`, by index, laid end to end: how ids become bytes."""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import i64s, kernel, none, text_type, u64s
from dask_bpe.kernels.simd import load_u64

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel(none, text_type, i64s, i64s, u64s)
def gather(values, offsets, indices, out):
    """Copy string `indices[0]`, `indices[1]`, ... of (values, offsets) to `out`, little-endian.

    `values` goes on for 8 bytes after the last string; `out` has n // 8 + 1 words for n bytes. Bytes are
    collected in a word and stored by the word: strings are so short that the branches of a copy byte by
    byte cost more than twice as much.
    """
    word, filled, at = np.uint64(0), np.int64(0), np.int64(0)
    for index in indices:
        source, end = offsets[index], offsets[index + 1]
        while source < end:
            size = min(end - source, np.int64(8))
            piece = load_u64(values, source) & (_ALL >> np.uint64(64 - 8 * size))
            word |= piece << np.uint64(8 * filled)
            out[at] = word
            source += size
            # The bytes that did not fit begin the next word. In two shifts, because one of 64 is undefined.
            rest = (piece >> np.uint64(8)) >> np.uint64(8 * (7 - filled))
            filled += size
            word = rest if filled >= 8 else word
            at += filled >> 3
            filled &= 7
    out[at] = word
