"""Cut by cl100k's pattern and its like and count."""

from __future__ import annotations

from dask_bpe.kernels._jit import kernel
from dask_bpe.kernels.count_by import COUNTER, count_by
from dask_bpe.kernels.scan_cl100k import scan_cl100k


@kernel(*COUNTER)
def count_cl100k(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, origin, counted, batch, wide,
):  # fmt: skip
    """See `count_by`."""
    return count_by(
        scan_cl100k,
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
