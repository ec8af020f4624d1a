"""Cut by the tables of a pattern and count, without a step of Python in between."""

from __future__ import annotations

from dask_bpe.kernels._jit import given_i64m, given_u16s, given_u32s, i64, i64m, i64s, kernel, text_type, u8s, u64s
from dask_bpe.kernels.count import DONE, count_spans, table_type
from dask_bpe.kernels.front import batch_type
from dask_bpe.kernels.marks import ENLARGE
from dask_bpe.kernels.transduce import cut_table


@kernel(
    i64, text_type, given_i64m, i64s, text_type, text_type, i64, given_u32s, text_type, given_u16s, given_i64m,
    u8s, text_type, i64m, u64s, u8s, i64m, i64s, i64s, i64s, i64,
    table_type, batch_type, i64,
)  # fmt: skip
def count_table(
    text, segments, place, byte_classes, classes, n_classes, table, cuts, automata, splits, inside, classes_inside,
    lanes, words, marks, spans, stops, cut, cursor, origin,
    counted, batch, wide,
):  # fmt: skip
    """Count the pre-tokens of segments. For the arguments see `cut_table` and `count_spans`.

    cut : int64[3]: the pre-tokens that `spans` holds, in its first place.
    Where it returns something else than DONE, a call with the same arguments goes on when there is more room.
    """
    while True:
        state = count_spans(text, spans, cut[0], origin, cursor, counted, batch, wide)
        if state != DONE or place[0] == segments.shape[1]:
            return state
        cursor[0], cut[0] = 0, 0
        count = cut_table(
            text, segments, place, byte_classes, classes, n_classes, table, cuts, automata, splits, inside,
            classes_inside, lanes, words, marks, spans, stops,
        )  # fmt: skip
        if count == ENLARGE:
            return ENLARGE
        cut[0] = count
