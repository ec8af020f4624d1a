"""The state of a job: what it says is what is seen, by listeners and in snapshots."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest

from dask_bpe.progress import JobState, Progress, Snapshot, watch
from dask_bpe.progress.readable import readable


class Told(Progress):
    """Remembers the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def begin(self, job: JobState) -> None:
        self.calls.append(("begin",))

    def start(self, stage: str, total: int | None, unit: str) -> None:
        self.calls.append(("start", stage, total, unit))

    def advance(self, stage: str, amount: int) -> None:
        self.calls.append(("advance", stage, amount))

    def say(self, fact: str) -> None:
        self.calls.append(("say", fact))

    def finish(self, stage: str) -> None:
        self.calls.append(("finish", stage))

    def end(self) -> None:
        self.calls.append(("end",))


def test_listeners_hear_what_the_job_says() -> None:
    first, second = Told(), Told()
    with watch("count", "text", first) as job:
        job.listen(second)
        job.start("counting", 10, "B")
        job.advance("counting", 4)
        job.reach("counting", 10)
        job.reach("counting", 10)
        job.say("a fact")
        job.finish("counting")
    assert first.calls == second.calls == [
        ("begin",),
        ("start", "counting", 10, "B"),
        ("advance", "counting", 4),
        ("advance", "counting", 6),
        ("say", "a fact"),
        ("finish", "counting"),
        ("end",),
    ]  # fmt: skip


def test_a_job_within_a_job_is_part_of_it() -> None:
    told = Told()
    with watch("train", "text", told) as outer, watch("count", "text", outer) as inner:
        assert inner is outer
        inner.start("counting", None, "B")
    assert [call[0] for call in told.calls] == ["begin", "start", "end"]
    (stage,) = outer.snapshot()["stages"]
    assert (stage["state"], stage["total"]) == ("finished", None)


@pytest.mark.parametrize(
    ("error", "state"), [(ValueError("one line\nanother"), "failed"), (KeyboardInterrupt(), "interrupted")]
)
def test_how_it_was_stopped(error: BaseException, state: str) -> None:
    with pytest.raises(type(error)), watch("count", "text", None) as job:
        job.start("counting", 10, "B")
        raise error
    found = job.snapshot()
    assert found["state"] == found["stages"][0]["state"] == state
    assert found["error"] == ("one line" if state == "failed" else "KeyboardInterrupt")


def test_figures_add_up_and_are_settled() -> None:
    job = JobState("encode")
    job.start("encoding", 100, "B")
    job.add({"bytes": 60, "tokens": 20})
    job.add({"bytes": 50, "tokens": 20})  # a task that ran twice
    job.settle({"bytes": 100, "tokens": 30, "shards": 1})
    assert job.snapshot()["figures"] == {"bytes": 100, "tokens": 30, "shards": 1}
    assert job.snapshot()["curves"]["compression"]["bytes_per_token"][-1] == pytest.approx(100 / 30, abs=1e-4)


def test_merges() -> None:
    job = JobState("train")
    counts, left = np.arange(1000, 0, -1), np.arange(5000, 4000, -1)
    for start in range(0, 1000, 300):
        part = slice(start, start + 300)
        job.merged(start + 1, counts[part], left[part], [(b"a", b" b", 3), (b"\xe5\xb8", b"\n", 2)])
    found = job.snapshot()
    assert found["figures"]["merges"] == 1000
    assert found["merges"][-2:] == [
        {"rank": 999, "left": "a", "right": " b", "count": 3},
        {"rank": 1000, "left": "[e5 b8]", "right": "\\n", "count": 2},
    ]
    curve = found["curves"]["merges"]
    assert curve["rank"][0] == 1
    assert curve["rank"][-1] == 1000
    assert curve["count"] == [1001 - rank for rank in curve["rank"]]
    assert curve["tokens_left"] == [5001 - rank for rank in curve["rank"]]


def test_growth_ends_at_the_corpus() -> None:
    job = JobState("count")
    job.grown(1000, 300)
    job.grown(10_000, 900)
    job.grown(20_000_000, 10)  # bytes of a task that ran twice
    job.settle({"bytes": 50_000, "distinct": 2000})
    assert job.snapshot()["curves"]["growth"] == {"bytes": [1000, 10_000, 50_000], "distinct": [300, 900, 2000]}


def long_job() -> JobState:
    """A job that has said far more than a snapshot holds."""
    job = JobState("encode", "text")
    job.divide(100_000)
    job.start("encoding", 10**15, "B")
    rows = [{"name": str(k), "done": k, "rate": 1.0, "memory": 5, "memory_limit": 9} for k in range(1000)]
    for k in range(2000):
        job.advance("encoding", 10**6)
        job.add({"bytes": 10**6, "tokens": 250_000})
        job.partition(k * 50, "done", float(k), f"worker-{k}")
        job.quarantine("file.txt", k, "a reason")
        job.say(f"line {k}")
        job.grown(k**4, k**2)
    for k in range(0, 10**6, 10**5):
        job.merged(k + 1, np.arange(10**5), np.arange(10**5), [(b"x" * 1000, b"y", 1)] * 12)
    job.see_workers(1000, rows, 5000, 9000, {f"worker-{k}": 1.0 for k in range(8)})  # type: ignore[arg-type]
    return job


def test_a_snapshot_is_json_of_bounded_size() -> None:
    found = long_job().snapshot()
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found
    assert len(text) < 100_000
    assert len(found["workers"]) == 16
    assert [row["position"] for row in found["quarantined"]] == list(range(1950, 2000))
    assert found["said"][-1] == "line 1999"


def test_every_key_is_described() -> None:
    """The docstring names all keys, and there are no others."""
    found = long_job().snapshot()
    assert found.keys() == Snapshot.__annotations__.keys()
    assert Snapshot.__doc__ is not None
    assert [key for key in found if key not in Snapshot.__doc__] == []


def test_threads_lose_nothing() -> None:
    job = JobState("encode")
    job.start("encoding", None, "B")

    def work() -> None:
        for _ in range(500):
            job.advance("encoding", 3)
            job.add({"tokens": 2})
            job.snapshot()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = job.snapshot()
    assert found["stages"][0]["done"] == 6000
    assert found["figures"]["tokens"] == 4000


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b" the", " the"),
        (b"\n\t", "\\n\\t"),
        ("君".encode(), "君"),
        (b"\xe5\xb8", "[e5 b8]"),
        (b"\x1b[31m", "\\x1b[31m"),
        ("\u202e\u200b".encode(), "\\u202e\\u200b"),
        (b"x" * 50, "x" * 40 + "..."),
    ],
)
def test_tokens_to_read(token: bytes, text: str) -> None:
    assert readable(token) == text
