"""From launching Python to the first id: with nothing compiled yet, and in later processes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.bars import Bar
from benchmarks.contest import Bench, Entry, FailedError, say
from benchmarks.figures import OURS, Contest, Row
from benchmarks.report import seconds, section, table, title
from benchmarks.texts import SEPARATOR
from benchmarks.work import SetUp, Task, Work

WORDS = "The first words of a text."
READY = "dask_bpe, everything"
AT_ONCE = 4


def _first_id(encode: Callable[[str], Any]) -> Work:
    return Work(lambda: int(encode(WORDS)[0]), lambda first: [str(first).encode()])


def ready(task: Task) -> Work:
    """All that is compiled: a vocabulary is trained, and its tokenizer used."""
    import dask_bpe

    text = task.path("text.txt")
    text.write_text(WORDS + SEPARATOR)

    def run() -> bytes:
        tokenizer = dask_bpe.train(text, 300, special_tokens=[SEPARATOR])
        dask_bpe.encode_corpus(text, tokenizer, task.path("shards"))
        return bytes(tokenizer.decode_bytes(tokenizer.encode(WORDS)))

    return Work(run, lambda decoded: [decoded])


CONTESTANTS: dict[str, SetUp] = {
    OURS: lambda task: _first_id(task.files.dask_bpe().encode),
    "gigatoken": lambda task: _first_id(task.files.gigatoken().encode),
    "tiktoken": lambda task: _first_id(task.files.tiktoken().encode_ordinary),
    "tokenizers": lambda task: _first_id(lambda words: task.files.tokenizers().encode(words).ids),
    READY: ready,
}


def measure(bench: Bench) -> Iterator[Contest]:
    """With the first vocabulary."""
    vocabulary = bench.vocabularies[0]
    contest = Contest("start", {"vocabulary": vocabulary.name})
    first_id = ""

    def add(name: str, contestant: str, cache: str, processes: int = 1, times: int = 1) -> None:
        nonlocal first_id
        entry = Entry(contestant, vocabulary=vocabulary)
        if not bench.takes_part(entry):
            return
        say(f"start: {name}")
        row = Row(name)
        contest.rows.append(row)
        try:
            found = [_launched(bench, entry, cache, processes) for _ in range(times)]
        except FailedError as error:
            row.error = str(error)
            return
        row.runs = [seconds for seconds, _ in found]
        if contestant != READY:
            first_id = first_id or found[0][1]
            row.same = {digest for _, digest in found} == {first_id}

    cache = _empty(bench)
    add("dask_bpe, first ever: first id", OURS, cache)
    if not bench.options.quick:
        add(f"dask_bpe, first ever, {AT_ONCE} processes at once: first id of the last", OURS, _empty(bench), AT_ONCE)
        add("dask_bpe, first ever: trained and encoded", READY, _empty(bench))
    for name in CONTESTANTS:
        if name != READY:
            add(f"{title(name)}: first id", name, cache, times=max(bench.options.runs, 1))
    yield contest


def _empty(bench: Bench) -> str:
    return tempfile.mkdtemp(dir=bench.folder)


def _launched(bench: Bench, entry: Entry, cache: str, processes: int) -> tuple[float, str]:
    """Seconds to the end of the first call in the slowest of so many processes, and the digest of the result of all.
    Raises FailedError."""
    began = time.time()
    running = [bench.launch("start", entry, {"NUMBA_CACHE_DIR": cache}) for _ in range(processes)]
    try:
        reports = [process.report(bench.options.limit) for process in running]
    finally:
        for process in running:
            process.close()
    digests = {report["digest"] for report in reports}
    if len(digests) != 1:
        raise FailedError("processes that started at once got different ids")
    return max(float(report["finished_at"]) for report in reports) - began, digests.pop()


def report(contests: list[Contest]) -> str:
    """Seconds."""
    lines = [[row.name, row.problem or seconds(row)] for contest in contests for row in contest.rows]
    return section(f"Starting, {contests[0].place}", table(["from launching Python to", "s"], lines))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """None: it is to be looked at."""
    return iter(())
