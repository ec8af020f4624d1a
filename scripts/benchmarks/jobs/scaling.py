"""Two workers beside one, as processes of a cluster and as threads of one process, on a large text."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry
from benchmarks.figures import Contest, Row
from benchmarks.report import cell, seconds, section, speed, table
from benchmarks.texts import SEPARATOR
from benchmarks.work import SetUp, Task, Work, file_blocks

KINDS = ("processes", "threads")
WORKERS = (1, 2)


def _name(kind: str, workers: int) -> str:
    return f"dask_bpe, {kind}: {workers}"


def start_cluster(task: Task, workers: int, dashboard: bool = False) -> Any:
    """A client of a cluster of so many processes."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0" if dashboard else None,
        local_directory=task.folder,
    )
    return Client(cluster)


def work(task: Task, kind: str, workers: int) -> Work:
    """Count or encode on so many workers; starting them is not timed."""
    import dask

    if kind == "processes":
        client = start_cluster(task, workers)
    else:
        client = None
        dask.config.set(num_workers=workers)
    return _count(task, client) if task.settings["work"] == "count" else _encode(task, client)


def _count(task: Task, client: Any) -> Work:
    import dask_bpe

    def made(counts: Any) -> Iterator[bytes]:
        yield from (counts.strings.values.tobytes(), counts.counts.tobytes(), counts.first.tobytes())

    return Work(lambda: dask_bpe.count_pretokens(task.text, special_tokens=[SEPARATOR], client=client), made)


def _encode(task: Task, client: Any) -> Work:
    import dask_bpe

    tokenizer, out = task.files.dask_bpe(), task.path("shards")

    def run() -> None:
        shutil.rmtree(out, ignore_errors=True)
        dask_bpe.encode_corpus(
            task.text, tokenizer, out, "bin", dtype=task.files.dtype, separator=SEPARATOR, client=client
        )

    def made(_: Any) -> Iterator[bytes]:
        for path in sorted(out.glob("part-*.bin")):
            yield from file_blocks(path)

    return Work(run, made)


CONTESTANTS: dict[str, SetUp] = {
    _name(kind, workers): partial(work, kind=kind, workers=workers) for kind in KINDS for workers in WORKERS
}


def measure(bench: Bench) -> Iterator[Contest]:
    """Counting, and encoding with the first vocabulary."""
    text = bench.chained(bench.options.large_megabytes)
    runs = min(bench.options.runs, bench.options.large_runs)
    for job in ("count", "encode"):
        entries = [
            Entry(
                _name(kind, workers),
                text,
                bench.vocabularies[0],
                runs=runs,
                same_as=_name(KINDS[0], WORKERS[0]),
                against=_name(kind, WORKERS[0]),
                settings={"work": job},
            )
            for kind in KINDS
            for workers in WORKERS
        ]
        yield bench.contest("scaling", {"job": job}, entries)


def _gain(contest: Contest, kind: str) -> Measured | None:
    one, two = (contest.row(_name(kind, workers)) for workers in WORKERS)
    if one is None or two is None:
        return None
    problem = one.problem or two.problem
    return Measured(0 if problem else one.seconds / two.seconds, f"{contest.labels['job']}, {kind}", problem)


def report(contests: list[Contest]) -> str:
    """Seconds, MB/s, and the gain."""
    lines = []
    for contest in contests:
        for kind in KINDS:
            gain = _gain(contest, kind)
            shows: tuple[Callable[[Row], str], ...] = (seconds, speed)
            lines.append(
                [
                    contest.place,
                    kind,
                    f"{contest.rows[0].n_bytes / 1e9:.3g}",
                    *(cell(contest, _name(kind, workers), show) for show in shows for workers in WORKERS),
                    gain.problem or f"{gain.value:.2f}" if gain else "",
                ]
            )
    head = ["", "workers are", "GB", "1: s", "2: s", "1: MB/s", "2: MB/s", "2 over 1"]
    return section("Two workers beside one", table(head, lines, left=(0, 1)))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Of two workers over one."""
    found = [gain for contest in contests for kind in KINDS if (gain := _gain(contest, kind))]
    yield Bar("2 workers over 1", 1.85, "x", tuple(found))
