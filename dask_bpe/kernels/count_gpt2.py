"""Cut by GPT-2's pattern and count."""

from __future__ import annotations

from dask_bpe.kernels._jit import kernel
from dask_bpe.kernels.count_by import COUNTER, count_by
from dask_bpe.kernels.scan import scan_gpt2


@kernel(*COUNTER)
def count_gpt2(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, origin, counted, batch, wide,
):  # fmt: skip
    """See `count_by`."""
    return count_by(
        scan_gpt2,
        text,
        segments,
        place,
        classes,
        scratch,
        words,
        spans,
        stops,
        cut,
        cursor,
        origin,
        counted,
        batch,
        wide,
    )
