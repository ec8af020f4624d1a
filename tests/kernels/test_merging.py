"""The loops that merge give the ids of the oracle; windows do wherever they begin, however little they see, and lanes
whatever stands in the others."""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import reference
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numba import njit
from reference import Trained
from strategies import examples

from dask_bpe.encoder import Encoder
from dask_bpe.kernels import lanes, merge_lanes, merge_windows, merging, table
from dask_bpe.kernels._jit import i64, kernel, none, u64s
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

Merge = Callable[[bytes, Trained], list[int]]
LETTERS = "abc"


@cache
def module(window: int, wide: int) -> types.ModuleType:
    """`merge_windows` with other constants: where windows are small, short texts have many."""
    source = Path(merge_windows.__file__).read_text(encoding="utf-8")
    for line, other in (
        ("WINDOW = 256", f"WINDOW = {window}"),
        ("WIDE = 1 << 12", f"WIDE = {wide}"),
        ("RECENT = 64", "RECENT = 4"),
    ):
        assert f"\n{line}\n" in source
        source = source.replace(f"\n{line}\n", f"\n{other}\n")
    made = types.ModuleType(f"merge_windows_{window}")
    exec(compile(source, made.__name__, "exec"), made.__dict__)
    return made


@cache
def loops(window: int, wide: int) -> tuple[Callable[..., int], ...]:
    """The loops, callable from Python: each with the arguments of `merge_in_windows`."""
    in_windows = module(window, wide).merge_in_windows
    by_scan, in_place, by_heap = merging.merge_by_scan, merging.merge_in_place, merging.merge_by_heap

    def scan(text, start, length, byte_ids, pairs, lengths, in_lanes, scratch, ids, first):  # type: ignore[no-untyped-def]
        return by_scan(text, start, length, byte_ids, pairs, ids, scratch.best, 1)

    def place(text, start, length, byte_ids, pairs, lengths, in_lanes, scratch, ids, first):  # type: ignore[no-untyped-def]
        return in_place(text, start, length, byte_ids, pairs, ids, scratch.best, scratch.links, scratch.heap)

    def heap(text, start, length, byte_ids, pairs, lengths, in_lanes, scratch, ids, first):  # type: ignore[no-untyped-def]
        return by_heap(text, start, length, byte_ids, pairs, ids, scratch.best, scratch.links, scratch.heap, 1)

    def windows(text, start, length, byte_ids, pairs, lengths, in_lanes, scratch, ids, first):  # type: ignore[no-untyped-def]
        return in_windows(text, start, length, byte_ids, pairs, lengths, in_lanes, scratch, ids, first)

    return tuple(njit(loop, _nrt=False, error_model="numpy") for loop in (scan, place, heap, windows))


def scratch_of(n: int, window: int, n_pieces: int = 1) -> merging.Scratch:
    """What windows take for short by the ids; lanes need more of the others than small windows would."""
    in_lanes = merge_lanes.LANE_WORDS + lanes.LANES
    return merging.Scratch(
        np.empty(n, np.uint32),
        np.empty(max(n, in_lanes), np.uint64),
        np.empty(2 * n, np.int64),
        np.empty(max(3 * n, in_lanes), np.uint64),
        np.zeros(merge_windows.RECENT * window, np.uint8),
        np.zeros(merge_windows.RECENT * (window + 2), np.uint32),
        np.zeros(table.WIDTH * n_pieces, np.uint64),
        np.empty(n + lanes.LANES, np.int64),
    )


def tables(trained: Trained, last: bool) -> tuple[np.ndarray, np.ndarray]:
    """The ids of bytes, and the pairs: all of them, or those that ever merge."""
    merges = np.array(trained.merges, np.int64).reshape(-1, 3)
    pairs = np.empty((2 << max(4, (2 * len(merges)).bit_length())) + merging.FILTER_WORDS, np.uint64)
    merging.fill_pairs(merges, np.arange(len(merges)), pairs)
    lowest = trained.lowest_ids()
    byte_ids = np.array([lowest[bytes([byte])] for byte in range(256)], np.uint32)
    if last:
        tokens = Ragged.from_list(trained.tokens)
        merges, ranks = np.empty((len(tokens), 3), np.int64), np.empty(len(tokens), np.int64)
        scratch = scratch_of(max(map(len, trained.tokens)), 16)
        n = merging.find_last_merges(tokens.values, tokens.offsets, byte_ids, pairs, scratch, merges, ranks)
        merging.fill_pairs(merges[:n], ranks[:n], pairs)
    return byte_ids, pairs


def by_all(data: bytes, trained: Trained, window: int, wide: int, last: bool = False) -> list[list[int]]:
    """What each of the loops makes of a text of which it sees the middle only."""
    text = np.frombuffer(b"cab" + data + b"bac" + bytes(16), np.uint8)
    results = []
    byte_ids, pairs = tables(trained, last)
    lengths = np.array([len(token) for token in trained.tokens], np.uint32)
    *single, windows = loops(window, wide)
    for loop in single:
        ids, scratch = np.empty(len(data), np.uint32), scratch_of(len(data), window)
        results.append(ids[: loop(text, 3, len(data), byte_ids, pairs, lengths, 0, scratch, ids, 0)].tolist())
    for in_lanes in {0, int(lanes.WIDE)}:
        size = wide
        scratch = scratch_of(size, window)
        for _ in range(2):  # the second time from the windows that are remembered
            ids = np.full(len(data) + 7, 0xAAAA, np.uint32)
            while (n := windows(text, 3, len(data), byte_ids, pairs, lengths, in_lanes, scratch, ids, 5)) < 0:
                size *= 2
                assert size < 4 * (len(data) + wide)
                scratch = scratch_of(size, window)
            assert ids[:5].tolist() + ids[-2:].tolist() == [0xAAAA] * 7
            results.append(ids[5 : 5 + n].tolist())
    return results


@st.composite
def any_merges(draw: st.DrawFn, lengths: int = 9) -> Trained:
    """Merges of a few letters in any order: products before their parts, parts that nothing makes, pairs twice."""
    letters = draw(st.sampled_from(["a", "ab", "abc"]))
    words = draw(st.lists(st.text(letters, min_size=2, max_size=lengths), min_size=1, max_size=20))
    cuts = draw(st.lists(st.integers(1, lengths), min_size=len(words), max_size=len(words)))
    merges = [
        (word[: cut % len(word) or 1].encode(), word[cut % len(word) or 1 :].encode())
        for word, cut in zip(words, cuts, strict=True)
    ]
    products = [part for left, right in merges for part in (left, right, left + right) if len(part) > 1]
    tokens = {i: bytes([i]) for i in range(256)} | {256 + i: token for i, token in enumerate(dict.fromkeys(products))}
    return reference.vocabulary(tokens, merges)


@given(trained=any_merges(), text=st.text(LETTERS, min_size=1, max_size=150), repeats=st.integers(1, 4))
@examples(12)
def test_loops_are_the_oracle(trained: Trained, text: str, repeats: int) -> None:
    data = (text * repeats).encode()
    expected = reference.encode_pretoken(data, trained)
    for ids in by_all(data, trained, 16, 32) + by_all(data, trained, 16, 32, last=True):
        assert ids == expected


@given(size=st.integers(257, 300), text=st.text("ab", min_size=20, max_size=200), other=st.text("abc", max_size=200))
@examples(4)
def test_loops_are_the_oracle_after_training(size: int, text: str, other: str) -> None:
    trained = reference.train(reference.count([text], None), size, pattern=None)
    data = (text + other + text[::-1]).encode()
    expected = reference.encode_pretoken(data, trained)
    for ids in by_all(data, trained, 16, 32):
        assert ids == expected


def joined(pairs: list[tuple[str, str]]) -> Trained:
    """A vocabulary of these merges, in this order."""
    merges = [(left.encode(), right.encode()) for left, right in pairs]
    products = dict.fromkeys(part for left, right in merges for part in (left, right, left + right) if len(part) > 1)
    return reference.vocabulary(
        {i: bytes([i]) for i in range(256)} | {256 + i: token for i, token in enumerate(products)}, merges
    )


def from_the_end(longest: int) -> Trained:
    """What stands at the end of a run of `a` decides how all of it is divided: windows see nothing of it."""
    return joined([("a" * k, "b") if k == 1 else ("a", "a" * (k - 1) + "b") for k in range(1, longest)] + [("a", "a")])


def runs(longest: int) -> Trained:
    """Tokens of 2, 4, 8, ... `a`."""
    return joined([("a" * (1 << k), "a" * (1 << k)) for k in range(longest.bit_length() - 1)])


@pytest.mark.parametrize("trained", [from_the_end(20), from_the_end(90), runs(8), runs(32), runs(128)])
def test_windows_that_are_too_short(trained: Trained) -> None:
    """They see that they disagree, or that no token ends in them, and longer ones take their place."""
    for length in [*range(1, 100), 131, 200, 256, 333]:
        for data in (b"a" * length, b"a" * length + b"b", b"ab" * 9 + b"a" * length + b"b" + b"a" * length):
            expected = reference.encode_pretoken(data, trained)
            for ids in by_all(data, trained, 16, 32):
                assert ids == expected


@pytest.mark.parametrize("window", [16, 24, 40])
def test_windows_at_every_place(window: int) -> None:
    rng = random.Random(window)
    trained = reference.train(reference.count(["".join(rng.choices("aab", k=3000))], None), 330, pattern=None)
    data = "".join(rng.choices("aab", k=200)).encode()
    for shift in range(3 * window):
        text = b"ba" * (shift // 2) + b"a" * (shift % 2) + data
        expected = reference.encode_pretoken(text, trained)
        for ids in by_all(text, trained, window, 2 * window):
            assert ids == expected


def encoded(trained: Trained, texts: list[bytes]) -> list[list[int]]:
    merges = np.array(trained.merges, np.int32).reshape(-1, 3)
    encoder = Encoder(Vocabulary(tuple(trained.tokens), merges, {}, None))
    return [encoder.encode_text(text, np.ndarray.tolist) for text in texts for _ in range(2)][::2]


def test_runs_of_every_length() -> None:
    texts = [b"a" * length for length in range(1, 1100)]
    for text, ids in zip(texts, encoded(runs(64), texts), strict=True):
        assert ids == powers(len(text), 6)


def powers(length: int, most: int) -> list[int]:
    """The ids of a run where tokens are of 1, 2, 4, ..., 2 ** most bytes."""
    ids: list[int] = []
    for k in range(most, -1, -1):
        ids += [255 + k if k else ord("a")] * (length >> k)
        length &= (1 << k) - 1
    return ids


def test_tokens_longer_than_any_window() -> None:
    """Of 2 ** 15 bytes: scratch arrays grow for them, and not for what comes after."""
    trained = runs(1 << 15)
    lengths = [1, 255, 256, 257, 4095, 4096, 4097, 50_000, 100_001]
    texts = [b"a" * length for length in lengths]
    for length, ids in zip(lengths, encoded(trained, texts), strict=True):
        assert ids == powers(length, 15)


def test_the_end_of_a_long_text_decides_about_its_beginning() -> None:
    """Blocks of 64 bytes that merge from the end of 12,000 bytes, and else in twos."""
    block = "a" * 64
    doubling = [("a" * (1 << k), "a" * (1 << k)) for k in range(6)]
    chain = [(block, (block * k) + "b") for k in range(190)]
    trained = joined([*doubling, *chain, (block, block)])
    ids = trained.lowest_ids()
    run, twos = b"a" * (64 * 180), ids[b"a" * 128]
    texts = [run, run + b"b", run + b"b" + run]
    assert encoded(trained, texts) == [
        [twos] * 90,
        [ids[run + b"b"]],
        [ids[run + b"b"], *[twos] * 90],
    ]


@given(trained=any_merges(20), text=st.text(LETTERS, min_size=257, max_size=700))
@example(from_the_end(400), "a" * 390 + "b" + "a" * 300 + "b")
@examples(0.5)
def test_long_pretokens_are_the_oracle(trained: Trained, text: str) -> None:
    assume(len(text) > merge_windows.WINDOW)
    assert encoded(trained, [text.encode()]) == [reference.encode_pretoken(text.encode(), trained)]


needs_lanes = pytest.mark.skipif(not lanes.WIDE, reason="this processor has no lanes")
short_word = st.text(LETTERS, min_size=1, max_size=merge_lanes.LANE_BYTES)


@kernel(none, u64s, u64s, i64, u64s, u64s)
def merge_in_lanes(ids, lengths, longest, pairs, best):
    merge_lanes.merge_lanes(ids, lengths, longest, pairs, best)


def merged_in_lanes(words: list[bytes], trained: Trained) -> list[list[int]]:
    """The ids of up to eight words, none for those that are empty."""
    byte_ids, pairs = tables(trained, last=False)
    ids, best = (np.full(merge_lanes.LANE_WORDS, 0xAAAAAAAA, np.uint64) for _ in range(2))
    lengths = np.zeros(lanes.LANES, np.uint64)
    for lane, data in enumerate(words):
        ids[lane : lane + lanes.LANES * len(data) : lanes.LANES] = byte_ids[list(data)]
        lengths[lane] = len(data)
    merge_in_lanes(ids, lengths, max(map(len, words)), pairs, best)
    return [ids[lane :: lanes.LANES][: int(lengths[lane])].tolist() for lane in range(len(words))]


@needs_lanes
@given(trained=any_merges(), words=st.lists(short_word, min_size=1, max_size=lanes.LANES))
@examples(6)
def test_lanes_are_the_oracle(trained: Trained, words: list[str]) -> None:
    data = [text.encode() for text in words]
    assert merged_in_lanes(data, trained) == [reference.encode_pretoken(text, trained) for text in data]


@needs_lanes
@given(size=st.integers(257, 300), texts=st.lists(st.text("ab é", min_size=1, max_size=15), min_size=8, max_size=8))
@examples(2)
def test_lanes_are_the_oracle_after_training(size: int, texts: list[str]) -> None:
    trained = reference.train(reference.count(texts, None), size, pattern=None)
    data = [text.encode() for text in texts]
    assert merged_in_lanes(data, trained) == [reference.encode_pretoken(text, trained) for text in data]


@needs_lanes
def test_lanes_of_every_length() -> None:
    trained = runs(16)
    for longest in range(1, merge_lanes.LANE_BYTES + 1):
        words = [b"a" * max(longest - 5 * lane, 0) for lane in range(lanes.LANES)]
        expected = [reference.encode_pretoken(text, trained) if text else [] for text in words]
        assert merged_in_lanes(words, trained) == expected
        assert merged_in_lanes(words[::-1], trained) == expected[::-1]
