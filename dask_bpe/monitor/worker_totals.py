"""What all workers of a cluster have done, from the heartbeats of each."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from dask_bpe.monitor.worker_counters import METRIC
from dask_bpe.progress.job_state import N_WORKERS
from dask_bpe.progress.snapshot import Worker

# Stages of which something is remembered, the last ones that were heard of.
_STAGES = 64
# Workers of which each has a line of its own in the curve of the throughput.
N_LINES = 8
# Seconds over which the speed of a worker is taken.
_WINDOW = 10.0
SPREAD = ("slowest", "median", "fastest")


class StageNews(TypedDict):
    """What was done for a stage: figures, the slowest partitions (number, seconds, worker), the growth of the distinct
    pre-tokens (bytes, distinct)."""

    figures: dict[str, int]
    slowest: list[tuple[int, float, str]]
    grown: list[tuple[int, int]]


class News(TypedDict):
    """What the workers have done for a job so far, and how they are; see `JobState.see_workers`."""

    stages: dict[str, StageNews]
    n_workers: int
    fullest: list[Worker]
    memory: int
    limit: int
    lines: dict[str, float]


@dataclass(frozen=True)
class Heard:
    """A heartbeat: of whom, the resident bytes and their limit (0: none), and all that it carried."""

    name: str
    memory: int
    limit: int
    metrics: dict[str, Any]


@dataclass
class _Process:
    """What a process has done for a stage, also when it is no more."""

    name: str
    figures: dict[str, int]
    slowest: Sequence[Sequence[float]]
    grown: Sequence[Sequence[int]]


class _Speeds:
    """How fast each worker is in a job, and bytes done by one that was always the slowest, the median, the fastest."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, int]]] = deque()
        self.lines: Counter[str] = Counter()
        self.rates: dict[str, float] = {}

    def see(self, now: float, done: dict[str, int]) -> None:
        """So many bytes were done by each."""
        if self._seen:
            (since, before), last = self._seen[0], self._seen[-1][0]
            self.rates = {name: max(0, n - before.get(name, 0)) / max(now - since, 1e-9) for name, n in done.items()}
            order = sorted(self.rates.values()) or [0.0]
            for name, rate in zip(SPREAD, (order[0], order[len(order) // 2], order[-1]), strict=True):
                self.lines[name] += round(rate * (now - last))
        self._seen.append((now, done))
        # Heartbeats of a thousand workers come every six seconds.
        while self._seen[0][0] < now - _WINDOW:
            self._seen.popleft()


class WorkerTotals:
    """Remembers for each stage what each process has done, so that nothing is forgotten when one dies.

    What it had done of a task that another one does again is counted twice until the stage ends.
    """

    def __init__(self) -> None:
        self._stages: OrderedDict[str, dict[str, _Process]] = OrderedDict()
        self._speeds: OrderedDict[str, _Speeds] = OrderedDict()

    def hear(self, workers: Iterable[Heard]) -> None:
        """Take the last heartbeat of each worker."""
        for worker in workers:
            carried = worker.metrics.get(METRIC)
            if carried is None:
                continue
            for stage, done in carried["jobs"].items():
                self._stages.setdefault(stage, {})[carried["process"]] = _Process(
                    worker.name, done["figures"], done["slowest"], done["grown"]
                )
                self._stages.move_to_end(stage)
        while len(self._stages) > _STAGES:
            self._stages.popitem(last=False)

    def news(self, job: str, stages: Mapping[str, str], workers: Sequence[Heard]) -> News:
        """What was done for these stages (with their units) of a job; however many workers there are, it is short."""
        self.hear(workers)
        done = self._done_by([stage for stage, unit in stages.items() if unit == "B"])
        speeds = self._speeds.setdefault(job, _Speeds())
        speeds.see(time.monotonic(), done)
        self._speeds.move_to_end(job)
        while len(self._speeds) > _STAGES:
            self._speeds.popitem(last=False)
        fullest = sorted(workers, key=lambda worker: -worker.memory / (worker.limit or 1 << 62))[:N_WORKERS]
        rows: list[Worker] = [
            {
                "name": worker.name,
                "done": done.get(worker.name, 0),
                "rate": round(speeds.rates.get(worker.name, 0.0), 1),
                "memory": worker.memory,
                "memory_limit": worker.limit or None,
            }
            for worker in sorted(fullest, key=lambda worker: worker.name)
        ]
        return {
            "stages": {stage: self._stage_news(stage) for stage in stages},
            "n_workers": len(workers),
            "fullest": rows,
            "memory": sum(worker.memory for worker in workers),
            "limit": sum(worker.limit for worker in workers) if all(worker.limit for worker in workers) else 0,
            "lines": {name: float(n) for name, n in done.items()} if len(done) <= N_LINES else dict(speeds.lines),
        }

    def _done_by(self, stages: Sequence[str]) -> dict[str, int]:
        """Bytes done by each worker, also by those that are no more."""
        done: Counter[str] = Counter()
        for stage in stages:
            for process in self._stages.get(stage, {}).values():
                done[process.name] += process.figures.get("done", 0)
        return dict(done)

    def _stage_news(self, stage: str) -> StageNews:
        figures: Counter[str] = Counter()
        processes = self._stages.get(stage, {}).values()
        for process in processes:
            for name, amount in process.figures.items():
                figures[name] += amount
        slowest = [(int(number), seconds, process.name) for process in processes for seconds, number in process.slowest]
        grown = sorted({(int(x), int(y)) for process in processes for x, y in process.grown})
        return {
            "figures": dict(figures),
            "slowest": sorted(slowest, key=lambda row: -row[1])[:8],
            # With a thousand workers a few of their parts tell as much as all.
            "grown": grown[:: 1 + len(grown) // 32],
        }
