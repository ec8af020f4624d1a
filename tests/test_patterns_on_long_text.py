"""Text longer than what a scanner reads at a time, and runs that begin and end at every place in it."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
import strategies
from cutting import NAMES, RUNS, assert_scanned, encoded
from reference import NAMED

KINDS = {
    "English": ["the", " of", " quick", " Alice", "'s", ",", ".", " I'll", "\n\n", " 1984", "--", " a", "It"],
    "code": [
        *[
            "    ",
            "\n",
            "\n        ",
            "self",
            ".",
            "_name",
            "(",
            ")",
            " = ",
            "0x1F",
            "\t",
            "//",
            "/*",
            "i",
            "HTTPServer",
        ],
        "\r\n",
    ],
    "Chinese and Japanese": [*"中。，ー・\u3000年𠮷A", "文字", "ひらがな", "カタカナ", "2024"],
    "accents": ["é", "über", " naïve", " straße", "E\u0301", "\u0301", " Ärger", "’s", "«", "»", "\u00a0"],
    "Arabic and Hindi": [*" क।٣\u064b\u093f\u200c\u200d", "ال", "كتاب", "नमस्ते", " दुनिया", "९९९९"],
    "emoji": ["😀", "👩\u200d👩\u200d👧", "🇩🇪", "\ufe0f", "☃", " ", "a", "😀😀😀", "🏽"],
    "white space": [" ", "  ", "     ", "\n", "\r\n", "\r", "\t", "\u00a0", "\u2028", "\x85", "\u3000", "x", "."],
    "numbers": ["0", "12", "345", "6789", "٣", "½", "Ⅷ", "𝟘", ",", ".", " ", "-", "e"],
    "quotes": ["'", "'s", "'S", "'ll", "'Re", "'ſ", "l", "ve", " ", "x", "''", '"'],
    "case": ["a", "B", "CC", "dd", "ǅ", "ʼ", "ß", "ſ", "\u212a", "İ", "ı", "'s", " ", "\u0301", "/"],
    "anything": strategies.PIECES,
    "broken": ["\udc80", "\udcff", "\udce2\udc82", "é", "中", " ", "a", "1", ".", "\n"],
}


def long_text(kind: str, seed: int, n_bytes: int) -> bytes:
    """Random pieces of a kind; now and then the same one many times."""
    rng = random.Random(f"{kind} {seed}")
    parts, size = [], 0
    while size < n_bytes:
        piece = rng.choice(KINDS[kind]) * (rng.randint(2, 150) if rng.random() < 0.01 else 1)
        parts.append(piece.encode("utf-8", "surrogateescape"))
        size += len(parts[-1])
    return b"".join(parts)


@pytest.mark.parametrize("name", NAMES)
def test_named_patterns_on_long_texts(name: str) -> None:
    sizes = [10_000, 20_000, 50_000]
    documents = [long_text(kind, seed, sizes[seed % 3]) for seed, kind in enumerate(KINDS)]
    assert_scanned(NAMED[name], documents, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_named_patterns_on_many_long_texts(name: str, kind: str) -> None:
    assert_scanned(NAMED[name], [long_text(kind, seed, 30_000 + 7 * seed) for seed in range(1, 20)], name)


@pytest.mark.parametrize("name", NAMES)
def test_named_patterns_on_long_runs(name: str) -> None:
    documents = [
        f"x{before}{unit * 5000}{after}" for unit in RUNS for before, after in [("", ""), (" word", " word\n")]
    ]
    assert_scanned(NAMED[name], encoded(documents), name)


@pytest.mark.parametrize("name", NAMES)
def test_runs_that_begin_and_end_at_every_place(name: str) -> None:
    units = ["a", " ", "\n", "7", ".", "é", "中", "😀", "\u0301", "\udc80"]
    ends = ["", " x", "1", "'ll", "\n", "é"]
    documents = ["x" * offset + unit * 31 + end for unit in units for offset in range(66) for end in ends]
    assert_scanned(NAMED[name], encoded(documents), name)


@pytest.mark.parametrize("name", NAMES)
def test_segments_of_every_length(name: str) -> None:
    """Segments end within characters, and nothing beyond them is looked at."""
    for kind in ("anything", "quotes", "white space", "case"):
        text = long_text(kind, 0, 21_000)
        bounds = np.cumsum([0, *range(201), 0, 0, *range(3)]).tolist()
        segments = [text[start:end] for start, end in pairwise(bounds)]
        assert_scanned(NAMED[name], segments, name)
    sentence = "It's  the end,\r\n\u3000of 1,234 THINGS  中文 'twas'nt 😀😀 ... \n\n  नमस्ते and so it goes''s on//\n  "
    assert_scanned(NAMED[name], [sentence.encode()[:end] for end in range(len(sentence.encode()) + 1)], name)


@pytest.mark.parametrize("name", NAMES)
def test_very_many_segments(name: str) -> None:
    """More segments than a batch has pre-tokens, many of them empty."""
    rng = random.Random(name)
    assert_scanned(NAMED[name], encoded(rng.choice(["", "", "a", " ", "a b", "1'", "中"]) for _ in range(20_000)), name)
