"""What tests of encoded corpora expect, by the oracle, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import reference
from reference import GPT2

import dask_bpe
from dask_bpe import Tokenizer


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
