"""Cut by GPT-2's pattern and encode, without a step of Python in between."""

from __future__ import annotations

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, kernel, text_type, u8s, u32s, u64s
from dask_bpe.kernels.encode import DONE, cache_type, encode_spans, rules_type
from dask_bpe.kernels.front import batch_type
from dask_bpe.kernels.merging import scratch_type
from dask_bpe.kernels.scan import scan_gpt2


@kernel(
    i64, text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s, i64s, i64s, i64s, rules_type, cache_type, batch_type,
    scratch_type, u32s, i64, u32s,
)  # fmt: skip
def encode_gpt2(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache, batch, merging,
    after, wide, out,
):  # fmt: skip
    """Encode segments. For the arguments see `scan_gpt2` and `encode_spans`.

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
        cut[0] = scan_gpt2(text, segments, place, classes, scratch, words, spans, stops)
        cut[2] = place[0]
