"""Whole documents in batches: the same for every way of cutting the corpus into shards."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_corpora import Documents, corpora, write_corpus

from dask_bpe.errors import ParameterError
from dask_bpe.io import batches as batching
from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.reader import open_tokens
from dask_bpe.io.shards import FORMATS

repeatable = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of corpora, each flushed to the disk, would take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def documents_of(batch: TokenBatch) -> Documents:
    """The documents of a batch, which must be well-formed."""
    assert batch.offsets[0] == 0
    assert batch.offsets[-1] == len(batch.ids)
    assert len(batch) == len(batch.doc_ids) == len(batch.sources) == len(batch.positions)
    assert batch.lengths.tolist() == [b - a for a, b in pairwise(batch.offsets.tolist())]
    return [batch.ids[a:b].tolist() for a, b in pairwise(batch.offsets.tolist())]


def packed(documents: Documents, max_tokens: int, max_documents: int) -> list[Documents]:
    """As many documents a batch as fit."""
    found: list[Documents] = []
    for document in documents:
        if not found or sum(map(len, found[-1])) + len(document) > max_tokens or len(found[-1]) == max_documents:
            found.append([])
        found[-1].append(document)
    return found


@pytest.mark.parametrize("kind", list(FORMATS))
@given(corpora(), st.integers(1, 20), st.integers(1, 4))
@repeatable
def test_batches_hold_as_many_documents_as_fit(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    corpus: tuple[Documents, list[int]],
    max_tokens: int,
    max_documents: int,
) -> None:
    documents, cuts = corpus
    found = write_corpus(tmp_path_factory.mktemp("corpus"), documents, cuts, kind=kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "BATCH_DOCUMENTS", max_documents)
        made = list(found.batches(max_tokens))
    assert [documents_of(batch) for batch in made] == packed(documents, max_tokens, max_documents)
    assert [name for batch in made for name in batch.doc_ids] == [str(i) for i in range(len(documents))]
    assert all(batch.ids.dtype == np.uint16 and batch.offsets.dtype == np.int64 for batch in made)


def test_where_documents_come_from(tmp_path: Path) -> None:
    """The origin of a document is that of its first piece."""
    corpus = write_corpus(tmp_path, [[1, 2], [3, 4, 5, 6], [7]], [3, 5])
    (batch,) = corpus.batches()
    assert batch.sources == ["0.txt", "0.txt", "2.txt"]
    assert batch.positions.tolist() == [0, 1, 2]
    assert batch.doc_ids == ["0", "1", "2"]


def test_a_batch_within_one_shard_is_a_view(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, [[1, 2], [3], [4, 5]])
    first = next(corpus.batches(3))
    assert documents_of(first) == [[1, 2], [3]]
    assert np.shares_memory(first.ids, corpus.tokens(0, 5))


def test_rows(tmp_path: Path) -> None:
    (batch,) = write_corpus(tmp_path, [[1, 2], [], [3, 4]]).batches()
    assert documents_of(batch.rows(1, 3)) == [[], [3, 4]]
    assert batch.rows(1, 3).doc_ids == ["1", "2"]
    assert documents_of(batch.rows(2, 2)) == []


def test_nothing_and_wrong_sizes(tmp_path: Path) -> None:
    Manifest("bin", "uint16", "f", 256).write(tmp_path)
    assert list(open_tokens(tmp_path).batches()) == []
    for size in (0, -1, 1.5):
        with pytest.raises(ParameterError, match="max_tokens"):
            open_tokens(tmp_path).batches(size)  # type: ignore[arg-type]
