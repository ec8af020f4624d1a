"""A vocabulary from counts that were saved before: the merge loop alone, on about as many distinct pre-tokens as asked
for. That the counts lose nothing is shown by a training from the text, which must learn the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry, say
from benchmarks.figures import OURS, Contest
from benchmarks.jobs.train import learned
from benchmarks.report import seconds, section, table
from benchmarks.texts import SEPARATOR
from benchmarks.work import SetUp, Task, Work

COUNT, FROM_TEXT = "dask_bpe, counting", "dask_bpe, from the text"
LOADING = "dask_bpe, loading the counts"
# Distinct pre-tokens grow with the text to about this power (Heaps' law).
_GROWTH = 0.62
_ROUNDS = 5


def count(task: Task) -> Work:
    """Counts the text and saves the counts."""
    import dask_bpe

    def run() -> Any:
        return dask_bpe.count_pretokens(task.text, special_tokens=[SEPARATOR])

    def facts(counts: Any) -> dict[str, Any]:
        counts.to_parquet(task.settings["counts"])
        return {"distinct": len(counts)}

    return Work(run, lambda _: [], facts)


def from_counts(task: Task) -> Work:
    import dask_bpe

    counts = dask_bpe.PretokenCounts.from_parquet(task.settings["counts"])
    return Work(lambda: dask_bpe.train(counts, task.settings["vocab_size"]), _learned)


def from_text(task: Task) -> Work:
    import dask_bpe

    size = task.settings["vocab_size"]
    return Work(lambda: dask_bpe.train(task.text, size, special_tokens=[SEPARATOR]), _learned)


def loading(task: Task) -> Work:
    import dask_bpe

    return Work(lambda: dask_bpe.PretokenCounts.from_parquet(task.settings["counts"]), lambda _: [])


def _learned(tokenizer: Any) -> Iterator[bytes]:
    return learned(tokenizer.vocabulary.tokens[257:])


CONTESTANTS: dict[str, SetUp] = {OURS: from_counts, COUNT: count, FROM_TEXT: from_text, LOADING: loading}


def measure(bench: Bench) -> Iterator[Contest]:
    """On a text of all files, long enough."""
    wanted = bench.options.distinct
    settings = {"counts": str(bench.folder / "counts.parquet"), "vocab_size": bench.options.vocab_size}
    megabytes = bench.options.megabytes
    for _ in range(_ROUNDS):
        text = bench.chained(megabytes)
        entry = Entry(COUNT, text, runs=0, same_as=None, settings=settings)
        counting = bench.contest("train-counts", {}, [entry]).rows[0]
        if counting.error or 0.95 < counting.facts["distinct"] / wanted < 1.05:
            break
        say(f"train-counts: {counting.facts['distinct']:,} distinct pre-tokens in {text.n_bytes / 1e6:.0f} MB")
        if text.n_bytes < megabytes * 0.99e6 and counting.facts["distinct"] < wanted:
            break
        megabytes = round(megabytes * (wanted / counting.facts["distinct"]) ** (1 / _GROWTH), 1)
    if counting.error:
        raise RuntimeError(counting.error)
    labels = {"distinct pre-tokens": f"{counting.facts['distinct']:,}", "ids": f"{bench.options.vocab_size:,}"}
    entries = [
        Entry(OURS, text, settings=settings),
        Entry(FROM_TEXT, text, settings=settings, runs=1),
        Entry(LOADING, text, settings=settings, same_as=None, against=None, runs=1),
    ]
    yield bench.contest("train-counts", labels, entries)


def report(contests: list[Contest]) -> str:
    """Seconds."""
    lines = [
        [*contest.labels.values(), row.name, row.problem or seconds(row)]
        for contest in contests
        for row in contest.rows
    ]
    return section("Training from saved counts", table([*contests[0].labels, "", "s"], lines, left=(2,)))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """The merge loop, without what it is given."""
    contest = contests[0]
    row = contest.rows[0]
    place = f"{contest.labels['distinct pre-tokens']} distinct"
    yield Bar("training from counts", 2, "s", (Measured(row.seconds, place, row.problem),), most=True)
