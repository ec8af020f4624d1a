"""Counting slice by slice: the same counts, and all of it is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

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
