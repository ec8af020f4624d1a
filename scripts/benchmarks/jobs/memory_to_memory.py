"""Bytes in memory to an array of ids in memory, in one thread: encoders without files, blocks and processes.

The text met first, and again: a corpus is met once, and of a text that comes again an encoder remembers more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks import yardsticks
from benchmarks.bars import Bar, faster_than
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest, Row
from benchmarks.report import cell, comparison, section, speed, table, title
from benchmarks.work import SetUp, Task, Work

# Encoded before the text, so that what is loaded at the first call is no part of the first pass; longer than what ours
# takes for short, which has kernels of its own.
_LOADED = b"Some words of a text. " * 1000


def _ids(result: Any) -> Iterator[bytes]:
    import numpy as np

    yield np.asarray(result).astype(np.uint32).tobytes()


def dask_bpe(task: Task) -> Work:
    tokenizer, text = task.files.dask_bpe(), task.read()
    tokenizer.encode_to_numpy(_LOADED)
    return Work(lambda: tokenizer.encode_to_numpy(text), _ids)


def gigatoken(task: Task) -> Work:
    tokenizer, text = task.files.gigatoken(), task.read()
    tokenizer.encode(_LOADED)
    return Work(lambda: tokenizer.encode(text), _ids)


CONTESTANTS: dict[str, SetUp] = {OURS: dask_bpe, "gigatoken": gigatoken, **yardsticks.CONTESTANTS}


def measure(bench: Bench) -> Iterator[Contest]:
    """Every text with every vocabulary."""
    for text in bench.texts:
        for vocabulary in bench.vocabularies:
            entries = [Entry(name, text, vocabulary, threads=1) for name in (OURS, "gigatoken")]
            entries += yardsticks.entries(text)
            yield bench.contest("memory-to-memory", {"text": text.name, "vocabulary": vocabulary.name}, entries)


def _first(row: Row) -> str:
    """The speed of the first pass."""
    return f"{row.n_bytes / 1e6 / row.first:.1f}"


def _first_beside(ours: Row, row: Row) -> str:
    """The same, and how many times ours is as fast."""
    return _first(row) if ours.problem else f"{_first(row)} ({row.first / ours.first:.2f}x)"


def report(contests: list[Contest]) -> str:
    """MB/s: again, and met first."""
    again = comparison(contests, [OURS], ["gigatoken"], "MB/s", speed)
    lines = [
        [
            *contest.labels.values(),
            cell(contest, OURS, _first),
            cell(contest, "gigatoken", partial(_first_beside, contest.rows[0])),
        ]
        for contest in contests
    ]
    head = [*contests[0].labels, *(f"{title(name)}, met first, MB/s" for name in (OURS, "gigatoken"))]
    first = section("The same, text that is met for the first time", table(head, lines, left=(0, 1)))
    return section("Encoding bytes in memory to ids in memory, one thread", again, first)


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """On every text with every vocabulary."""
    yield faster_than("gigatoken", 1.2, "encoding in memory, one thread", contests)
