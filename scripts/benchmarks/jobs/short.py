"""Strings of 60 characters, one call each: what a call costs. As many different strings as a call in a program would
meet, again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import texts
from benchmarks.bars import Bar, faster_than
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest, Row
from benchmarks.report import cell, ratio, section, table, title
from benchmarks.work import SetUp, Task, Work

CHARACTERS, STRINGS, ROUNDS = 60, 1000, 20
TIKTOKEN, TIKTOKEN_ORDINARY = "tiktoken encode", "tiktoken encode_ordinary"
GIGATOKEN = "gigatoken encode"
ORDINARY = "dask_bpe encode_ordinary"


def _calls(task: Task, encode: Callable[[str], Iterable[int]]) -> Work:
    strings = texts.short_strings(Path(task.text), STRINGS, CHARACTERS)

    def run() -> None:
        for _ in range(ROUNDS):
            for string in strings:
                encode(string)

    def made(_: Any) -> Iterator[bytes]:
        yield from (repr([int(index) for index in encode(string)]).encode() for string in strings)

    return Work(run, made, lambda _: {"calls": ROUNDS * len(strings)})


CONTESTANTS: dict[str, SetUp] = {
    OURS: lambda task: _calls(task, task.files.dask_bpe().encode),
    ORDINARY: lambda task: _calls(task, task.files.dask_bpe().encode_ordinary),
    TIKTOKEN: lambda task: _calls(task, task.files.tiktoken().encode),
    TIKTOKEN_ORDINARY: lambda task: _calls(task, task.files.tiktoken().encode_ordinary),
    GIGATOKEN: lambda task: _calls(task, task.files.gigatoken().encode),
}


def measure(bench: Bench) -> Iterator[Contest]:
    """Strings of the first text, with every vocabulary."""
    for vocabulary in bench.vocabularies:
        entries = [Entry(name, bench.sample, vocabulary, threads=1) for name in CONTESTANTS]
        yield bench.contest("short", {"vocabulary": vocabulary.name}, entries)


def _microseconds(row: Row) -> str:
    return f"{row.seconds / row.facts['calls'] * 1e6:.2f}"


def report(contests: list[Contest]) -> str:
    """Microseconds a call, and how many times faster ours is."""
    there = [name for name in CONTESTANTS if any(contest.row(name) for contest in contests)]
    others = [name for name in there if name not in (OURS, ORDINARY)]
    names = [f"{title(name)}, µs" if name != OURS else f"{OURS} encode, µs" for name in there]
    head = ["vocabulary", *names, *(f"faster than {title(name)}" for name in others)]
    lines = [
        [
            contest.place,
            *(cell(contest, name, _microseconds) for name in there),
            *(cell(contest, name, ratio) for name in others),
        ]
        for contest in contests
    ]
    heading = f"Encoding one str of {CHARACTERS} characters ({STRINGS:,} different ones)"
    return section(heading, table(head, lines))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Not slower than tiktoken, whichever of its functions is called."""
    for name in (TIKTOKEN, TIKTOKEN_ORDINARY):
        yield faster_than(name, 1, f"{CHARACTERS} characters", contests)
