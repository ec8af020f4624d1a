"""Counting slice by slice: the same counts, and all of it is told."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import regex

import dask_bpe
from dask_bpe.cluster import count_partition
from dask_bpe.progress import JobState, Progress

END = "<|endoftext|>"
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


class Told(Progress):
    """Adds up what it is told of the counting."""

    def __init__(self) -> None:
        self.amounts: list[int] = []

    def begin(self, job: JobState) -> None:
        self.job = job

    def advance(self, stage: str, amount: int) -> None:
        if stage == "counting":
            self.amounts.append(amount)


@pytest.mark.parametrize("size", [1, 100, 1 << 30])
def test_slices_of_any_size(size: int, alice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_partition, "_SLICE_BYTES", size)
    documents = alice[:20_000].split("\n\n")
    path = tmp_path / "text.txt"
    path.write_text(END.join(documents), encoding="utf-8", newline="")
    told = Told()
    counts = dask_bpe.count_pretokens(path, special_tokens=[END], progress=told)
    expected = Counter(word.encode() for document in documents for word in regex.findall(GPT2, document))
    assert counts.to_dict() == expected
    assert sum(told.amounts) == path.stat().st_size
    assert (len(told.amounts) > 10) == (size < 1 << 30)
    figures = told.job.snapshot()["figures"]
    assert figures["bytes"] == path.stat().st_size == counts.n_bytes
    assert figures["pretokens"] == sum(expected.values())
    # Every part that was told of is a beginning of the text: none has more distinct pre-tokens than all of it.
    growth = told.job.snapshot()["curves"]["growth"]
    assert growth["distinct"] == sorted(growth["distinct"])
    assert growth["distinct"][-1] == len(expected)


@pytest.mark.parametrize("kind", ["txt", "jsonl", "jsonl.gz", "parquet"])
def test_the_order_of_first_occurrence_is_that_of_the_corpus(kind: str, tmp_path: Path) -> None:
    """Whatever the blocks, formats and sizes of files: `ties="first"` asks for it."""
    rng = random.Random(7)
    documents = [" ".join(f"w{rng.randrange(3 + number * 40)}é\n" for _ in range(30)) for number in range(60)]
    for number, part in enumerate((documents[:25], documents[25:30], documents[30:])):
        write_documents(tmp_path / f"{number}.{kind}", part)
    expected = list(dict.fromkeys(word for text in documents for word in regex.findall(GPT2, text)))
    for block_bytes in (300, 4000, None):
        counts = dask_bpe.count_pretokens(tmp_path, special_tokens=[END], block_bytes=block_bytes)
        order = np.argsort(counts.first)
        assert [counts.strings[k].decode() for k in order] == expected
    of_texts = dask_bpe.count_pretokens(iter(documents))
    assert [of_texts.strings[k].decode() for k in np.argsort(of_texts.first)] == expected


def write_documents(path: Path, documents: list[str]) -> None:
    """The documents in the format that the name asks for."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in documents).encode()
    if path.suffix == ".txt":
        path.write_bytes("".join(text + END for text in documents).encode())
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"text": documents}), path, row_group_size=7)
    else:
        path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)
