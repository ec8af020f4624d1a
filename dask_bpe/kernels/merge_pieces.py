"""The merges of pre-tokens that are phrases, from seam to seam (see `seams`).

The pre-tokens of Chinese or Japanese hardly ever come again. What stands between their seams does: of 8 MB of distinct
phrases 1 % is left to be merged with GPT-2's vocabulary, 2 % with cl100k_base, 5 % with o200k_base, and a phrase takes
a fourth of the time (with o200k_base 40 %). English words have no seams.

The ids of short pieces are remembered in a table of entries at hashed places, four words each:

    words 0 and 1   the key (see `table`)       words 2 and 3   up to four ids, NOTHING where there are fewer

    pieces : uint64[4 * power of 2]
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step
from dask_bpe.kernels.merging import NOTHING, SCANNED_BYTES, merge_by_scan, merge_in_place
from dask_bpe.kernels.seams import find_seams
from dask_bpe.kernels.table import SHORT, WIDTH, mix, pack

# Ids of an entry.
_INLINE = 4

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@step
def merge_piece(text, start, length, rules, scratch, out, write):
    """Write the ids of a piece to ``out[write:]``; returns their number."""
    byte_ids, pairs, ids, best = rules.byte_ids, rules.pairs, scratch.ids, scratch.best
    if length <= SCANNED_BYTES:
        n = merge_by_scan(text, start, length, byte_ids, pairs, ids, best, 1)
    else:
        n = merge_in_place(text, start, length, byte_ids, pairs, ids, best, scratch.links, scratch.heap)
    for i in range(n):
        out[write + i] = ids[i]
    return n


@inlined
def _remember_piece(at, low, high, n, ids, first, pieces):
    """Make an entry of the n ids at ``ids[first]``; what stands behind them is written over."""
    pieces[at], pieces[at + 1] = low, high
    for i in range(n, _INLINE):
        ids[first + i] = NOTHING
    for i in range(2):
        pieces[at + 2 + i] = np.uint64(ids[first + 2 * i]) | np.uint64(ids[first + 2 * i + 1]) << _HALF


@step
def merge_in_pieces(text, start, length, wide, rules, scratch, out, write):
    """Write the ids of ``text[start:start + length]`` to ``out[write:]``, which has room for its bytes and four more.

    scratch : long enough for them, `seams` too. Returns the number of ids.
    """
    pieces, seams = scratch.pieces, scratch.seams
    mask = np.uint64(pieces.size // WIDTH - 1)
    first, begin = write, start
    for k in range(find_seams(text, start, start + length, wide, rules.crossed, seams)):
        size = seams[k] - begin
        low, high = pack(text, begin, min(size, SHORT))
        at = np.int64(mix(low, high) & mask) * WIDTH
        if pieces[at] == low and pieces[at + 1] == high and size <= SHORT:
            pair, rest = pieces[at + 2], pieces[at + 3]
            out[write], out[write + 1] = np.uint32(pair & _LOW), np.uint32(pair >> _HALF)
            out[write + 2], out[write + 3] = np.uint32(rest & _LOW), np.uint32(rest >> _HALF)
            n = np.int64(1)
            for i in range(1, _INLINE):
                n += np.int64(out[write + i] != NOTHING)
        else:
            n = merge_piece(text, begin, size, rules, scratch, out, write)
            if size <= SHORT and n <= _INLINE:
                _remember_piece(at, low, high, n, out, write, pieces)
        write += n
        begin = seams[k]
    return write - first
