"""Order the strings of a table (see `table`), add up sorted counts, and take strings out of a ragged array.

A string is compared by two integers, its first eight bytes and the seven after them with its length (16 for all long
strings) as the last: that is the order of bytes, a prefix before what it begins. Only long strings can be equal in
both; they are compared byte by byte.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64s, i64, i64s, inlined, kernel, none, step, text_type, u8s, u64s
from dask_bpe.kernels.lanes import byte_swap
from dask_bpe.kernels.simd import load_u64, store_u64
from dask_bpe.kernels.table import INDEX, LONG, SHORT, TOP, WIDTH

# Room that a string needs behind it where it is written.
SPARE = 16

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_SEVEN_BYTES = np.uint64((1 << 56) - 1)


@kernel(none, u64s, u8s, i64s, u64s, u64s)
def sort_keys(entries, values, offsets, first, second):
    """The two integers of the first n entries of a table: uint64[n] each."""
    for number in range(first.size):
        low, high = entries[number * WIDTH], entries[number * WIDTH + 1]
        if high >> TOP == LONG:
            begin = offsets[np.int64(high & INDEX)]
            low = load_u64(values, begin)
            high = load_u64(values, begin + 8) & _SEVEN_BYTES | np.uint64(SHORT + 1) << TOP
        first[number], second[number] = byte_swap(low), byte_swap(high)


@step
def _less(a, b, second, entries, values, offsets):
    """Whether entry a, whose first integer is that of entry b, comes before it."""
    if second[a] != second[b] or entries[a * WIDTH + 1] >> TOP != LONG:
        return second[a] < second[b]
    one, other = np.int64(entries[a * WIDTH + 1] & INDEX), np.int64(entries[b * WIDTH + 1] & INDEX)
    i, j = offsets[one] + SHORT, offsets[other] + SHORT
    end, other_end = offsets[one + 1], offsets[other + 1]
    while i < end and j < other_end:
        if values[i] != values[j]:
            return values[i] < values[j]
        i += 1
        j += 1
    return end - i < other_end - j


@kernel(none, u64s, u64s, u64s, u8s, i64s, i64s, i64s)
def sort_equal(first, second, entries, values, offsets, order, spare):
    """Finish an order by the first integers: merge-sort every run of equal ones. order, spare : int64[n]."""
    start = 0
    while start < order.size:
        end = start + 1
        while end < order.size and first[order[end]] == first[order[start]]:
            end += 1
        width = 1
        while width < end - start:
            for left in range(start, end, 2 * width):
                middle, right = min(left + width, end), min(left + 2 * width, end)
                i, j = left, middle
                for k in range(left, right):
                    if i < middle and (j >= right or not _less(order[j], order[i], second, entries, values, offsets)):
                        spare[k] = order[i]
                        i += 1
                    else:
                        spare[k] = order[j]
                        j += 1
            for k in range(start, end):
                order[k] = spare[k]
            width *= 2
        start = end


@inlined
def _copy(source, begin, length, target, at):
    """Copy 16 bytes or more, eight at a time; the last eight may overlap."""
    for i in range(0, length - 7, 8):
        store_u64(target, at + i, load_u64(source, begin + i))
    store_u64(target, at + length - 8, load_u64(source, begin + length - 8))


@kernel(none, u64s, u8s, i64s, i64s, u8s, i64s, i64s, i64s)
def extract(entries, values, offsets, order, strings, bounds, counts, firsts):
    """Write a table's strings, counts and first positions to flat arrays in the given order.

    order : int64[n]. strings : uint8[bytes + SPARE]. bounds : int64[n + 1]. counts, firsts : int64[n].
    """
    write = 0
    bounds[0] = 0
    for k in range(order.size):
        at = order[k] * WIDTH
        low, high = entries[at], entries[at + 1]
        if high >> TOP == LONG:
            index = np.int64(high & INDEX)
            length = offsets[index + 1] - offsets[index]
            _copy(values, offsets[index], length, strings, write)
        else:
            length = np.int64(high >> TOP)
            store_u64(strings, write, low)
            store_u64(strings, write + 8, high)
        write += length
        bounds[k + 1] = write
        counts[k], firsts[k] = np.int64(entries[at + 2]), np.int64(entries[at + 3])


@inlined
def _prefix(values, begin, end):
    """The first eight bytes of a string, zeros after it, as an integer that compares like them."""
    length = min(end - begin, np.int64(8))
    if begin + 8 <= values.size:
        return byte_swap(load_u64(values, begin) & (_ALL >> np.uint64(64 - 8 * length)))
    word = np.uint64(0)
    for i in range(8):
        word = word << np.uint64(8) | np.uint64(values[begin + i] if i < length else 0)
    return word


@step
def _compare(values, begin, end, others, other_begin, other_end):
    """Below 0, 0 or above 0 as the first string, not empty, comes before the second, equals it, or comes after."""
    mine, other = _prefix(values, begin, end), _prefix(others, other_begin, other_end)
    if mine != other:
        return -1 if mine < other else 1
    length, other_length = end - begin, other_end - other_begin
    for i in range(min(length, other_length)):
        if values[begin + i] != others[other_begin + i]:
            return -1 if values[begin + i] < others[other_begin + i] else 1
    return length - other_length


@inlined
def _append(values, start, end, out, at):
    """Copy a string to `out`, which has SPARE bytes behind it; returns where the next begins."""
    length = end - start
    if start + SPARE <= values.size and length <= SPARE:
        store_u64(out, at, load_u64(values, start))
        store_u64(out, at + 8, load_u64(values, start + 8))
    elif length >= 8:
        _copy(values, start, length, out, at)
    else:
        for i in range(length):
            out[at + i] = values[start + i]
    return at + length


@kernel(
    i64, text_type, given_i64s, given_i64s, given_i64s, text_type, given_i64s, given_i64s, given_i64s, u8s, i64s, i64s,
    i64s,
)  # fmt: skip
def add_sorted(
    values, offsets, counts, firsts, others, other_offsets, other_counts, other_firsts, out, bounds, sums, leasts
):
    """Add up two lists of counts, whose strings ascend: one pass, where a hash table is a read of memory a string.

    values, offsets : the n strings of the first. counts, firsts : int64[n]. others ... : the m of the second.
    out : uint8[bytes of both + SPARE]. bounds : int64[n + m + 1]. sums, leasts : int64[n + m]: the counts added, the
    lesser of the first positions. Returns how many strings there are.
    """
    i = j = n = at = np.int64(0)
    bounds[0] = 0
    while i < counts.size or j < other_counts.size:
        order = np.int64(1)
        if j == other_counts.size:
            order = -1
        elif i < counts.size:
            order = _compare(values, offsets[i], offsets[i + 1], others, other_offsets[j], other_offsets[j + 1])
        if order <= 0:
            at = _append(values, offsets[i], offsets[i + 1], out, at)
            sums[n], leasts[n] = counts[i], firsts[i]
            i += 1
            if order == 0:
                sums[n] += other_counts[j]
                leasts[n] = min(leasts[n], other_firsts[j])
                j += 1
        else:
            at = _append(others, other_offsets[j], other_offsets[j + 1], out, at)
            sums[n], leasts[n] = other_counts[j], other_firsts[j]
            j += 1
        n += 1
        bounds[n] = at
    return n


@kernel(none, text_type, given_i64s, i64s, u8s, i64s)
def take_strings(values, offsets, order, out, bounds):
    """Write the strings in the given order to `out`, uint8[bytes + SPARE], their offsets to `bounds`, int64[n + 1]."""
    at = np.int64(0)
    bounds[0] = 0
    for k in range(order.size):
        at = _append(values, offsets[order[k]], offsets[order[k] + 1], out, at)
        bounds[k + 1] = at


@kernel(i64, text_type, given_i64s)
def first_not_ascending(values, offsets):
    """The first string of a ragged array that does not come after the one before it, -1 if all do."""
    for k in range(2, offsets.size):
        before, start, end = offsets[k - 2], offsets[k - 1], offsets[k]
        i = 0
        while before + i < start and start + i < end and values[before + i] == values[start + i]:
            i += 1
        ascends = before + i == start and start + i < end
        if before + i < start and start + i < end:
            ascends = values[before + i] < values[start + i]
        if not ascends:
            return k - 1
    return -1
