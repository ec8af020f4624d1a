"""Special tokens in documents that come one by one: text, unless it is asked for more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.bag
import numpy as np
import pytest
import strategies
from asserts import trained_on
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.errors import ParameterError

END = "<|endoftext|>"
TEXTS = [f"one {END}two", "three", "", f"{END}", f"four{END}", f"<|a|>five<|a|{END}|>", "six 中文"]
TOKENIZER = trained_on([*TEXTS, "one two three four five six"], [END, "<|a|>"])


def expected_documents(texts: list[str], tokenizer: Tokenizer, separator: str | None, how: str) -> list[list[int]]:
    """Every text and the separator; under "encode" cut after each separator."""
    end = [] if separator is None else [tokenizer.special_tokens[separator]]
    documents: list[list[int]] = []
    for text in texts:
        if how == "text":
            documents.append([*tokenizer.encode_ordinary(text), *end])
            continue
        document: list[int] = []
        for index in [*tokenizer.encode(text), *end]:
            document.append(index)
            if index in end:
                documents.append(document)
                document = []
        if not end:
            documents.append(document)
    return documents


def one_by_one(texts: list[str]) -> Iterator[str]:
    """An iterable that is no list: a list of str is one of paths."""
    yield from texts


def assert_encoded(source: Any, texts: list[str], tokenizer: Tokenizer, out: Path, how: str, **options: Any) -> None:
    report = dask_bpe.encode_corpus(source, tokenizer, out, special_tokens_in_text=how, **options)  # type: ignore[arg-type]
    separator = next(iter(tokenizer.special_tokens), None)
    expected = expected_documents(texts, tokenizer, separator, how)
    corpus = dask_bpe.open_tokens(out)
    assert [document.tolist() for document in corpus.documents] == expected
    assert report.n_documents == len(expected)
    assert report.n_tokens == sum(map(len, expected))


@pytest.mark.parametrize("fmt", ["bin", "parquet"])
@pytest.mark.parametrize("how", ["text", "encode"])
def test_iterables(how: str, fmt: str, tmp_path: Path) -> None:
    assert_encoded(one_by_one(TEXTS), TEXTS, TOKENIZER, tmp_path / "out", how, format=fmt)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("how", ["text", "encode"])
def test_bags(how: str, partitions: int, tmp_path: Path, client: Client) -> None:
    bag = dask.bag.from_sequence(TEXTS, npartitions=partitions)
    assert_encoded(bag, TEXTS, TOKENIZER, tmp_path / "threads", how)
    assert_encoded(bag, TEXTS, TOKENIZER, tmp_path / "cluster", how, client=client)


def test_text_is_the_default(tmp_path: Path) -> None:
    dask_bpe.encode_corpus(one_by_one(TEXTS), TOKENIZER, tmp_path / "out")
    assert dask_bpe.open_tokens(tmp_path / "out").n_documents == len(TEXTS)


def test_without_special_tokens(tmp_path: Path) -> None:
    tokenizer = trained_on(TEXTS, [])
    texts = [text for text in TEXTS if text]
    for how in ("text", "encode"):
        assert_encoded(one_by_one(texts), texts, tokenizer, tmp_path / how, how)


def test_special_tokens_do_not_form_across_documents(tmp_path: Path) -> None:
    texts = [END[:5], END[5:], END[:-1], ">"]
    assert_encoded(one_by_one(texts), texts, TOKENIZER, tmp_path / "out", "encode")


def test_rules_of_special_tokens(tmp_path: Path) -> None:
    tokens = (*(bytes([byte]) for byte in range(256)), END.encode(), b"<m>")
    rules = {"<m>": frozenset({"lstrip"})}
    vocabulary = dask_bpe.Vocabulary(tokens, np.empty((0, 3)), {END: 256, "<m>": 257}, added_rules=rules)
    texts = ["a  <m> b", " <m>", f"x {END}  <m>y"]
    assert_encoded(one_by_one(texts), texts, Tokenizer(vocabulary), tmp_path / "out", "encode")


@given(
    texts=st.lists(
        st.lists(st.sampled_from([END, "<|a|>", " the", "x", "中", "<|"]), max_size=5).map("".join), min_size=1
    ),
    how=st.sampled_from(["text", "encode"]),
)
@examples(0.5)
def test_any_documents(texts: list[str], how: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("any") / "out"
    assert_encoded(one_by_one([*texts, "a"]), [*texts, "a"], TOKENIZER, out, how)


@given(texts=st.lists(strategies.broken_utf8(), max_size=4))
@examples(0.3)
def test_broken_documents(texts: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Invalid bytes are mended document by document, and special tokens between them stay."""
    given_texts = [text + END.encode() + text for text in [*texts, b"a\xff"]]
    mended = [text.decode("utf-8", "replace") for text in given_texts]
    out = tmp_path_factory.mktemp("any") / "out"
    assert_encoded(iter(given_texts), mended, TOKENIZER, out, "encode")


@pytest.mark.parametrize("how", ["text", "encode"])
def test_in_files_the_separator_is_the_format(how: Any, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(f"one{END}two", encoding="utf-8")
    dask_bpe.encode_corpus(path, TOKENIZER, tmp_path / how, special_tokens_in_text=how)
    assert dask_bpe.open_tokens(tmp_path / how).n_documents == 2


def test_refuses_other_ways(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="special_tokens_in_text is 'skip': 'text' or 'encode' was expected"):
        dask_bpe.encode_corpus(one_by_one(TEXTS), TOKENIZER, tmp_path / "out", special_tokens_in_text="skip")  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
