"""Cut by a vector scanner and encode, without a step of Python in between.

Each scanner has a kernel of its own in a module of its own (`encode_gpt2` and the like): only what is used is compiled.

The loops of these modules are alike but for the scanner. It cannot be given to one loop: what a closure holds is
another object in every process, for which numba finds nothing in its cache; a step given as an argument is called by
its address.
"""

from __future__ import annotations

from numba import types

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, inlined, kernel, text_type, u8s, u32s, u64s
from dask_bpe.kernels.encode import cache_type, encode_spans, rules_type
from dask_bpe.kernels.frame import begin, begun_type, keep, restorer
from dask_bpe.kernels.front import batch_type
from dask_bpe.kernels.merging import scratch_type

# Of a scanner, of what it has cut, and of `encode_spans`; see `segments.SCANNER` and `encode_cut`.
ARGUMENTS = (
    text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s, i64s, i64s, i64s, rules_type, cache_type, batch_type,
    scratch_type, u32s, i64, u32s,
)  # fmt: skip
FRAME = types.Tuple((begun_type, types.Tuple(ARGUMENTS)))
_restore = restorer(FRAME)


@kernel(i64, u64s, FRAME)
def keep_by(frame, arguments):
    """Write to `frame`, if it is large enough, what the kernels of vector scanners need; returns the words of that."""
    return keep(frame, arguments)


@inlined
def arguments_in(frame, length):
    """The arguments in a frame; with a `length` of 0 or more made ready for ``text[:length]`` as the one segment."""
    begun, arguments = _restore(frame)
    if length >= 0:
        begin(length, begun)
    return arguments


@inlined
def encode_cut(text, spans, stops, cut, cursor, bounds, rules, cache, batch, merging, after, wide, out):
    """Encode the pre-tokens that a scanner has cut; see `encode_spans`.

    cut : int64[3]: how many there are, and the first and last segment that ends among them.
    """
    first, last = cut[1], cut[2]
    return encode_spans(
        text, spans, cut[0], cursor, stops[first:last], bounds[first:last], rules, cache, batch, merging,
        after[first:last], wide, out,
    )  # fmt: skip
