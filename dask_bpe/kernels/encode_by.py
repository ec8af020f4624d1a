"""Cut by a vector scanner and encode, without a step of Python in between.

Each scanner has a kernel of its own in a module of its own (`encode_gpt2` and the like): only what is used is compiled.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, inlined, kernel, text_type, u8s, u32s, u64s
from dask_bpe.kernels.encode import DONE, cache_type, encode_spans, rules_type
from dask_bpe.kernels.frame import begin, begun_type, keep, restorer
from dask_bpe.kernels.front import batch_type
from dask_bpe.kernels.merging import scratch_type

# What such a kernel returns and takes; see `encode_by`.
ENCODER = (
    i64, text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s, i64s, i64s, i64s, rules_type, cache_type, batch_type,
    scratch_type, u32s, i64, u32s,
)  # fmt: skip


@inlined
def encode_by(
    scan, text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache, batch,
    merging, after, wide, out,
):  # fmt: skip
    """Encode segments. For the arguments see `scan`, a kernel of `segments.SCANNER`, and `encode_spans`.

    cut : int64[3]: the pre-tokens that `spans` holds, and the first and last segment that ends among them.
    Where it returns something else than DONE, a call with the same arguments goes on when there is more room.
    """
    while True:
        first, last = cut[1], cut[2]
        state = encode_spans(
            text, spans, cut[0], cursor, stops[first:last], bounds[first:last], rules, cache, batch, merging,
            after[first:last], wide, out,
        )  # fmt: skip
        if state != DONE or place[0] == segments.shape[1]:
            return state
        cursor[0], cursor[2], cut[1] = 0, 0, place[0]
        cut[0] = scan(text, segments, place, classes, scratch, words, spans, stops)
        cut[2] = place[0]


# The frame of a short text: the arguments of `begin` that are arrays, and those of the kernel.
FRAME = types.Tuple((begun_type, types.Tuple(ENCODER[1:])))
_restore = restorer(FRAME)


@kernel(i64, u64s, FRAME)
def keep_by(frame, arguments):
    """Write to `frame`, if it is large enough, what a kernel for short texts needs; returns the words that takes."""
    return keep(frame, arguments)


@inlined
def short_by(encode, frame, length):
    """Encode ``text[:length]`` as one segment by a kernel; the number of ids, or -1 where that takes more room."""
    begun, arguments = _restore(frame)
    begin(length, begun)
    return begun.cursor[1] if encode(*arguments) == DONE else np.int64(-1)
