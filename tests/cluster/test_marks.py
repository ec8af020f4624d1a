"""Marks at the ends and beginnings of documents: on or off, counted, and the same over every kind of source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import dask.bag
import pytest
from asserts import trained_on
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.errors import ParameterError

END, BEGIN, OTHER = "<|endoftext|>", "<|begin|>", "<|other|>"
TOKENIZER = trained_on(["one two three four five six", "the end of the text"], [OTHER, END, BEGIN])
Source = Literal["files", "bag", "iterable"]

words = st.sampled_from([" the", "x", "one two", "中文", "\n", OTHER, "<|", ""])
documents_drawn = st.lists(st.lists(words, max_size=5).map("".join), min_size=1, max_size=7)


def naive(texts: list[str], source: Source, end: int | None, begin: int | None) -> list[list[int]]:
    """Every document with its marks. In files special tokens are special tokens, else they are text."""
    encode = TOKENIZER.encode if source == "files" else TOKENIZER.encode_ordinary
    marks = [[] if mark is None else [mark] for mark in (begin, end)]
    return [[*marks[0], *encode(text), *marks[1]] for text in texts]


def one_by_one(texts: list[str]) -> Iterator[str]:
    yield from texts


def source_of(texts: list[str], source: Source, folder: Path, partitions: int, *, last_has_end: bool) -> Any:
    if source == "bag":
        return dask.bag.from_sequence(texts, npartitions=partitions)
    if source == "iterable":
        return one_by_one(texts)
    folder.mkdir()
    cut = len(texts) * (partitions - 1) // partitions
    for number, part in enumerate(filter(None, (texts[:cut], texts[cut:]))):
        # An empty document at the end of a file is none, unless its separator says so.
        whole = END.join(part) + END * (last_has_end or not part[-1])
        (folder / f"{number}.txt").write_text(whole, encoding="utf-8", newline="")
    return folder


def assert_marked(out: Path, expected: list[list[int]], end: int | None, begin: int | None) -> None:
    """The documents with tokens are those, and the manifest counts the marks that are in the shards."""
    corpus = dask_bpe.open_tokens(out)
    corpus.verify()
    found = [document.tolist() for document in corpus.documents]
    # A shard holds tokens: documents that have none may be missing at its end.
    assert [document for document in found if document] == [document for document in expected if document]
    ids = corpus.tokens(0, len(corpus)).tolist()
    assert ids == [i for document in expected for i in document]
    marks = {}
    for name, mark, text in (("end", end, END), ("begin", begin, BEGIN)):
        if mark is not None:
            marks[name] = {"text": text, "id": mark, "count": ids.count(mark)}
            assert ids.count(mark) == len(expected)
    assert corpus.manifest.marks == marks
    assert json.loads((out / "manifest.json").read_bytes())["marks"] == marks


@pytest.mark.parametrize("source", ["files", "bag", "iterable"])
@given(
    texts=documents_drawn,
    has_end=st.booleans(),
    has_begin=st.booleans(),
    block_bytes=st.one_of(st.none(), st.integers(1, 40)),
    partitions=st.integers(1, 3),
    shard_tokens=st.integers(1, 30),
    last_has_end=st.booleans(),
    fmt=st.sampled_from(["bin", "parquet"]),
)
@example(["a", "", "b"], True, True, 1, 1, 1, False, "bin")
@examples(0.6)
def test_any_documents(
    tmp_path_factory: pytest.TempPathFactory,
    source: Source,
    texts: list[str],
    has_end: bool,
    has_begin: bool,
    block_bytes: int | None,
    partitions: int,
    shard_tokens: int,
    last_has_end: bool,
    fmt: str,
) -> None:
    texts = [*texts, "a"]
    folder = tmp_path_factory.mktemp("marks")
    end = TOKENIZER.special_tokens[END] if has_end else None
    begin = TOKENIZER.special_tokens[BEGIN] if has_begin else None
    report = dask_bpe.encode_corpus(
        source_of(texts, source, folder / "text", partitions, last_has_end=last_has_end),
        TOKENIZER,
        folder / "out",
        fmt,
        end_of_document=has_end,
        begin_of_document=BEGIN if has_begin else None,
        block_bytes=block_bytes,
        shard_tokens=shard_tokens,
    )
    expected = naive(texts, source, end, begin)
    assert_marked(folder / "out", expected, end, begin)
    assert report.n_documents == len(texts)
    assert report.n_tokens == sum(map(len, expected))


@pytest.mark.parametrize("block_bytes", [1, 4, 30, None])
def test_without_end_marks_separators_are_left_out(block_bytes: int | None, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(f"one{END}{END}two {OTHER} three{END}four", encoding="utf-8")
    dask_bpe.encode_corpus(path, TOKENIZER, tmp_path / "out", end_of_document=False, block_bytes=block_bytes)
    corpus = dask_bpe.open_tokens(tmp_path / "out")
    ids = corpus.tokens(0, len(corpus)).tolist()
    assert TOKENIZER.special_tokens[END] not in ids
    assert TOKENIZER.decode(ids) == f"onetwo {OTHER} threefour"
    assert [TOKENIZER.decode(d.tolist()) for d in corpus.documents if len(d)] == ["one", f"two {OTHER} three", "four"]
    assert corpus.manifest.marks == {}


def test_one_token_may_do_both(tmp_path: Path) -> None:
    dask_bpe.encode_corpus(one_by_one(["a", "b"]), TOKENIZER, tmp_path / "out", begin_of_document=END)
    end = TOKENIZER.special_tokens[END]
    corpus = dask_bpe.open_tokens(tmp_path / "out")
    assert [d.tolist() for d in corpus.documents] == naive(["a", "b"], "iterable", end, end)
    assert corpus.manifest.marks == {name: {"text": END, "id": end, "count": 2} for name in ("end", "begin")}


def test_begin_marks_without_any_separator(tmp_path: Path) -> None:
    tokenizer = trained_on(["one two"], [BEGIN])
    path = tmp_path / "text.txt"
    path.write_text("one two one", encoding="utf-8")
    dask_bpe.encode_corpus(path, tokenizer, tmp_path / "out", begin_of_document=BEGIN, block_bytes=3)
    corpus = dask_bpe.open_tokens(tmp_path / "out")
    mark = tokenizer.special_tokens[BEGIN]
    assert [d.tolist() for d in corpus.documents] == [[mark, *tokenizer.encode("one two one"), mark]]


@pytest.mark.parametrize("token", ["<|unknown|>", "", "a", "one"])
def test_an_unknown_begin_is_refused(token: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="is not a special token: those are") as caught:
        dask_bpe.encode_corpus(one_by_one(["a"]), TOKENIZER, tmp_path / "out", begin_of_document=token)
    assert str(caught.value).startswith(f"begin_of_document {token!r}")
    assert not (tmp_path / "out").exists()


def test_the_ids_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    """Whatever they are: here special tokens stand behind merges."""
    tokens = (*(bytes([byte]) for byte in range(256)), b"ab", BEGIN.encode(), END.encode())
    vocabulary = dask_bpe.Vocabulary(tokens, [(97, 98, 256)], {BEGIN: 257, END: 258})
    dask_bpe.encode_corpus(one_by_one(["ab"]), Tokenizer(vocabulary), tmp_path / "out", begin_of_document=BEGIN)
    assert [d.tolist() for d in dask_bpe.open_tokens(tmp_path / "out").documents] == [[257, 256, 258]]
