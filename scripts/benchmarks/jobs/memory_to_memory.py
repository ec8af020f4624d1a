"""Bytes in memory to an array of ids in memory, in one thread: encoders without files, blocks and processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import yardsticks
from benchmarks.bars import Bar, faster_than
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.report import comparison, section, speed
from benchmarks.work import SetUp, Task, Work


def _ids(result: Any) -> Iterator[bytes]:
    import numpy as np

    yield np.asarray(result).astype(np.uint32).tobytes()


def dask_bpe(task: Task) -> Work:
    tokenizer, text = task.files.dask_bpe(), task.read()
    return Work(lambda: tokenizer.encode_to_numpy(text), _ids)


def gigatoken(task: Task) -> Work:
    tokenizer, text = task.files.gigatoken(), task.read()
    return Work(lambda: tokenizer.encode(text), _ids)


CONTESTANTS: dict[str, SetUp] = {OURS: dask_bpe, "gigatoken": gigatoken, **yardsticks.CONTESTANTS}


def measure(bench: Bench) -> Iterator[Contest]:
    """Every text with every vocabulary."""
    for text in bench.texts:
        for vocabulary in bench.vocabularies:
            entries = [Entry(name, text, vocabulary, threads=1) for name in (OURS, "gigatoken")]
            entries += yardsticks.entries(text)
            yield bench.contest("memory-to-memory", {"text": text.name, "vocabulary": vocabulary.name}, entries)


def report(contests: list[Contest]) -> str:
    """MB/s."""
    body = comparison(contests, [OURS], ["gigatoken"], "MB/s", speed)
    return section("Encoding bytes in memory to ids in memory, one thread", body)


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """On every text with every vocabulary."""
    yield faster_than("gigatoken", 1.2, "encoding in memory, one thread", contests)
