"""Cut by o200k's pattern and encode."""

from __future__ import annotations

from dask_bpe.kernels._jit import i64, kernel, u64s
from dask_bpe.kernels.encode import DONE
from dask_bpe.kernels.encode_by import arguments_in, encode_cut, keep_by
from dask_bpe.kernels.scan_o200k import cut_o200k

keep_o200k = keep_by


@kernel(i64, u64s, i64)
def encode_o200k(frame, length):
    """Encode segments by the arguments in a frame; see `encode_by`. A `length` of 0 or more begins ``text[:length]``.

    Where it returns something else than DONE, a call with the same arguments goes on when there is more room.
    """
    (
        text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache, batch, merging,
        after, wide, out,
    ) = arguments_in(frame, length)  # fmt: skip
    while True:
        state = encode_cut(
            text, spans, stops, cut, cursor, bounds, rules, cache, batch, merging, after, wide, out
        )  # fmt: skip
        if state != DONE or place[0] == segments.shape[1]:
            return state
        cursor[0], cursor[2], cut[1] = 0, 0, place[0]
        cut[0] = cut_o200k(text, segments, place, classes, scratch, words, spans, stops)
        cut[2] = place[0]
