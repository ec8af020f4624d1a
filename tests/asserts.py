"""What tests of encoded corpora expect, by the oracle, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import reference
from layout_readers import READERS
from reference import GPT2
from token_corpora import Documents

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.io.layouts import LAYOUTS


def trained_on(
    texts: Sequence[str],
    special: Sequence[str],
    n_merges: int = 40,
    ties: str = "bytes",
    *,
    pattern: str | None = GPT2,
    trained_with: str | None = GPT2,
) -> Tokenizer:
    """What the oracle learns from the texts, split by one pattern, to be used with the same or another."""
    counts = reference.count(texts, trained_with, special)
    trained = reference.train(counts, 256 + len(special) + n_merges, special, ties)
    merges = np.array(trained.merges, np.int32).reshape(-1, 3)
    name = "gpt2" if pattern == GPT2 else pattern
    return Tokenizer(dask_bpe.Vocabulary(tuple(trained.tokens), merges, trained.special_tokens, name, ties))


def crossing(texts: Sequence[str], special: Sequence[str], pattern: str | None = GPT2) -> Tokenizer:
    """With merges that cross the pattern's cuts: its ids show every place where the text was cut."""
    return trained_on(texts, special, 60, pattern=pattern, trained_with=None)


def documents_of(texts: Sequence[str], tokenizer: Tokenizer, separator: str | None) -> list[list[int]]:
    """The ids of every file, cut after each separator; one is put where the file ends without it."""
    documents: list[list[int]] = []
    for text in texts:
        document: list[int] = []
        for i in tokenizer.encode(text):
            document.append(i)
            if separator is not None and i == tokenizer.special_tokens[separator]:
                documents.append(document)
                document = []
        if document:
            mark = [] if separator is None else [tokenizer.special_tokens[separator]]
            documents.append(document + mark)
    return documents


def assert_encoded(out: Path, texts: Sequence[str], tokenizer: Tokenizer, separator: str | None) -> None:
    """The folder holds the ids and the documents of these texts, and nothing is left lying about."""
    corpus = dask_bpe.open_tokens(out)
    expected = documents_of(texts, tokenizer, separator)
    assert [document.tolist() for document in corpus.documents] == expected
    assert corpus.n_documents == len(expected)
    assert corpus.n_tokens == sum(map(len, expected))
    corpus.verify()
    assert not [path.name for path in out.iterdir() if "tmp" in path.name]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_back(to: str, folder: Path) -> list[Documents]:
    """The shards of an output whose record and table of documents must be right."""
    record = dask_bpe.verify_layout(folder)
    shards = READERS[to](folder, record.dtype)
    assert record.layout == to
    assert {file.name for file in record.files} | {"layout.json"} == set(contents(folder))
    assert all(file.bytes for file in record.files), "no file is empty"
    assert record.documents == sum(map(len, shards))
    assert record.tokens == sum(len(document) for shard in shards for document in shard)
    assert record.max_id == max(token for shard in shards for document in shard for token in document)
    table = pq.read_table(folder / LAYOUTS[to].sidecar)
    assert table.num_rows == record.documents
    row = iter(table.to_pylist())
    for number, shard in enumerate(shards):
        start = 0
        for document in shard:
            entry = next(row)
            assert (entry["shard"], entry["start"], entry["n_tokens"]) == (number, start, len(document))
            start += len(document)
    return shards
