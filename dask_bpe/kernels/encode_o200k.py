"""Cut by o200k's pattern and encode."""

from __future__ import annotations

from dask_bpe.kernels._jit import kernel
from dask_bpe.kernels.encode_by import ENCODER, encode_by
from dask_bpe.kernels.scan_o200k import scan_o200k


@kernel(*ENCODER)
def encode_o200k(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache, batch, merging,
    after, wide, out,
):  # fmt: skip
    """See `encode_by`."""
    return encode_by(
        scan_o200k, text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache,
        batch, merging, after, wide, out,
    )  # fmt: skip
