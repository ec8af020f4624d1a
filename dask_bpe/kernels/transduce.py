"""Cut text into pre-tokens by the tables of any pattern (`pretokenize.transducer`).

A block of text lies between two places where it may be cut for certain. It is read in four lanes at once: the next
state waits for a load that waits for the state before it, and four chains of such loads take little more time than
one. Where a lane comes to an entry that is left to the automata (`AGAIN`), they cut from the last certain place to
the next one. What is found are marks, a byte for each byte of text: bit k, that a pre-token begins k bytes before.

The tables of a pattern

    byte_classes : uint8[256], the class of an ASCII byte.  classes : uint8[0x110000 + 8], the class of a code point.
    table : uint32[n_states * (n_classes + 2)], by state and class: the row of the next state << 8 | marks. The
        last two columns are the end of the text, and a byte inside a character, which changes nothing.
    cuts : uint8[n_classes * n_classes], whether text may be cut between a class and another.
    automata : uint16[], by state and class (and end): what has ended << 14 | next state, `DEAD` for none.
    splits : int64[n_splits, 5], for each automaton: where its states begin in `automata`; whether matches and
        the text between them change places; whether two pieces are joined (bit 2 * before + after, by whether they
        match); which are dropped (bit 0: those that don't match, bit 1: those that do); the marks of a dropped one.

The text is read through `source` and `byte_classes`: either the text itself, all ASCII, or `inside`, the classes of
a block.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import (
    given_i64m,
    given_u16s,
    given_u32s,
    i64,
    i64m,
    i64s,
    inlined,
    on_demand,
    step,
    text_type,
    u8s,
    u64s,
)
from dask_bpe.kernels.bytes64 import bits64
from dask_bpe.kernels.classify import classify
from dask_bpe.kernels.marks import AGAIN, BEGINS, DEAD, DROPPED, ENLARGE, PADDING, REFUSES
from dask_bpe.kernels.positions import write_cuts

# Columns of `lanes`: where a lane is, where it ends, its row of the table, the last certain place it has passed,
# marks that the end of the lane makes.
_AT, _END, _ROW, _CERTAIN, _TAIL = 0, 1, 2, 3, 4
_LANES = 4
_ONE = np.uint64(1)
_MARKS = np.uint32(8)  # bits of the marks in an entry of the table
_AGAIN = np.uint32(AGAIN)
# Shorter blocks are not worth four lanes.
_SHORT = 256
# Pre-tokens that there must be room for before a block is written.
_MARGIN = 130
# Read through this, a class is itself.
SAME = np.arange(256, dtype=np.uint8)


@step
def _is_ascii(text, begin, end):
    i = begin
    while i + 64 <= end:
        if bits64(text, i, 128) != 0:
            return False
        i += 64
    while i < end:
        if text[i] >= 128:
            return False
        i += 1
    return True


@step
def _is_cut(source, shift, byte_classes, at, cuts, n_classes):
    """Whether a character begins at `at` before which the text may be cut; `at` is not the block's first byte."""
    after = np.int64(byte_classes[source[shift + at]])
    if after > n_classes:
        return False
    k = at - 1
    before = np.int64(byte_classes[source[shift + k]])
    while before > n_classes and k > 0:
        k -= 1
        before = np.int64(byte_classes[source[shift + k]])
    return before <= n_classes and cuts[before * n_classes + after] != 0


@step
def _cut_by_automata(source, shift, byte_classes, n_classes, automata, splits, begin, end, marks):
    """Mark the pieces between two certain places, split by split: each one cuts the pieces of the one before it."""
    for i in range(begin, end):
        marks[i] = 0
    marks[begin] = BEGINS
    width = n_classes + 1
    for k in range(splits.shape[0]):
        states, inverted, joins, drops, mark = splits[k, 0], splits[k, 1], splits[k, 2], splits[k, 3], splits[k, 4]
        start = begin
        before = np.int64(-1)  # whether the piece before matched; none in the same whole
        unmatched = False
        while start < end:
            if marks[start] & BEGINS:
                before = -1
                if marks[start] & DROPPED:
                    start += 1
                    while start < end and not marks[start] & BEGINS:
                        start += 1
                    continue
            state, last, ended = np.int64(0), start, np.int64(0)
            i = start
            while True:
                symbol = n_classes
                if i < end and (i == start or not marks[i] & BEGINS):
                    symbol = np.int64(byte_classes[source[shift + i]])
                    if symbol > n_classes:
                        i += 1
                        continue
                entry = np.int64(automata[states + state * width + symbol])
                if entry >> 14:
                    last, ended = i, entry >> 14
                state = entry & 0x3FFF
                if state == DEAD or symbol == n_classes:
                    break
                i += 1
            matched = np.int64(ended == 1) ^ inverted
            together = before >= 0 and ((unmatched and ended == 2) or (joins >> (2 * before + matched)) & 1)
            if not together:
                marks[start] |= BEGINS
                if (drops >> matched) & 1:
                    marks[start] |= np.uint8(mark)
            before, unmatched = matched, ended == 2
            start = last


@step
def _run(source, shift, byte_classes, table, lanes, lane, steps, marks):
    """Move one lane; stops after a step that is left to the automata."""
    # Unsigned: for a signed index numba asks at every access whether it counts from the end.
    at, row = np.uint64(lanes[lane, _AT]), np.uint64(lanes[lane, _ROW])
    ahead, stop = np.uint64(shift), at + np.uint64(steps)
    while at < stop:
        entry = table[row + np.uint64(byte_classes[source[ahead + at]])]
        marks[at] = np.uint8(entry)
        row = np.uint64(entry >> _MARKS)
        at += _ONE
        if entry & _AGAIN:
            break
    lanes[lane, _AT], lanes[lane, _ROW] = np.int64(at), np.int64(row)


@step
def _run_four(source, shift, byte_classes, table, lanes, steps, marks):
    """Move all lanes together; stops after a step that is left to the automata in one of them."""
    a, b = np.uint64(lanes[0, _AT]), np.uint64(lanes[1, _AT])
    c, d = np.uint64(lanes[2, _AT]), np.uint64(lanes[3, _AT])
    p, q = np.uint64(lanes[0, _ROW]), np.uint64(lanes[1, _ROW])
    r, s = np.uint64(lanes[2, _ROW]), np.uint64(lanes[3, _ROW])
    ahead, stop = np.uint64(shift), a + np.uint64(steps)
    while a < stop:
        first = table[p + np.uint64(byte_classes[source[ahead + a]])]
        second = table[q + np.uint64(byte_classes[source[ahead + b]])]
        third = table[r + np.uint64(byte_classes[source[ahead + c]])]
        fourth = table[s + np.uint64(byte_classes[source[ahead + d]])]
        marks[a], marks[b] = np.uint8(first), np.uint8(second)
        marks[c], marks[d] = np.uint8(third), np.uint8(fourth)
        p, q = np.uint64(first >> _MARKS), np.uint64(second >> _MARKS)
        r, s = np.uint64(third >> _MARKS), np.uint64(fourth >> _MARKS)
        a, b, c, d = a + _ONE, b + _ONE, c + _ONE, d + _ONE
        if (first | second | third | fourth) & _AGAIN:
            break
    lanes[0, _AT], lanes[1, _AT], lanes[2, _AT], lanes[3, _AT] = np.int64(a), np.int64(b), np.int64(c), np.int64(d)
    lanes[0, _ROW], lanes[1, _ROW], lanes[2, _ROW], lanes[3, _ROW] = np.int64(p), np.int64(q), np.int64(r), np.int64(s)


@step
def _again(source, shift, byte_classes, n_classes, cuts, automata, splits, lanes, lane, marks):
    """Let the automata cut a lane, the last step of which is left to them, up to the next certain place."""
    end = lanes[lane, _END]
    at = lanes[lane, _AT] - 1
    while at < end and not (at > lanes[lane, _CERTAIN] and _is_cut(source, shift, byte_classes, at, cuts, n_classes)):
        at += 1
    _cut_by_automata(source, shift, byte_classes, n_classes, automata, splits, lanes[lane, _CERTAIN], at, marks)
    lanes[lane, _AT], lanes[lane, _ROW], lanes[lane, _CERTAIN] = at, 0, at


@step
def _begin_lanes(source, shift, byte_classes, n_classes, cuts, size, n_lanes, lanes):
    """Divide a block between the lanes, at certain places."""
    begin = np.int64(0)
    for lane in range(_LANES):
        end = size
        if lane < n_lanes - 1:
            end = min(max(size * (lane + 1) // n_lanes, begin + 1), size)
            while end < size and not _is_cut(source, shift, byte_classes, end, cuts, n_classes):
                end += 1
        lanes[lane, _AT], lanes[lane, _END], lanes[lane, _ROW] = begin, end, 0
        lanes[lane, _CERTAIN], lanes[lane, _TAIL] = begin, 0
        begin = end


@step
def _end_of_lane(table, n_classes, lanes, lane):
    """Read the end of the text where a lane ends, as which a certain place counts."""
    if lanes[lane, _AT] == lanes[lane, _END] and lanes[lane, _ROW] != 0:
        tail = np.int64(table[lanes[lane, _ROW] + n_classes] & np.uint32(255))
        if tail & AGAIN:
            lanes[lane, _AT], lanes[lane, _ROW] = lanes[lane, _END] + 1, 0
        else:
            lanes[lane, _TAIL] = tail


@step
def _cut(source, shift, byte_classes, n_classes, table, cuts, automata, splits, size, lanes, marks):
    """Mark the pieces of a block of `size` bytes."""
    n_lanes = _LANES if size > _SHORT and table.size > 0 else 1
    _begin_lanes(source, shift, byte_classes, n_classes, cuts, size, n_lanes, lanes)
    if table.size == 0:
        lanes[0, _AT] = size + 1  # the first step is the automata's, and the last
    while True:
        steps, lane = size, -1
        for k in range(_LANES):
            left = lanes[k, _END] - lanes[k, _AT]
            steps = min(steps, left)
            if left != 0:
                lane = k
        if steps >= 16:
            _run_four(source, shift, byte_classes, table, lanes, steps, marks)
        elif lane < 0:
            break
        elif table.size > 0:
            _run(source, shift, byte_classes, table, lanes, lane, lanes[lane, _END] - lanes[lane, _AT], marks)
        for k in range(_LANES):
            if table.size > 0:
                _end_of_lane(table, n_classes, lanes, k)
            # A lane is in the first row only where it begins, or after a step that is left to the automata.
            if lanes[k, _ROW] == 0 and lanes[k, _AT] > lanes[k, _CERTAIN]:
                _again(source, shift, byte_classes, n_classes, cuts, automata, splits, lanes, k, marks)
    for i in range(size, size + PADDING):
        marks[i] = 0
    for k in range(_LANES):
        marks[lanes[k, _END]] |= np.uint8(lanes[k, _TAIL])


@inlined
def _begins64(marks, at):
    """Mask of the places among 64 before which a piece begins, from the marks there and up to three bytes after."""
    begins = bits64(marks, at, 1) | bits64(marks, at, 2) >> np.uint64(1)
    begins |= bits64(marks, at, 4) >> np.uint64(2) | bits64(marks, at, 8) >> np.uint64(3)
    begins |= bits64(marks, at + 64, 2) << np.uint64(63) | bits64(marks, at + 64, 4) << np.uint64(62)
    return begins | bits64(marks, at + 64, 8) << np.uint64(61)


@step
def _write_all(marks, cursor, size, spans, found):
    """Write the pieces of a block from the place ``cursor[3]`` on, as far as there is room. Returns how many there
    are in `spans`; ``cursor[3]`` is where to go on, `size` if all are written."""
    block, first = cursor[1], cursor[3]
    starts, ends = spans[0], spans[1]
    limit = spans.shape[1] - 64
    spans[0, found] = block + first
    found += 1
    at = first & ~63
    begins = _begins64(marks, at) & (~np.uint64(1) << np.uint64(first - at))
    while True:
        found = write_cuts(begins, block + at, starts, ends, found)
        at += 64
        if at >= size:
            spans[1, found - 1] = block + size
            cursor[3] = size
            return found
        if found > limit:  # the last one has no end yet
            cursor[3] = spans[0, found - 1] - block
            return found - 1
        begins = _begins64(marks, at)


@step
def _write_kept(marks, cursor, size, spans, found):
    """The same, without the pieces that are dropped. ``cursor[4]`` counts the bytes that are refused; the first such
    piece of a call goes to ``cursor[5]`` and ``cursor[6]``."""
    block, first = cursor[1], cursor[3]
    while first < size and found < spans.shape[1]:
        end = first + 1
        while end < size and not marks[end] & BEGINS:
            end += 1
        if marks[first] & REFUSES:
            cursor[4] += end - first
            if cursor[5] < 0:
                cursor[5], cursor[6] = block + first, block + end
        if not marks[first] & DROPPED:
            spans[0, found], spans[1, found] = block + first, block + end
            found += 1
        first = end
    cursor[3] = first
    return found


@step
def _find_block(text, start, end, byte_classes, classes, n_classes, cuts, inside, classes_inside, words, room):
    """End of the block at `start`: the end of the segment, or the last certain cut within `room` bytes; -1 if there
    is none. The second answer is whether the block is to be read through `inside`."""
    stop = min(end, start + room)
    plain = _is_ascii(text, start, stop)
    if not plain:
        classify(text, start, stop, end, byte_classes, classes, n_classes, inside, words)
    if stop == end:
        return stop, not plain
    at = stop - start - 1
    while at > 0:
        if plain and _is_cut(text, start, byte_classes, at, cuts, n_classes):
            break
        if not plain and _is_cut(classes_inside, 0, SAME, at, cuts, n_classes):
            break
        at -= 1
    return (start + at if at > 0 else -1), not plain


@step
def cut_table(
    text, segments, cursor, byte_classes, classes, n_classes, table, cuts, automata, splits, inside, classes_inside,
    lanes, words, marks, spans, stops,
):  # fmt: skip
    """Cut segments; the contract of `scan`, and see the module for the tables.

    cursor : int64[7]: segment; where its block at hand begins and ends (0: not cut yet) and how much of it has been
        written; bytes refused so far; bounds of the first piece refused since the caller wrote -1 there.
    table : may be empty; then only the automata cut.
    inside, classes_inside : the same uint8[n], to be written and to be read. marks : uint8[n], n - PADDING is the
        largest block. Both are kept from call to call. lanes : int64[4, 5], words : uint64[72], any contents.
    Returns the number of pre-tokens written, or ENLARGE.
    """
    found = 0
    while cursor[0] < segments.shape[1]:
        end = segments[1, cursor[0]]
        cursor[1] = max(cursor[1], segments[0, cursor[0]])
        while cursor[1] < end:
            if found + _MARGIN > spans.shape[1]:
                return found
            start = cursor[1]
            if cursor[2] == 0:
                stop, through = _find_block(
                    text,
                    start,
                    end,
                    byte_classes,
                    classes,
                    n_classes,
                    cuts,
                    inside,
                    classes_inside,
                    words,
                    marks.size - PADDING,
                )
                if stop < 0:
                    return found if found > 0 else ENLARGE
                source, shift, read = (classes_inside, 0, SAME) if through else (text, start, byte_classes)
                size = stop - start
                _cut(source, shift, read, n_classes, table, cuts, automata, splits, size, lanes, marks)
                cursor[2], cursor[3] = stop, 0
            size = cursor[2] - start
            if table.size > 0:
                found = _write_all(marks, cursor, size, spans, found)
            else:
                found = _write_kept(marks, cursor, size, spans, found)
            if cursor[3] < size:
                return found
            cursor[1], cursor[2] = cursor[2], 0
        stops[cursor[0]] = found
        cursor[0] += 1
        cursor[1] = 0
    return found


scan_table = on_demand(
    cut_table,
    i64, text_type, given_i64m, i64s, text_type, text_type, i64, given_u32s, text_type, given_u16s, given_i64m,
    u8s, text_type, i64m, u64s, u8s, i64m, i64s,
)  # fmt: skip
