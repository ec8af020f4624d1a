"""Cut by cl100k's pattern and its like and count."""

from __future__ import annotations

from dask_bpe.kernels._jit import kernel
from dask_bpe.kernels.count import DONE, count_spans
from dask_bpe.kernels.count_by import COUNTER
from dask_bpe.kernels.scan_cl100k import cut_cl100k


@kernel(*COUNTER)
def count_cl100k(
    text, segments, place, classes, scratch, words, spans, stops, cut, cursor, origin, counted, batch, wide,
):  # fmt: skip
    """Count the pre-tokens of segments; see `count_by`."""
    while True:
        state = count_spans(text, spans, cut[0], origin, cursor, counted, batch, wide)
        if state != DONE or place[0] == segments.shape[1]:
            return state
        cursor[0], cut[0] = 0, 0
        count = cut_cl100k(text, segments, place, classes, scratch, words, spans, stops)
        cut[0] = count
