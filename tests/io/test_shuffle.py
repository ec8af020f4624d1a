"""Shuffled documents: an order that only the seed and the number of documents decide."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layout_readers import END
from token_corpora import Documents, corpora, write_corpus

from dask_bpe.errors import OutputError
from dask_bpe.io.layouts import shuffle
from dask_bpe.io.layouts.shuffle import keys, shuffled

repeatable = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
MASK = (1 << 64) - 1


@pytest.fixture(autouse=True)
def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of corpora, each flushed to the disk, would take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def mixed(value: int) -> int:
    """The same in Python's integers."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def key(number: int, seed: int) -> int:
    return mixed(mixed(number + 1) ^ mixed(seed + 0x9E3779B97F4A7C15 & MASK))


def order(count: int, seed: int) -> list[int]:
    """The documents' numbers in their new order."""
    return sorted(range(count), key=lambda number: key(number, seed))


@given(st.integers(0, 2**62 - 1), st.lists(st.integers(0, 2**40), min_size=1))
def test_keys(seed: int, numbers: list[int]) -> None:
    assert keys(np.array(numbers, np.uint64), seed).tolist() == [key(number, seed) for number in numbers]


def test_orders_stay_what_they_are() -> None:
    """Whoever shuffled with a seed must get the same order from a later version."""
    assert order(10, 0) == [2, 6, 4, 1, 0, 9, 5, 7, 8, 3]
    assert order(10, 1) == [0, 3, 8, 1, 6, 7, 9, 5, 2, 4]
    assert keys(np.arange(2, dtype=np.uint64), 7).tolist() == [14410334998978661030, 13521320090243598252]


def test_orders_are_far_from_sorted() -> None:
    """Of neighbours about half are swapped, and two seeds agree in about one place."""
    count = 10_000
    first, second = order(count, 1), order(count, 2)
    for found in (first, second):
        swapped = sum(a > b for a, b in pairwise(found))
        assert 0.48 < swapped / count < 0.52
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 10


@given(
    corpora(most=30),
    st.integers(0, 2**62 - 1),
    st.integers(1, 20),
    st.sampled_from([(1, 1), (5, 1 << 30), (1 << 30, 3), (1 << 30, 1 << 30)]),
    st.integers(1, 3),
)
@repeatable
def test_a_permutation_whatever_the_memory(
    tmp_path_factory: pytest.TempPathFactory,
    corpus: tuple[Documents, list[int]],
    seed: int,
    max_tokens: int,
    bucket: tuple[int, int],
    bits: int,
) -> None:
    """With buckets so small that they are dealt over and over again, and with a single one."""
    documents, cuts = corpus
    found = write_corpus(tmp_path_factory.mktemp("corpus"), documents, cuts)
    out = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffle, "BUCKET_TOKENS", bucket[0])
        patch.setattr(shuffle, "BUCKET_DOCUMENTS", bucket[1])
        patch.setattr(shuffle, "MOST_BITS", bits)
        batches = list(shuffled(found.batches(7), seed, found, str(out), max_tokens))
    numbers = [int(name) for batch in batches for name in batch.doc_ids]
    assert numbers == order(len(documents), seed)
    made = [
        batch.ids[a:b].tolist() for batch in batches for a, b in zip(batch.offsets, batch.offsets[1:], strict=False)
    ]
    assert made == [documents[number] for number in numbers]
    before = {
        name: source for batch in found.batches() for name, source in zip(batch.doc_ids, batch.sources, strict=True)
    }
    assert [s for batch in batches for s in batch.sources] == [before[str(number)] for number in numbers]
    assert all(batch.ids.dtype == np.uint16 for batch in batches)
    assert all(len(batch.ids) <= max_tokens or len(batch) == 1 for batch in batches)
    assert not list(out.iterdir())


def test_what_is_in_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sorted at a time is about a bucket, and the files are gone when they have been read."""
    corpus = write_corpus(tmp_path / "corpus", [[i % 250, END] for i in range(4_000)])
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(shuffle, "BUCKET_TOKENS", 100)
    monkeypatch.setattr(shuffle, "MOST_BITS", 3)
    sizes: list[int] = []
    sort = shuffle._sorted

    def watch(batches: list[shuffle.pa.RecordBatch]) -> object:
        sizes.append(sum(len(batch) for batch in batches))
        return sort(batches)

    monkeypatch.setattr(shuffle, "_sorted", watch)
    seen = 0
    for batch in shuffled(corpus.batches(1000), 3, corpus, str(tmp_path / "out"), 1000):
        seen += len(batch)
    assert seen == sum(sizes) == 4_000
    assert max(sizes) <= 50


def test_no_room_for_the_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_corpus(tmp_path / "corpus", [[i, END] for i in range(100)])
    with pytest.raises(OutputError, match=r"cannot shuffle in .*: No such file or directory"):
        list(shuffled(corpus.batches(), 3, corpus, str(tmp_path / "missing"), 1000))

    def refuse(bucket: object, rows: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(shuffle, "BUCKET_TOKENS", 10)
    monkeypatch.setattr(shuffle._Bucket, "add", refuse)
    with pytest.raises(OutputError, match=r"cannot shuffle in .*: No space left on device"):
        list(shuffled(corpus.batches(), 3, corpus, str(tmp_path / "out"), 1000))
    assert not list((tmp_path / "out").iterdir())
