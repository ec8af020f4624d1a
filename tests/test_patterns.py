"""Every named pattern cuts text exactly as the `regex` package does it step by step."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest
import reference
import regex
import strategies
import tokenizers
from cutting import (
    NAMES,
    assert_scanned,
    atoms,
    count,
    encoded,
    membership,
    representatives,
    spec_of,
)
from hypothesis import example, given
from hypothesis import strategies as st
from reference import NAMED, Step
from strategies import CODE_POINTS, examples
from test_pretokenize import counted

from dask_bpe.errors import PatternError
from dask_bpe.pretokenize import Split, get_pattern
from dask_bpe.pretokenize.patterns import pattern_from_json, pattern_to_json

GOLDEN = {
    "gpt2": [
        ("Hello, I'm 42.", ["Hello", ",", " I", "'m", " 42", "."]),
        ("I'LL'll  go\n", ["I", "'", "LL", "'ll", " ", " go", "\n"]),
        ("1234567", ["1234567"]),
    ],
    "cl100k": [
        ("1234", ["123", "4"]),
        ("I'LL 'ſo", ["I", "'LL", " '", "ſo"]),
        ("don'T", ["don", "'T"]),
        ("a.b(c)!\n\nd", ["a", ".b", "(c", ")!\n\n", "d"]),
        ("x  \n  \n  y", ["x", "  \n  \n", " ", " y"]),
        ("x \n ", ["x", " \n "]),
        ("\ttab", ["\ttab"]),
        (" 42", [" ", "42"]),
    ],
    "o200k": [
        ("HTTPServer", ["HTTPServer"]),
        ("myHTTPServer", ["my", "HTTPServer"]),
        ("CamelCase's", ["Camel", "Case's"]),
        ("I'LL go'ss", ["I'LL", " go's", "s"]),
        ("//\n/x", ["//\n/", "x"]),
        ("1234", ["123", "4"]),
        ("e\u0301a", ["e\u0301a"]),
        ("x \n ", ["x", " \n", " "]),
    ],
    "llama3": [
        ("1234", ["123", "4"]),
        ("I'VE  got", ["I", "'VE", " ", " got"]),
        ("x \n ", ["x", " \n", " "]),
        ("नमस्ते", ["नमस", "्त", "े"]),
    ],
    "qwen2": [("2024", ["2", "0", "2", "4"]), ("a  1", ["a", " ", " ", "1"]), ("नमस्ते", ["नमस", "्त", "े"])],
    "qwen3.5": [("2024", ["2", "0", "2", "4"]), ("नमस्ते", ["नमस्ते"]), ("!\u0301a", ["!\u0301a"]), ("!!a", ["!!", "a"])],
    "deepseek": [
        ("你好hello123", ["你好", "hello", "123"]),
        ("12345", ["123", "45"]),
        ("(abc)", ["(abc", ")"]),
        ("(é)", ["(", "é", ")"]),
        ("ひらがな・カタカナ", ["ひらがな", "・", "カタカナ"]),
        (" 中 a", [" ", "中", " a"]),
        ("\x00\x01a", ["\x00", "\x01a"]),
    ],
    "olmo": [("1234", ["123", "4"]), ("I'LL", ["I", "'LL"])],
    "starcoder": [
        ("2024", ["2", "0", "2", "4"]),
        ("x 20ab", ["x", " ", "2", "0", "ab"]),
        ("a  1", ["a", "  ", "1"]),
        ("it's ½", ["it", "'s", " ", "½"]),
    ],
    "punctuation": [
        ("Hello, world!!\r\n", ["Hello", ",", " world", "!", "!", "\r", "\n"]),
        ("a+b $5", ["a+b $5"]),
        ("“a_b”。", ["“", "a", "_", "b", "”", "。"]),
    ],
    "whitespace": [("Hello,  world! \n", ["Hello,", " ", " world!", " \n"]), ("a\tb", ["a", "\t", "b"])],
    "none": [("Hello, world!\n", ["Hello, world!\n"])],
}


@pytest.mark.parametrize(
    ("name", "text", "pieces"), [(name, text, pieces) for name, cases in GOLDEN.items() for text, pieces in cases]
)
def test_worked_examples(name: str, text: str, pieces: list[str]) -> None:
    assert "".join(pieces) == text
    assert reference.split_sequence(text, NAMED[name]) == encoded(pieces)
    assert_scanned(NAMED[name], [text.encode()], name)


def test_every_named_pattern_has_its_examples() -> None:
    assert set(GOLDEN) == set(NAMED)


@pytest.mark.parametrize(
    ("behavior", "invert", "pieces"),
    [
        ("isolated", False, ["the", "-", "final", "-", "-", "countdown"]),
        ("removed", False, ["the", "final", "countdown"]),
        ("merged_with_previous", False, ["the-", "final-", "-", "countdown"]),
        ("merged_with_next", False, ["the", "-final", "-", "-countdown"]),
        ("contiguous", False, ["the", "-", "final", "--", "countdown"]),
        ("isolated", True, ["the", "-", "final", "-", "-", "countdown"]),
        ("removed", True, ["-", "-", "-"]),
        ("merged_with_previous", True, ["the", "-final", "-", "-countdown"]),
        ("merged_with_next", True, ["the-", "final-", "-", "countdown"]),
        ("contiguous", True, ["the", "-", "final", "--", "countdown"]),
    ],
)
def test_worked_examples_of_the_behaviors(behavior: str, invert: bool, pieces: list[str]) -> None:
    """The example of Hugging Face's documentation."""
    text = "the-final--countdown"
    assert reference.split_sequence(text, [("-", behavior, invert)]) == encoded(pieces)
    assert_scanned([("-", behavior, invert)], [text.encode()])
    theirs = tokenizers.pre_tokenizers.Split("-", behavior, invert)
    assert [piece for piece, _ in theirs.pre_tokenize_str(text)] == pieces


# --- What a pattern is given as ---


@pytest.mark.parametrize("name", NAMES)
def test_named_patterns_are_known_by_name_and_by_text(name: str) -> None:
    pattern = get_pattern(name)
    assert pattern.name == name
    assert [(split.regex, split.behavior, split.invert) for split in pattern.splits] == list(NAMED[name])
    assert get_pattern(pattern.spec) == pattern
    assert pattern_from_json(pattern_to_json(pattern.spec)) == pattern.spec
    if NAMED[name]:
        by_text = get_pattern(spec_of(NAMED[name]))
        assert NAMED[by_text.name] == NAMED[name]
        assert by_text.splits == pattern.splits


@given(steps=strategies.steps(strategies.patterns()))
@examples(0.2)
def test_specs_are_canonical(steps: list[Step]) -> None:
    pattern = get_pattern([Split(*step) for step in steps])
    assert pattern.name == "sequence"
    assert [(split.regex, split.behavior, split.invert) for split in pattern.splits] == steps
    assert get_pattern(pattern.spec) == pattern
    assert {pattern.spec: 1}[get_pattern(list(pattern.spec)).spec] == 1
    assert pattern_from_json(pattern_to_json(pattern.spec)) == pattern.spec


def test_a_text_in_a_sequence_is_isolated() -> None:
    assert get_pattern(["a", Split("b")]) == get_pattern([Split("a", "isolated"), Split("b", "isolated", False)])


@pytest.mark.parametrize(
    "wrong",
    [
        3,
        [3],
        [None],
        [Split("a"), ""],
        ["a", "("],
        "(",
        "gpt3",
        "[z-a]",
    ],
)
def test_what_is_no_pattern(wrong: Any) -> None:
    with pytest.raises(PatternError) as caught:
        get_pattern(wrong)
    assert "\n" not in str(caught.value)


def test_an_unknown_behavior_is_refused() -> None:
    with pytest.raises(PatternError, match=r"sideways.*merged_with_previous"):
        get_pattern([Split("a", "sideways")])


# --- Named patterns on any text ---


@pytest.mark.parametrize("name", NAMES)
@given(text=strategies.text())
@example(text="a" * 64 + " " + "b" * 63 + "'s")
@example(text="  \r\n\r\n  x\u0085\u00a0 \u3000y''s'll'S'ſ")
@examples(0.6)
def test_named_patterns_count_any_text(name: str, text: str) -> None:
    assert counted(["a", text], name) == count(["a", text], NAMED[name])


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(st.one_of(strategies.text(), st.text(st.sampled_from(CODE_POINTS))), max_size=5))
@examples(0.6)
def test_named_patterns_cut_any_text_in_order(name: str, texts: list[str]) -> None:
    assert_scanned(NAMED[name], encoded(texts), name)


@pytest.mark.parametrize("name", NAMES)
@given(documents=st.lists(strategies.broken_utf8(), min_size=1, max_size=4))
@examples(0.6)
def test_bytes_that_are_not_utf8_are_code_points_of_their_own(name: str, documents: list[bytes]) -> None:
    assert_scanned(NAMED[name], documents, name)


@pytest.mark.parametrize("name", NAMES)
def test_named_patterns_on_all_short_strings(name: str) -> None:
    """Every string of up to three code points, one of every class."""
    points = representatives(name)
    assert_scanned(
        NAMED[name], encoded("".join(string) for n in range(4) for string in product(points, repeat=n)), name
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_its_representative(name: str) -> None:
    everything = "".join(map(chr, range(0x110000)))
    classes = np.zeros(0x110000, np.int64)
    for i, atom in enumerate(atoms(name)):
        for match in regex.finditer(f"(?:{atom.pattern})+", everything, atom.flags):
            classes[match.start() : match.end()] |= 1 << i
    assert set(np.unique(classes).tolist()) == {membership(name, point) for point in representatives(name)}


def among_others(points: Iterable[int]) -> bytes:
    """Every code point beside a letter, a digit, an apostrophe and white space."""
    text = "".join("a{0}1{0}'{0} {0}\n{0}A".format(chr(point)) for point in points if not 0xD800 <= point < 0xE000)
    return text.encode()


@pytest.mark.parametrize("name", NAMES)
def test_code_points_are_in_their_classes(name: str) -> None:
    points = [
        *range(0x3100),
        *range(0x9F90, 0xA010),
        *range(0xF8F0, 0xFB50),
        *range(0xFE00, 0x10100),
        0x2A6D6,
        0x10FFFF,
    ]
    assert_scanned(NAMED[name], [among_others(points)], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_code_points_are_in_their_classes(name: str) -> None:
    for start in range(0, 0x110000, 0x8000):
        assert_scanned(NAMED[name], [among_others(range(start, start + 0x8000))], name)


@pytest.mark.parametrize("name", NAMES)
def test_contractions_in_every_place(name: str) -> None:
    pieces = ["'", "s", "ſ", "T", "l", "L", "r", "e", "v", "x", " ", "1", "é", ".", "\n"]
    assert_scanned(NAMED[name], encoded("x'" + "".join(rest) for rest in product(pieces, repeat=3)), name)
