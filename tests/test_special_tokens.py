"""`SpecialTokens` with rules: what Hugging Face's added tokens do, and no cut where they look around."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import huggingface
import numpy as np
import pytest
import strategies
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.errors import ParameterError
from dask_bpe.pretokenize import RULES, SpecialTokens, get_pattern
from dask_bpe.pretokenize.cut import Cut, Cutter
from dask_bpe.streaming import safe_blocks

TOKENS = ["<s>", "<s><s>", "s>", "ab", "b", " ", "  ", " <s>", "<s> ", "\n", "中", "_", "中<s>", "<", "a b"]
PARTS = [
    *TOKENS,
    "a",
    "aa",
    "_",
    "1",
    " ",
    "\t",
    "\u3000",
    "\x1c",
    "\x85",
    "\u200b",
    "\u0301",
    "\u200d",
    "中",
    "-",
    "😀",
]


@st.composite
def added_tokens(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    texts = draw(st.lists(st.sampled_from(TOKENS), unique=True, min_size=1, max_size=5))
    rules = st.lists(st.sampled_from(RULES), unique=True, max_size=3).map(tuple)
    return {text: draw(rules) for text in texts}


def texts() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def panics(added: Mapping[str, Sequence[str]]) -> bool:
    """Hugging Face gives up where a token of white space, with lstrip, lies in what another one took."""
    taken = any("rstrip" in rules for rules in added.values())
    return taken and any("lstrip" in rules and not text.strip() for text, rules in added.items())


@given(added=added_tokens().filter(lambda added: not panics(added)), texts=st.lists(texts(), min_size=1, max_size=8))
@example({"<s>": ("rstrip",), " ": ()}, ["<s>   a", "a <s> <s>  "])
@example({"<s>": ("rstrip",), "  ": ("single_word",)}, ["<s>   a", "a  <s>", "<s>     <s>"])
@example({"<s>": ("lstrip", "rstrip"), "b": ("single_word",)}, ["a <s> <s> b b  <s>b", "ab b", "b\u0301 b b_ -b"])
@example({"s>": (), "<s>": ("normalized",)}, ["<s> s> <s", "<<s>"])
@example({"<s>": ("normalized", "single_word"), "b": ()}, ["b<s>b", "a<s>b"])
@example({"<s>": ("lstrip",)}, ["\x1c<s> \x85 <s>\u3000<s>", "<s>"])
@examples(4)
def test_added_tokens_are_hugging_faces(added: dict[str, tuple[str, ...]], texts: list[str]) -> None:
    model, vocabulary = huggingface.build(added)
    tokenizer = Tokenizer(vocabulary)
    expected = [model.encode(text).ids for text in texts]
    assert [tokenizer.encode(text) for text in texts] == expected
    assert tokenizer.encode_batch(texts) == expected


@given(added=added_tokens(), text=texts(), data=st.data())
def test_chunks_give_the_ids_of_the_whole(added: dict[str, tuple[str, ...]], text: str, data: st.DataObject) -> None:
    tokenizer = Tokenizer(huggingface.build(added)[1])
    chunks = data.draw(strategies.cuts(text.encode()))
    assert list(tokenizer.encode_iterable(chunks)) == tokenizer.encode(text)


@given(added=added_tokens(), data=st.binary(max_size=30) | st.sampled_from([b"\xc3<s>\xa9", b"\xe3\x80<s>\x80<s>"]))
def test_any_bytes(added: dict[str, tuple[str, ...]], data: bytes) -> None:
    starts, ends, _ = SpecialTokens(tuple(added), added).find(np.frombuffer(data, np.uint8), 0, len(data))
    bounds = np.stack((starts, ends), axis=1).ravel()
    assert (np.diff(bounds) >= 0).all()


def test_a_long_run_of_white_space_is_looked_at_once() -> None:
    rules = {" ": ("rstrip",), "<s>": ("lstrip", "rstrip")}
    specials = SpecialTokens(tuple(rules), rules)
    text = np.frombuffer(b" " * 100_000 + b"<s>" + b" " * 100_000, np.uint8)
    began = time.perf_counter()
    starts, _, _ = specials.find(text, 0, len(text))
    assert len(starts) == 200_001
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("rules", "contextual"),
    [
        ({}, False),
        ({"<s>": {"ordinary"}}, False),
        ({"<s>": {"normalized"}, "<t>": {"normalized"}, "s>x": {"normalized"}}, False),
        ({"<t>": {"normalized"}}, False),
        ({"<s>": {"normalized"}}, True),
        ({"<t>": {"lstrip"}}, True),
        ({"<t>": {"rstrip", "ordinary"}}, True),
        ({"<t>": {"single_word"}}, True),
    ],
)
def test_contextual(rules: dict[str, set[str]], contextual: bool) -> None:
    assert SpecialTokens(["<s>", "<t>", "s>x"], rules).contextual is contextual


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"<x>": {"lstrip"}}, "there are rules for '<x>', which is not a special token"),
        ({"<s>": {"strip"}}, "unknown rule 'strip' of special token '<s>': known are lstrip, rstrip"),
        ({"<s>": 7}, "the rules of special token '<s>' are 7"),
        ([("<s>", "lstrip")], "a mapping of text to rules was expected"),
    ],
)
def test_refuses_rules(rules: object, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        SpecialTokens(["<s>"], rules)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_is_not_cut_where_special_tokens_look_around() -> None:
    specials = SpecialTokens(["<s>"], {"<s>": {"lstrip"}})
    data = np.frombuffer(b"one two <s> three " * 100, np.uint8)
    cutter = Cutter(lambda a, b: data[a:b], len(data), specials, frozenset({0}), get_pattern("gpt2"), 10)
    assert cutter.at_or_after(0) == Cut(0, True)
    assert {cutter.at_or_after(position) for position in range(1, len(data))} == {Cut(len(data), True)}
    assert list(safe_blocks(["one <s", "> two"], get_pattern("gpt2"), specials)) == [b"one <s> two"]
    assert list(safe_blocks([], get_pattern("gpt2"), specials)) == []


@pytest.mark.parametrize("rules", [(), ("lstrip", "rstrip"), ("single_word",), ("normalized",)])
@pytest.mark.parametrize("steps", [(), [("nfc",)], [("prefix_space",), ("lowercase",)]])
def test_a_corpus_in_blocks(tmp_path: Path, rules: tuple[str, ...], steps: Sequence[Sequence[str]]) -> None:
    """Small blocks of a file give the ids of the whole file."""
    text = "One e\u0301 ab <s>  Ab x<s>y\n" * 300 + "end"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    tokenizer = Tokenizer(huggingface.build({"<s>": rules}, steps=steps)[1])
    dask_bpe.encode_corpus(tmp_path / "text.txt", tokenizer, tmp_path / "out", block_bytes=100)
    corpus = dask_bpe.open_tokens(tmp_path / "out")
    assert corpus.tokens(0, corpus.n_tokens).tolist() == [*tokenizer.encode(text), tokenizer.special_tokens["<s>"]]
