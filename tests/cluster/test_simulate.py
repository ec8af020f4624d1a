"""The simulation of a cluster: against a slow twin, and what no cluster can do otherwise."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.cluster.planning.simulate import Cluster, Schedule, Tasks, lower_bounds, simulate


def naive(tasks: Tasks, cluster: Cluster) -> Schedule:
    """The same by steps in which nothing changes: all that runs is looked at every time."""
    n = len(tasks)
    after = [set(before) for before in tasks.after] or [set() for _ in range(n)]
    messages = list(tasks.messages) or [1] * n
    start, end = np.full(n, np.nan), np.full(n, np.nan)
    phases: dict[
        int, list[tuple[str, float]]
    ] = {}  # of what runs: what is left of [waiting, reading, working, writing]
    waiting, done, now, scheduler = set(range(n)), set(), 0.0, 0.0
    while True:
        for task in list(phases):
            while phases[task] and phases[task][0][1] <= 1e-12 * max(1.0, tasks.read[task] + tasks.write[task]):
                phases[task].pop(0)
            if not phases[task]:
                end[task] = now
                done.add(task)
                del phases[task]
        if len(done) == n:
            return Schedule(start, end)
        ready = sorted((t for t in waiting if after[t] <= done), key=lambda t: (tasks.rank[t], t))
        begun = ready[: cluster.slots - len(phases)]
        for task in begun:
            scheduler = max(scheduler, now) + cluster.overhead * messages[task]
            start[task] = scheduler
            waiting.remove(task)
            work = [("wait", scheduler - now), ("read", tasks.read[task]), ("work", tasks.seconds[task])]
            phases[task] = [(kind, left) for kind, left in [*work, ("write", tasks.write[task])] if left]
        if any(not phases[task] for task in begun):
            continue
        moving = [task for task in phases if phases[task][0][0] in ("read", "write")]
        speeds, left, share = {}, cluster.storage, sorted(moving, key=lambda t: getattr(cluster, phases[t][0][0]))
        for k, task in enumerate(share):
            speeds[task] = min(getattr(cluster, phases[task][0][0]), left / (len(share) - k))
            left -= speeds[task]
        step = min(phases[task][0][1] / speeds.get(task, 1.0) for task in phases)
        for task in phases:
            kind, left = phases[task][0]
            phases[task][0] = kind, left - step * speeds.get(task, 1.0)
        now += step


amounts = st.integers(0, 20).map(float)


@st.composite
def graphs(draw: st.DrawFn) -> Tasks:
    """A few tasks, each waiting for some before it."""
    n = draw(st.integers(1, 12))
    columns = [np.array(draw(st.lists(amounts, min_size=n, max_size=n))) for _ in range(3)]
    rank = np.array(draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n)), np.float64)
    after = [sorted(draw(st.sets(st.integers(0, task - 1), max_size=3))) if task else [] for task in range(n)]
    return Tasks(
        columns[0], columns[1], columns[2], rank, after, draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    )


clusters = st.builds(
    Cluster,
    workers=st.integers(1, 4),
    threads=st.integers(1, 2),
    read=st.sampled_from([1.0, 3.0]),
    write=st.sampled_from([1.0, 2.0]),
    storage=st.sampled_from([0.5, 2.0, 3.5, 100.0, math.inf]),
    overhead=st.sampled_from([0.0, 0.25]),
)


@given(graphs(), clusters)
def test_it_is_what_a_slow_simulation_gives(tasks: Tasks, cluster: Cluster) -> None:
    # Times that differ in the last digits may be dealt out in another order: nudge all durations apart.
    apart = replace(tasks, seconds=tasks.seconds + np.sqrt(np.arange(len(tasks)) + 2.0) / 7)
    fast, slow = simulate(apart, cluster), naive(apart, cluster)
    np.testing.assert_allclose(fast.start, slow.start, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fast.end, slow.end, rtol=1e-9, atol=1e-9)


@given(graphs(), clusters)
def test_no_task_begins_before_those_that_it_waits_for_have_ended(tasks: Tasks, cluster: Cluster) -> None:
    run = simulate(tasks, cluster)
    assert all(run.start[task] >= run.end[before] - 1e-9 for task in range(len(tasks)) for before in tasks.after[task])
    assert np.all(run.end - run.start >= tasks.alone(cluster) - 1e-9)


@given(graphs(), clusters)
def test_never_more_at_once_than_threads(tasks: Tasks, cluster: Cluster) -> None:
    run = simulate(tasks, cluster)
    running = [(moment, 1) for moment in run.start + 1e-9] + [(moment, -1) for moment in run.end - 1e-9]
    assert max(np.cumsum([change for _, change in sorted(running)]), default=0) <= cluster.slots


def independent(n: int, seed: int = 0) -> Tasks:
    rng = np.random.default_rng(seed)
    read, write = rng.uniform(1, 50, n), rng.uniform(1, 20, n)
    return Tasks(read, rng.exponential(3.0, n), write, -read)


def test_all_work_is_done_once_whoever_does_it() -> None:
    tasks = independent(200)
    for workers in (1, 3, 50, 500):
        cluster = Cluster(workers, 2, read=10.0, write=5.0)
        run = simulate(tasks, cluster)
        assert (run.end - run.start).sum() == pytest.approx(tasks.alone(cluster).sum())


def test_one_worker_takes_the_sum_of_all() -> None:
    tasks, cluster = independent(50), Cluster(1, 1, read=10.0, write=5.0, overhead=0.5)
    run = simulate(tasks, cluster)
    assert run.seconds == pytest.approx(tasks.alone(cluster).sum() + 50 * 0.5)


@pytest.mark.parametrize("storage", [math.inf, 40.0])
def test_more_workers_are_faster_until_something_binds(storage: float) -> None:
    tasks = independent(300)
    seconds, bounds = [], []
    for workers in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        cluster = Cluster(workers, 1, read=10.0, write=5.0, storage=storage, overhead=0.01)
        seconds.append(simulate(tasks, cluster).seconds)
        bounds.append(lower_bounds(tasks, cluster))
    # Who shares the storage at the end is chance: of half a percent.
    assert all(later <= earlier * 1.005 for earlier, later in pairwise(seconds))
    assert seconds[0] / seconds[2] > 3.5
    assert all(time >= max(bound.values()) - 1e-9 for time, bound in zip(seconds, bounds, strict=True))
    # At the end the limit itself is what is left, but for the tail.
    assert seconds[-1] < 1.6 * max(bounds[-1].values())
    assert max(bounds[-1], key=lambda name: bounds[-1][name]) == ("one task" if storage == math.inf else "storage")


def test_the_largest_first_comes_close_to_the_best() -> None:
    """Graham: no worse than 4/3 of the best, for which the bounds stand."""
    for seed in range(20):
        tasks = independent(40, seed)
        tasks = replace(tasks, rank=-(tasks.read + tasks.seconds + tasks.write))
        for workers in (2, 3, 7):
            cluster = Cluster(workers, 1, read=1.0, write=1.0)
            bounds = lower_bounds(tasks, cluster)
            assert simulate(tasks, cluster).seconds <= 4 / 3 * max(bounds.values()) + bounds["one task"]


def test_a_shared_storage_is_divided() -> None:
    tasks = Tasks(np.array([10.0, 10.0]), np.zeros(2), np.zeros(2), np.zeros(2))
    assert simulate(tasks, Cluster(2, 1, read=10.0)).seconds == pytest.approx(1.0)
    assert simulate(tasks, Cluster(2, 1, read=10.0, storage=10.0)).seconds == pytest.approx(2.0)


def test_the_scheduler_can_be_what_is_waited_for() -> None:
    tasks = Tasks(np.zeros(1000), np.full(1000, 0.01), np.zeros(1000), np.zeros(1000))
    cluster = Cluster(500, 1, overhead=0.001)
    assert simulate(tasks, cluster).seconds == pytest.approx(1.01)
    assert lower_bounds(tasks, cluster)["scheduler"] == pytest.approx(1.0)
