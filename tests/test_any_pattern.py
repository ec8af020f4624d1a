"""Patterns that nobody named, inside and outside the subset that is compiled, cut as the `regex` package does."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache

import pytest
import reference
import strategies
import tokenizers
from cutting import (
    NAMES,
    SIMPLE,
    assert_scanned,
    count,
    encoded,
    quietly,
    random_patterns,
    scanned,
    spec_of,
    within_time,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import NAMED, Step
from strategies import examples
from test_pretokenize import counted

import dask_bpe
from dask_bpe.errors import InputError, PatternError, PatternWarning
from dask_bpe.pretokenize import Split, get_pattern


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
