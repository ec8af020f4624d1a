"""Every named pattern, and any other, cuts text exactly as the `regex` package does it step by step."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import regex
import strategies
import tokenizers
from hypothesis import assume, example, given
from hypothesis import strategies as st
from reference import NAMED, Step
from strategies import CODE_POINTS, examples
from test_pretokenize import counted

import dask_bpe
from dask_bpe.errors import InputError, PatternError, PatternWarning
from dask_bpe.pretokenize import Scanner, SpecialTokens, Split, cut, get_pattern
from dask_bpe.pretokenize.patterns import pattern_from_json, pattern_to_json

Int64s = npt.NDArray[np.int64]

NAMES = list(NAMED)
# The compiled cut is the same with or without a warning; where warnings are not the subject they are put aside.
quietly = pytest.mark.filterwarnings("ignore::dask_bpe.errors.PatternWarning")


# Random patterns would leave a file each in the folder where the classes of code points are kept.
random_patterns = pytest.mark.usefixtures("no_cache_folder")


@pytest.fixture(scope="class")
def no_cache_folder() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", os.devnull)
        yield


def spec_of(steps: Sequence[Step]) -> Any:
    """The steps as `pattern` takes them. What could be a misspelt name is not taken as a regular expression."""
    if len(steps) == 1 and steps[0][1:] == ("matches", False) and not regex.fullmatch(r"[\w.-]+", steps[0][0]):
        return steps[0][0]
    return [Split(*step) for step in steps]


def scanned(spec: Any, documents: Sequence[bytes], *, keep_all: bool = False) -> tuple[Int64s, Int64s]:
    """What the scanner makes of the documents as segments of one text: spans int64[2, n], and the end of each
    document among them, int64[n_documents]."""
    ends = np.cumsum([len(document) for document in documents], dtype=np.int64)
    segments = np.array((np.r_[np.int64(0), ends][:-1], ends), np.int64)
    text = np.frombuffer(b"".join(documents), np.uint8)
    spans, stops, n, segment = [np.empty((2, 0), np.int64)], [np.empty(0, np.int64)], 0, 0
    for batch in Scanner(get_pattern(spec), keep_all=keep_all).scan(text, segments):
        assert batch.first == segment
        spans.append(batch.spans[:, : batch.n_spans].copy())
        stops.append(batch.stops[batch.first : batch.last] + n)
        n, segment = n + batch.n_spans, batch.last
    assert segment == len(documents)
    return np.concatenate(spans, axis=1), np.concatenate(stops)


def expected(steps: Sequence[Step], documents: Sequence[bytes]) -> tuple[Int64s, Int64s]:
    """The same by the oracle."""
    spans: list[tuple[int, int]] = []
    stops, base = [], 0
    for document in documents:
        spans += [(base + start, base + end) for start, end in reference.byte_spans(document, steps)]
        stops.append(len(spans))
        base += len(document)
    return np.array(spans, np.int64).reshape(-1, 2).T, np.array(stops, np.int64)


def assert_scanned(steps: Sequence[Step], documents: Sequence[bytes], spec: Any = None) -> None:
    """The pre-tokens are the oracle's, in order; if not, those of the first document that is cut wrongly are shown."""
    spec = spec_of(steps) if spec is None else spec
    spans, stops = scanned(spec, documents)
    right, ends = expected(steps, documents)
    if np.array_equal(spans, right) and np.array_equal(stops, ends):
        return
    for document in documents:
        pieces = [document[start:end] for start, end in scanned(spec, [document])[0].T.tolist()]
        text = reference.characters(document)
        assert pieces == reference.split_sequence(text, steps), f"in {text if len(text) < 200 else text[:200]!a}"
    assert stops.tolist() == ends.tolist(), "only as segments of one text"
    assert spans.tolist() == right.tolist(), "only as segments of one text"


def count(texts: Iterable[str], steps: Sequence[Step]) -> dict[bytes, int]:
    """How often each pre-token occurs, by the oracle."""
    counts: dict[bytes, int] = {}
    for text in texts:
        for piece in reference.split_sequence(text, steps):
            counts[piece] = counts.get(piece, 0) + 1
    return counts


def encoded(texts: Iterable[str]) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in texts]


# --- What is known by hand ---

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


@cache
def representatives(name: str) -> list[str]:
    """One code point of every class that a named pattern tells apart, of CODE_POINTS."""
    return list({membership(name, point): point for point in reversed(CODE_POINTS)}.values())


@cache
def atoms(name: str) -> list[regex.Pattern[str]]:
    """All that matches one code point in a named pattern. Where it ignores case at all, it does for each letter."""
    whole = " ".join(step for step, _, _ in NAMED[name])
    symbols = regex.sub(r"\(\?i?[:!]|\{\d+(,\d+)?\}", "", whole)
    found = regex.findall(r"\[\^?(?:\\[pP]\{\w+\}|\\.|[^\\\]])+\]|\\[pP]\{\w+\}|\\?[^()|?*+$]", symbols)
    ignore = regex.IGNORECASE if "(?i:" in whole else 0
    return [regex.compile(atom, ignore if atom in "'sdmtrevl" or "sdmt" in atom else 0) for atom in sorted(set(found))]


def membership(name: str, point: str) -> int:
    """A bit for each atom of a pattern that a code point matches: its class."""
    return sum(1 << i for i, atom in enumerate(atoms(name)) if atom.fullmatch(point))


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


# --- Text that is longer than what a scanner reads at a time ---

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
RUNS = [
    *" a.1'\n\t/_é中あ😀\u00a0\u3000\u2028\u0301½\u200b\udc80",
    "\r\n",
    " \n",
    "a ",
    "A",
    "Aa",
    "a1",
    ". ",
    "'s",
    "\U0010ffff",
]


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


# --- Any pattern ---

SIMPLE = [
    r"\s",
    r"\s+",
    "a",
    "ab",
    r"\p{N}{1,3}",
    r"[^\s\p{L}]+",
    r"\p{P}",
    r" ?\p{L}+",
    r"\p{Lu}\p{Ll}*",
    "[.'-]",
    r"\s+(?!\S)|\s",
]


def within_time(expressions: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether `regex` gets through: some patterns take exponential time on some texts."""
    try:
        for expression, text in product(expressions, texts):
            list(regex.compile(expression).finditer(text, timeout=0.2))
    except TimeoutError:
        return False
    return True


@random_patterns
@given(pattern=strategies.patterns(), texts=st.lists(strategies.text_for_patterns(), min_size=1, max_size=8))
@examples(0.1)
def test_random_patterns_cut_any_text(pattern: str, texts: list[str]) -> None:
    """All of them are in the subset that is compiled; but some take too many states."""
    assume(within_time([pattern], texts))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*states", PatternWarning)
        assert_scanned([(pattern, "matches", False)], encoded(texts))


@random_patterns
@quietly
@given(
    pattern=strategies.patterns(total=True, loose=True),
    texts=st.lists(st.one_of(strategies.text_for_patterns(), strategies.text(10)), min_size=1, max_size=8),
)
@examples(0.15)
def test_random_patterns_that_are_compiled_in_part(pattern: str, texts: list[str]) -> None:
    assume(within_time([pattern], texts))
    assert_scanned([(pattern, "matches", False)], encoded(texts))
    assert counted(["a", *texts], pattern) == count(["a", *texts], [(pattern, "matches", False)])


@random_patterns
@quietly
@given(
    steps=strategies.steps(st.one_of(strategies.patterns(), st.sampled_from(SIMPLE))),
    texts=st.lists(strategies.text_for_patterns(), min_size=1, max_size=5),
)
@examples(0.1)
def test_random_sequences(steps: list[Step], texts: list[str]) -> None:
    assume(within_time([step[0] for step in steps], texts))
    assert_scanned(steps, encoded(texts))
    assert counted(["a", *texts], spec_of(steps)) == count(["a", *texts], steps)


@given(
    steps=strategies.steps(st.sampled_from(SIMPLE)),
    texts=st.lists(strategies.text_for_patterns(), min_size=1, max_size=5),
)
@examples(0.7)
def test_sequences_are_those_of_hugging_face(steps: list[Step], texts: list[str]) -> None:
    theirs = huggingface(steps)
    for text in texts:
        pieces = encoded(piece for piece, _ in theirs.pre_tokenize_str(text))
        assert reference.split_sequence(text, steps) == pieces
    assert_scanned(steps, encoded(texts))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("cl100k", "none")])
@given(text=strategies.text(60))
@examples(0.6)
def test_named_patterns_are_those_of_hugging_face(name: str, text: str) -> None:
    """All but cl100k, whose possessive quantifiers mean something else in Hugging Face's dialect."""
    # Two libraries agree on the characters of a Unicode version that both know.
    text = "".join(point for point in text if point in KNOWN_TO_ALL)
    steps = [(step, "isolated", False) for step, _, _ in NAMED[name]]
    pieces = encoded(piece for piece, _ in huggingface(steps).pre_tokenize_str(text))
    assert reference.split_sequence(text, NAMED[name]) == pieces
    assert_scanned(NAMED[name], [text.encode()], name)


KNOWN_TO_ALL = set("".join(strategies.PIECES)) | {chr(i) for i in (*range(0x370), *range(0x4E00, 0x9FA6))}


@cache
def step_of_huggingface(step: Step) -> tokenizers.pre_tokenizers.PreTokenizer:
    expression, behavior, invert = step
    return tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), behavior, invert)


def huggingface(steps: Sequence[Step]) -> tokenizers.pre_tokenizers.PreTokenizer:
    return tokenizers.pre_tokenizers.Sequence([step_of_huggingface(step) for step in steps])


# --- Cuts inside a document ---


def assert_cuts_change_nothing(steps: Sequence[Step], data: bytes, cuts: Iterable[int]) -> None:
    whole = reference.split_sequence(reference.characters(data), steps)
    for at in cuts:
        halves = [reference.split_sequence(reference.characters(half), steps) for half in (data[:at], data[at:])]
        assert halves[0] + halves[1] == whole, f"cut at byte {at} of {data!r}"


def cuts_of(data: bytes, spec: Any) -> list[int]:
    """All places where blocks of a text without special tokens may end."""
    text = np.frombuffer(data, np.uint8)
    cutter = cut.Cutter(
        lambda start, stop: text[start:stop], len(data), SpecialTokens([]), frozenset(), get_pattern(spec), 0
    )
    found = [cutter.at_or_after(position) for position in range(len(data) + 1)]
    assert all(position <= place.position for position, place in enumerate(found))
    positions = [place.position for place in found]
    assert positions == sorted(positions)
    assert all(place.starts_document == (place.position in (0, len(data))) for place in found)
    assert all(found[position] == place for place in found for position in [place.position])
    return sorted(set(positions))


texts_to_cut = st.one_of(
    strategies.text(12), st.text(st.sampled_from(CODE_POINTS), max_size=20), strategies.text_for_patterns()
)


@pytest.mark.parametrize("name", NAMES)
@given(text=texts_to_cut, broken=st.booleans())
@examples(0.6)
def test_cuts_by_named_patterns_change_nothing(name: str, text: str, broken: bool) -> None:
    data = encoded([text])[0]
    data = data[1:-1] if broken else data
    assert_cuts_change_nothing(NAMED[name], data, cuts_of(data, name))


@pytest.mark.parametrize("name", NAMES)
def test_cuts_in_all_short_strings_change_nothing(name: str) -> None:
    """Around every place that may be cut, whatever stands a little further off."""
    rng = random.Random(name)
    points = representatives(name)
    pairs = ["".join(pair) for pair in product(points, repeat=2)]
    data = encoded(["".join(rng.sample(pairs, len(pairs))) for _ in range(2)])
    for text in data:
        at = cuts_of(text, name)
        for start, end in zip([0, *at], [*at[3:], len(text)], strict=False):
            part = text[start:end]
            assert_cuts_change_nothing(NAMED[name], part, [place - start for place in at if start <= place <= end])


@pytest.mark.parametrize("name", NAMES)
@given(text=texts_to_cut, follow=texts_to_cut)
@examples(0.6)
def test_the_last_safe_cut_is_safe_whatever_follows(name: str, text: str, follow: str) -> None:
    data, more = encoded([text, follow])
    at = cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(name))
    assert 0 <= at <= len(data)
    assert_cuts_change_nothing(NAMED[name], data + more, [at])


@random_patterns
@quietly
@given(
    steps=st.one_of(
        strategies.patterns().map(lambda pattern: [(pattern, "matches", False)]),
        strategies.steps(st.one_of(strategies.patterns(), st.sampled_from(SIMPLE))),
    ),
    text=strategies.text_for_patterns(20),
    follow=strategies.text_for_patterns(5),
)
@examples(0.15)
def test_cuts_by_random_patterns_change_nothing(steps: list[Step], text: str, follow: str) -> None:
    assume(within_time([step[0] for step in steps], [text, text + follow]))
    spec = spec_of(steps)
    data, more = encoded([text, follow])
    at = cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(spec))
    assert_cuts_change_nothing(steps, data + more, [at])
    assert_cuts_change_nothing(steps, data, cuts_of(data, spec))


PROSE = "She said: “I don't know.” It's the 2nd of May, 1865; and so on. "


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_prose_can_be_cut_in_every_sentence(name: str) -> None:
    data = (PROSE * 40).encode()
    at = cuts_of(data, name)
    assert max(after - before for before, after in pairwise(at)) <= len(PROSE.encode())
    last = cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(name))
    assert last >= len(data) - len(PROSE.encode())
    assert last in at


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_not_cut_where_it_may_go_on(name: str) -> None:
    for unit in RUNS:
        data = encoded([unit * 3000])[0]
        assert_cuts_change_nothing(
            NAMED[name], data, [cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(name))]
        )


# --- Outside the subset, unmatched text ---

# Each with what the warning names. Patterns that no other test uses: a process is warned once of each.
OUTSIDE = {
    r"(?<=q)b+|[\s\S]": r"\(\?<=",
    r"(?<!q)b+|[\s\S]": r"\(\?<!",
    r"(q)\1|[\s\S]": r"\\1",
    r"\bq+|[\s\S]": r"\\b",
    r"\Bq+|[\s\S]": r"\\B",
    r"q|\X": r"\\X",
    r"q(?!ab)|[\s\S]": r"look-?ahead",
    r"q(?=\s+a)|[\s\S]": r"look-?ahead",
    r"(?>qa|q)ab|[\s\S]": r"\(\?>",
    r"^q+|[\s\S]": r"\^",
    r"\Aq+|[\s\S]": r"\\A",
    r"[^\p{Ll}]|(?i:q)b|[\s\S]": "ignores case",
    r"\P{Lu}+|(?i:\p{N}|q)b": "ignores case",
}  # fmt: skip


@pytest.mark.parametrize("pattern", OUTSIDE)
def test_a_pattern_that_is_not_compiled_warns_once(pattern: str) -> None:
    texts = ["qab", "bqb qqb\nqa b", "qqq\u0301 ab qab"]
    steps = [(pattern, "matches", False)]
    with pytest.warns(PatternWarning, match=f"(?i){OUTSIDE[pattern]}") as warned:
        assert counted(texts, pattern) == count(texts, steps)
    assert len(warned) == 1
    assert issubclass(PatternWarning, UserWarning)
    assert "\n" not in str(warned[0].message)
    assert counted(texts, pattern) == count(texts, steps)
    assert_scanned(steps, encoded(texts))


def test_each_pattern_warns_for_itself() -> None:
    with pytest.warns(PatternWarning) as warned:
        for pattern in [r"\XQ|\X", r"\XR|\X", r"\XQ|\X"]:
            assert counted(["xyz"], pattern) == {b"x": 1, b"y": 1, b"z": 1}
    assert len(warned) == 2


def test_named_patterns_are_all_compiled() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in NAMES:
            assert_scanned(NAMED[name], [b"It's 2024"], name)


OUTSIDE_PIECES = [r"(?<=a)", r"(?<!\s)", r"\b", r"\B", r"\X", "(?!ab)", "(?>a|ab)", "(?=a.)", "^", r"(a)\1"]


@random_patterns
@quietly
@given(
    before=strategies.patterns(),
    piece=st.sampled_from(OUTSIDE_PIECES),
    after=strategies.patterns(),
    texts=st.lists(strategies.text_for_patterns(), min_size=1, max_size=5),
)
@examples(0.3)
def test_random_patterns_outside_the_subset(before: str, piece: str, after: str, texts: list[str]) -> None:
    pattern = f"(?:{before}){piece}|{piece}(?:{after})|{after}"
    assume(within_time([pattern], texts))
    assert_scanned([(pattern, "matches", False)], encoded(texts))


@quietly
@pytest.mark.parametrize(
    "pattern", ["a*", "", "(?=a)", "a*?", r"\b", "a*|b", r"\s*(?!\S)", "(?:a|b*)*", "$", r"a??", "()"]
)
@given(texts=st.lists(strategies.text_for_patterns(), max_size=5))
@examples(0.3)
def test_empty_matches_are_nothing(pattern: str, texts: list[str]) -> None:
    if not pattern:
        with pytest.raises(PatternError):
            get_pattern(pattern)
        return
    assert_scanned([(pattern, "matches", False)], encoded(texts))
    assert counted(["a", *texts], pattern) == count(["a", *texts], [(pattern, "matches", False)])


@quietly
@pytest.mark.parametrize(
    ("pattern", "text", "position"),
    [
        (r"\w+", "ab cd", 2),
        (r"\w+", " ab", 0),
        (r"\w+", "ab中.", 5),
        (r"\p{L}+|\s", "é é 1", 6),
        ("(?<=a)b|a", "abbé", 2),
        (r"[^\n]+", "x" * 500 + "\n" + "y" * 500, 500),
        ("a*", "aab", 2),
        ("$", "é", 0),
        (r"a+(?!\S)| ", "aa aab ", 3),
        (r"\p{L}+", "x" * 40_000 + "😀", 40_000),
    ],
)
def test_unmatched_text_is_an_error_when_all_is_kept(pattern: str, text: str, position: int) -> None:
    with pytest.raises(InputError, match=rf"byte {position}\b") as caught:
        scanned(pattern, [text.encode()], keep_all=True)
    assert "\n" not in str(caught.value)
    spans, _ = scanned(pattern, [text.encode()])
    assert spans.T.tolist() == [
        list(span) for span in reference.byte_spans(text.encode(), [(pattern, "matches", False)])
    ]


@random_patterns
@quietly
@given(
    steps=strategies.steps(st.sampled_from(SIMPLE)),
    text=strategies.text_for_patterns(),
)
@examples(0.2)
def test_sequences_leave_nothing_unmatched(steps: list[Step], text: str) -> None:
    """What "removed" removes is meant to go."""
    assume(within_time([step[0] for step in steps], [text]))
    for keep_all in (False, True):
        spans, _ = scanned(spec_of(steps), encoded([text]), keep_all=keep_all)
        assert spans.T.tolist() == [list(span) for span in reference.byte_spans(*encoded([text]), steps)]


def test_a_step_of_matches_refuses_what_it_does_not_match() -> None:
    steps = [(r"\s", "isolated", False), (r"\p{L}+|\s", "matches", False)]
    assert_scanned(steps, [b"ab c1d e"])
    with pytest.raises(InputError, match=r"byte 4\b"):
        scanned(spec_of(steps), [b"ab c1d e"], keep_all=True)
    steps[0] = ("1", "removed", False)
    assert scanned(spec_of(steps), [b"ab c1d e"], keep_all=True)[0].T.tolist() == [
        [0, 2],
        [2, 3],
        [3, 4],
        [5, 6],
        [6, 7],
        [7, 8],
    ]


@pytest.mark.parametrize("name", NAMES)
@given(text=strategies.text())
@examples(0.3)
def test_named_patterns_keep_all_text(name: str, text: str) -> None:
    spans, _ = scanned(name, [text.encode()], keep_all=True)
    assert b"".join(text.encode()[start:end] for start, end in spans.T.tolist()) == text.encode()


def test_text_that_is_left_unmatched_is_reported() -> None:
    """Its bytes are counted wherever they stand, whether the pattern is compiled or not, and through every sum."""
    texts = ["ab12é", "中文 a", "b\u3000"]
    for pattern in (r"\p{Ll}+", r"(?<!x)\p{Ll}+"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            counts = dask_bpe.count_pretokens(iter(texts), pattern=pattern)
            assert counts.n_unmatched == len(b"12" + "中文 ".encode() + "\u3000".encode())
            assert (counts + counts).n_unmatched == 2 * counts.n_unmatched
            assert dask_bpe.train(counts, 260).training.n_unmatched == counts.n_unmatched
    removed = dask_bpe.count_pretokens(iter(texts), pattern=[Split(r"\p{N}", "removed")])
    assert removed.n_unmatched == 0
