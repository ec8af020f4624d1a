"""Arguments that stay the same from call to call, kept as kernels have them.

A kernel has some forty arrays. Python looks up the type of each and takes it apart, call after call: 5 us, five
times as long as it takes to encode a sentence. A frame is an array of uint64 that holds them taken apart already.
What they point to must be kept alive beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dask_bpe.kernels._jit import i64m, i64s, inlined, named
from dask_bpe.kernels.simd import pointer_to

_I64 = ir.IntType(64)


@intrinsic
def keep(typing_context: Any, frame: Any, arguments: Any) -> Any:
    """Write a tuple to `frame` if there is room; returns the words it takes."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.get_value_type(signature.args[1])
        size = ir.Constant(_I64, context.get_abi_sizeof(kind) // 8)
        room = context.make_array(signature.args[0])(context, builder, given[0]).nitems
        with builder.if_then(builder.icmp_signed(">=", room, size)):
            pointer = pointer_to(context, builder, signature, [given[0], ir.Constant(_I64, 0)], kind)
            builder.store(given[1], pointer, align=8)
        return size

    return types.int64(frame, arguments), generate


def restorer(kind: Any) -> Any:
    """A function of kernels that gives the tuple, of this type, that `keep` wrote to a frame."""

    @intrinsic
    def restore(typing_context: Any, frame: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            to = context.get_value_type(signature.return_type)
            pointer = pointer_to(context, builder, signature, [given[0], ir.Constant(_I64, 0)], to)
            return builder.load(pointer, align=8)

        return kind(frame), generate

    return restore


class Begun(NamedTuple):
    """Arrays that say where a kernel stands that encodes segments, which are among its arguments too.

    segments : int64[2, 1], place : int64[7], cut : int64[3], cursor : int64[3].
    """

    segments: Any
    place: Any
    cut: Any
    cursor: Any


begun_type = named(Begun, i64m, i64s, i64s, i64s)


@inlined
def begin(length, begun):
    """Make ready to encode ``text[:length]`` as the one segment, from its start."""
    begun.segments[0, 0], begun.segments[1, 0] = 0, length
    begun.place[:], begun.cut[:], begun.cursor[:] = 0, 0, 0
    begun.place[5] = -1
