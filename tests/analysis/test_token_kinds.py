"""What tokens are, each told by looking at its bytes and characters one by one."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from small_texts import counts_of, texts
from strategies import broken_utf8

from dask_bpe import Vocabulary
from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.scripts import SCRIPTS, kinds_of
from dask_bpe.analysis.token_kinds import TokenKinds, contents_of, is_script, learned_tokens, shape_of
from dask_bpe.training.fit import fit

_CHARACTERS = "a\x7f\x80é߿ࠀ가\ud7ff\ue000\uffff\U00010000😀\U0010ffff"


def parts() -> set[bytes]:
    """All proper parts of some characters of every length."""
    encoded = [character.encode() for character in _CHARACTERS]
    return {c[i:k] for c in encoded for i in range(len(c)) for k in range(i + 1, len(c) + 1) if k - i < len(c)}


def test_parts_of_characters_are_partial() -> None:
    assert {shape_of(part) for part in parts()} == {"partial"}
    assert {shape_of(character.encode()) for character in _CHARACTERS} == {"character"}


@given(st.text(min_size=2, max_size=6), st.data())
def test_what_lies_in_text_has_the_shape_of_its_place(text: str, data: st.DataObject) -> None:
    encoded, edges, at = text.encode(), {0}, 0
    for character in text:
        at += len(character.encode())
        edges.add(at)
    start = data.draw(st.integers(0, len(encoded) - 1))
    end = data.draw(st.integers(start + 1, len(encoded)))
    crossed = len([edge for edge in edges if start < edge < end])
    if start in edges and end in edges:
        expected = "character" if not crossed else "characters"
    else:
        expected = "crossing" if crossed else "partial"
    assert shape_of(encoded[start:end]) == expected


@given(broken_utf8() | st.binary(min_size=1, max_size=8))
@example(b"\x80\x80\x80\x80")
@example(b"\xf5")
@example(b"\xed\xa0")
def test_bytes_that_no_text_has_are_said(token: bytes) -> None:
    befores = [b"", b"\xc3", b"\xe1", b"\xe1\x80", b"\xe0\xa0", b"\xed\x80", b"\xf1", b"\xf1\x80", b"\xf1\x80\x80"]
    befores += [b"\xf0\x90", b"\xf4\x80", b"\xe0", b"\xed", b"\xf0", b"\xf4"]
    afters = [b"", b"\x80", b"\x80\x80", b"\x80\x80\x80", b"\x90\x80\x80", b"\xa0\x80"]

    def is_text(data: bytes) -> bool:
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
        return True

    lies_in_text = any(is_text(before + token + after) for before in befores for after in afters)
    assert (shape_of(token) != "not UTF-8") == lies_in_text


@pytest.mark.parametrize(
    ("token", "content"),
    [
        (" the", "Latin"),
        ("é", "Latin"),
        ("e\u0301", "Latin"),
        ("\u0301", "Common"),
        ("слово", "Cyrillic"),
        ("白日", "Han"),
        ("ありがとう", "Hiragana"),
        ("カー", "Katakana"),
        ("가다", "Hangul"),
        ("नमस्ते", "Devanagari"),
        (" 42", "digits"),
        ("٣", "digits"),
        ("...", "punctuation"),
        ("😀", "punctuation"),
        (" +=", "punctuation"),
        ("\n\n  ", "whitespace"),
        ("\u3000", "whitespace"),
        ("don't", "mixed"),
        ("x2", "mixed"),
        ("食べ", "mixed"),
        ("\x00", "other"),
    ],
)
def test_contents(token: str, content: str) -> None:
    assert contents_of([token.encode()]) == [content]
    assert is_script(content) == (content not in ("digits", "punctuation", "whitespace", "mixed", "other"))


def test_parts_of_characters_have_no_content_but_that_beside_them() -> None:
    assert contents_of([b"\xe3\x81", b" \xe3", b"a\xe3\x81"]) == ["bytes", "whitespace", "Latin"]


def test_every_letter_of_unicode_has_a_script() -> None:
    """But those that came into Unicode after the list, which `regex` may know: they have no name here."""
    letters = [chr(i) for i in range(0x110000) if unicodedata.category(chr(i))[0] in "LM"]
    kinds = kinds_of(letters)
    assert {letter for letter in letters if kinds[letter] == "other"} == set()
    for script in ("Latin", "Han", "Hangul", "Egyptian_Hieroglyphs"):
        expected = regex.compile(rf"\p{{Script={script}}}")
        assert {x for x in letters if kinds[x] == script.replace("_", " ")} == {x for x in letters if expected.match(x)}
    assert len(set(SCRIPTS)) == len(SCRIPTS)


@given(st.text(max_size=8))
def test_every_character_has_the_kind_that_unicode_says(text: str) -> None:
    kinds = kinds_of(text)
    assert set(kinds) == set(text)
    for character, kind in kinds.items():
        category = unicodedata.category(character)
        if category != "Cn":  # which may be assigned in the Unicode of `regex`
            assert (kind == "digits") == (category[0] == "N")
            assert (kind == "punctuation") == (category[0] in "PS")
            assert is_script(kind) == (category[0] in "LM")


def test_tokens_in_the_order_in_which_they_were_learned() -> None:
    vocabulary = fit(counts_of("mixed"), 300, special_tokens=["<|a|>"]).vocabulary
    assert learned_tokens(vocabulary).tolist() == list(range(257, 300))
    spelled = (*(bytes([i]) for i in range(256)), b"ab", b"<x>", b"abc", b"zz")
    merges = np.array([[256, 99, 258], [97, 98, 256]], np.int32)
    assert learned_tokens(Vocabulary(spelled, merges, {"<x>": 257})).tolist() == [258, 256, 259]


def test_kinds_of_a_vocabulary() -> None:
    vocabulary = fit(counts_of("mixed"), 400).vocabulary
    kinds = TokenKinds.of(vocabulary)
    for index, shape, content in zip(kinds.ids.tolist(), kinds.shapes, kinds.contents, strict=True):
        token = vocabulary.tokens[index]
        assert (shape, content) == (shape_of(token), contents_of([token])[0])
        if shape in ("character", "characters"):
            assert token.decode() in texts()["mixed"]
    assert len(set(kinds.shapes)) == 4


@pytest.mark.parametrize(
    ("token", "spelled"),
    [
        (b" the\n", "·the↵"),
        ("自君".encode() + b"\xe5\xb8", "自君[e5 b8]"),
        (b"\xb8\xa1 a", "[b8 a1]·a"),
        (b"\xff", "[ff]"),
        ("\u0301\u00a0\u200d".encode(), "◌\u0301[U+00A0][U+200D]"),
        ("e\u0301".encode(), "e\u0301"),
        (b"\n" + b" " * 9, "↵·×9"),
        (b" " * 8, "········"),
        ("\u00a0".encode() * 12, "[U+00A0]×12"),
        (b"\x00\x1b", "[U+0000][U+001B]"),
    ],
)
def test_tokens_are_spelled_so_that_everything_is_seen(token: bytes, spelled: str) -> None:
    assert brief(token) == spelled
