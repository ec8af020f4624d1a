"""Cut text into the pre-tokens of o200k's pattern.

    [^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
    [^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
    \\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+

The contract is that of `scan`; the automata of `transduce` are the truth. Needs lanes of AVX-512. What differs from
`scan_cl100k`:

Words. Letters are upper case, lower case, or go with both, as marks do. A word takes upper case, then lower case.
Where no lower case comes, the engine gives back until it finds one that goes with both: "中A." is "中", "A", ".". So
words are cut before upper case behind lower case (or behind what goes with both, if lower case came before it); and
before upper case behind what goes with both, if nothing but upper case follows to the end of the word.

Marks are punctuation too, if punctuation stands before them that is more than the one character a word takes: ".́"
is a word, and "..́" is none. Whatever stands before the first mark decides for all that follow it.

Contractions belong to the word before them. "a's's" is "a's" and "'s": what is a contraction begins no other.

Punctuation takes slashes behind newlines: they begin nothing, but are the end of it.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, on_demand, step
from dask_bpe.kernels.blocks import LOWER, MARK, UPPER, read_block, read_next
from dask_bpe.kernels.positions import write_cuts
from dask_bpe.kernels.rules import (
    after_last_newline,
    contraction,
    every_third,
    fill,
    goes_on,
    not_ended_by,
    without_last,
)  # fmt: skip
from dask_bpe.kernels.segments import SCANNER, scan_segments
from dask_bpe.kernels.simd import count_ones, count_trailing_zeros, spread_bits
from dask_bpe.kernels.utf8 import class_at

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _TWO = np.uint64(1), np.uint64(2)
_NONE = np.uint64(0)


@inlined
def _punctuation(plain, marks, gaps, newlines, tails, old_taker, old_taken, old_joining, old_joined):
    """What punctuation takes behind it, and what continues punctuation: two masks.

    plain : what is neither letter, digit, white space nor mark. old_taker, ... : of the last character before the
    block, whether it is punctuation or taken; is taken; is plain and not taken, or a space; continues punctuation.

    Whether a newline is taken may depend on a mark before it, which depends on what is taken before that: as a rule
    of every character depends on those before it alone, doing it again until nothing changes finds the answer.
    """
    by_marks = _NONE
    while True:
        taken = fill(tails, (newlines & (plain << _ONE | old_taker)) | (tails & old_taken) | by_marks)
        begun = plain & ~taken
        joined = fill(begun | marks, (begun & ((begun | gaps) << _ONE | old_joining)) | ((begun | marks) & old_joined))
        behind = newlines & (marks & joined) << _ONE
        if behind == by_marks:
            return taken, joined
        by_marks = behind


@step
def _contractions(text, base, end, leads, candidates, consumed):
    """Mark the characters of contractions behind words, as far as they lie in this block.

    candidates : apostrophes between a word and a letter. consumed : what a contraction that began before this block
    took of it. Returns all that they take, and what is for the next block.
    """
    beyond = _NONE
    size = count_ones(leads)
    while candidates != 0:
        at = count_trailing_zeros(candidates)
        candidates &= candidates - _ONE
        place = base + count_trailing_zeros(spread_bits(_ONE << np.uint64(at), leads))
        length = contraction(text, place, end)
        if length == 0 or (consumed << _ONE >> np.uint64(at)) & _ONE != 0:
            continue
        if text[place + 1] > 127:
            length -= 1
        whole = (_ONE << np.uint64(length)) - _ONE
        consumed |= whole << np.uint64(at)
        if at + length > size:
            beyond = whole >> np.uint64(size - at)
    return consumed, beyond


@step
def _word_follows(text, at, end, classes):
    """Whether a word goes on behind the upper case, or none, at `at`."""
    while at < end:
        kind, length = class_at(text, at, end, classes)
        if kind & (LOWER | MARK) != 0:
            return True
        if kind & UPPER == 0:
            return False
        at += length
    return False


@step
def _scan_segment(text, begin, end, classes, scratch, words, spans, found):
    """See `scan_segments`, and the rules of `scan_cl100k`."""
    starts, ends = spans[0], spans[1]
    limit = spans.shape[1] - 64
    keep = ~_ONE  # the first pre-token is written here, not found below
    spans[0, found] = begin
    found += 1
    # The last characters of the block before: whether they are newlines, and so on.
    old_taker = old_taken = old_joining = old_joined = old_newline = old_word = old_leader = old_kept = _NONE
    old_lower = old_fallen = old_both = _NONE
    old_digits = old_thirds = _NONE  # the last two and the last three
    consumed = _NONE
    base = begin
    masks, leads, spill = read_block(text, base, end, classes, _NONE, scratch, words)
    while True:
        more, following, next_masks, next_leads, spill = read_next(text, base + 64, end, classes, spill, scratch, words)
        lower, upper, digits, spaces, tails, gaps, quotes, marks = masks
        next_lower, next_upper, _, next_spaces, _, _, _, _ = next_masks
        size = count_ones(leads)
        top = np.uint64(size - 1)
        valid = _ALL >> np.uint64(64 - size)

        newlines = tails & spaces
        blank = spaces & ~newlines
        letters = lower | upper
        plain = valid & ~(letters | digits | spaces | marks)
        taken, joined = _punctuation(plain, marks, gaps, newlines, tails, old_taker, old_taken, old_joining, old_joined)
        begun = plain & ~taken
        marks &= ~joined
        words_ = letters | marks
        free = begun & ~joined
        follows = letters >> _ONE | ((next_lower | next_upper) & _ONE) << top
        candidates = quotes & free & ((words_ & ~consumed) << _ONE | old_word) & follows
        beyond = _NONE
        if candidates != 0:
            consumed, beyond = _contractions(text, base, end, leads, candidates, consumed)
        words_ &= ~consumed
        free &= ~consumed
        kept = spaces & ~taken
        cuts = free | (words_ & ~((words_ | blank | free) << _ONE | old_leader))
        cuts |= kept & ~(kept << _ONE | old_kept)
        cuts |= blank & ~(spaces >> _ONE | (next_spaces & _ONE) << top)
        cuts |= after_last_newline(text, following, end, classes, valid, blank, newlines, old_newline)
        thirds = _NONE
        if digits != 0:
            thirds = every_third(digits, old_digits, old_thirds)
            cuts |= thirds

        both = ((lower & upper) | marks) & words_
        only_lower = lower & ~upper & words_
        only_upper = upper & ~lower & words_
        fallen = fill(both, (both & (only_lower << _ONE | old_lower)) | (both & old_fallen))
        cuts |= only_upper & ((only_lower | fallen) << _ONE | old_lower | old_fallen)
        last = only_upper & ((both & ~fallen) << _ONE | old_both)
        if last != 0:
            if goes_on(valid, only_upper, last) and _word_follows(text, following, end, classes):
                last = without_last(last)
            cuts |= not_ended_by(only_upper, last, words_)

        found = write_cuts(spread_bits(cuts, leads) & keep, base, starts, ends, found)
        keep = _ALL
        if found > limit:
            return found
        if not more:
            spans[1, found - 1] = end
            return -found
        old_taken = taken >> top
        old_joined = joined >> top
        old_taker = (plain | taken | joined) >> top
        old_joining = (begun | gaps) >> top
        old_newline = newlines >> top
        old_word = words_ >> top
        old_leader = (words_ | blank | free) >> top
        old_kept = kept >> top
        old_lower, old_fallen, old_both = only_lower >> top, fallen >> top, (both & ~fallen) >> top
        old_digits, old_thirds = digits >> (top - _ONE), thirds >> (top - _TWO)
        consumed = beyond
        masks, leads = next_masks, next_leads
        base += 64


@step
def cut_o200k(text, segments, cursor, classes, scratch, words, spans, stops):
    """Cut segments; see the module and `scan_segments`."""
    return scan_segments(_scan_segment, text, segments, cursor, classes, scratch, words, spans, stops)


scan_o200k = on_demand(cut_o200k, *SCANNER)
