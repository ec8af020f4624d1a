"""How time and memory grow with the text: counting, merging and encoding apart, once for every size.

Longer texts than all files together come from their variations, see `texts.chained`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.bars import Bar
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.jobs import encode
from benchmarks.jobs.train import learned
from benchmarks.report import mebibytes, section, table
from benchmarks.texts import SEPARATOR
from benchmarks.work import SetUp, Task, Work

TRAINING, ENCODING = "dask_bpe, training", "dask_bpe, encoding"


def train(task: Task) -> Work:
    """Count, then merge; timed apart."""
    import dask_bpe

    size, sample = task.settings["vocab_size"], task.settings["sample"]
    dask_bpe.train(sample, 512, special_tokens=[SEPARATOR])

    def run() -> Any:
        began = time.perf_counter()
        counts = dask_bpe.count_pretokens(task.text, special_tokens=[SEPARATOR])
        counted = time.perf_counter()
        tokenizer = dask_bpe.train(counts, size)
        return tokenizer, {
            "counting": counted - began,
            "merging": time.perf_counter() - counted,
            "distinct": len(counts),
        }

    return Work(run, lambda result: learned(result[0].vocabulary.tokens[257:]), lambda result: result[1])


def encode_warm(task: Task) -> Work:
    """The encoding of `encode`, with everything loaded."""
    encode.dask_bpe(replace(task, text=task.settings["sample"])).run()
    return encode.dask_bpe(task)


CONTESTANTS: dict[str, SetUp] = {TRAINING: train, ENCODING: encode_warm}


def measure(bench: Bench) -> Iterator[Contest]:
    """Every size."""
    settings = {"vocab_size": bench.options.vocab_size, "sample": bench.sample.path}
    for megabytes in bench.options.growth_megabytes:
        text = bench.chained(megabytes)
        entries = [
            Entry(name, text, bench.vocabularies[0], runs=0, same_as=None, against=None, settings=settings)
            for name in CONTESTANTS
        ]
        yield bench.contest("growth", {"text": f"{text.n_bytes / 1e9:.3g} GB"}, entries)


def report(contests: list[Contest]) -> str:
    """A line for every size."""
    lines = []
    for contest in contests:
        trained, encoded = contest.row(TRAINING), contest.row(ENCODING)
        assert trained is not None
        assert encoded is not None
        line = [f"{trained.n_bytes / 1e9:.3g}"]
        if trained.problem:
            line += [trained.problem] * 5
        else:
            facts = trained.facts
            line += [f"{facts['distinct']:,}", f"{facts['counting']:.2f}"]
            line += [f"{trained.n_bytes / 1e6 / facts['counting']:.0f}", f"{facts['merging']:.2f}"]
            line.append(mebibytes(trained.peak))
        if encoded.problem:
            line += [encoded.problem] * 3
        else:
            line += [f"{encoded.seconds:.2f}", f"{encoded.speed:.0f}", mebibytes(encoded.peak)]
        lines.append(line)
    head = ["GB", "distinct pre-tokens", "counting, s", "MB/s", "merging, s", "peak of both, MiB"]
    head += ["encoding, s", "MB/s", "peak, MiB"]
    note = f"{OURS} once for each size, all cores; the texts are mixed, and come with swapped case and under rot13 too."
    return section("Growth", table(head, lines, left=()), note)


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """None: it is to be looked at."""
    return iter(())
