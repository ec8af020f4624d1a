"""The merges of eight pre-tokens at once, one in each lane of vectors, as `merging.merge_by_scan` makes them.

Position i of all lanes is one vector: ``ids[8 * i:8 * i + 8]``. In every step each lane makes its own next merge.
What is met for the first time takes half as long as one after the other, if all lanes have a word. What lost: bits for
the positions that are left, where here all that stands behind a merge moves up, as good for words and 30 % slower for
phrases; one word in a vector of its 16 ids, alone or several in turns, which gained nothing over the scalar loop.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import inlined, step
from dask_bpe.kernels.lanes import LANES, bits, choose, gather8, load8, store8
from dask_bpe.kernels.merging import FILTER_SHIFT, FILTER_WORDS, pair_slot

# Bytes of a pre-token at most.
LANE_BYTES = 32
# Words of an array of ids: two positions more are read.
LANE_WORDS = LANES * (LANE_BYTES + 2)

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO, _ONE, _TWO, _SIX, _LAST = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(63)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_NOWHERE = np.uint64(1 << 32)


@inlined
def _slot_of(left, right, wanted, pairs):
    """Of eight pairs of ids: their keys, where they are looked for in `pairs`, and which of those that are wanted may
    be there, by the filter (see `merging.find_pair`)."""
    n_table = np.uint64(pairs.size - FILTER_WORDS)
    key = left << _HALF | right
    word = pair_slot(key)
    bit = word >> FILTER_SHIFT
    passed = (gather8(pairs, (bit >> _SIX) + n_table) >> (bit & _LAST)) & _ONE > _ZERO
    return key, word & ((n_table >> _ONE) - _ONE), wanted & passed


@inlined
def _find_pairs(left, right, wanted, pairs):
    """`merging.find_pair` of eight pairs of ids; all ones too for those that are not wanted."""
    mask = (np.uint64(pairs.size - FILTER_WORDS) >> _ONE) - _ONE
    key, slot, asked = _slot_of(left, right, wanted, pairs)
    found = key | _EMPTY
    while bits(asked) != 0:
        stored = gather8(pairs, slot + slot)
        found = choose(asked & (stored == key), gather8(pairs, slot + slot + _ONE), found)
        asked = asked & ((stored ^ key) > _ZERO) & (stored < _EMPTY)
        slot = (slot + _ONE) & mask
    return found


@inlined
def _find_neighbours(before, new, after, wants_left, wants_right, pairs):
    """The same of the pairs of eight ids with those before and after them, both at once: their reads overlap."""
    mask = (np.uint64(pairs.size - FILTER_WORDS) >> _ONE) - _ONE
    key, slot, asked = _slot_of(before, new, wants_left, pairs)
    other_key, other_slot, other_asked = _slot_of(new, after, wants_right, pairs)
    left = right = key | _EMPTY
    while bits(asked | other_asked) != 0:
        stored, other_stored = gather8(pairs, slot + slot), gather8(pairs, other_slot + other_slot)
        left = choose(asked & (stored == key), gather8(pairs, slot + slot + _ONE), left)
        right = choose(other_asked & (other_stored == other_key), gather8(pairs, other_slot + other_slot + _ONE), right)
        asked = asked & ((stored ^ key) > _ZERO) & (stored < _EMPTY)
        other_asked = other_asked & ((other_stored ^ other_key) > _ZERO) & (other_stored < _EMPTY)
        slot, other_slot = (slot + _ONE) & mask, (other_slot + _ONE) & mask
    return left, right


@step
def merge_lanes(ids, lengths, longest, pairs, best):
    """Merge in each lane the lowest rank first, the leftmost of equal ones, until nothing merges.

    ids : uint64[LANE_WORDS], the ids of single bytes, and anything behind them; receives those that are left. lengths :
    uint64[8], how many each lane has; receives how many are left. longest : the greatest of them, not 0. best :
    uint64[LANE_WORDS], any contents.
    """
    n = load8(lengths, 0)
    nothing = n & _ZERO
    lowest, at, before, after = nothing | _EMPTY, nothing, nothing, nothing
    here, previous = load8(ids, 0), nothing
    for i in range(longest - 1):
        following = load8(ids, LANES * (i + 1))
        merge = _find_pairs(here, following, n > np.uint64(i + 1), pairs)
        store8(best, LANES * i, merge)
        less = merge < lowest
        lowest, at = choose(less, merge, lowest), choose(less, nothing | np.uint64(i), at)
        before, after = choose(less, previous, before), choose(less, load8(ids, LANES * (i + 2)), after)
        previous, here = here, following
    store8(best, LANES * (longest - 1), nothing | _EMPTY)
    active = lowest < _EMPTY
    bound = longest
    while bits(active) != 0:
        new = lowest & _LOW
        n = choose(active, n - _ONE, n)
        left, right = _find_neighbours(before, new, after, active & (at > _ZERO), active & (n > at + _ONE), pairs)
        at = choose(active, at, nothing | _NOWHERE)
        # A lane that merges has one position less in every step; one that is done has all ones in `best`, and stays.
        bound -= 1
        lowest, next_at = nothing | _EMPTY, nothing
        here, merge, previous = load8(ids, 0), load8(best, 0), nothing
        less = second = lowest < _EMPTY
        for i in range(bound):
            place = nothing | np.uint64(i)
            following, next_merge = load8(ids, LANES * (i + 1)), load8(best, LANES * (i + 1))
            behind, same = at < place, at == place
            token = choose(same, new, choose(behind, following, here))
            store8(ids, LANES * i, token)
            kept = choose(same, right, choose(at == place + _ONE, left, choose(behind, next_merge, merge)))
            store8(best, LANES * i, kept)
            after = choose(second, token, after)
            second, less = less, kept < lowest
            lowest, next_at = choose(less, kept, lowest), choose(less, place, next_at)
            before = choose(less, previous, before)
            here, merge, previous = following, next_merge, token
        at = next_at
        active = lowest < _EMPTY
    store8(lengths, 0, n)
