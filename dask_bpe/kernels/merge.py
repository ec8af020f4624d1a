"""The merge loop of BPE training with an incremental index of pairs.

Words (distinct pre-tokens) lie in one array of symbols, a sentinel before, between and after them. A token
of several bytes writes its id at its first and its last position; the positions between hold nothing. So
the right neighbour of the token t at p starts at ``p + length[t]`` and the id of the left neighbour stands
at ``p - 1``: no links.

Every pair of neighbours has a record: its count in the corpus and the segment of `places` that lists its
occurrences, ascending. All occurrences of a pair are born in the step that makes the newer of its halves,
so a segment is written once, and from then on the count only falls; an entry whose symbols have changed is
skipped when the pair's turn comes. The queue of candidates is a heap of (count at the time, pair) for pairs
of at least ``THRESHOLD`` occurrences: an entry whose count is out of date goes back with its new one, which
is exact because counts only fall. When it runs empty, the threshold is lowered and the heap filled anew:
rare pairs, most of all, never enter it.

No merge spells a token that exists, so symbols may be ids under every tie rule: between two borders of tokens
that stay, the segmentation of a string depends on the string alone.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import (
    given_i64m,
    given_i64s,
    i32s,
    i64,
    i64m,
    i64s,
    inlined,
    kernel,
    none,
    step,
    text_type,
    u8s,
    u32s,
)
from dask_bpe.kernels.candidates import (
    BEGIN,
    CORPUS,
    COUNT,
    END,
    GAINED,
    HEAP,
    INSIDE,
    KEY,
    LENGTH,
    LISTED,
    LOW,
    MAX_LENGTH,
    MERGES,
    MIN_COUNT,
    NEXT,
    PAIRS,
    PLACES,
    PREFIX,
    SENTINEL,
    SPELLING,
    TOKENS,
    best_pair,
    drop_top,
    enqueue,
    find_pair,
)

DONE, EXHAUSTED, MORE_PAIRS, MORE_PLACES, MORE_BORN, MORE_SPELLING = 0, 1, 2, 3, 4, 5


@inlined
def prefix_of(spelling, begin, end):
    """The first eight bytes as an int64 that compares like them."""
    prefix = np.uint64(0)
    for i in range(8):
        prefix <<= np.uint64(8)
        if begin + i < end:
            prefix |= np.uint64(spelling[begin + i])
    return np.int64(prefix ^ np.uint64(1 << 63))


@step
def _write_token(left, right, numbers, tokens, spelling):
    """Spell the product of a merge under the next free id; the caller has seen that there is room."""
    token = numbers[TOKENS]
    begin = tokens[token, SPELLING]
    at = begin
    for half in (left, right):
        start = tokens[half, SPELLING]
        for i in range(tokens[half, LENGTH]):
            spelling[at + i] = spelling[start + i]
        at += tokens[half, LENGTH]
    tokens[token + 1, SPELLING] = at
    tokens[token, LENGTH] = at - begin
    tokens[token, PREFIX] = prefix_of(spelling, begin, at)
    return token


@step
def _note_birth(side, other, place, weight, n, notes, born):
    """Remember a pair of the new token with its neighbour `other`; side 0 is left, 1 is right."""
    base = side * (notes.shape[0] // 2)
    if notes[base + other, NEXT] == 0:
        notes[base + n[2 + side], LISTED] = other
        n[2 + side] += 1
    notes[base + other, GAINED] += weight
    notes[base + other, NEXT] += 1
    at = side * (born.shape[0] // 2) + n[side]
    born[at, 0], born[at, 1] = other, place
    n[side] += 1


@step
def _rewrite(pair, token, n, symbols, word_of, weights, tokens, pairs, places, notes, born):
    """Replace the occurrences of a pair by a token, from the left; returns the weight of what was replaced.

    n : int64[4], written: neighbours noted left and right, distinct ones left and right.
    """
    left, right = pairs[pair, KEY] >> 32, pairs[pair, KEY] & LOW
    length_left, length_right = tokens[left, LENGTH], tokens[right, LENGTH]
    for i in range(4):
        n[i] = 0
    replaced = np.int64(0)
    for at in range(pairs[pair, BEGIN], pairs[pair, END]):
        place = np.int64(places[at])
        middle = place + length_left
        if symbols[place] != left or symbols[middle] != right:
            continue
        last = middle + length_right - 1
        before, after = np.int64(symbols[place - 1]), np.int64(symbols[last + 1])
        weight = weights[word_of[place]]
        if before >= 0:
            _note_birth(0, before, place - tokens[before, LENGTH], weight, n, notes, born)
        if after >= 0:
            _note_birth(1, after, place, weight, n, notes, born)
        symbols[middle - 1] = INSIDE
        symbols[middle] = INSIDE
        symbols[place] = token
        symbols[last] = token
        replaced += weight
    return replaced


@step
def _bear(token, side, n, numbers, tokens, pairs, slots, places, notes, born):
    """Make records and segments of the pairs of the new token with its neighbours on one side."""
    base, first = side * (notes.shape[0] // 2), side * (born.shape[0] // 2)
    for t in range(n[2 + side]):
        other = notes[base + t, LISTED]
        row = base + other
        n_born, notes[row, NEXT] = notes[row, NEXT], -1  # nowhere
        # Counts only fall: what is born too rare never has its turn.
        too_long = tokens[other, LENGTH] + tokens[token, LENGTH] > numbers[MAX_LENGTH]
        if notes[row, GAINED] < numbers[MIN_COUNT] or too_long:
            continue
        key = other << 32 | token if side == 0 else token << 32 | other
        pair = numbers[PAIRS]
        numbers[PAIRS] = pair + 1
        slots[find_pair(key, pairs, slots)] = np.int32(pair)
        pairs[pair, KEY], pairs[pair, COUNT] = key, notes[row, GAINED]
        pairs[pair, BEGIN] = notes[row, NEXT] = numbers[PLACES]
        numbers[PLACES] += n_born
        pairs[pair, END] = numbers[PLACES]
    for i in range(first, first + n[side]):
        row = base + born[i, 0]
        if notes[row, NEXT] >= 0:
            places[notes[row, NEXT]] = np.uint32(born[i, 1])
            notes[row, NEXT] += 1


@step
def _settle(gone, side, n, pairs, slots, notes):
    """Subtract what the pairs of the half that is `gone` have lost on one side: what the new ones gained."""
    base = side * (notes.shape[0] // 2)
    for t in range(n[2 + side]):
        other = notes[base + t, LISTED]
        key = other << 32 | gone if side == 0 else gone << 32 | other
        pair = slots[find_pair(key, pairs, slots)]
        if pair >= 0:
            pairs[pair, COUNT] -= notes[base + other, GAINED]


@step
def _announce(token, side, n, numbers, symbols, tokens, spelling, pairs, slots, places, heap, notes):
    """Queue the pairs born on one side, their counts now being settled, and clear the notes."""
    base = side * (notes.shape[0] // 2)
    for t in range(n[2 + side]):
        other = notes[base + t, LISTED]
        placed = notes[base + other, NEXT] >= 0
        notes[base + other, GAINED] = notes[base + other, NEXT] = 0
        if placed:
            key = other << 32 | token if side == 0 else token << 32 | other
            pair = np.int64(slots[find_pair(key, pairs, slots)])
            if pairs[pair, COUNT] > 0:
                enqueue(pair, numbers, symbols, tokens, spelling, pairs, places, heap)


@step
def _lacks_room(left, right, pair, numbers, tokens, spelling, pairs, slots, places, heap, born):
    """What has to grow before a pair can be merged; DONE if nothing."""
    if tokens[numbers[TOKENS], SPELLING] + tokens[left, LENGTH] + tokens[right, LENGTH] > spelling.size:
        return MORE_SPELLING
    if pair < 0:
        return DONE
    n = pairs[pair, END] - pairs[pair, BEGIN]
    new = min(2 * n, 2 * numbers[TOKENS] + 2)
    n_pairs = numbers[PAIRS] + new
    if n_pairs > pairs.shape[0] or 2 * n_pairs > slots.size or numbers[HEAP] + new > heap.shape[0]:
        return MORE_PAIRS
    if n > born.shape[0] // 2:
        return MORE_BORN
    return MORE_PLACES if numbers[PLACES] + 2 * n > places.size else DONE


@step
def _merge(
    left, right, pair, n, numbers, symbols, word_of, weights, tokens, spelling, pairs, slots, places, heap, notes, born,
    log,
):  # fmt: skip
    """Make the next token of two, and replace them by it where they stand side by side: nowhere if `pair` is -1.

    There is room for what comes of it, and the pair is not in the heap.
    """
    token, row = _write_token(left, right, numbers, tokens, spelling), numbers[MERGES]
    log[row, 0], log[row, 1], log[row, 2] = left, right, token
    log[row, 3] = pairs[pair, COUNT] if pair >= 0 else 0
    numbers[MERGES] = row + 1
    numbers[TOKENS] += 1
    if pair >= 0:
        numbers[CORPUS] -= _rewrite(pair, token, n, symbols, word_of, weights, tokens, pairs, places, notes, born)
        for side in range(2):
            _bear(token, side, n, numbers, tokens, pairs, slots, places, notes, born)
        for side in range(2):
            gone = left if side == 0 else right
            _settle(gone, side, n, pairs, slots, notes)
        pairs[pair, COUNT] = 0
        for side in range(2):
            _announce(token, side, n, numbers, symbols, tokens, spelling, pairs, slots, places, heap, notes)
    log[row, 4] = numbers[CORPUS]


@kernel(
    i64,
    i64,
    i64,
    i64s,
    i64s,
    i32s,
    i32s,
    given_i64s,
    i64m,
    u8s,
    i64m,
    i32s,
    u32s,
    i64m,
    i64m,
    i64m,
    i64m,
)
def merge_pairs(
    max_tokens, target, n, numbers, symbols, word_of, weights, tokens, spelling, pairs, slots, places,
    heap, notes, born, log,
):  # fmt: skip
    """Merge the best pair again and again, until there are `max_tokens`, or `target` merges.

    n : int64[4], any contents. Returns DONE, EXHAUSTED when no pair is left to merge, or what has to grow
    (MORE_...) before the call is made again.
    """
    while numbers[TOKENS] < max_tokens and numbers[MERGES] < target:
        pair = best_pair(numbers, symbols, tokens, spelling, pairs, places, heap)
        if pair < 0:
            return EXHAUSTED
        left, right = pairs[pair, KEY] >> 32, pairs[pair, KEY] & LOW
        lacking = _lacks_room(left, right, pair, numbers, tokens, spelling, pairs, slots, places, heap, born)
        if lacking != DONE:
            return lacking
        drop_top(numbers, tokens, spelling, pairs, heap)
        _merge(
            left, right, pair, n, numbers, symbols, word_of, weights, tokens, spelling, pairs, slots, places, heap,
            notes, born, log,
        )  # fmt: skip
    return DONE


@kernel(i64, given_i64m, i64s, i64s, i32s, i32s, given_i64s, i64m, u8s, i64m, i32s, u32s, i64m, i64m, i64m, i64m)
def merge_given(
    given, n, numbers, symbols, word_of, weights, tokens, spelling, pairs, slots, places, heap, notes, born, log
):
    """Make the merges of `given`, int64[m, 2], one after the other, however often their pairs occur.

    They are the first merges of a training: the heap is empty, and stays so. Returns DONE or MORE_..., as
    `merge_pairs` does.
    """
    while numbers[MERGES] < given.shape[0]:
        left, right = given[numbers[MERGES], 0], given[numbers[MERGES], 1]
        pair = np.int64(slots[find_pair(left << 32 | right, pairs, slots)])
        if pair >= 0 and pairs[pair, COUNT] == 0:
            pair = np.int64(-1)
        lacking = _lacks_room(left, right, pair, numbers, tokens, spelling, pairs, slots, places, heap, born)
        if lacking != DONE:
            return lacking
        _merge(
            left, right, pair, n, numbers, symbols, word_of, weights, tokens, spelling, pairs, slots, places, heap,
            notes, born, log,
        )  # fmt: skip
    return DONE


@kernel(i64, text_type, given_i64s, given_i64s, i32s, i32s)
def lay_out_words(values, offsets, weights, symbols, word_of):
    """Write ragged words to `symbols` and `word_of`; returns the tokens of the corpus, one a byte."""
    at = 0
    symbols[0] = SENTINEL
    total = np.int64(0)
    for word in range(offsets.size - 1):
        for i in range(offsets[word], offsets[word + 1]):
            at += 1
            symbols[at] = np.int32(values[i])
            word_of[at] = np.int32(word)
        at += 1
        symbols[at] = SENTINEL
        total += weights[word] * (offsets[word + 1] - offsets[word])
    return total


@kernel(none, i64s, i32s, i32s, given_i64s, i64m, i32s, u32s, i64m)
def index_pairs(numbers, symbols, word_of, weights, pairs, slots, places, by_bytes):
    """Make the records and places of all pairs of bytes. by_bytes : int64[65536, 2], zeros."""
    for at in range(symbols.size - 1):
        if symbols[at] >= 0 and symbols[at + 1] >= 0:
            row = np.int64(symbols[at]) << 8 | np.int64(symbols[at + 1])
            by_bytes[row, 0] += weights[word_of[at]]
            by_bytes[row, 1] += 1
    for row in range(65536):
        n, by_bytes[row, 1] = by_bytes[row, 1], -1
        if n > 0 and numbers[MAX_LENGTH] >= 2:
            pair = numbers[PAIRS]
            numbers[PAIRS] = pair + 1
            key = (row >> 8) << 32 | (row & 255)
            by_bytes[row, 1] = numbers[PLACES]
            pairs[pair, KEY], pairs[pair, COUNT], pairs[pair, BEGIN] = key, by_bytes[row, 0], numbers[PLACES]
            numbers[PLACES] += n
            pairs[pair, END] = numbers[PLACES]
            slots[find_pair(key, pairs, slots)] = np.int32(pair)
    for at in range(symbols.size - 1):
        if symbols[at] >= 0 and symbols[at + 1] >= 0:
            row = np.int64(symbols[at]) << 8 | np.int64(symbols[at + 1])
            if by_bytes[row, 1] >= 0:
                places[by_bytes[row, 1]] = np.uint32(at)
                by_bytes[row, 1] += 1


@kernel(none, i64, i64m, i32s)
def rebuild_slots(n_pairs, pairs, slots):
    """Enter the first `n_pairs` pairs into `slots`, which is empty (all -1)."""
    for pair in range(n_pairs):
        slots[find_pair(pairs[pair, KEY], pairs, slots)] = np.int32(pair)


@kernel(none, i64m, u8s)
def spell_bytes(tokens, spelling):
    """Make tokens 0 to 255 the single bytes."""
    for token in range(256):
        spelling[token] = np.uint8(token)
        tokens[token, LENGTH], tokens[token, SPELLING] = 1, token
        tokens[token, PREFIX] = prefix_of(spelling, token, token + 1)


@kernel(i64, i64, i64m, u32s, u32s)
def compact_places(n_pairs, pairs, places, out):
    """Copy the segments of the pairs that still occur to `out`, in order of records; returns their size."""
    to = np.int64(0)
    for pair in range(n_pairs):
        begin, end = pairs[pair, BEGIN], pairs[pair, END]
        pairs[pair, BEGIN] = to
        if pairs[pair, COUNT] > 0:
            for at in range(begin, end):
                out[to] = places[at]
                to += 1
        pairs[pair, END] = to
    return to
