"""Text is cut into pre-tokens exactly as the `regex` package cuts it, whatever the pattern and the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest
import reference
import strategies
from hypothesis import example, given
from hypothesis import strategies as st
from reference import GPT2
from strategies import examples

import dask_bpe
from dask_bpe.pretokenize import PatternSpec

# One or two of every kind of character that GPT-2's pattern tells apart, in every length of UTF-8.
REPRESENTATIVES = [
    *" \t\n\r\x0b\x1c\x85\u00a0\u2028\u3000",
    *"asltmZ'é中𠮷ʼ",
    *"7٣½𝟘",
    *".-\u0301😀\u200b\u00ad",
]


def documents(texts: Iterable[str]) -> Iterator[str]:
    """The texts as a source: a list of str would be a list of paths."""
    yield from texts


def counted(
    texts: Iterable[str], pattern: PatternSpec = "gpt2", special_tokens: Iterable[str] = ()
) -> dict[bytes, int]:
    special = list(special_tokens)
    counts = dask_bpe.count_pretokens(documents(texts), pattern=pattern, special_tokens=special)
    return dict(counts.to_dict())


def assert_counted(texts: list[str], pattern: str = "gpt2") -> None:
    """The counts are those of the oracle; if not, the first text that is cut wrongly is named."""
    regex = GPT2 if pattern == "gpt2" else pattern
    if counted(texts, pattern) != reference.count(texts, regex):
        wrong = next(text for text in texts if counted([text], pattern) != reference.count([text], regex))
        assert counted([wrong], pattern) == reference.count([wrong], regex), f"in {wrong!r}"


def test_worked_example() -> None:
    assert list(counted(["Hello, I'm 42."])) == sorted([b"Hello", b",", b" I", b"'m", b" 42", b"."])
    assert counted(["hello<|endoftext|>world"], special_tokens=["<|endoftext|>"]) == {
        b"hello": 1,
        b"world": 1,
    }


@given(text=strategies.text())
@example(text="a" * 64 + " " + "b" * 63 + "'s")
@example(text="  \r\n\r\n  x\u0085\u00a0 \u3000y''s'll'S")
@examples(2.5)
def test_gpt2s_pattern_on_any_text(text: str) -> None:
    assert counted(["a", text]) == reference.count(["a", text])


@given(pieces=st.lists(st.sampled_from(REPRESENTATIVES), min_size=50, max_size=150))
def test_gpt2s_pattern_on_dense_changes_of_class(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert counted([text]) == reference.count([text])


@pytest.mark.parametrize("first", REPRESENTATIVES)
def test_gpt2s_pattern_on_all_short_strings(first: str) -> None:
    assert_counted([first + "".join(rest) for n in (0, 1, 2) for rest in product(REPRESENTATIVES, repeat=n)])


@pytest.mark.parametrize("first", "smlrv'")
def test_contractions_in_every_place(first: str) -> None:
    pieces = ["'", "'", "s", "S", "l", "ll", "re", "ve", "t", " ", "x", "1", "é", ".", "\n"]
    assert_counted(["x'" + first + "".join(rest) for rest in product(pieces, repeat=3)])


@pytest.mark.parametrize(
    "unit", ["a", "é", "中", "𠮷", " ", "\n", "\u3000", "7", "٣", ".", "😀", "'", "'s", " a", "a ", "\r\n"]
)
def test_runs_across_blocks_of_64_bytes(unit: str) -> None:
    """A run that begins and ends at every place relative to the words that the scanner reads at a time."""
    ends = ["", " ", "  x", "x", "1", ".", "\n", "é", "'ll"]
    texts = ["x" * offset + unit * length + end for offset in range(66) for length in (1, 31, 64, 65) for end in ends]
    assert_counted(texts)
    assert_counted([" " * offset + unit * 3 + "." * (130 - offset) for offset in range(130)])


def test_text_that_ends_at_every_place() -> None:
    """Nothing beyond the end of a text is looked at: each of these is the whole corpus."""
    text = "It's  the end,\r\n\u3000of 1,234 things  中文 'twas'nt 😀😀 ... \n\n  and so it goes''s on and on  "
    for end in range(1, len(text) + 1):
        assert counted([text[:end]]) == reference.count([text[:end]])


@pytest.mark.filterwarnings("ignore::dask_bpe.errors.PatternWarning")
@pytest.mark.parametrize("pattern", strategies.PATTERNS)
@given(texts=st.lists(strategies.text(15), min_size=1, max_size=3))
@examples(0.5)
def test_any_pattern_on_any_text(pattern: str, texts: list[str]) -> None:
    texts = [*texts, "a"]
    assert counted(texts, pattern) == reference.count(texts, pattern)


@pytest.mark.filterwarnings("ignore::dask_bpe.errors.PatternWarning")
@pytest.mark.parametrize("pattern", [r"\w+", r"[^.]+", "a*", "(?=a)", r"\p{Lu}\p{Ll}*", r"(?<!\s)\s"])
@given(text=strategies.text(15))
@examples(0.3)
def test_what_a_pattern_leaves_out_is_not_counted(pattern: str, text: str) -> None:
    assert counted(["a", text], pattern) == reference.count(["a", text], pattern)


@given(drawn=strategies.with_special_tokens(strategies.text(3)))
def test_special_tokens_cut_the_text_first(drawn: tuple[str, list[str]]) -> None:
    text, special = drawn
    texts = ["x y", text]
    assert counted(texts, "gpt2", special) == reference.count(texts, GPT2, special)
    assert counted(texts, None, special) == reference.count(texts, None, special)


@given(text=st.text(st.one_of(st.characters(categories=["Cs"]), st.sampled_from("a 1.\ud83d\ude00"))))
def test_lone_surrogates_are_replaced(text: str) -> None:
    assert counted(["a", text]) == reference.count(["a", text])


@given(texts=st.lists(strategies.text(10).filter(bool), min_size=1, max_size=4))
def test_what_is_reported_beside_the_counts(texts: list[str]) -> None:
    counts = dask_bpe.count_pretokens(documents(texts))
    expected = reference.count(texts)
    assert counts.total == sum(expected.values())
    assert len(counts) == len(expected)
    assert counts.n_bytes == sum(len(text.encode()) for text in texts)
    assert counts.n_documents == len(texts)
    assert counts.pattern == "gpt2"
    assert list(counts.to_dict()) == sorted(expected)


def test_words_of_every_length() -> None:
    """Keys of one byte to a few hundred, so that none falls between two ways of storing them."""
    texts = ["".join(chr(97 + (i * i + length) % 26) for i in range(length)) for length in range(1, 300)]
    assert_counted(texts)
    assert counted([" ".join(texts)]) == reference.count([" ".join(texts)])


def test_very_many_distinct_words() -> None:
    texts = [
        " ".join(f"w{chr(97 + i % 26)}{'x' * (i % 7)}{chr(0x4E00 + i)}" for i in range(start, start + 500))
        for start in range(0, 20_000, 500)
    ]
    assert counted(texts) == reference.count(texts)
