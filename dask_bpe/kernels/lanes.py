"""Vectors of eight uint64 as values that kernels compute with: a pre-token in each lane.

`U64x8` and `Mask8` are types of numba. ``a + b``, ``a * b``, ``a & b``, ``a | b``, ``a ^ b``, ``a << b`` and
``a >> b`` work lane by lane, a scalar uint64 standing for eight of it; comparisons give a mask. They are LLVM's
portable vectors: one register with AVX-512, two with AVX2; where a processor has no gathers they become loads one by
one. Indices are not checked: the caller proves that those of all lanes exist.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import config, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from dask_bpe.kernels.simd import call_llvm, pointer_to

LANES = 8
# Whether this processor packs lanes and positions in one instruction (Intel since Ice Lake, AMD since Zen 4).
WIDE = config.CPU_NAME in (None, "host") and all(map(get_host_cpu_features().get, ("avx512vbmi2", "bmi2")))
# Whether kernels are told to work on lanes: not where a processor would do it in many small steps.
IN_USE = WIDE and os.environ.get("DASK_BPE_SIMD") != "0"

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
WORDS, _FLAGS = ir.VectorType(_I64, LANES), ir.VectorType(_I1, LANES)
# The same register as 16 words of 32 bits, the lower half of each lane first.
_HALVES = ir.VectorType(_I32, 2 * LANES)


class _Words(types.Type):
    def __init__(self) -> None:
        super().__init__("U64x8")


class _Flags(types.Type):
    def __init__(self) -> None:
        super().__init__("Mask8")


u64x8, mask8 = _Words(), _Flags()


@register_model(_Words)
class _WordsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, WORDS)


@register_model(_Flags)
class _FlagsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _FLAGS)


def as_lanes(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """A vector as it is, a scalar eight times."""
    if isinstance(kind, _Words):
        return value
    word = context.cast(builder, value, kind, types.uint64)
    lane = builder.insert_element(ir.Constant(WORDS, ir.Undefined), word, ir.Constant(_I32, 0))
    everywhere = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(lane, ir.Constant(WORDS, ir.Undefined), everywhere)


def _operation(function: Any, operand: Any, result: Any, generate: Callable[[Any, Any, Any], Any]) -> None:
    """Give a binary operator a meaning for two `operand`, or one and a scalar."""

    @infer_global(function)
    class _Typing(AbstractTemplate):
        def generic(self, arguments: Any, keywords: Any) -> Any:
            if len(arguments) != 2 or arguments[0] != operand:
                return None
            fits = arguments[1] == operand or (operand == u64x8 and isinstance(arguments[1], types.Integer))
            return signature(result, *arguments) if fits else None

    def lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        if operand == u64x8:
            arguments = [as_lanes(context, builder, *pair) for pair in zip(arguments, sig.args, strict=True)]
        return generate(builder, *arguments)

    lower_builtin(function, type(operand), type(operand))(lower)
    if operand == u64x8:
        lower_builtin(function, type(operand), types.Integer)(lower)


def _by_method(name: str, builder: Any, one: Any, other: Any) -> Any:
    return getattr(builder, name)(one, other)


def _by_comparison(sign: str, builder: Any, one: Any, other: Any) -> Any:
    return builder.icmp_unsigned(sign, one, other)


for _function, _name in {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.and_: "and_",
    operator.or_: "or_",
    operator.xor: "xor",
    operator.lshift: "shl",
    operator.rshift: "lshr",
}.items():
    _operation(_function, u64x8, u64x8, partial(_by_method, _name))
for _function, _sign in {operator.eq: "==", operator.gt: ">", operator.lt: "<"}.items():
    _operation(_function, u64x8, mask8, partial(_by_comparison, _sign))
for _function, _name in {operator.and_: "and_", operator.or_: "or_"}.items():
    _operation(_function, mask8, mask8, partial(_by_method, _name))


@intrinsic
def load8(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight words of an array of 64-bit integers."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return builder.load(pointer_to(context, builder, sig, arguments, WORDS), align=8)

    return u64x8(array, types.int64), generate


@intrinsic
def store8(typing_context: Any, array: Any, index: Any, words: Any) -> Any:
    """Write eight words to an array of 64-bit integers."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        builder.store(arguments[2], pointer_to(context, builder, sig, arguments, WORDS), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, u64x8), generate


@intrinsic
def store_bytes8(typing_context: Any, array: Any, index: Any, words: Any) -> Any:
    """Write the lowest bytes of eight words to an array of uint8."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = ir.VectorType(_I8, LANES)
        pointer = pointer_to(context, builder, sig, arguments[:2], kind)
        builder.store(builder.trunc(arguments[2], kind), pointer, align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, u64x8), generate


@intrinsic
def gather8(typing_context: Any, array: Any, indices: Any) -> Any:
    """The eight bytes, little-endian, that begin at each of eight indices of an array of uint8 or uint64."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        base = context.make_array(sig.args[0])(context, builder, arguments[0]).data
        size = ir.Constant(_I64, sig.args[0].dtype.bitwidth // 8)
        start = as_lanes(context, builder, builder.ptrtoint(base, _I64), types.uint64)
        offsets = builder.mul(arguments[1], as_lanes(context, builder, size, types.uint64))
        pointers = builder.inttoptr(builder.add(start, offsets), ir.VectorType(ir.PointerType(), LANES))
        nothing, everywhere = ir.Constant(WORDS, ir.Undefined), ir.Constant(_FLAGS, [1] * LANES)
        given = [pointers, ir.Constant(_I32, 1), everywhere, nothing]
        return call_llvm(builder, "llvm.masked.gather.v8i64.v8p0", WORDS, given)

    return u64x8(array, u64x8), generate


@intrinsic
def pack16(typing_context: Any, text: Any, start: Any, length: Any, keys: Any, index: Any) -> Any:
    """Write a string of at most 15 bytes, zeros after it, and its length in the 16th byte, to two words of `keys`."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = ir.VectorType(_I8, 16)
        pointer = pointer_to(context, builder, sig, arguments[:2], kind)
        byte = builder.trunc(arguments[2], _I8)
        lane = builder.insert_element(ir.Constant(kind, ir.Undefined), byte, ir.Constant(_I32, 0))
        lengths = builder.shuffle_vector(
            lane, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(_I32, 16), [0] * 16)
        )
        inside = builder.icmp_unsigned("<", ir.Constant(kind, [*range(16)]), lengths)
        given = [pointer, ir.Constant(_I32, 1), inside, ir.Constant(kind, [0] * 16)]
        packed = call_llvm(builder, "llvm.masked.load.v16i8.p0", kind, given)
        packed = builder.insert_element(packed, byte, ir.Constant(_I32, 15))
        keys_sig = signature(sig.return_type, sig.args[3], sig.args[4])
        builder.store(packed, pointer_to(context, builder, keys_sig, arguments[3:], kind), align=8)
        return context.get_dummy_value()

    return types.void(text, types.int64, types.int64, keys, types.int64), generate


@intrinsic
def load_pairs8(typing_context: Any, array: Any, index: Any) -> Any:
    """The first and the second words of eight pairs of words."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        one = builder.load(pointer_to(context, builder, sig, arguments, WORDS), align=8)
        further = [arguments[0], builder.add(arguments[1], ir.Constant(_I64, LANES))]
        two = builder.load(pointer_to(context, builder, sig, further, WORDS), align=8)
        lanes = ir.VectorType(_I32, LANES)
        parts = [
            builder.shuffle_vector(one, two, ir.Constant(lanes, [*range(first, 2 * LANES, 2)])) for first in (0, 1)
        ]
        return context.make_tuple(builder, sig.return_type, parts)

    return types.UniTuple(u64x8, 2)(array, types.int64), generate


@intrinsic
def match_pair(typing_context: Any, line: Any, at: Any, keys: Any, index: Any) -> Any:
    """Which of the eight words at ``line[at]`` equal ``keys[index], keys[index + 1]``, those two again, and so on."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        words = builder.load(pointer_to(context, builder, sig, arguments[:2], WORDS), align=8)
        keys_sig = signature(sig.return_type, sig.args[2], sig.args[3])
        kind = ir.VectorType(_I64, 2)
        pair = builder.load(pointer_to(context, builder, keys_sig, arguments[2:], kind), align=8)
        repeated = ir.Constant(ir.VectorType(_I32, LANES), [0, 1] * (LANES // 2))
        wanted = builder.shuffle_vector(pair, ir.Constant(kind, ir.Undefined), repeated)
        return builder.zext(builder.bitcast(builder.icmp_unsigned("==", words, wanted), _I8), _I64)

    return types.uint64(line, types.uint64, keys, types.int64), generate


@intrinsic
def choose(typing_context: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Lane by lane, one of two vectors."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return u64x8(mask8, u64x8, u64x8), generate


@intrinsic
def byte_swap(typing_context: Any, words: Any) -> Any:
    """The bytes of a uint64, or of each of eight, in reverse order."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        name = "llvm.bswap.v8i64" if words == u64x8 else "llvm.bswap.i64"
        return call_llvm(builder, name, arguments[0].type, arguments)

    return words(words), generate


@intrinsic
def bits(typing_context: Any, mask: Any) -> Any:
    """A mask as a number: bit i for lane i."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return builder.zext(builder.bitcast(arguments[0], _I8), _I64)

    return types.uint64(mask8), generate


def _packed(builder: Any, words: Any, mask: Any, pointer: Any) -> None:
    """Write the words that a mask chooses one after the other; what comes behind them is written over too."""
    kind = words.type
    suffix = f"v{kind.count}i{kind.element.width}"
    if WIDE:
        # Into a register: the store that packs is microcode on some processors.
        name = f"llvm.x86.avx512.mask.compress.{suffix}"
        chosen = call_llvm(builder, name, kind, [words, ir.Constant(kind, ir.Undefined), mask])
        builder.store(chosen, builder.bitcast(pointer, kind.as_pointer()), align=1)
    else:
        call_llvm(builder, f"llvm.masked.compressstore.{suffix}", ir.VoidType(), [words, pointer, mask])


@intrinsic
def store_quads(typing_context: Any, array: Any, index: Any, quads: Any, at: Any, nothing: Any, many: Any) -> Any:
    """Write the words of four lists of up to four to an array of uint32, one after the other; their number.

    A list is two words of `quads`: four halves of words, `nothing` where there is none. Room for 16 is needed. Nothing
    counts as written, and -1 is returned, if the last half of a list is `many`.
    """

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        quads_sig = signature(sig.return_type, sig.args[2], sig.args[3])
        lists = builder.load(pointer_to(context, builder, quads_sig, arguments[2:4], _HALVES), align=8)

        def equal(word: Any) -> Any:
            lane = builder.insert_element(ir.Constant(_HALVES, ir.Undefined), word, ir.Constant(_I32, 0))
            everywhere = ir.Constant(ir.VectorType(_I32, 16), [0] * 16)
            return builder.icmp_unsigned("==", lists, builder.shuffle_vector(lane, lane, everywhere))

        chosen = builder.not_(equal(arguments[4]))
        _packed(builder, lists, chosen, pointer_to(context, builder, sig, arguments[:2], _I32))
        mask = builder.zext(builder.bitcast(chosen, ir.IntType(16)), _I64)
        count = call_llvm(builder, "llvm.ctpop.i64", _I64, [mask])
        longer = builder.and_(builder.bitcast(equal(arguments[5]), ir.IntType(16)), ir.Constant(ir.IntType(16), 0x8888))
        too_long = builder.icmp_unsigned("!=", longer, ir.Constant(ir.IntType(16), 0))
        return builder.select(too_long, ir.Constant(_I64, -1), count)

    return types.int64(array, types.int64, quads, types.int64, types.uint32, types.uint32), generate
