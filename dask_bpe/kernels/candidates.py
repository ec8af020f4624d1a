"""The pairs that training may merge next: their records, and a queue that gives the best one.

Every pair of neighbours has a record with its count. The queue is a heap of (count when the entry was made,
pair) for pairs of at least ``THRESHOLD`` occurrences. An entry whose count is out of date goes back with its
new one, which is exact because counts only fall. When the heap runs empty, the threshold is lowered and it is
filled anew: rare pairs, most of all, never enter it.

The arrays are those of `merge`:
numbers, tokens, pairs, slots, heap as described below.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import step

# Which of two pairs of equal count goes first.
GREATEST_BYTES, LEAST_ORDER, FIRST_PLACE = 0, 1, 2
SENTINEL, INSIDE = -1, -2

# numbers : int64[N_NUMBERS]. The first seven change, the others are the rules of this training.
TOKENS, PAIRS, PLACES, HEAP, THRESHOLD, CORPUS, MERGES = 0, 1, 2, 3, 4, 5, 6
TIES, MIN_COUNT, MAX_LENGTH = 7, 8, 9
N_NUMBERS = 10
# tokens : int64[vocabulary size + 1, 4], a row per id: bytes, the first eight of them as a number that
# sorts like them, place in the order of ids that ties go by, start in `spelling`.
LENGTH, PREFIX, ORDER, SPELLING = 0, 1, 2, 3
# pairs : int64[capacity, 4], a row per pair: left << 32 | right, count, its segment of `places`.
KEY, COUNT, BEGIN, END = 0, 1, 2, 3
# heap : int64[capacity, 3]: count and first place when the entry was made, row of the pair.
HEAP_COUNT, HEAP_PLACE, HEAP_PAIR = 0, 1, 2
# notes : int64[2 * vocabulary size, 3], a half per side of the new token. Row t lists the t-th distinct
# neighbour; row `neighbour` holds the weight of the pairs born with it and their number (then where the
# next of them goes in `places`).
LISTED, GAINED, NEXT = 0, 1, 2
# born : int64[2 * capacity, 2], a half per side: neighbour and place of every pair born in this step.
# log : int64[merges, 5]: left, right, id of the product, count, tokens in the corpus afterwards.

LOW = 0xFFFFFFFF
MIX = np.uint64(0x9E3779B97F4A7C15)


@step
def find_pair(key, pairs, slots):
    """Slot of a pair, or the empty one where it belongs."""
    mask = slots.size - 1
    word = np.uint64(key) * MIX
    slot = np.int64(word >> np.uint64(24)) & mask
    while slots[slot] >= 0 and pairs[slots[slot], KEY] != key:
        slot = (slot + 1) & mask
    return slot


@step
def compare_spelling(a, b, tokens, spelling):
    """Negative, 0 or positive as the bytes of token a are less than, equal to or greater than those of b."""
    if tokens[a, PREFIX] != tokens[b, PREFIX]:
        return -1 if tokens[a, PREFIX] < tokens[b, PREFIX] else 1
    shorter = min(tokens[a, LENGTH], tokens[b, LENGTH])
    at_a, at_b = tokens[a, SPELLING], tokens[b, SPELLING]
    for i in range(min(8, shorter), shorter):
        x, y = np.int64(spelling[at_a + i]), np.int64(spelling[at_b + i])
        if x != y:
            return x - y
    return tokens[a, LENGTH] - tokens[b, LENGTH]


@step
def goes_before(count, place, pair, other_count, other_place, other, numbers, tokens, spelling, pairs):
    """Whether a heap entry goes before another: the greater count, then the tie rule."""
    if count != other_count:
        return count > other_count
    if numbers[TIES] == FIRST_PLACE:
        return place < other_place
    a, b = pairs[pair, KEY] >> 32, pairs[pair, KEY] & LOW
    c, d = pairs[other, KEY] >> 32, pairs[other, KEY] & LOW
    if numbers[TIES] == LEAST_ORDER:
        if a != c:
            return tokens[a, ORDER] < tokens[c, ORDER]
        return tokens[b, ORDER] < tokens[d, ORDER]
    by_left = compare_spelling(a, c, tokens, spelling) if a != c else np.int64(0)
    if by_left != 0:
        return by_left > 0
    return compare_spelling(b, d, tokens, spelling) > 0


@step
def push(count, place, pair, numbers, tokens, spelling, pairs, heap):
    child = numbers[HEAP]
    numbers[HEAP] = child + 1
    while child > 0:
        parent = (child - 1) >> 2
        if not goes_before(
            count,
            place,
            pair,
            heap[parent, 0],
            heap[parent, 1],
            heap[parent, 2],
            numbers,
            tokens,
            spelling,
            pairs,
        ):
            break
        heap[child, 0], heap[child, 1], heap[child, 2] = heap[parent, 0], heap[parent, 1], heap[parent, 2]
        child = parent
    heap[child, 0], heap[child, 1], heap[child, 2] = count, place, pair


@step
def drop_top(numbers, tokens, spelling, pairs, heap):
    """Take the first entry of the heap away; four children a node halve the cache misses of two."""
    size = numbers[HEAP] - 1
    numbers[HEAP] = size
    count, place, pair = heap[size, 0], heap[size, 1], heap[size, 2]
    parent = 0
    while 4 * parent + 1 < size:
        best = parent
        best_count, best_place, best_pair = count, place, pair
        for child in range(4 * parent + 1, min(4 * parent + 5, size)):
            if goes_before(
                heap[child, 0], heap[child, 1], heap[child, 2],
                best_count, best_place, best_pair, numbers, tokens, spelling, pairs,
            ):  # fmt: skip
                best = child
                best_count, best_place, best_pair = heap[child, 0], heap[child, 1], heap[child, 2]
        if best == parent:
            break
        heap[parent, 0], heap[parent, 1], heap[parent, 2] = best_count, best_place, best_pair
        parent = best
    heap[parent, 0], heap[parent, 1], heap[parent, 2] = count, place, pair


@step
def first_place(pair, symbols, tokens, pairs, places):
    """Where a pair of positive count occurs first; drops the entries before it, which no longer hold."""
    left, right = pairs[pair, KEY] >> 32, pairs[pair, KEY] & LOW
    at = pairs[pair, BEGIN]
    while True:
        place = np.int64(places[at])
        if symbols[place] == left and symbols[place + tokens[left, LENGTH]] == right:
            pairs[pair, BEGIN] = at
            return place
        at += 1


@step
def enqueue(pair, numbers, symbols, tokens, spelling, pairs, places, heap):
    """Put a pair into the heap if it is frequent enough to be there."""
    count = pairs[pair, COUNT]
    if count >= numbers[THRESHOLD]:
        place = first_place(pair, symbols, tokens, pairs, places) if numbers[TIES] == FIRST_PLACE else np.int64(0)
        push(count, place, pair, numbers, tokens, spelling, pairs, heap)


@step
def best_pair(numbers, symbols, tokens, spelling, pairs, places, heap):
    """The pair to merge next, still at the top of the heap; -1 if there is none."""
    while True:
        if numbers[HEAP] == 0:
            greatest = np.int64(0)
            for pair in range(numbers[PAIRS]):
                greatest = max(greatest, pairs[pair, COUNT])
            if greatest < numbers[MIN_COUNT]:
                return np.int64(-1)
            numbers[THRESHOLD] = max(numbers[MIN_COUNT], greatest // 2)
            for pair in range(numbers[PAIRS]):
                enqueue(pair, numbers, symbols, tokens, spelling, pairs, places, heap)
        pair = heap[0, HEAP_PAIR]
        if pairs[pair, COUNT] == heap[0, HEAP_COUNT] and (
            numbers[TIES] != FIRST_PLACE or first_place(pair, symbols, tokens, pairs, places) == heap[0, HEAP_PLACE]
        ):
            return pair
        drop_top(numbers, tokens, spelling, pairs, heap)
        enqueue(pair, numbers, symbols, tokens, spelling, pairs, places, heap)
