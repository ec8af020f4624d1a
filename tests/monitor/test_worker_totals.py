"""What many workers have done, from heartbeats that come when they will, of workers that die."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.monitor.worker_counters import METRIC
from dask_bpe.monitor.worker_totals import N_LINES, SPREAD, Heard, WorkerTotals

STAGE = "train-1/counting/1"


def heard(name: str, process: str, done: int, memory: int = 10, limit: int = 100, **figures: int) -> Heard:
    carried: dict[str, Any] = {
        "process": process,
        "jobs": {STAGE: {"figures": {"done": done, **figures}, "slowest": [(1.5, 3)], "grown": [(100, 10)]}},
    }
    return Heard(name, memory, limit, {METRIC: carried})


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 100), st.booleans()), max_size=60))
def test_nothing_is_forgotten_when_workers_die(events: list[tuple[int, int, bool]]) -> None:
    """Workers work, and some are replaced by a new process with the same name; each is heard of before it dies."""
    totals, expected = WorkerTotals(), Counter[str]()
    processes, done = Counter[int](), Counter[tuple[int, int]]()
    for worker, amount, dies in events:
        process = (worker, processes[worker])
        done[process] += amount
        expected[str(worker)] += amount
        totals.hear([heard(str(worker), str(process), done[process])])
        processes[worker] += dies
    news = totals.news("job", {STAGE: "B"}, [])
    assert news["stages"][STAGE]["figures"].get("done", 0) == sum(expected.values())
    if len(expected) <= N_LINES:
        assert news["lines"] == dict(expected)
    else:
        assert news["lines"].keys() <= set(SPREAD)


def test_a_lost_heartbeat_is_made_up_for() -> None:
    totals = WorkerTotals()
    totals.hear([heard("a", "p", 5)])
    totals.hear([heard("a", "p", 5)])  # the same once more
    totals.hear([heard("a", "p", 30, documents=2)])
    assert totals.news("job", {STAGE: "B"}, [])["stages"][STAGE]["figures"] == {"done": 30, "documents": 2}


def test_units_that_are_no_bytes_have_no_lines() -> None:
    totals = WorkerTotals()
    news = totals.news("job", {STAGE: "sums"}, [heard("a", "p", 5)])
    assert news["lines"] == {}
    assert news["stages"][STAGE]["figures"]["done"] == 5


def test_the_news_of_a_thousand_workers_are_short() -> None:
    totals = WorkerTotals()
    for beat in range(1, 5):
        workers = [heard(f"w{k}", f"p{k}", beat * 10**9, memory=k, limit=2000) for k in range(1000)]
        news = totals.news("job", {STAGE: "B", "other": "sums"}, workers)
    assert len(json.dumps(news)) < 8000
    assert news["n_workers"] == 1000
    assert news["memory"] == sum(range(1000))
    assert news["limit"] == 2_000_000
    assert {row["name"] for row in news["fullest"]} == {f"w{k}" for k in range(984, 1000)}
    assert set(news["lines"]) == set(SPREAD)
    assert news["stages"][STAGE]["figures"]["done"] == 4 * 10**12


def test_a_cluster_of_many_jobs_forgets_the_old_ones() -> None:
    totals = WorkerTotals()
    for k in range(500):
        jobs = {f"job-{k}": {"figures": {"done": k}, "slowest": [], "grown": []}}
        totals.hear([Heard("a", 1, 1, {METRIC: {"process": "p", "jobs": jobs}})])
        totals.news(f"job-{k}", {f"job-{k}": "B"}, [])
    assert len(totals._stages) <= 64
    assert len(totals._speeds) <= 64
    assert totals.news("x", {"job-499": "B"}, [])["stages"]["job-499"]["figures"] == {"done": 499}


def test_workers_without_the_package_are_no_trouble() -> None:
    news = WorkerTotals().news("job", {STAGE: "B"}, [Heard("a", 5, 0, {})])
    assert news["stages"][STAGE]["figures"] == {}
    assert news["limit"] == 0
    assert news["fullest"][0]["memory_limit"] is None
