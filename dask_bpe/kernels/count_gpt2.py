"""Cut by GPT-2's pattern and count, without a step of Python in between."""

from __future__ import annotations

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, kernel, text_type, u8s, u64s
from dask_bpe.kernels.count import DONE, count_spans, table_type
from dask_bpe.kernels.front import batch_type
from dask_bpe.kernels.scan import scan_gpt2


@kernel(
    i64, text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s, i64s, i64s, i64,
    table_type, batch_type, i64,
)  # fmt: skip
def count_gpt2(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, origin,
    counted, batch, wide,
):  # fmt: skip
    """Count the pre-tokens of segments. For the arguments see `scan_gpt2` and `count_spans`.

    cut : int64[3]: the pre-tokens that `spans` holds, in its first place.
    Where it returns something else than DONE, a call with the same arguments goes on when there is more room.
    """
    while True:
        state = count_spans(text, spans, cut[0], origin, cursor, counted, batch, wide)
        if state != DONE or place[0] == segments.shape[1]:
            return state
        cursor[0], cut[0] = 0, 0
        count = scan_gpt2(
            text, segments, place, classes, scratch, words, spans, stops,
        )  # fmt: skip
        cut[0] = count
