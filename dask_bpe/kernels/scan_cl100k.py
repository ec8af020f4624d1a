"""Cut text into the pre-tokens of cl100k's pattern and of those that differ from it in a class or two.

    '(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|
    \\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s

These are those of Llama 3 and OLMo, in which white space at the end is cut like any other; of Qwen 2, which has every
digit alone; and of Qwen 3.5, whose letters include marks. What they differ in is told by `classes`, see `blocks`: the
end of the text is `SPACE` for all, and `NEWLINE` too where it takes the white space before it; digits are `NUMBER` or
`SINGLE`.

The contract is that of `scan`; the automata of `transduce` are the truth. Needs lanes of AVX-512. The rules below know
all characters, so nothing is left to the automata.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import on_demand, step
from dask_bpe.kernels.blocks import read_block, read_next
from dask_bpe.kernels.positions import write_cuts
from dask_bpe.kernels.rules import after_last_newline, contraction, every_third, fill
from dask_bpe.kernels.segments import SCANNER, scan_segments
from dask_bpe.kernels.simd import count_ones, count_trailing_zeros, spread_bits

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _TWO = np.uint64(1), np.uint64(2)
_NONE = np.uint64(0)


@step
def _scan_segment(text, begin, end, classes, scratch, words, spans, found):
    """See `scan_segments`.

    A pre-token begins with every run of letters, unless it takes the character before it: white space that is no
    newline, or the one character of a run of punctuation that takes no space itself. With every run of punctuation
    that takes no space. With every third digit of a run. With every run of white space but for the newlines that
    punctuation takes; behind its last newline; and with its last character, if that is no newline.
    """
    starts, ends = spans[0], spans[1]
    limit = spans.shape[1] - 64
    keep = ~_ONE  # the first pre-token is written here, not found below
    spans[0, found] = begin
    found += 1
    # The last characters of the block before: whether they are newlines, and so on.
    old_taker = old_newline = old_joining = old_leader = old_kept = _NONE
    old_digits = old_thirds = _NONE  # the last two and the last three
    ahead = _NONE  # where a contraction ends in the next block
    base = begin
    masks, leads, spill = read_block(text, base, end, classes, _NONE, scratch, words)
    while True:
        more, following, next_masks, next_leads, spill = read_next(text, base + 64, end, classes, spill, scratch, words)
        letters, _, digits, spaces, tails, gaps, quotes, singles = masks
        next_letters, _, _, next_spaces, _, _, _, _ = next_masks
        size = count_ones(leads)
        top = np.uint64(size - 1)
        valid = _ALL >> np.uint64(64 - size)

        newlines = tails & spaces
        blank = spaces & ~newlines
        other = valid & ~(letters | digits | singles | spaces)
        free = other & ~((other | gaps) << _ONE | old_joining)
        cuts = free | singles | (letters & ~((letters | blank | free) << _ONE | old_leader))
        taken = fill(newlines, newlines & (other << _ONE | old_taker))
        kept = spaces & ~taken
        cuts |= kept & ~(kept << _ONE | old_kept)
        cuts |= blank & ~(spaces >> _ONE | (next_spaces & _ONE) << top)
        cuts |= after_last_newline(text, following, end, classes, valid, blank, newlines, old_newline)
        thirds = _NONE
        if digits != 0:
            thirds = every_third(digits, old_digits, old_thirds)
            cuts |= thirds
        candidates = quotes & free & (letters >> _ONE | (next_letters & _ONE) << top)

        cuts = (spread_bits(cuts, leads) & keep) | ahead
        keep, ahead = _ALL, _NONE
        if candidates != 0:
            candidates = spread_bits(candidates, leads)
            while candidates != 0:
                at = count_trailing_zeros(candidates)
                candidates &= candidates - _ONE
                length = contraction(text, base + at, end)
                if length > 0 and base + at + length < end:
                    if at + length < 64:
                        cuts |= _ONE << np.uint64(at + length)
                    else:
                        ahead = _ONE << np.uint64(at + length - 64)
        found = write_cuts(cuts, base, starts, ends, found)
        if found > limit:
            return found
        if not more:
            spans[1, found - 1] = end
            return -found
        old_taker = (other | taken) >> top
        old_newline = newlines >> top
        old_joining = (other | gaps) >> top
        old_leader = (letters | blank | free) >> top
        old_kept = kept >> top
        old_digits, old_thirds = digits >> (top - _ONE), thirds >> (top - _TWO)
        masks, leads = next_masks, next_leads
        base += 64


@step
def cut_cl100k(text, segments, cursor, classes, scratch, words, spans, stops):
    """Cut segments; see the module and `scan_segments`."""
    return scan_segments(_scan_segment, text, segments, cursor, classes, scratch, words, spans, stops)


scan_cl100k = on_demand(cut_cl100k, *SCANNER)
