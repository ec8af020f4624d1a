"""Cut by the tables of a pattern and encode, without a step of Python in between."""

from __future__ import annotations

from numba import types

from dask_bpe.kernels._jit import (
    given_i64m,
    given_u16s,
    given_u32s,
    i64,
    i64m,
    i64s,
    kernel,
    step,
    text_type,
    u8s,
    u32s,
    u64s,
)  # fmt: skip
from dask_bpe.kernels.encode import DONE, cache_type, encode_spans, rules_type
from dask_bpe.kernels.frame import begin, begun_type, keep, restorer
from dask_bpe.kernels.front import batch_type
from dask_bpe.kernels.marks import ENLARGE, UNMATCHED
from dask_bpe.kernels.merging import scratch_type
from dask_bpe.kernels.transduce import cut_table

_ARGUMENTS = (
    text_type, given_i64m, i64s, text_type, text_type, i64, given_u32s, text_type, given_u16s, given_i64m,
    u8s, text_type, i64m, u64s, u8s, i64m, i64s, i64s, i64s, i64s, rules_type, cache_type,
    batch_type, scratch_type, u32s, i64, u32s,
)  # fmt: skip
_FRAME = types.Tuple((begun_type, types.Tuple(_ARGUMENTS)))
_restore = restorer(_FRAME)


@step
def _encode(
    text, segments, place, byte_classes, classes, n_classes, table, cuts, automata, splits, inside, classes_inside,
    lanes, words, marks, spans, stops, cut, cursor, bounds, rules, cache, batch, scratch, after, wide, out,
):  # fmt: skip
    """As `encode_by.encode_by`; may return ENLARGE too, for more room in `inside` and `marks`, and UNMATCHED where the
    pattern leaves text unmatched: `place` tells where."""
    while True:
        first, last = cut[1], cut[2]
        state = encode_spans(
            text, spans, cut[0], cursor, stops[first:last], bounds[first:last], rules, cache, batch, scratch,
            after[first:last], wide, out,
        )  # fmt: skip
        if state != DONE or place[0] == segments.shape[1]:
            return state
        cursor[0], cursor[2], cut[0], cut[1], cut[2] = 0, 0, 0, place[0], place[0]
        count = cut_table(
            text, segments, place, byte_classes, classes, n_classes, table, cuts, automata, splits, inside,
            classes_inside, lanes, words, marks, spans, stops,
        )  # fmt: skip
        if count == ENLARGE:
            return ENLARGE
        if place[5] >= 0:
            return UNMATCHED
        cut[0], cut[2] = count, place[0]


@kernel(i64, u64s, _FRAME)
def keep_table(frame, arguments):
    """Write to `frame`, if it is large enough, what `encode_table` needs; returns the words of that."""
    return keep(frame, arguments)


@kernel(i64, u64s, i64)
def encode_table(frame, length):
    """As `encode_by.encode_framed`."""
    begun, arguments = _restore(frame)
    if length >= 0:
        begin(length, begun)
    return _encode(*arguments)
