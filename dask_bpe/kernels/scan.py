"""Cut text into the pre-tokens of the GPT-2 pattern.

    '(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

`scan_gpt2` makes class masks of 64 bytes at a time and finds the cuts by bit algebra (the idea of simdjson; for
pre-tokens seen in gigatoken). The automata of `transduce` are the truth that tests hold it to.

The contract of every scanner: it cuts the segments ``text[segments[0, k]:segments[1, k]]``, each
on its own, and writes the pre-tokens' bounds to ``spans[0]`` and ``spans[1]``, in order, until all segments
are cut or `spans` is nearly full. ``cursor`` (int64[2]: segment, position in `text`) says where to go on;
the patterns never look behind, so a scan resumes exactly at any pre-token's start. ``stops[k]`` is the
number of pre-tokens in `spans` when segment k ended. Returns the number of pre-tokens written. `spans`
must have room for more than `segments.MARGIN`.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, on_demand, step
from dask_bpe.kernels.bytes64 import classify64, match64
from dask_bpe.kernels.lanes import WIDE
from dask_bpe.kernels.positions import write_cuts
from dask_bpe.kernels.rules import fill
from dask_bpe.kernels.segments import SCANNER, scan_segments
from dask_bpe.kernels.simd import count_leading_zeros, count_trailing_zeros, spread_bits
from dask_bpe.kernels.utf8 import LETTER, NUMBER, OTHER, SPACE, class_at, classes_by_lanes

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_LAST = np.uint64(63)
_NONE = np.uint64(0)


@step
def contraction(text, index, end):
    """Length of the contraction whose apostrophe stands at `index`, 0 if there is none."""
    if index + 1 >= end:
        return 0
    first = text[index + 1]
    if first == ord("s") or first == ord("d") or first == ord("m") or first == ord("t"):
        return 2
    if index + 2 >= end:
        return 0
    second = text[index + 2]
    if first == ord("l") and second == ord("l"):
        return 3
    if (first == ord("v") or first == ord("r")) and second == ord("e"):
        return 3
    return 0


@inlined
def _classify(text, base, end, scratch):
    """Masks of the block at `base`; what lies beyond the text's own last byte reads as 0."""
    if base + 64 <= text.size:
        return classify64(text, base)
    for i in range(64):
        scratch[i] = text[base + i] if base + i < end else np.uint8(0)
    return classify64(scratch, 0)


@step
def _fill_beyond_ascii(text, base, end, classes, high, masks, spill):
    """Give every byte of a character beyond ASCII the class of its character.

    masks : uint64[4]: letters, numbers, spaces of the block (changed), and a mask of white-space
    characters of several bytes that another character than white space follows (written).
    spill : uint64[5]: bits of a character that reaches into the next block: letters, numbers, spaces,
    covered bytes, and whether there are any.
    """
    for k in range(3):
        masks[k] |= spill[k]
    masks[3] = _NONE
    todo = high & ~spill[3]
    for k in range(5):
        spill[k] = _NONE
    while todo != 0:
        at = count_trailing_zeros(todo)
        found, length = class_at(text, base + at, end, classes)
        bits = ((_ONE << np.uint64(length)) - _ONE) << np.uint64(at)
        todo &= ~bits
        over = _NONE
        if at + length > 64:
            over = (_ONE << np.uint64(at + length - 64)) - _ONE
            spill[3] = over
            spill[4] = _ONE
        if found != OTHER:
            masks[np.int64(found) - 1] |= bits
            spill[np.int64(found) - 1] |= over
            if found == SPACE and base + at + length < end:
                follower, _ = class_at(text, base + at + length, end, classes)
                if follower != SPACE:
                    masks[3] |= _ONE << np.uint64(at)


@inlined
def _whole(leads, inner):
    """The bytes of the characters that begin at some of the leads, within their block."""
    return leads | fill(inner, leads << _ONE & inner)


@step
def _fill_wide(text, base, end, classes, high, masks, spill, kinds, places):
    """`_fill_beyond_ascii` for a block with 72 bytes of its segment before it, eight characters at a time.

    kinds : uint8[64], places : uint64[64], any contents.
    """
    leads, _, inner, beyond = classes_by_lanes(text, base, high, classes, kinds, places)
    last = _ONE << np.uint64(63 - count_leading_zeros(leads | _ONE))
    letters = spread_bits(match64(kinds, 0, LETTER), leads)
    numbers = spread_bits(match64(kinds, 0, NUMBER), leads)
    spaces = spread_bits(match64(kinds, 0, SPACE), leads)
    masks[0] |= _whole(letters, inner) | spill[0]
    masks[1] |= _whole(numbers, inner) | spill[1]
    masks[2] |= _whole(spaces, inner) | spill[2]
    masks[3] = _NONE
    spill[0] = beyond if letters & last != 0 else _NONE
    spill[1] = beyond if numbers & last != 0 else _NONE
    spill[2] = beyond if spaces & last != 0 else _NONE
    spill[3], spill[4] = beyond, np.uint64(beyond != 0)
    while spaces != 0:
        at = count_trailing_zeros(spaces)
        spaces &= spaces - _ONE
        _, length = class_at(text, base + at, end, classes)
        follower, _ = class_at(text, base + at + length, end, classes)
        if follower != SPACE:
            masks[3] |= _ONE << np.uint64(at)


@inlined
def _fill(text, base, end, classes, high, masks, spill, kinds, places):
    if WIDE and base + 72 <= end:
        _fill_wide(text, base, end, classes, high, masks, spill, kinds, places)
    else:
        _fill_beyond_ascii(text, base, end, classes, high, masks, spill)


@step
def _scan_segment(text, begin, end, classes, scratch, words, spans, found):
    """See `scan_segments`. words : uint64[73], any contents.

    A run of letters, numbers or other characters starts where the class changes, one byte earlier when
    a space precedes it. A run of white space starts where white space starts; its last character starts
    a pre-token of its own unless the text ends there.
    """
    masks, spill, places = words[:4], words[4:9], words[9:]
    starts, ends = spans[0], spans[1]
    for i in range(9):
        words[i] = _NONE
    last_letter = last_number = last_other = last_space = last_blank = _NONE
    set_ahead = _NONE  # what a contraction does to the next block
    clear_ahead = _ONE  # the first pre-token is written here, not found below
    spans[0, found] = begin
    found += 1
    limit = spans.shape[1] - 64
    base = begin
    letters, numbers, spaces, blanks, quotes, high = _classify(text, base, end, scratch)
    inner = _NONE  # white-space characters of several bytes that end a run of white space
    beyond = False
    if high != 0:
        masks[0], masks[1], masks[2] = letters, numbers, spaces
        _fill(text, base, end, classes, high, masks, spill, scratch, places)
        letters, numbers, spaces, inner = masks[0], masks[1], masks[2], masks[3]
        beyond = True
    while base < end:
        ascii_spaces = spaces if not beyond else spaces & ~high
        this_inner = inner
        valid = _ALL
        next_letters = next_numbers = next_spaces = next_blanks = next_quotes = next_high = _NONE
        if base + 64 < end:
            next_letters, next_numbers, next_spaces, next_blanks, next_quotes, next_high = _classify(
                text, base + 64, end, scratch
            )
            beyond = next_high != 0 or spill[4] != 0
            if beyond:
                masks[0], masks[1], masks[2] = next_letters, next_numbers, next_spaces
                _fill(text, base + 64, end, classes, next_high, masks, spill, scratch, places)
                next_letters, next_numbers, next_spaces, inner = masks[0], masks[1], masks[2], masks[3]
            else:
                inner = _NONE
        else:
            if base + 64 > end:
                valid = (_ONE << np.uint64(end - base)) - _ONE
            next_spaces = _ONE
            inner = _NONE
        other = ~(letters | numbers | spaces) & valid
        letters &= valid
        numbers &= valid
        cuts = letters & ~(letters << _ONE | last_letter)
        cuts |= numbers & ~(numbers << _ONE | last_number)
        cuts |= other & ~(other << _ONE | last_other)
        cuts &= ~(blanks << _ONE | last_blank)
        space_follows = (spaces | ~valid) >> _ONE | next_spaces << _LAST
        cuts |= (spaces & ~(spaces << _ONE | last_space)) | (ascii_spaces & ~space_follows) | this_inner
        cuts &= valid
        candidates = quotes & cuts & (letters >> _ONE | next_letters << _LAST)
        cuts = (cuts & ~clear_ahead) | set_ahead
        set_ahead = clear_ahead = _NONE
        while candidates != 0:
            at = count_trailing_zeros(candidates)
            candidates &= candidates - _ONE
            length = contraction(text, base + at, end)
            if length > 0:
                if at + 1 < 64:
                    cuts &= ~(_ONE << np.uint64(at + 1))
                else:
                    clear_ahead = _ONE
                stop = at + length
                if base + stop < end:
                    if stop < 64:
                        cuts |= _ONE << np.uint64(stop)
                    else:
                        set_ahead |= _ONE << np.uint64(stop - 64)
        found = write_cuts(cuts, base, starts, ends, found)
        if found > limit:
            return found
        last_letter = letters >> _LAST
        last_number = numbers >> _LAST
        last_other = other >> _LAST
        last_space = spaces >> _LAST
        last_blank = blanks >> _LAST
        letters, numbers, spaces, blanks, quotes = (
            next_letters,
            next_numbers,
            next_spaces,
            next_blanks,
            next_quotes,
        )
        high = next_high
        base += 64
    spans[1, found - 1] = end
    return -found


@step
def cut_gpt2(text, segments, cursor, classes, scratch, words, spans, stops):
    """Cut segments 64 bytes at a time; see the module and `scan_segments`."""
    return scan_segments(_scan_segment, text, segments, cursor, classes, scratch, words, spans, stops)


scan_gpt2 = on_demand(cut_gpt2, *SCANNER)
