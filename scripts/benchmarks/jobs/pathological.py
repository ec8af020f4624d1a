"""Texts that are unlike any language, encoded in one thread in memory, beside the same amount of the first text.

Met first, and again: an encoder that has seen a text may remember parts of it, of English more than of noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import texts
from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry
from benchmarks.figures import Contest, Row
from benchmarks.report import section, speed, table
from benchmarks.work import SetUp, Task, Work

CONTESTANT = "dask_bpe"


def dask_bpe(task: Task) -> Work:
    tokenizer, text = task.files.dask_bpe(), task.read()
    tokenizer.encode("Some words of a text.")

    def made(ids: Any) -> Iterator[bytes]:
        yield tokenizer.decode_bytes(ids)

    return Work(lambda: tokenizer.encode_to_numpy(text), made)


CONTESTANTS: dict[str, SetUp] = {CONTESTANT: dask_bpe}


def measure(bench: Bench) -> Iterator[Contest]:
    """All of them with every vocabulary; decoded, they must be what they were."""
    megabytes = bench.options.pathological_megabytes
    cases = [bench.prefix(bench.texts[0], megabytes)]
    for name, text in texts.pathological(int(megabytes * 1e6)):
        cases.append(texts.write_raw(bench.folder / f"{name}.bin", name, text))
    runs = min(bench.options.runs, bench.options.large_runs)
    for vocabulary in bench.vocabularies:
        entries = [
            Entry(CONTESTANT, text, vocabulary, name=text.name, runs=runs, against=None, digest=text.sha256, threads=1)
            for text in cases
        ]
        yield bench.contest("pathological", {"vocabulary": vocabulary.name}, entries)


def _first(row: Row) -> float:
    return row.n_bytes / 1e6 / row.first


def _ratios(contest: Contest, row: Row) -> tuple[float, float]:
    """Of the speed of the first text: met first, and again."""
    usual = contest.rows[0]
    return _first(row) / _first(usual), row.speed / usual.speed


def report(contests: list[Contest]) -> str:
    """MB/s, and what part that is of the usual speed."""
    lines = []
    for contest in contests:
        for row in contest.rows:
            if row.problem or contest.rows[0].problem:
                lines.append([contest.place, row.name, *[row.problem or contest.rows[0].problem] * 4])
                continue
            first, again = _ratios(contest, row)
            lines.append([contest.place, row.name, f"{_first(row):.1f}", speed(row), f"{first:.2f}", f"{again:.2f}"])
    usual = contests[0].rows[0].name
    head = ["vocabulary", "text", "met first, MB/s", "again, MB/s", f"of {usual}: first", "again"]
    heading = f"Pathological texts of {contests[0].rows[-1].n_bytes / 1e6:.0f} MB, one thread"
    return section(heading, table(head, lines, left=(0, 1)))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """None below a tenth of the usual speed."""
    found = []
    for contest in contests:
        for row in contest.rows[1:]:
            problem = row.problem or contest.rows[0].problem
            value = 0.0 if problem else min(_ratios(contest, row))
            found.append(Measured(value, f"{row.name}, {contest.place}", problem))
    yield Bar("pathological texts, of English", 0.1, "x", tuple(found))
