"""What the tasks of this process have done for jobs of other processes; carried by the heartbeats that a worker sends.

Dask sends a heartbeat twice a second from up to ten workers, and fewer from each the more there are: what it carries
must be small, and the whole truth so far, since one may be lost.
"""

from __future__ import annotations

import heapq
import threading
import time
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The key under which a heartbeat carries this.
METRIC = "dask_bpe"
# A process remembers its last jobs, and tells of those for which it has done something in so many seconds.
_JOBS, _SECONDS = 16, 60.0
_SLOWEST, _GROWN = 4, 8
# Tells a process from another one at the same address, before or after it.
_PROCESS = uuid.uuid4().hex[:12]


@dataclass
class Done:
    """What was done for a job.

    figures : "done" in units of the job, and figures of a snapshot.
    slowest : seconds and number of the partitions that took longest.
    grown : bytes and distinct pre-tokens of the last parts that were counted or added up.
    spent : nanoseconds by activity; asked for at the end of a stage, not carried by heartbeats.
    """

    figures: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[float, int]] = field(default_factory=list)
    grown: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_GROWN))
    spent: Counter[str] = field(default_factory=Counter)
    touched: float = field(default_factory=time.monotonic)


_LOCK = threading.Lock()
_DONE: OrderedDict[str, Done] = OrderedDict()


def _of(job: str) -> Done:
    """What was done for a job; the lock is held."""
    done = _DONE.setdefault(job, Done())
    _DONE.move_to_end(job)
    done.touched = time.monotonic()
    while len(_DONE) > _JOBS:
        _DONE.popitem(last=False)
    return done


def add(job: str, figures: Mapping[str, int]) -> None:
    """So much more of these figures was done."""
    with _LOCK:
        so_far = _of(job).figures
        for name, amount in figures.items():  # `update` takes three times as long
            so_far[name] += amount


def grown(job: str, n_bytes: int, n_distinct: int) -> None:
    """A part of so many bytes holds so many distinct pre-tokens."""
    with _LOCK:
        _of(job).grown.append((n_bytes, n_distinct))


def spend(job: str, activity: str, nanoseconds: int) -> None:
    """An activity took so long."""
    with _LOCK:
        _of(job).spent[activity] += nanoseconds


def spent_on(job: str) -> dict[str, int]:
    """Nanoseconds that were spent on a job, by activity; runs in a worker."""
    with _LOCK:
        return dict(_DONE[job].spent) if job in _DONE else {}


def partition(job: str, number: int, seconds: float) -> None:
    """A partition is done."""
    with _LOCK:
        done = _of(job)
        done.figures["partitions"] += 1
        done.slowest = heapq.nlargest(_SLOWEST, [*done.slowest, (seconds, number)])


def figures_by_job() -> dict[str, dict[str, int]]:
    """All figures of the jobs that are remembered."""
    with _LOCK:
        return {job: dict(done.figures) for job, done in _DONE.items()}


def heartbeat(_: object = None) -> dict[str, Any]:
    """What a heartbeat carries, in types that msgpack knows."""
    now = time.monotonic()
    with _LOCK:
        jobs = {
            job: {"figures": dict(done.figures), "slowest": done.slowest, "grown": list(done.grown)}
            for job, done in _DONE.items()
            if now - done.touched < _SECONDS
        }
    return {"process": _PROCESS, "jobs": jobs}


def ride(worker: Any) -> None:
    """Let the heartbeats of this `distributed.Worker` carry it from now on, and its /metrics show it."""
    if METRIC not in worker.metrics:
        worker.metrics[METRIC] = heartbeat
        from dask_bpe.monitor import prometheus

        prometheus.export_worker()
