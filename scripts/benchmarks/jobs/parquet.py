"""Encoding to shards of Parquet beside the raw ones, both by ours, with all cores."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.report import cell, section, speed, table
from benchmarks.texts import SEPARATOR
from benchmarks.work import SetUp, Task, Work

PARQUET = "dask_bpe, parquet"
_IDS_AT_ONCE = 1 << 20


def encode(task: Task, kind: str) -> Work:
    import dask_bpe

    tokenizer, out = task.files.dask_bpe(), task.path("shards")

    def run() -> None:
        shutil.rmtree(out, ignore_errors=True)
        dask_bpe.encode_corpus(task.text, tokenizer, out, kind, dtype=task.files.dtype, separator=SEPARATOR)

    def made(_: Any) -> Iterator[bytes]:
        tokens = dask_bpe.open_tokens(out)
        for start in range(0, len(tokens), _IDS_AT_ONCE):
            yield tokens.tokens(start, min(start + _IDS_AT_ONCE, len(tokens))).tobytes()

    return Work(run, made)


CONTESTANTS: dict[str, SetUp] = {OURS: partial(encode, kind="bin"), PARQUET: partial(encode, kind="parquet")}


def measure(bench: Bench) -> Iterator[Contest]:
    """Every text, with the first vocabulary."""
    vocabulary = bench.vocabularies[0]
    for text in bench.texts:
        entries = [Entry(name, text, vocabulary) for name in CONTESTANTS]
        yield bench.contest("parquet", {"text": text.name, "vocabulary": vocabulary.name}, entries)


def _part(row: Any) -> str:
    return f"{1 / row.slower:.2f}"


def report(contests: list[Contest]) -> str:
    """MB/s."""
    lines = [
        [
            *contest.labels.values(),
            cell(contest, OURS, speed),
            cell(contest, PARQUET, speed),
            cell(contest, PARQUET, _part),
        ]
        for contest in contests
    ]
    head = ["text", "vocabulary", "bin, MB/s", "parquet, MB/s", "parquet of bin"]
    return section("Encoding to Parquet", table(head, lines, left=(0, 1)))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Of the speed of raw shards."""
    rows = [(contest, row) for contest in contests if (row := contest.row(PARQUET))]
    found = [Measured(1 / row.slower if row.slower else 0, contest.place, row.problem) for contest, row in rows]
    yield Bar("encoding to Parquet, of .bin", 0.7, "x", tuple(found))
