"""Cut by cl100k's pattern and its like and encode."""

from __future__ import annotations

from dask_bpe.kernels._jit import i64, kernel, u64s
from dask_bpe.kernels.encode_by import ENCODER, encode_by, keep_by, short_by
from dask_bpe.kernels.scan_cl100k import scan_cl100k


@kernel(*ENCODER)
def encode_cl100k(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache, batch, merging,
    after, wide, out,
):  # fmt: skip
    """See `encode_by`."""
    return encode_by(
        scan_cl100k, text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache,
        batch, merging, after, wide, out,
    )  # fmt: skip


keep_cl100k = keep_by


@kernel(i64, u64s, i64)
def short_cl100k(frame, length):
    """See `short_by`."""
    return short_by(encode_cl100k, frame, length)
