"""What it costs to be watched: training and encoding with everything that is told of a job, and with nothing of it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry
from benchmarks.figures import Contest, Row
from benchmarks.jobs.scaling import start_cluster
from benchmarks.report import section, table
from benchmarks.texts import SEPARATOR
from benchmarks.work import SetUp, Task, Work, file_blocks

PLACES = ("threads", "processes")
WATCHED, ALONE = "watched", "alone"


def _name(place: str, how: str) -> str:
    return f"dask_bpe, {place}: {how}"


def silence(_: object = None) -> None:
    """Let jobs of this process and tasks in it tell nothing."""
    from dask_bpe.cluster import schedule
    from dask_bpe.monitor import worker_counters
    from dask_bpe.progress import JobState

    class Nobody:
        def follow(self, *_: object) -> None: ...
        def leave(self, *_: object) -> None: ...

    def nothing(*_: object, **__: object) -> None: ...

    for name in ("report", "grown"):
        setattr(schedule, name, nothing)
    schedule.show = lambda *_: Nobody()  # type: ignore[assignment]
    worker_counters.ride = worker_counters.partition = nothing
    for name in ("advance", "reach", "add", "settle", "merged", "grown", "partition", "see_workers"):
        setattr(JobState, name, nothing)


def work(task: Task, place: str, how: str) -> Work:
    """Train or encode, on the threads of this process, or on as many processes."""
    import dask

    from dask_bpe.monitor.json_lines import JsonLines

    client = start_cluster(task, task.threads, dashboard=how == WATCHED) if place == "processes" else None
    if client is None:
        dask.config.set(num_workers=task.threads)
    if how == ALONE:
        silence()
        if client is not None:
            client.run(silence)
    watched: dict[str, Any] = {"progress": JsonLines(io.StringIO())} if how == WATCHED else {}
    made = _train if task.settings["work"] == "train" else _encode
    return made(task, {"client": client, **watched})


def _train(task: Task, options: dict[str, Any]) -> Work:
    import dask_bpe

    def run() -> Any:
        return dask_bpe.train(task.text, task.settings["vocab_size"], special_tokens=[SEPARATOR], **options)

    return Work(run, lambda tokenizer: iter([tokenizer.vocabulary.fingerprint().encode()]))


def _encode(task: Task, options: dict[str, Any]) -> Work:
    import dask_bpe

    tokenizer, out = task.files.dask_bpe(), task.path("shards")

    def run() -> None:
        shutil.rmtree(out, ignore_errors=True)
        dask_bpe.encode_corpus(task.text, tokenizer, out, "bin", dtype=task.files.dtype, separator=SEPARATOR, **options)

    def made(_: Any) -> Iterator[bytes]:
        for path in sorted(out.glob("part-*.bin")):
            yield from file_blocks(path)

    return Work(run, made)


CONTESTANTS: dict[str, SetUp] = {
    _name(place, how): partial(work, place=place, how=how) for place in PLACES for how in (WATCHED, ALONE)
}


def measure(bench: Bench) -> Iterator[Contest]:
    """Both, with the first vocabulary, on the first text."""
    for job in ("train", "encode"):
        for place in PLACES:
            entries = [
                Entry(
                    _name(place, how),
                    bench.texts[0],
                    bench.vocabularies[0],
                    same_as=_name(place, WATCHED),
                    against=_name(place, ALONE),
                    settings={"work": job, "vocab_size": bench.options.vocab_size},
                )
                for how in (WATCHED, ALONE)
            ]
            yield bench.contest("monitoring", {"job": job, "place": place}, entries)


def _cost(contest: Contest, seconds: str) -> Measured | None:
    """Percent that watching adds to the seconds of the clock, or of all threads and processes."""
    place = contest.labels["place"]
    watched, alone = (contest.row(_name(place, how)) for how in (WATCHED, ALONE))
    if watched is None or alone is None:
        return None
    problem = watched.problem or alone.problem
    added = 0.0 if problem else 100 * (_least(watched, seconds) / _least(alone, seconds) - 1)
    return Measured(added, contest.place, problem)


def _least(row: Row, seconds: str) -> float:
    """Of the runs: what disturbs one adds to it, many times what is to be seen here."""
    spent: list[float] = getattr(row, seconds)
    return min(spent)


def report(contests: list[Contest]) -> str:
    """The least seconds of all runs, and percent added."""
    lines = []
    for contest in contests:
        rows = [contest.row(_name(contest.labels["place"], how)) for how in (WATCHED, ALONE)]
        cells = [
            row.problem or f"{_least(row, seconds):.2f}" if row else "" for seconds in ("runs", "cpu") for row in rows
        ]
        costs = [_cost(contest, seconds) for seconds in ("runs", "cpu")]
        shown = [cost.problem or f"{cost.value:+.1f} %" if cost else "" for cost in costs]
        lines.append([contest.labels["job"], contest.labels["place"], *cells, *shown])
    head = ["", "on", "watched, s", "alone, s", "watched, CPU s", "alone, CPU s", "added, s", "added, CPU"]
    return section("What it costs to be watched", table(head, lines, left=(0, 1)))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Under one percent. Of the CPU: the clock of a busy machine differs by more from one run to the next."""
    found = [cost for contest in contests if (cost := _cost(contest, "cpu"))]
    yield Bar("cost of being watched", 1.0, "%", tuple(found), most=True)
