"""Vectors of 64 bytes, and masks of them: bit i of a uint64 for byte i.

Those that `WIDE` stands before in a kernel need AVX-512 with VBMI2; the others are portable. None checks bounds: the
caller proves that ``array[index:index + 64]`` exists. A vector of 64 bytes passes as one of eight words, see `lanes`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from dask_bpe.kernels.lanes import LANES, WORDS, as_lanes, u64x8
from dask_bpe.kernels.simd import call_llvm, pointer_to

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_BYTES, _FLAGS = ir.VectorType(_I8, 64), ir.VectorType(_I1, 64)


def _splat(byte: int) -> Any:
    return ir.Constant(_BYTES, [byte] * 64)


def _to_mask(builder: Any, flags: Any) -> Any:
    return builder.bitcast(flags, _I64)


def _in_range(builder: Any, data: Any, first: int, last: int) -> Any:
    """Lanes whose byte lies in first..last: one subtraction, one unsigned comparison."""
    return builder.icmp_unsigned("<=", builder.sub(data, _splat(first)), _splat(last - first))


@intrinsic
def classify64(typing_context: Any, array: Any, index: Any) -> Any:
    """Masks of the 64 bytes at `index`, bit i for byte i.

    In this order: ASCII letters, digits, white space, the space, the apostrophe, bytes above 127.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = builder.load(pointer_to(context, builder, signature, arguments, _BYTES), align=1)
        letters = _in_range(builder, builder.or_(data, _splat(0x20)), ord("a"), ord("z"))
        digits = _in_range(builder, data, ord("0"), ord("9"))
        blanks = builder.icmp_unsigned("==", data, _splat(0x20))
        spaces = builder.or_(blanks, _in_range(builder, data, 9, 13))
        quotes = builder.icmp_unsigned("==", data, _splat(0x27))
        high = builder.icmp_signed("<", data, _splat(0))
        masks = [_to_mask(builder, m) for m in (letters, digits, spaces, blanks, quotes, high)]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 6)(array, types.int64), generate


@intrinsic
def match64(typing_context: Any, array: Any, index: Any, byte: Any) -> Any:
    """Mask of the 64 bytes at `index` that equal `byte`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = builder.load(pointer_to(context, builder, signature, arguments, _BYTES), align=1)
        lanes = builder.insert_element(ir.Constant(_BYTES, ir.Undefined), arguments[2], ir.Constant(ir.IntType(32), 0))
        wanted = builder.shuffle_vector(
            lanes,
            ir.Constant(_BYTES, ir.Undefined),
            ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64),
        )
        return _to_mask(builder, builder.icmp_unsigned("==", data, wanted))

    return types.uint64(array, types.int64, types.uint8), generate


@intrinsic
def bits64(typing_context: Any, array: Any, index: Any, bits: Any) -> Any:
    """Mask of the 64 bytes at `index` in which one of `bits`, a literal, is set."""
    wanted = bits.literal_value if isinstance(bits, types.IntegerLiteral) else 0

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = builder.load(pointer_to(context, builder, signature, arguments, _BYTES), align=1)
        return _to_mask(builder, builder.icmp_unsigned("!=", builder.and_(data, _splat(wanted)), _splat(0)))

    return None if not wanted else (types.uint64(array, types.int64, bits), generate)


@intrinsic
def misplaced64(typing_context: Any, array: Any, index: Any) -> Any:
    """Mask of the 64 bytes at `index` that cannot follow, in UTF-8, the three bytes before them, which must be there.

    Each byte knows by these whether it has to continue a character (Keiser and Lemire, "Validating UTF-8 in less than
    one instruction per byte", 2021, tell the same by tables of nibbles; comparisons need no shuffle of bytes).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def back(distance: int) -> Any:
            at = builder.sub(arguments[1], ir.Constant(_I64, distance))
            return builder.load(pointer_to(context, builder, signature, [arguments[0], at], _BYTES), align=1)

        def compare(data: Any, how: str, byte: int) -> Any:
            return builder.icmp_unsigned(how, data, _splat(byte))

        def either(first: Any, *others: Any) -> Any:
            return builder.or_(first, either(*others)) if others else first

        data, before = back(0), back(1)
        continues = _in_range(builder, data, 0x80, 0xBF)
        must = either(compare(before, ">=", 0xC0), compare(back(2), ">=", 0xE0), compare(back(3), ">=", 0xF0))
        # Overlong forms, surrogates and what is above U+10FFFF are told by the second byte.
        second = [
            builder.and_(compare(before, "==", lead), compare(data, how, byte))
            for lead, how, byte in ((0xE0, "<", 0xA0), (0xED, ">=", 0xA0), (0xF0, "<", 0x90), (0xF4, ">=", 0x90))
        ]
        never = [_in_range(builder, data, 0xC0, 0xC1), compare(data, ">=", 0xF5)]
        return _to_mask(builder, either(builder.xor(continues, must), *second, *never))

    return types.uint64(array, types.int64), generate


@intrinsic
def set_positions(typing_context: Any, array: Any, index: Any, base: Any, word: Any) -> Any:
    """Write base + the place of every set bit of `word` to an array of 64-bit integers. Room for 64 is needed.

    A last group of eight is filled up with `base`.
    """

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = _BYTES
        flags = builder.bitcast(arguments[3], _FLAGS)
        given = [ir.Constant(kind, [*range(64)]), ir.Constant(kind, [0] * 64), flags]
        places = call_llvm(builder, "llvm.x86.avx512.mask.compress.v64i8", kind, given)
        start = as_lanes(context, builder, arguments[2], types.uint64)

        def write(first: int) -> None:
            lanes = ir.Constant(ir.VectorType(_I32, LANES), [*range(first, first + LANES)])
            few = builder.shuffle_vector(places, ir.Constant(kind, ir.Undefined), lanes)
            at = builder.add(arguments[1], ir.Constant(_I64, first))
            pointer = pointer_to(context, builder, sig, [arguments[0], at], WORDS)
            builder.store(builder.add(builder.zext(few, WORDS), start), pointer, align=8)

        for first in range(0, 24, LANES):
            write(first)
        count = call_llvm(builder, "llvm.ctpop.i64", _I64, [arguments[3]])
        with builder.if_then(builder.icmp_unsigned(">", count, ir.Constant(_I64, 24)), likely=False):
            for first in range(24, 64, LANES):
                write(first)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64, types.uint64), generate


@intrinsic
def store64(typing_context: Any, array: Any, index: Any, words: Any) -> Any:
    """Write 64 bytes to an array of uint8."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        builder.store(arguments[2], pointer_to(context, builder, sig, arguments, WORDS), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, u64x8), generate


@intrinsic
def fill64(typing_context: Any, target: Any, at: Any, byte: Any, mask: Any) -> Any:
    """Write a byte to those of the 64 places from `at` on that are bits of a mask."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = _BYTES
        lane = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[2], ir.Constant(_I32, 0))
        everywhere = ir.Constant(ir.VectorType(_I32, 64), [0] * 64)
        bytes_ = builder.shuffle_vector(lane, ir.Constant(kind, ir.Undefined), everywhere)
        pointer = pointer_to(context, builder, sig, arguments[:2], kind)
        flags = builder.bitcast(arguments[3], _FLAGS)
        given = [bytes_, pointer, ir.Constant(_I32, 1), flags]
        call_llvm(builder, "llvm.masked.store.v64i8.p0", ir.VoidType(), given)
        return context.get_dummy_value()

    return types.void(target, types.int64, types.uint8, types.uint64), generate


@intrinsic
def look_up64(typing_context: Any, table: Any, text: Any, index: Any, inside: Any) -> Any:
    """Of the 64 bytes at `index` that are bits of a mask: ``table[byte]``, and a mask of those above 127.

    Where a byte is above 127 or not inside, what is found is 0; the text need not reach there.
    """

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = _BYTES
        nothing = ir.Constant(kind, [0] * 64)
        halves = []
        for start in (0, 64):
            given = [arguments[0], ir.Constant(_I64, start)]
            pointer = pointer_to(context, builder, signature(sig.return_type, sig.args[0], types.int64), given, kind)
            halves.append(builder.load(pointer, align=1))
        text_sig = signature(sig.return_type, sig.args[1], sig.args[2])
        pointer = pointer_to(context, builder, text_sig, arguments[1:3], kind)
        flags = builder.bitcast(arguments[3], _FLAGS)
        given = [pointer, ir.Constant(_I32, 1), flags, nothing]
        data = call_llvm(builder, "llvm.masked.load.v64i8.p0", kind, given)
        found = call_llvm(builder, "llvm.x86.avx512.vpermi2var.qi.512", kind, [halves[0], data, halves[1]])
        high = builder.icmp_signed("<", data, nothing)
        known = builder.and_(flags, builder.not_(high))
        found = builder.bitcast(builder.select(known, found, nothing), WORDS)
        return context.make_tuple(builder, sig.return_type, [found, builder.bitcast(high, _I64)])

    return types.Tuple((u64x8, types.uint64))(table, text, types.int64, types.uint64), generate


@intrinsic
def expand64(typing_context: Any, words: Any, bytes_: Any, mask: Any) -> Any:
    """64 bytes with the first ones of an array in the places of the bits of `mask`, in order."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = _BYTES
        which = signature(sig.return_type, sig.args[1], types.int64)
        given = [arguments[1], ir.Constant(_I64, 0)]
        further = builder.load(pointer_to(context, builder, which, given, kind), align=1)
        flags = builder.bitcast(arguments[2], _FLAGS)
        given = [further, builder.bitcast(arguments[0], kind), flags]
        return builder.bitcast(call_llvm(builder, "llvm.x86.avx512.mask.expand.v64i8", kind, given), WORDS)

    return u64x8(u64x8, bytes_, types.uint64), generate


@intrinsic
def compress64(typing_context: Any, words: Any, mask: Any) -> Any:
    """Those of 64 bytes that are bits of `mask`, one after the other, and zeros after them."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = _BYTES
        flags = builder.bitcast(arguments[1], _FLAGS)
        given = [builder.bitcast(arguments[0], kind), ir.Constant(kind, [0] * 64), flags]
        return builder.bitcast(call_llvm(builder, "llvm.x86.avx512.mask.compress.v64i8", kind, given), WORDS)

    return u64x8(u64x8, types.uint64), generate


@intrinsic
def test64(typing_context: Any, words: Any) -> Any:
    """For each of the eight bits of a byte, the lowest first, which of 64 bytes have it set."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = _BYTES
        data, nothing = builder.bitcast(arguments[0], kind), ir.Constant(kind, [0] * 64)
        masks = [
            builder.bitcast(
                builder.icmp_unsigned("!=", builder.and_(data, ir.Constant(kind, [1 << bit] * 64)), nothing), _I64
            )
            for bit in range(8)
        ]
        return context.make_tuple(builder, sig.return_type, masks)

    return types.UniTuple(types.uint64, 8)(u64x8), generate
