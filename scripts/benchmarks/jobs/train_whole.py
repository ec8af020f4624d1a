"""A vocabulary without pre-tokenization: merges within whole documents. Of the peers only HF tokenizers can: on a
part of the text, since each of its merges walks over all of it."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bars import Bar, faster_than
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.jobs import train
from benchmarks.report import comparison, notes, seconds, section
from benchmarks.work import SetUp

CONTESTANTS: dict[str, SetUp] = {OURS: train.dask_bpe, "tokenizers": train.tokenizers}


def measure(bench: Bench) -> Iterator[Contest]:
    """The first text."""
    text = bench.prefix(bench.texts[0], bench.options.whole_megabytes)
    settings = {"vocab_size": bench.options.whole_vocab_size, "pattern": None}
    slow = bench.slow(["tokenizers"], text, bench.options.whole_slow_megabytes, settings=settings)
    entries = [Entry(OURS, text, settings=settings), *slow]
    labels = {"text": text.name, "ids": f"{bench.options.whole_vocab_size:,}"}
    yield bench.contest("train-whole", labels, entries)


def report(contests: list[Contest]) -> str:
    """Seconds."""
    body = comparison(contests, [OURS], ["tokenizers"], "s", seconds, peaks=(OURS, "tokenizers"))
    return section("Training without pre-tokenization", body, notes(contests))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Against HF tokenizers."""
    yield faster_than("tokenizers", 10, "training without pre-tokenization", contests)
