"""Tokenizers from wherever they come: recognised, read, and named."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiktoken
import tokenizers

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.analysis.tokenizers import load_tokenizers
from dask_bpe.interchange.formats import recognise

END = "<|endoftext|>"
TEXT = f"low lower lowest 1234 自君之出矣{END} don't"


@pytest.fixture(scope="module")
def tokenizer(alice: str) -> Tokenizer:
    return dask_bpe.train(iter([alice[:5000], TEXT]), 400, special_tokens=[END])


@pytest.fixture
def saved(tmp_path: Path, tokenizer: Tokenizer) -> dict[str, Path]:
    """The tokenizer in the formats that hold all of it, or what the reader adds."""
    for name in ("pair", "lists"):
        (tmp_path / name).mkdir()
    tokenizer.save(tmp_path / "ours.json")
    tokenizer.to_huggingface(tmp_path / "hf")
    tokenizer.to_tiktoken(tmp_path / "ranks.tiktoken")
    tokenizer.to_gpt2(tmp_path / "pair" / "vocab.json", tmp_path / "pair" / "merges.txt")
    tokenizer.to_files(tmp_path / "lists" / "vocab.json", tmp_path / "lists" / "merges.json")
    return {
        "dask_bpe": tmp_path / "ours.json",
        "huggingface": tmp_path / "hf",
        "tiktoken": tmp_path / "ranks.tiktoken",
        "gpt2": tmp_path / "pair",
        "course": tmp_path / "lists",
    }


def test_every_format_is_recognised_and_gives_the_same_ids(saved: dict[str, Path], tokenizer: Tokenizer) -> None:
    assert {kind: recognise(str(path)) for kind, path in saved.items()} == {kind: kind for kind in saved}
    loaded = load_tokenizers(list(saved.values()))
    assert list(loaded) == ["ours", "hf", "ranks", "pair", "lists"]
    for one in loaded.values():
        assert one.encode_ordinary(TEXT) == tokenizer.encode_ordinary(TEXT)
    for name in ("ours", "hf", "ranks", "pair"):
        assert loaded[name].encode(TEXT) == tokenizer.encode(TEXT)


def test_objects_of_other_libraries(saved: dict[str, Path], tokenizer: Tokenizer) -> None:
    tokens = tokenizer.vocabulary.tokens
    ranks = {token: index for index, token in enumerate(tokens) if index != 256}
    theirs = tiktoken.Encoding("t", pat_str=_GPT2, mergeable_ranks=ranks, special_tokens={END: 256})
    hf = tokenizers.Tokenizer.from_file(str(saved["huggingface"] / "tokenizer.json"))
    loaded = load_tokenizers({"tiktoken": theirs, "hf": hf})
    assert loaded["tiktoken"].encode(TEXT) == theirs.encode(TEXT, allowed_special="all")
    assert loaded["hf"].encode(TEXT) == hf.encode(TEXT).ids


_GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def test_names_differ(tmp_path: Path, tokenizer: Tokenizer) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        tokenizer.save(tmp_path / folder / "vocabulary.json")
        tokenizer.save(tmp_path / folder / "same.json")
    plain = [tmp_path / "a" / "vocabulary.json", tmp_path / "b" / "vocabulary.json"]
    same = [tmp_path / "a" / "same.json", tmp_path / "b" / "same.json"]
    assert list(load_tokenizers(plain)) == ["a", "b"]
    assert list(load_tokenizers(same)) == [str(path) for path in same]
    assert list(load_tokenizers([tokenizer, tokenizer])) == ["tokenizer 1", "tokenizer 2"]
    assert list(load_tokenizers(tokenizer)) == ["tokenizer"]
    assert list(load_tokenizers(str(plain[0]))) == ["a"]
