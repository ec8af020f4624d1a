"""Cut by GPT-2's pattern and encode."""

from __future__ import annotations

from dask_bpe.kernels._jit import kernel
from dask_bpe.kernels.encode_by import ENCODER, encode_by
from dask_bpe.kernels.scan import scan_gpt2


@kernel(*ENCODER)
def encode_gpt2(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache, batch, merging,
    after, wide, out,
):  # fmt: skip
    """See `encode_by`."""
    return encode_by(
        scan_gpt2, text, segments, place, classes, scratch, words, spans, stops, cut, cursor, bounds, rules, cache,
        batch, merging, after, wide, out,
    )  # fmt: skip
