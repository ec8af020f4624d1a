"""What numba has no names for: unaligned loads and stores of words, bit counts, prefetch.

Each is a few lines of LLVM IR. None checks bounds: the caller proves that ``array[index:index + width]`` exists.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_U8, _U64 = ir.IntType(8), ir.IntType(64)


def pointer_to(context: Any, builder: Any, signature: Any, arguments: Any, to: Any) -> Any:
    """Pointer of type `to` to element ``arguments[1]`` of the array ``arguments[0]``."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), to.as_pointer())


def call_llvm(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Call a function that LLVM knows."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, arguments)


@intrinsic
def load_u64(typing_context: Any, array: Any, index: Any) -> Any:
    """The eight bytes at `index` as a little-endian uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(pointer_to(context, builder, signature, arguments, _U64), align=1)

    return types.uint64(array, types.int64), generate


@intrinsic
def store_u64(typing_context: Any, array: Any, index: Any, word: Any) -> Any:
    """Write a uint64 to the eight bytes at `index`, little-endian."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], pointer_to(context, builder, signature, arguments, _U64), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


@intrinsic
def copy16(typing_context: Any, source: Any, index: Any, target: Any, at: Any) -> Any:
    """Copy the 16 words at `index` of an array of uint32 to place `at` of another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(32), 16)
        words = builder.load(pointer_to(context, builder, signature, arguments[:2], kind), align=4)
        array = context.make_array(signature.args[2])(context, builder, arguments[2])
        pointer = builder.bitcast(builder.gep(array.data, [arguments[3]]), kind.as_pointer())
        builder.store(words, pointer, align=4)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


@intrinsic
def copy_bytes(typing_context: Any, source: Any, at: Any, target: Any, to: Any, width: Any) -> Any:
    """Copy `width` bytes, a literal, from one array of bytes to another, be that one read-only or not."""
    if not isinstance(width, types.IntegerLiteral):
        return None
    kind = ir.VectorType(_U8, width.literal_value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = builder.load(pointer_to(context, builder, signature, arguments[:2], kind), align=1)
        target_signature = signature.return_type(*signature.args[2:4])
        builder.store(data, pointer_to(context, builder, target_signature, arguments[2:4], kind), align=1)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64, width), generate


@intrinsic
def count_trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a uint64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def count_leading_zeros(typing_context: Any, word: Any) -> Any:
    """Number of zeros above the highest set bit of a uint64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]``, to be read and written soon. A hint: any index is safe."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = pointer_to(context, builder, signature, arguments, _U8)
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_U8.as_pointer(), i32, i32, i32])
        function = builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            builder.module, kind, "llvm.prefetch.p0"
        )
        builder.call(function, [pointer, ir.Constant(i32, 0), ir.Constant(i32, 3), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def spread_bits(typing_context: Any, word: Any, mask: Any) -> Any:
    """The lowest bits of `word`, one after the other, in the places of the bits of `mask`."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return call_llvm(builder, "llvm.x86.bmi.pdep.64", _U64, arguments)

    return types.uint64(types.uint64, types.uint64), generate
