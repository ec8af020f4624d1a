"""The vector scanners cut as the automata of their patterns do, wherever blocks and full buffers end."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.kernels.lanes import WIDE
from dask_bpe.kernels.segments import MARGIN
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.pretokenize.classes import BITS
from dask_bpe.pretokenize.patterns import PATTERNS, Split

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Cuts = tuple[list[list[int]], list[int]]

NAMES = ["gpt2", *(BITS if WIDE else [])]


def by_vectors(name: str, text: Text, segments: Int64s, capacity: int) -> Cuts:
    """Spans, and the number of them when each segment ended."""
    cutting = Scanner(get_pattern(name)).begin(segments)
    assert cutting is not None
    assert cutting.by != "table"
    classes, scratch, words = cutting.arguments
    scratch.fill(0xAA)
    words.fill(0xAAAA)
    spans = np.zeros((2, capacity), np.int64)
    found: list[list[int]] = []
    ends: list[int] = []
    scan = cutting.kernel("scan")
    while cutting.place[0] < segments.shape[1]:
        first = int(cutting.place[0])
        n = scan(text, segments, cutting.place, classes, scratch, words, spans, cutting.stops)
        ends += [len(found) + int(stop) for stop in cutting.stops[first : cutting.place[0]]]
        found += spans[:, :n].T.tolist()
    return found, ends


@cache
def automaton(name: str) -> Scanner:
    """The scanner by the automaton: a sequence of one split is not known by its name."""
    pattern = get_pattern([Split(PATTERNS[name][0].regex, "isolated")])
    assert pattern.name == "sequence"
    return Scanner(pattern)


def by_automaton(name: str, text: Text, segments: Int64s) -> Cuts:
    """The same by the automaton."""
    found: list[list[int]] = []
    ends: list[int] = []
    for batch in automaton(name).scan(text, segments):
        ends += [len(found) + int(stop) for stop in batch.stops[batch.first : batch.last]]
        found += batch.spans[:, : batch.n_spans].T.tolist()
    return found, ends


def assert_same(name: str, data: bytes, bounds: list[int], capacity: int) -> None:
    text, segments = np.frombuffer(data, np.uint8), np.array((bounds[:-1], bounds[1:]), np.int64)
    expected = by_automaton(name, text, segments)
    assert by_vectors(name, text, segments, capacity) == expected
    assert b"".join(data[start:end] for start, end in expected[0]) == data[bounds[0] : bounds[-1]]


def assert_same_for_each(name: str, pieces: Iterable[bytes], capacity: int = 2048) -> None:
    """Each piece is a segment of its own; if there is a difference, the first piece that is cut wrongly is named."""
    pieces = list(pieces)
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    segments = np.array((np.r_[np.int64(0), ends[:-1]], ends))
    text = np.frombuffer(b"".join(pieces), np.uint8)
    if by_vectors(name, text, segments, capacity) == by_automaton(name, text, segments):
        return
    for piece in pieces:
        assert_same(name, piece, [0, len(piece)], capacity)
    raise AssertionError("only as segments of one text")


# What the rules tell apart, in one byte and in more.
HARD = [
    *[" ", " ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", " \n", "\n ", "\n    ", "\u00a0", "\u3000", "\u2028"],
    *["'", "'", "'s", "'S", "'ll", "'Ll", "'LL", "'re", "'rE", "'ve", "'VE", "'d", "'m", "'t", "'ſ", "’s", "''", "'l"],
    *["1", "12", "123", "1234", "12345", "1234567", "٣", "½", "٣٣٣٣"],
    *[
        "a",
        "b",
        "the",
        "Word",
        "HTTPServer",
        "aB",
        "A",
        "É",
        "é",
        "中",
        "中文",
        "ж",
        "Ж",
        "ǅ",
        "ʰ",
        "ª",
        "𠮷",
        "𐐷",
        "𐐏",
    ],
    *["\u0301", "\u0301\u0301", "\u093f", "\ufe0f", "😀", "👩‍👩‍👧", ".", "..", "!", "/", "//", "\n/", "/\n", "-", "。"],
]
BROKEN = [b"\x80", b"\xff", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"]
LONG = ["a" * 61, "A" * 63, " " * 62, "\n" * 64, "." * 65, "1" * 63, "中" * 21, "\u3000" * 22, " " * 200, "\u0301" * 70]

hard_text = st.lists(
    st.one_of(
        st.sampled_from(HARD).map(str.encode),
        st.sampled_from(HARD).map(str.encode),
        st.sampled_from(" '\n.a1AЖ\u0301/").map(str.encode),
        strategies.text(3).map(str.encode),
        st.sampled_from(LONG).map(str.encode),
        st.sampled_from(BROKEN),
    ),
    max_size=120,
).map(b"".join)


@pytest.mark.parametrize("name", NAMES)
@given(
    data=st.one_of(
        hard_text,
        st.lists(st.one_of(strategies.text().map(str.encode), st.binary(max_size=8)), max_size=40).map(b"".join),
    ),
    at=st.lists(st.floats(0, 1), max_size=4),
    capacity=st.integers(MARGIN + 1, MARGIN + 40),
)
@strategies.examples(1.5)
def test_the_vector_scanners_cut_like_the_automata(name: str, data: bytes, at: list[float], capacity: int) -> None:
    assert_same(name, data, sorted([0, len(data), *(int(x * len(data)) for x in at)]), capacity)


@pytest.mark.parametrize("name", NAMES)
def test_a_segment_ends_where_its_text_goes_on(name: str) -> None:
    """Nothing before or behind a segment is looked at, though a vector may reach there."""
    data = "".join(random.Random(name).choices(HARD, k=400)).encode()
    for begin in range(len(data) - 200, len(data) - 190):
        for end in range(begin, len(data) + 1):
            assert_same(name, data, [begin, end], MARGIN + 1)


# One of each class, so many classes that all strings of five or six can be tried; and the same in several bytes.
ALPHABETS = {
    "ascii": [" ", "\t", "\n", "'", "s", "a", "1", "."],
    "wide": [" ", "\u3000", "\n", "😀", "é", "中", "٣", "."],
    "contractions": ["'", "s", "l", "L", "E", "v", " ", "ſ"],
    "cases": ["A", "a", "中", "\u0301", "'s", ".", " ", "1"],
    "marks": ["\u0301", ".", "/", "\n", " ", "a", "Z", "1"],
    "digits": ["1", "٣", "a", " "],
}
# What stands before, so that strings lie over the border of a block in every way.
PADDINGS = ["x", " ", "\n", ".", "1", "X", "中", "\u0301", "/\n", ".\n", "\n  "]


def padded(alphabet: list[str], length: int, share: float, seed: str) -> Iterable[bytes]:
    """Strings of so many pieces, of all of them a share, each behind a padding up to a place near a border."""
    rng = random.Random(seed)
    for string in product(alphabet, repeat=length):
        if share == 1 or rng.random() < share:
            padding = rng.choice(PADDINGS)
            size = rng.choice([0, *range(64 - 2 * length, 65)])
            last = rng.choice(["", "", "x", " "])
            yield (padding * (size // len(padding.encode())) + "".join(string) + last).encode()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ALPHABETS)
def test_all_short_strings_near_the_border_of_a_block(name: str, kind: str) -> None:
    for length, share in ((3, 1), (4, 1), (5, 0.3), (6, 0.04)):
        assert_same_for_each(name, padded(ALPHABETS[kind], length, share, f"{name}{kind}"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ALPHABETS)
def test_all_strings_of_six(name: str, kind: str) -> None:
    for seed in "abc":
        assert_same_for_each(name, padded(ALPHABETS[kind], 6, 1, seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "unit", [" ", "\n", "\u3000", "1", "٣", ".", "😀", "\u0301", "/\n", "A", "中", "中A", "aA", "'s"]
)
def test_runs_over_several_blocks(name: str, unit: str) -> None:
    befores = ["", "a", "A", "中", "\n", ".", " .", ".\n", ".\n/", "\u0301", "1"]
    afters = ["", "a", "A", "中", "\n", ".", " ", "/", "1", "'s", "\u0301"]
    pieces = [
        ("x" * offset + before + unit * length + after).encode()
        for offset in (0, 63)
        for before in befores
        for length in (3, 63, 64, 130)
        for after in afters
    ]
    assert_same_for_each(name, pieces)


@pytest.mark.parametrize("name", NAMES)
def test_one_long_run_is_one_pre_token_however_full_the_buffer(name: str) -> None:
    data = b"x " * 120 + b"a" * 1000 + b" b"
    text, segments = np.frombuffer(data, np.uint8), np.array([[0], [len(data)]], np.int64)
    found, _ = by_vectors(name, text, segments, MARGIN + 1)
    assert [239, 1240] in found
    assert found[-1] == [1240, 1242]


def test_vectors_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_BPE_SIMD", "0")
    for name in NAMES:
        cutting = Scanner(get_pattern(name)).begin(np.zeros((2, 0), np.int64))
        assert cutting is not None
        assert cutting.by == "table"


@pytest.mark.parametrize("name", NAMES)
def test_no_pattern_waits_for_the_kernels_of_another(name: str) -> None:
    code = (
        "import sys, dask_bpe\n"
        f"dask_bpe.count_pretokens(iter(['a b']), pattern={name!r})\n"
        "print(*sorted(m.rpartition('.')[2] for m in sys.modules if '.kernels.count_' in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    cutting = Scanner(get_pattern(name)).begin(np.zeros((2, 0), np.int64))
    assert cutting is not None
    assert done.stdout.split() == ["count_by", f"count_{cutting.by}"]
