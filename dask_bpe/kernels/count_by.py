"""Cut by a vector scanner and count, without a step of Python in between.

Each scanner has a kernel of its own in a module of its own (`count_gpt2` and the like): only what is used is compiled.
"""

from __future__ import annotations

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, inlined, text_type, u8s, u64s
from dask_bpe.kernels.count import DONE, count_spans, table_type
from dask_bpe.kernels.front import batch_type

# What such a kernel returns and takes; see `count_by`.
COUNTER = (
    i64, text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s, i64s, i64s, i64, table_type, batch_type, i64,
)  # fmt: skip


@inlined
def count_by(
    scan, text, segments, place, classes, scratch, words, spans, stops, cut, cursor, origin, counted, batch, wide,
):  # fmt: skip
    """Count the pre-tokens of segments. For the arguments see `scan`, a kernel of `segments.SCANNER`, and
    `count_spans`.

    cut : int64[3]: the pre-tokens that `spans` holds, in its first place.
    Where it returns something else than DONE, a call with the same arguments goes on when there is more room.
    """
    while True:
        state = count_spans(text, spans, cut[0], origin, cursor, counted, batch, wide)
        if state != DONE or place[0] == segments.shape[1]:
            return state
        cursor[0], cut[0] = 0, 0
        count = scan(text, segments, place, classes, scratch, words, spans, stops)
        cut[0] = count
