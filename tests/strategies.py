"""What hypothesis draws: text that is hard to cut, corpora full of ties, partitionings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import AnyStr

import reference
import regex
from hypothesis import settings
from hypothesis import strategies as st

from dask_bpe.pretokenize import syntax

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
    reference.CL100K,
    reference.LLAMA3,
    reference.O200K,
    reference.QWEN2,
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


# Code points that any named pattern tells apart, some of each kind: an invalid byte (as `surrogateescape` has it),
# letters by case and those of contractions, those that only case folding makes one of them, numbers of every kind,
# marks, punctuation in and out of ASCII, symbols, controls, and what of each lies in Japanese and Chinese blocks.
CODE_POINTS = [
    *" \t\n\r\x0b\x1c\x85\u00a0\u2028\u3000",
    *"sdmtlvreaSDMTLVREAxX\u017f\u212aéÉ\u0130ıǅʼªא中あー龦𠮷𐐷",
    *"7٣Ⅷ½〇",
    *"'’/._$<|!€。・゛^\u3040☃😀",
    *"\u0301\u3099\u0903\u20dd\ufe0f",
    *"\x00\u200b\u200d\u00ad\ue000\U0010ffff\udc80\udcff",
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


# What the text for random patterns is made of: code points that they name, and relatives of those by case.
NAMED_IN_PATTERNS = [
    *"aabbsSkK\u017f\u212aiI\u0130ı  '.-_é\u00c9中😀7٣\n\t\u0301\u00a0\u0085",
    "\r\n",
    "ab",
    "aaaa",
    "    ",
]


def text_for_patterns(max_pieces: int = 16) -> st.SearchStrategy[str]:
    """Short text in which random patterns find something."""
    pieces = st.one_of(st.sampled_from(NAMED_IN_PATTERNS), st.sampled_from(NAMED_IN_PATTERNS), st.sampled_from(PIECES))
    return st.lists(pieces, max_size=max_pieces).map("".join)


CLASSES = [r"\p{L}", r"\p{Lu}", r"\p{Ll}", r"\p{N}", r"\p{Nd}", r"\p{M}", r"\p{P}", r"\p{S}", r"\P{L}", r"\P{N}"]
CLASSES += [r"\s", r"\S", r"\d", r"\D", r"\w", r"\W"]
LITERALS = ["a", "b", "s", "k", "i", "K", "İ", "é", "中", "😀", "7", " ", "'", "-", r"\.", r"\n", r"\r", r"\t", r"\\"]
LITERALS += [r"\x61", r"\u00e9", r"\U0001F600", r"\r\n", "ab", "ll"]
IN_SETS = [
    "a",
    "b",
    "s",
    "k",
    "İ",
    "é",
    "中",
    "'",
    " ",
    r"\-",
    r"\]",
    r"\^",
    r"\r",
    r"\n",
    "a-z",
    "A-F",
    "0-9",
    "一-龥",
    "à-ÿ",
]


def sets() -> st.SearchStrategy[str]:
    """Sets of characters, negated or not."""
    members = st.lists(st.one_of(st.sampled_from(IN_SETS), st.sampled_from(CLASSES)), min_size=1, max_size=4)
    return st.tuples(st.sampled_from(["[", "[^"]), members.map("".join)).map(lambda parts: "".join(parts) + "]")


def patterns(*, total: bool = False, loose: bool = False) -> st.SearchStrategy[str]:
    """Regular expressions of the subset that is compiled; with `total` they leave no text unmatched.

    With `loose`, also of what is compiled in part: possessive quantifiers, `$` anywhere, repeats of what may be empty.
    """
    single = st.one_of(st.sampled_from(CLASSES), st.sampled_from([x for x in LITERALS if len(x) == 1]), sets())
    terms = [*LITERALS, r"\s+$"] + [".", "[[:alpha:]]", "(?:a|)", "(?s:.)", "(?-i:s)"] * loose
    atoms = st.one_of(st.sampled_from(CLASSES), st.sampled_from(terms), sets())
    kinds = ["", "", "?", *["+"] * loose]
    some = ["", "+", "{2}", "{1,3}", "{2,}"]
    any_number = [*some, "?", "*", "{0,2}"]
    look = st.one_of(
        *[st.just("")] * 3,
        st.sampled_from([r"\z", r"(?!\S)", *["$", "(?!a|b)"] * loose]),
        st.tuples(st.sampled_from(["(?!", "(?="]), single).map(lambda parts: "".join(parts) + ")"),
    )

    def alternatives(terms: st.SearchStrategy[str], most: int, counts: list[str]) -> st.SearchStrategy[str]:
        quantified = st.builds(repeated, terms, st.sampled_from(counts), st.sampled_from(kinds))
        # No branch is empty: something in it is there at least once.
        there = st.builds(repeated, terms, st.sampled_from(some), st.sampled_from(kinds))
        others = st.lists(quantified, max_size=2)
        branches = st.tuples(others, there, others, look).map(
            lambda parts: "".join([*parts[0], parts[1], *parts[2], parts[3]])
        )
        return st.lists(branches, min_size=1, max_size=most).map("|".join)

    def repeated(term: str, count: str, kind: str) -> str:
        # What repeats is one code point or a group.
        whole = regex.fullmatch(r"\\[pP]\{\w+\}|\\?.|\\x..|\\u.{4}|\\U.{8}|\[.*\]|\(.*\)", term)
        return term if not count else f"{term}{count}{kind}" if whole else f"(?:{term}){count}{kind}"

    inner = alternatives(atoms, 3, any_number if loose else some)
    groups = st.tuples(st.sampled_from(["(?:", "(", "(?i:"]), inner).map(lambda parts: "".join(parts) + ")")
    whole = alternatives(st.one_of(atoms, atoms, groups), 4, any_number)
    made = whole.map(lambda pattern: pattern + r"|[\s\S]") if total else whole
    return made.filter(is_compiled)


def is_compiled(pattern: str) -> bool:
    """Whether it is none of the few that `regex` looks for in a way of its own, see `syntax`."""
    try:
        syntax.parse(pattern)
    except syntax.Unsupported as error:
        return "ignores case" not in str(error)
    return True


def steps(expressions: st.SearchStrategy[str]) -> st.SearchStrategy[list[reference.Step]]:
    """Sequences of up to three splits."""
    behaviors = st.sampled_from([behavior for behavior in reference.BEHAVIORS if behavior != "matches"])
    return st.lists(st.tuples(expressions, behaviors, st.booleans()), min_size=1, max_size=3)
