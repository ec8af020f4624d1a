"""Pre-tokens counted in one thread, text in memory, the table new for every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import yardsticks
from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.report import comparison, section, speed
from benchmarks.work import SetUp, Task, Work

PATTERNS = ("gpt2", "cl100k", "o200k")


def dask_bpe(task: Task) -> Work:
    import numpy as np

    from dask_bpe.count_table import CountTable
    from dask_bpe.counts import PretokenCounts
    from dask_bpe.pretokenize import Scanner, get_pattern

    pattern = get_pattern(task.settings["pattern"])
    text = np.fromfile(task.text, np.uint8)
    whole = np.array([[0], [len(text)]], np.int64)

    def run() -> Any:
        table = CountTable.for_text(len(text))
        table.add_segments(text, whole, Scanner(pattern), 0)
        return PretokenCounts.from_table(table)

    def made(counts: Any) -> Iterator[bytes]:
        yield from (counts.strings.values.tobytes(), counts.counts.tobytes())

    return Work(run, made, lambda counts: {"distinct": len(counts)})


CONTESTANTS: dict[str, SetUp] = {OURS: dask_bpe, **yardsticks.CONTESTANTS}


def measure(bench: Bench) -> Iterator[Contest]:
    """Every text under every pattern."""
    for text in bench.texts:
        for pattern in PATTERNS[:1] if bench.options.quick else PATTERNS:
            entries = [Entry(OURS, text, threads=1, settings={"pattern": pattern}), *yardsticks.entries(text)]
            yield bench.contest("count", {"text": text.name, "pattern": pattern}, entries)


def report(contests: list[Contest]) -> str:
    """MB/s."""
    return section("Counting pre-tokens in memory, one thread", comparison(contests, [OURS], [], "MB/s", speed))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Of GPT-2's pattern on the first text, which is to be English."""
    contest = contests[0]
    row = contest.rows[0]
    yield Bar("counting, one thread", 400, "MB/s", (Measured(row.speed, contest.place, row.problem),))
