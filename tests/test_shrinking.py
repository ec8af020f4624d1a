"""A smaller vocabulary is the one that a training to its size makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import reference
import strategies
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from reference import TIES
from strategies import examples

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer, Vocabulary
from dask_bpe.cli import main
from dask_bpe.errors import ParameterError
from dask_bpe.training import fit as training

ENDOFTEXT = "<|endoftext|>"


@pytest.mark.parametrize("ties", TIES)
@given(
    words=strategies.tied_counts(),
    small=st.integers(0, 25),
    more=st.integers(0, 25),
    special_tokens=st.sampled_from([[], [ENDOFTEXT], ["<|b|>", "<|a|>"]]),
    place=st.sampled_from(["start", "after_bytes", "end"]),
    byte_order=st.sampled_from(["value", "gpt2"]),
    alphabet=st.sampled_from(["bytes", "characters"]),
)
@examples(0.6)
def test_what_is_left_is_a_training_to_that_size(
    ties: str,
    words: dict[bytes, int],
    small: int,
    more: int,
    special_tokens: list[str],
    place: str,
    byte_order: str,
    alphabet: str,
) -> None:
    counts = PretokenCounts.from_mapping(words, special_tokens=special_tokens)
    rules: dict[str, Any] = {"ties": ties, "special_tokens_at": place, "byte_order": byte_order, "alphabet": alphabet}
    size = 256 + len(special_tokens) + (10 if alphabet == "characters" else 0) + small
    whole = training.fit(counts, size + more, **rules).vocabulary
    smaller = Tokenizer(whole).shrink(min(size, len(whole))).vocabulary
    assert smaller.to_json() == training.fit(counts, size, **rules).vocabulary.to_json()
    if place != "end":
        assert smaller.tokens == whole.tokens[: len(smaller)]


@given(words=strategies.tied_counts(), size=st.integers(0, 20), cut=st.integers(0, 20))
def test_ranks_lose_the_highest(words: dict[bytes, int], size: int, cut: int) -> None:
    tokens = list(dict.fromkeys(reference.train(words, 256 + size).tokens))
    ranks = {token: rank for rank, token in enumerate(tokens)}
    left = max(256, len(tokens) - cut)
    special = {ENDOFTEXT: len(tokens) + 3}
    smaller = Tokenizer(Vocabulary.from_ranks(ranks, special, pattern=None)).shrink(left + 4)
    head = {token: rank for token, rank in ranks.items() if rank < left}
    assert smaller.vocabulary == Vocabulary.from_ranks(head, {ENDOFTEXT: left + 3}, pattern=None)


def test_gpt2_is_cut(gpt2_files: tuple[Path, Path], alice: str) -> None:
    gpt2 = Tokenizer.from_gpt2(*gpt2_files)
    smaller = gpt2.shrink(1001)
    assert smaller.special_tokens == {ENDOFTEXT: 1000}
    assert smaller.vocabulary.tokens[:1000] == gpt2.vocabulary.tokens[:1000]
    assert smaller.vocabulary.merges.tolist() == gpt2.vocabulary.merges[:744].tolist()
    assert smaller.decode(smaller.encode(alice)) == alice
    assert gpt2.shrink(50257) == gpt2
    with pytest.raises(ParameterError, match="256 is too small: without all that its 50000 merges make, 257 of"):
        gpt2.shrink(256)
    with pytest.raises(ParameterError, match="50258 is more than the 50257 ids"):
        gpt2.shrink(50258)


def test_ids_before_and_after_a_text_move_too() -> None:
    tokens = (*(bytes([byte]) for byte in range(256)), b"ab", b"abc", b"<s>")
    vocabulary = Vocabulary(tokens, [[97, 98, 256], [256, 99, 257]], {"<s>": 258}, template=((258,), ()))  # type: ignore[arg-type]
    smaller = Tokenizer(vocabulary).shrink(258)
    assert smaller.encode("abc", add_special_tokens=True) == [257, 256, 99]


def test_the_command_line(tmp_path: Path, corpus: list[str]) -> None:
    whole, smaller = tmp_path / "whole.json", tmp_path / "smaller.json"
    dask_bpe.train(iter(corpus), 400, special_tokens=[ENDOFTEXT]).save(whole)
    command = ["shrink", str(whole), "--vocab-size", "300", "--out", str(smaller), "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["vocab_size"] == 300
    assert Tokenizer.load(smaller) == dask_bpe.train(iter(corpus), 300, special_tokens=[ENDOFTEXT])
    again = CliRunner().invoke(main, command)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "exists already" in again.stderr
    too_small = CliRunner().invoke(main, [*command[:3], "100", *command[4:], "--force"])
    assert too_small.exit_code == 2
    assert too_small.stderr.startswith("Error: vocabulary size 100 is too small")
