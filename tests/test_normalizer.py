"""Normalizers: each step is Hugging Face's, and sections between special tokens are normalized one by one."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import huggingface
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from tokenizers import normalizers

from dask_bpe import Tokenizer
from dask_bpe.errors import ParameterError
from dask_bpe.normalizer import Normalizer, checked_steps
from dask_bpe.vocabulary import Vocabulary

STEPS: dict[tuple[str, ...], Any] = {
    ("nfc",): normalizers.NFC(),
    ("nfd",): normalizers.NFD(),
    ("nfkc",): normalizers.NFKC(),
    ("nfkd",): normalizers.NFKD(),
    ("lowercase",): normalizers.Lowercase(),
    ("prepend", "_é"): normalizers.Prepend("_é"),
    ("replace", "aa", "ba"): normalizers.Replace("aa", "ba"),
    ("replace", " ", "\u2581"): normalizers.Replace(" ", "\u2581"),
    ("replace", ".", ""): normalizers.Replace(".", ""),
}
HARD = [
    "é",
    "e\u0301",
    "Σ",
    "ΑΣ",
    "ΑΣ Σ",
    "İ",
    "ß",
    "ﬁ",
    "Å",
    "\u212b",
    "ǆ",
    "ẞ",
    "한",
    "ᄒ",
    "ᅡ",
    "ᆫ",
    "①",
    "ﷺ",
    "a.a",
    "aaa",
]
HARD += ["\u0345", "\u0323\u0307", "\u0307\u0323", "<s>", " <s>", "<s>\u0301", " ", "A", "\u1e9b\u0323", "𝒜", "̸"]


def known(text: str) -> str:
    """Without the code points that are free in Python's Unicode: newer libraries may know them."""
    return "".join(character for character in text if unicodedata.category(character) != "Cn")


def hard_text() -> st.SearchStrategy[str]:
    return st.one_of(st.lists(st.sampled_from(HARD), max_size=10).map("".join), strategies.text(8).map(known))


def both(steps: Sequence[tuple[str, ...]]) -> tuple[Any, Tokenizer]:
    """A tokenizer of each kind; a prefix space is a matter of Hugging Face's pre-tokenizer."""
    theirs = [STEPS[step] for step in steps if step != ("prefix_space",)]
    model, vocabulary = huggingface.build(
        {"<s>": (), "<s><s>": ()},
        normalizer=normalizers.Sequence(theirs) if theirs else None,
        steps=steps,
        prefix_space=("prefix_space",) in steps,
    )
    return model, Tokenizer(vocabulary)


@given(
    steps=st.lists(st.sampled_from(list(STEPS)), max_size=3),
    prefix_space=st.booleans(),
    texts=st.lists(hard_text(), min_size=1, max_size=5),
    data=st.data(),
)
@examples(3)
def test_normalizers_are_hugging_faces(
    steps: list[tuple[str, ...]], prefix_space: bool, texts: list[str], data: st.DataObject
) -> None:
    model, tokenizer = both([*steps, ("prefix_space",)] if prefix_space else steps)
    expected = [model.encode(text).ids for text in texts]
    assert [tokenizer.encode(text) for text in texts] == expected
    assert tokenizer.encode_batch(texts) == expected
    chunks = data.draw(strategies.cuts(texts[0].encode()))
    assert list(tokenizer.encode_iterable(chunks)) == expected[0]


@pytest.mark.parametrize("step", STEPS)
def test_every_code_point(step: tuple[str, ...]) -> None:
    """Code points of Python's Unicode one by one, some hundred to a line."""
    normalizer = Normalizer([step])
    points = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x30000)]))
    points = known(points) if step == ("lowercase",) else points
    for start in range(0, len(points), 199):
        line = " - ".join(points[start : start + 199])
        assert normalizer(line.encode()).decode() == STEPS[step].normalize_str(line)


@pytest.mark.parametrize("form", ["nfc", "nfd", "nfkc", "nfkd"])
def test_marks_of_any_age(form: str) -> None:
    """Every mark among others, where only its class says what comes first and what is one with the letter."""
    normalizer, other = Normalizer([(form,)]), STEPS[form,]
    marks = [chr(point) for point in range(0x30000) if unicodedata.category(chr(point)) in ("Mn", "Mc", "Me", "Cn")]
    for around in ("a{}\u0334", "a\u0345{}", "a\u0323{}\u0301", "e{}\u0301", "\u09c7{}\u09be", "\u1100{}\u1161"):
        for start in range(0, len(marks), 999):
            line = " ".join(map(around.format, marks[start : start + 999]))
            assert normalizer(line.encode()).decode() == other.normalize_str(line)


def test_compositions_newer_than_the_forms() -> None:
    for text in ("\U00011935\U00011930", "\U000105d2\u0307", "\U00011382\U000113c9", "\U00016d67\U00016d67"):
        assert Normalizer([("nfc",)])(("e\u0301" + text).encode()).decode() == "é" + text


def test_bytes_that_are_not_utf8_stay() -> None:
    normalizer = Normalizer([("nfc",), ("lowercase",)])
    assert normalizer(b"\xffE\xcc\x81\xcc") == b"\xff\xc3\xa9\xcc"


def test_ascii_is_not_touched_by_normal_forms() -> None:
    text = b"text"
    assert Normalizer([("nfkc",), ("nfd",)])(text) is text
    assert not Normalizer([("nfkc",), ("lowercase",)]).keeps_ascii


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("nfc", "a sequence of steps"),
        (7, "a sequence of steps"),
        (["nfc"], "is not a tuple"),
        ([("nfx",)], "unknown step 'nfx' of a normalizer: known are nfc"),
        ([()], "unknown step ''"),
        ([("nfc", "x")], "nfc takes 0 texts"),
        ([("replace", "x")], "replace takes 2 texts"),
        ([("replace", "", "x")], "no text to replace"),
        ([("prepend", 7)], "prepend takes 1 texts"),
        ([("prepend", "\ud800")], "lone surrogate"),
    ],
)
def test_refuses(steps: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        checked_steps(steps)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_vocabulary_knows_its_steps() -> None:
    bytes_only = {index: bytes([index]) for index in range(256)}
    vocabulary = Vocabulary.from_tokens(bytes_only, [], normalizer=[["nfc"], ["prepend", "x"]])
    assert vocabulary.normalizer == (("nfc",), ("prepend", "x"))
    assert (vocabulary.cut_pattern, vocabulary.pattern) == (None, "gpt2")
    with pytest.raises(ParameterError, match="unknown step"):
        Vocabulary.from_tokens(bytes_only, [], normalizer=[["nfx"]])
