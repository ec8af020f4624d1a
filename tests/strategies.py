"""What hypothesis draws: text that is hard to cut, corpora full of ties, partitionings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import AnyStr

import reference
from hypothesis import settings
from hypothesis import strategies as st

SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1f", "\x85"]
SPACES += ["\u00a0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"]
NOT_SPACES = ["\u200b", "\ufeff", "\u180e", "\u2060", "\x00", "\x7f", "\u00ad"]
CONTRACTIONS = [
    "'s",
    "'S",
    "'t",
    "'re",
    "'Re",
    "'ve",
    "'m",
    "'ll",
    "'LL",
    "'d",
    "'l",
    "'r",
    "''s",
    "'ſ",
    "’s",
    "'",
]
NUMBERS = ["0", "42", "1234567890", "٣", "९", "Ⅷ", "½", "²", "①", "〇", "𝟘", "𐒠"]
LETTERS = [
    "a",
    "Z",
    "ab",
    "the",
    "ß",
    "é",
    "e\u0301",
    "İ",
    "ǆ",
    "ʼ",
    "ª",
    "ж",
    "Ω",
    "א",
    "ش",
    "क",
    "ท",
    "中",
    "自君",
    "あ",
    "ー",
]
LETTERS += ["한", "ㅎ", "ﬁ", "𝒜", "𐐷", "𠮷", "ꙮ"]
MARKS = ["\u0301", "\u0308", "\u064b", "\u093f", "\u0e31", "\u20dd", "\ufe0f", "\U000e0101"]
SYMBOLS = [
    ".",
    ",",
    "!?",
    "--",
    "_",
    "$",
    "<|",
    "|>",
    "€",
    "“",
    "。",
    "…",
    "😀",
    "👩‍👩‍👧",
    "🇩🇪",
    "☃",
    "\U0010ffff",
    "\ue000",
    "\ufffd",
]
PIECES = [*SPACES, *NOT_SPACES, *CONTRACTIONS, *NUMBERS, *LETTERS, *MARKS, *SYMBOLS]

SPECIAL_TOKENS = [
    ["<|endoftext|>"],
    ["<|a|>", "<|a|><|b|>"],
    ["<|a|><|b|>", "<|a|>", "<|b|>"],
    ["aa"],
    ["aa", "aab", "b"],
    ["ab", "abab", "ba"],
    ["<", "<<|", "|>"],
    [" ", "\n\n"],
    ["é", "中文", "😀"],
]

# Patterns of published tokenizers, and some that look further ahead or behind. All match every character.
PATTERNS = [
    reference.GPT2,
    # cl100k_base
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"
    r"\s*[\r\n]|\s+(?!\S)|\s",
    # Llama 3
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    # o200k_base
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    # Qwen
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\w+|[^\w\s]+|\s+",
    r"\S+|\s+",
    r"\S+\s*|\s+",
    r"[\s\S]",
    r"\X",
    r"(?s:.{1,3})",
    r"(?<=a)b+|a+|(?s:.)",
    r"(a)(b)?|[^a]+",
    r"\b\w+?\b|\W",
]


def examples(share: float) -> settings:
    """So many times the examples that a test of the chosen profile draws."""
    return settings(max_examples=round(share * settings().max_examples))


def characters() -> st.SearchStrategy[str]:
    """Any code point that UTF-8 can hold."""
    return st.characters(exclude_categories=["Cs"])


def text(max_pieces: int = 30) -> st.SearchStrategy[str]:
    """Text where classes of characters meet in every way."""
    pieces = st.one_of(st.sampled_from(PIECES), st.sampled_from([" ", "a", "'", "1", "\n", "."]), characters())
    return st.lists(pieces, max_size=max_pieces).map("".join)


def tied_text(max_size: int = 40) -> st.SearchStrategy[str]:
    """Text in which many pairs are equally frequent, and runs of one letter overlap themselves."""
    alphabets = st.sampled_from(["a", "ab", "abc", "ab ", "aAé", "a \n"])
    return alphabets.flatmap(lambda alphabet: st.text(st.sampled_from(alphabet), max_size=max_size))


def tied_counts(max_words: int = 8, sizes: Sequence[int] = (1, 2, 3)) -> st.SearchStrategy[dict[bytes, int]]:
    """Pre-tokens and their counts, full of ties and repeats; some with bytes that are not UTF-8."""
    words = st.one_of(
        st.text("ab", min_size=1, max_size=12).map(str.encode),
        st.text("a", min_size=1, max_size=20).map(str.encode),
        st.text("abcdé", min_size=1, max_size=8).map(str.encode),
        st.binary(min_size=1, max_size=6),
    )
    return st.dictionaries(words, st.sampled_from(sizes), min_size=1, max_size=max_words)


def broken_utf8() -> st.SearchStrategy[bytes]:
    """Bytes of which some are not UTF-8: stray, cut off, overlong, surrogates, beyond U+10FFFF."""
    broken = [
        b"\x80",
        b"\xbf",
        b"\xc2",
        b"\xc0\xaf",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ]
    good = st.sampled_from(PIECES).map(str.encode)
    return st.lists(st.one_of(good, st.sampled_from(broken), st.binary(max_size=4)), max_size=12).map(b"".join)


def with_special_tokens(pieces: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, list[str]]]:
    """A text and the special tokens in it, which overlap each other and begin again inside themselves."""

    def around(special: list[str]) -> st.SearchStrategy[tuple[str, list[str]]]:
        parts = [*special, *(token[:-1] for token in special), *(token[1:] for token in special)]
        joined = st.lists(st.one_of(st.sampled_from(parts), pieces), max_size=10).map("".join)
        return st.tuples(joined, st.just(special))

    return st.sampled_from(SPECIAL_TOKENS).flatmap(around)


def cuts(whole: AnyStr) -> st.SearchStrategy[list[AnyStr]]:
    """Ways to cut a text into consecutive parts, empty ones among them."""
    places = st.lists(st.integers(0, len(whole)), max_size=6).map(sorted)
    return places.map(lambda at: [whole[i:j] for i, j in zip([0, *at], [*at, len(whole)], strict=True)])
