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

One case breaks "born in one step": when symbols are byte strings (tie rules "bytes" and "huggingface"), a
merge may spell a token that exists. Its new occurrences are then merged into the existing segments and the
pair is queued again.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import given_i64s, i32s, i64, i64m, i64s, inlined, kernel, none, step, text_type, u32s, u8s

DONE, EXHAUSTED, MORE_PAIRS, MORE_PLACES, MORE_BORN, MORE_SPELLING = 0, 1, 2, 3, 4, 5
# Which of two pairs of equal count goes first.
GREATEST_BYTES, LEAST_ORDER, FIRST_PLACE = 0, 1, 2
SENTINEL, INSIDE = -1, -2

# numbers : int64[N_NUMBERS]. The first seven change, the others are the rules of this training.
TOKENS, PAIRS, PLACES, HEAP, THRESHOLD, CORPUS, MERGES = 0, 1, 2, 3, 4, 5, 6
TIES, BY_SPELLING, MIN_COUNT, MAX_LENGTH, REUSE_IDS = 7, 8, 9, 10, 11
N_NUMBERS = 12
# tokens : int64[vocabulary size + 1, 4], a row per id: bytes, the first eight of them as a number that
# sorts like them, place in the order of ids that ties go by, start in `spelling`.
LENGTH, PREFIX, ORDER, SPELLING = 0, 1, 2, 3
# pairs : int64[capacity, 4], a row per pair: left << 32 | right, count, its segment of `places`.
KEY, COUNT, BEGIN, END = 0, 1, 2, 3
# heap : int64[capacity, 3]: count and first place when the entry was made, row of the pair.
HEAP_COUNT, HEAP_PLACE, HEAP_PAIR = 0, 1, 2
# notes : int64[2 * vocabulary size, 5], a half per side of the new token. Row t lists the t-th distinct
# neighbour; row `neighbour` holds the weight of the pairs born with it, their number (then where the
# next of them goes in `places`), and the segment of a pair that was there before.
LISTED, GAINED, NEXT, OLD_BEGIN, OLD_END = 0, 1, 2, 3, 4
# born : int64[2 * capacity, 2], a half per side: neighbour and place of every pair born in this step.
# log : int64[merges, 5]: left, right, symbol of the product, count, tokens in the corpus afterwards.

_LOW = 0xFFFFFFFF
_MIX = np.uint64(0x9E3779B97F4A7C15)


@step
def _find(key, pairs, slots):  # type: ignore[no-untyped-def]
    """Slot of a pair, or the empty one where it belongs."""
    mask = slots.size - 1
    word = np.uint64(key) * _MIX
    slot = np.int64(word >> np.uint64(24)) & mask
    while slots[slot] >= 0 and pairs[slots[slot], KEY] != key:
        slot = (slot + 1) & mask
    return slot


@step
def _compare_spelling(a, b, tokens, spelling):  # type: ignore[no-untyped-def]
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
def _goes_before(count, place, pair, other_count, other_place, other, numbers, tokens, spelling, pairs):  # type: ignore[no-untyped-def]
    """Whether a heap entry goes before another: the greater count, then the tie rule."""
    if count != other_count:
        return count > other_count
    if numbers[TIES] == FIRST_PLACE:
        return place < other_place
    a, b = pairs[pair, KEY] >> 32, pairs[pair, KEY] & _LOW
    c, d = pairs[other, KEY] >> 32, pairs[other, KEY] & _LOW
    if numbers[TIES] == LEAST_ORDER:
        if a != c:
            return tokens[a, ORDER] < tokens[c, ORDER]
        return tokens[b, ORDER] < tokens[d, ORDER]
    by_left = _compare_spelling(a, c, tokens, spelling) if a != c else np.int64(0)
    if by_left != 0:
        return by_left > 0
    return _compare_spelling(b, d, tokens, spelling) > 0


@step
def _push(count, place, pair, numbers, tokens, spelling, pairs, heap):  # type: ignore[no-untyped-def]
    child = numbers[HEAP]
    numbers[HEAP] = child + 1
    while child > 0:
        parent = (child - 1) >> 2
        if not _goes_before(
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
def _drop_top(numbers, tokens, spelling, pairs, heap):  # type: ignore[no-untyped-def]
    """Take the first entry of the heap away; four children a node halve the cache misses of two."""
    size = numbers[HEAP] - 1
    numbers[HEAP] = size
    count, place, pair = heap[size, 0], heap[size, 1], heap[size, 2]
    parent = 0
    while 4 * parent + 1 < size:
        best = parent
        best_count, best_place, best_pair = count, place, pair
        for child in range(4 * parent + 1, min(4 * parent + 5, size)):
            if _goes_before(
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
def _first_place(pair, symbols, tokens, pairs, places):  # type: ignore[no-untyped-def]
    """Where a pair of positive count occurs first; drops the entries before it, which no longer hold."""
    left, right = pairs[pair, KEY] >> 32, pairs[pair, KEY] & _LOW
    at = pairs[pair, BEGIN]
    while True:
        place = np.int64(places[at])
        if symbols[place] == left and symbols[place + tokens[left, LENGTH]] == right:
            pairs[pair, BEGIN] = at
            return place
        at += 1


@step
def _queue(pair, numbers, symbols, tokens, spelling, pairs, places, heap):  # type: ignore[no-untyped-def]
    """Put a pair into the heap if it is frequent enough to be there."""
    count = pairs[pair, COUNT]
    if count >= numbers[THRESHOLD]:
        place = (
            _first_place(pair, symbols, tokens, pairs, places)
            if numbers[TIES] == FIRST_PLACE
            else np.int64(0)
        )
        _push(count, place, pair, numbers, tokens, spelling, pairs, heap)


@step
def _best_pair(numbers, symbols, tokens, spelling, pairs, places, heap):  # type: ignore[no-untyped-def]
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
                _queue(pair, numbers, symbols, tokens, spelling, pairs, places, heap)
        pair = heap[0, HEAP_PAIR]
        if pairs[pair, COUNT] == heap[0, HEAP_COUNT] and (
            numbers[TIES] != FIRST_PLACE
            or _first_place(pair, symbols, tokens, pairs, places) == heap[0, HEAP_PLACE]
        ):
            return pair
        _drop_top(numbers, tokens, spelling, pairs, heap)
        _queue(pair, numbers, symbols, tokens, spelling, pairs, places, heap)


@inlined
def prefix_of(spelling, begin, end):  # type: ignore[no-untyped-def]
    """The first eight bytes as an int64 that compares like them."""
    prefix = np.uint64(0)
    for i in range(8):
        prefix <<= np.uint64(8)
        if begin + i < end:
            prefix |= np.uint64(spelling[begin + i])
    return np.int64(prefix ^ np.uint64(1 << 63))


@step
def _spell(token, tokens, spelling, spelled):  # type: ignore[no-untyped-def]
    """Slot of `spelled` for the bytes of a token: the one of an equal token, or an empty one."""
    start, length = tokens[token, SPELLING], tokens[token, LENGTH]
    word = np.uint64(length)
    for i in range(length):
        word = (word ^ np.uint64(spelling[start + i])) * _MIX
        word ^= word >> np.uint64(32)
    mask = spelled.size - 1
    slot = np.int64(word >> np.uint64(8)) & mask
    while spelled[slot] >= 0 and _compare_spelling(token, np.int64(spelled[slot]), tokens, spelling) != 0:
        slot = (slot + 1) & mask
    return slot


@step
def _write_token(left, right, numbers, tokens, spelling, spelled):  # type: ignore[no-untyped-def]
    """Spell the product of a merge under the next free id; returns the id that its symbols take."""
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
    if numbers[BY_SPELLING] == 0:
        return token
    slot = _spell(token, tokens, spelling, spelled)
    if spelled[slot] < 0:
        spelled[slot] = np.int32(token)
    return np.int64(spelled[slot])


@step
def _note_birth(side, other, place, weight, n, notes, born):  # type: ignore[no-untyped-def]
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
def _rewrite(pair, token, n, symbols, word_of, weights, tokens, pairs, places, notes, born):  # type: ignore[no-untyped-def]
    """Replace the occurrences of a pair by a token, from the left; returns the weight of what was replaced.

    n : int64[4], written: neighbours noted left and right, distinct ones left and right.
    """
    left, right = pairs[pair, KEY] >> 32, pairs[pair, KEY] & _LOW
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
def _join_segments(pair, i, end, numbers, pairs, places):  # type: ignore[no-untyped-def]
    """Give a pair one segment of what ``places[i:end]`` and its own segment list, ascending."""
    j, stop = pairs[pair, BEGIN], pairs[pair, END]
    to = numbers[PLACES]
    pairs[pair, BEGIN] = to
    while i < end or j < stop:
        if j == stop or (i < end and places[i] < places[j]):
            places[to] = places[i]
            i += 1
        else:
            places[to] = places[j]
            j += 1
        to += 1
    numbers[PLACES] = pairs[pair, END] = to


@step
def _bear(token, side, n, numbers, tokens, pairs, slots, places, notes, born):  # type: ignore[no-untyped-def]
    """Make records and segments of the pairs of the new token with its neighbours on one side."""
    base, first = side * (notes.shape[0] // 2), side * (born.shape[0] // 2)
    # Counts only fall: what is born too rare never has its turn. Not so where spellings come back.
    floor = numbers[MIN_COUNT] if numbers[BY_SPELLING] == 0 else np.int64(1)
    for t in range(n[2 + side]):
        other = notes[base + t, LISTED]
        row = base + other
        n_born, notes[row, NEXT] = notes[row, NEXT], -1  # nowhere
        if notes[row, GAINED] < floor or tokens[other, LENGTH] + tokens[token, LENGTH] > numbers[MAX_LENGTH]:
            continue
        key = other << 32 | token if side == 0 else token << 32 | other
        slot = _find(key, pairs, slots)
        pair = np.int64(slots[slot])
        if pair < 0:
            pair = numbers[PAIRS]
            numbers[PAIRS] = pair + 1
            slots[slot] = np.int32(pair)
            pairs[pair, KEY], pairs[pair, COUNT], pairs[pair, BEGIN], pairs[pair, END] = key, 0, 0, 0
        notes[row, OLD_BEGIN], notes[row, OLD_END] = pairs[pair, BEGIN], pairs[pair, END]
        pairs[pair, COUNT] += notes[row, GAINED]
        pairs[pair, BEGIN] = notes[row, NEXT] = numbers[PLACES]
        numbers[PLACES] += n_born
        pairs[pair, END] = numbers[PLACES]
    for i in range(first, first + n[side]):
        row = base + born[i, 0]
        if notes[row, NEXT] >= 0:
            places[notes[row, NEXT]] = np.uint32(born[i, 1])
            notes[row, NEXT] += 1
    for t in range(n[2 + side]):
        row = base + notes[base + t, LISTED]
        if notes[row, NEXT] >= 0 and notes[row, OLD_END] > notes[row, OLD_BEGIN]:
            key = (
                notes[base + t, LISTED] << 32 | token if side == 0 else token << 32 | notes[base + t, LISTED]
            )
            pair = np.int64(slots[_find(key, pairs, slots)])
            _join_segments(pair, notes[row, OLD_BEGIN], notes[row, OLD_END], numbers, pairs, places)


@step
def _settle(gone, side, n, pairs, slots, notes):  # type: ignore[no-untyped-def]
    """Subtract what the pairs of the half that is `gone` have lost on one side: what the new ones gained."""
    base = side * (notes.shape[0] // 2)
    for t in range(n[2 + side]):
        other = notes[base + t, LISTED]
        key = other << 32 | gone if side == 0 else gone << 32 | other
        pair = slots[_find(key, pairs, slots)]
        if pair >= 0:
            pairs[pair, COUNT] -= notes[base + other, GAINED]


@step
def _announce(token, side, n, numbers, symbols, tokens, spelling, pairs, slots, places, heap, notes):  # type: ignore[no-untyped-def]
    """Queue the pairs born on one side, their counts now being settled, and clear the notes."""
    base = side * (notes.shape[0] // 2)
    for t in range(n[2 + side]):
        other = notes[base + t, LISTED]
        placed = notes[base + other, NEXT] >= 0
        notes[base + other, GAINED] = notes[base + other, NEXT] = 0
        if placed:
            key = other << 32 | token if side == 0 else token << 32 | other
            pair = np.int64(slots[_find(key, pairs, slots)])
            if pairs[pair, COUNT] > 0:
                _queue(pair, numbers, symbols, tokens, spelling, pairs, places, heap)


@step
def _lacks_room(pair, known, token, numbers, tokens, spelling, pairs, slots, places, heap, born):  # type: ignore[no-untyped-def]
    """What has to grow before a pair can be merged; DONE if nothing."""
    n = pairs[pair, END] - pairs[pair, BEGIN]
    new = min(2 * n, 2 * numbers[TOKENS] + 2)
    n_pairs = numbers[PAIRS] + new
    if n_pairs > pairs.shape[0] or 2 * n_pairs > slots.size or numbers[HEAP] + new > heap.shape[0]:
        return MORE_PAIRS
    if n > born.shape[0] // 2:
        return MORE_BORN
    need = 2 * n
    if known:  # segments of pairs that exist are written anew
        need *= 2
        for other in range(numbers[PAIRS]):
            if pairs[other, KEY] >> 32 == token or pairs[other, KEY] & _LOW == token:
                need += pairs[other, END] - pairs[other, BEGIN]
    return MORE_PLACES if numbers[PLACES] + need > places.size else DONE


@kernel(
    i64, i64, i64, i64s, i64s, i32s, i32s, given_i64s, i64m, u8s, i32s, i64m, i32s, u32s, i64m, i64m, i64m, i64m
)
def merge_pairs(
    max_tokens, max_merges, n, numbers, symbols, word_of, weights, tokens, spelling, spelled, pairs, slots, places,
    heap, notes, born, log,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """Merge until the vocabulary has `max_tokens` or this call has made `max_merges` merges.

    n : int64[4], any contents. Returns DONE, EXHAUSTED when no pair is left to merge, or what has to grow
    (MORE_...) before the call is made again.
    """
    target = numbers[MERGES] + max_merges
    while numbers[TOKENS] < max_tokens and numbers[MERGES] < target:
        pair = _best_pair(numbers, symbols, tokens, spelling, pairs, places, heap)
        if pair < 0:
            return EXHAUSTED
        left, right = pairs[pair, KEY] >> 32, pairs[pair, KEY] & _LOW
        if tokens[numbers[TOKENS], SPELLING] + tokens[left, LENGTH] + tokens[right, LENGTH] > spelling.size:
            return MORE_SPELLING
        token = _write_token(left, right, numbers, tokens, spelling, spelled)
        known = token != numbers[TOKENS]
        lacking = _lacks_room(pair, known, token, numbers, tokens, spelling, pairs, slots, places, heap, born)
        if lacking != DONE:
            return lacking
        _drop_top(numbers, tokens, spelling, pairs, heap)
        row = numbers[MERGES]
        log[row, 0], log[row, 1], log[row, 2], log[row, 3] = left, right, token, pairs[pair, COUNT]
        numbers[CORPUS] -= _rewrite(
            pair, token, n, symbols, word_of, weights, tokens, pairs, places, notes, born
        )
        log[row, 4] = numbers[CORPUS]
        numbers[MERGES] = row + 1
        if not known or numbers[REUSE_IDS] == 0:
            numbers[TOKENS] += 1
        for side in range(2):
            _bear(token, side, n, numbers, tokens, pairs, slots, places, notes, born)
        for side in range(2):
            gone = left if side == 0 else right
            _settle(gone, side, n, pairs, slots, notes)
        pairs[pair, COUNT] = 0
        for side in range(2):
            _announce(token, side, n, numbers, symbols, tokens, spelling, pairs, slots, places, heap, notes)
    return DONE


@kernel(i64, text_type, given_i64s, given_i64s, i32s, i32s)
def lay_out_words(values, offsets, weights, symbols, word_of):  # type: ignore[no-untyped-def]
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
def index_pairs(numbers, symbols, word_of, weights, pairs, slots, places, by_bytes):  # type: ignore[no-untyped-def]
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
            slots[_find(key, pairs, slots)] = np.int32(pair)
    for at in range(symbols.size - 1):
        if symbols[at] >= 0 and symbols[at + 1] >= 0:
            row = np.int64(symbols[at]) << 8 | np.int64(symbols[at + 1])
            if by_bytes[row, 1] >= 0:
                places[by_bytes[row, 1]] = np.uint32(at)
                by_bytes[row, 1] += 1


@kernel(none, i64, i64m, i32s)
def rebuild_slots(n_pairs, pairs, slots):  # type: ignore[no-untyped-def]
    """Enter the first `n_pairs` pairs into `slots`, which is empty (all -1)."""
    for pair in range(n_pairs):
        slots[_find(pairs[pair, KEY], pairs, slots)] = np.int32(pair)


@kernel(none, i64m, u8s, i32s)
def spell_bytes(tokens, spelling, spelled):  # type: ignore[no-untyped-def]
    """Make tokens 0 to 255 the single bytes and enter them into `spelled`, which is empty (all -1)."""
    for token in range(256):
        spelling[token] = np.uint8(token)
        tokens[token, LENGTH], tokens[token, SPELLING] = 1, token
        tokens[token, PREFIX] = prefix_of(spelling, token, token + 1)
        spelled[_spell(np.int64(token), tokens, spelling, spelled)] = np.int32(token)


@kernel(i64, i64, i64m, u32s, u32s)
def compact_places(n_pairs, pairs, places, out):  # type: ignore[no-untyped-def]
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
