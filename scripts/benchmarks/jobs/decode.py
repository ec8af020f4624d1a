"""The ids of a text back to its bytes, in one thread, in memory. All decode the ids that ours has encoded, each in the
form that it takes without a detour."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import yardsticks
from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.report import comparison, notes, section, speed
from benchmarks.work import SetUp, Task, Work


def dask_bpe(task: Task) -> Work:
    tokenizer = task.files.dask_bpe()
    ids = tokenizer.encode_to_numpy(task.read())
    return Work(lambda: tokenizer.decode_bytes(ids), lambda text: [text])


def gigatoken(task: Task) -> Work:
    tokenizer = task.files.gigatoken()
    ids = task.files.dask_bpe().encode_to_numpy(task.read(), dtype="uint32")
    return Work(lambda: tokenizer.decode(ids), lambda text: [text])


def tiktoken(task: Task) -> Work:
    encoding = task.files.tiktoken()
    ids = task.files.dask_bpe().encode(task.read())
    return Work(lambda: encoding.decode_bytes(ids), lambda text: [text])


CONTESTANTS: dict[str, SetUp] = {
    OURS: dask_bpe,
    "gigatoken": gigatoken,
    "tiktoken": tiktoken,
    **yardsticks.CONTESTANTS,
}


def measure(bench: Bench) -> Iterator[Contest]:
    """Every text with every vocabulary. tiktoken gets a prefix: a list of ids takes 36 bytes for each of them."""
    for text in bench.texts:
        prefix = bench.prefix(text, bench.options.slow_megabytes)
        for vocabulary in bench.vocabularies:
            entries = [Entry(name, text, vocabulary, digest=text.sha256, threads=1) for name in (OURS, "gigatoken")]
            entries.append(Entry("tiktoken", prefix, vocabulary, digest=prefix.sha256, threads=1))
            entries += yardsticks.entries(text)
            yield bench.contest("decode", {"text": text.name, "vocabulary": vocabulary.name}, entries)


def report(contests: list[Contest]) -> str:
    """MB/s of text."""
    body = comparison(contests, [OURS], ["gigatoken", "tiktoken"], "MB/s", speed)
    return section("Decoding ids in memory to bytes, one thread, MB/s of text", body, notes(contests))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """The speed itself."""
    found = [
        Measured(row.speed, contest.place, row.problem)
        for contest in contests
        for row in contest.rows
        if row.name == OURS
    ]
    yield Bar("decoding, one thread", 1000, "MB/s", tuple(found))
