"""On the scheduler: keeps the snapshots of jobs, for the page and for Prometheus, and what the workers have done.

A job gives its snapshot here twice a second, and gets what its workers have done by their heartbeats: two messages a
second for each job, however many workers there are.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distributed import SchedulerPlugin

from dask_bpe.monitor import prometheus
from dask_bpe.monitor.worker_totals import Heard, News, WorkerTotals
from dask_bpe.progress import Snapshot

NAME = "dask-bpe"
# The scheduler's handler that jobs call, see `JobPlugin.exchange`.
HANDLER = "dask_bpe_exchange"
# Jobs that are remembered; those that run are the last to be forgotten.
_JOBS = 20
# A job that has said nothing for so long has lost its process, or the connection.
SECONDS_OF_SILENCE = 20.0


@dataclass
class KnownJob:
    """The last snapshot of a job, and when it came (monotonic clock)."""

    snapshot: Snapshot
    heard: float

    @property
    def silent(self) -> bool:
        """Whether it should have been heard of."""
        return self.snapshot["state"] == "running" and time.monotonic() - self.heard > SECONDS_OF_SILENCE


class JobPlugin(SchedulerPlugin):  # type: ignore[misc]  # its package is not followed
    """Registered by the first job that comes with a client, or before, see `preload`."""

    idempotent = True
    name = NAME

    def __init__(self) -> None:
        self.jobs: OrderedDict[str, KnownJob] = OrderedDict()
        self._totals = WorkerTotals()
        self._scheduler: Any = None

    async def start(self, scheduler: Any) -> None:
        """See `SchedulerPlugin.start`."""
        self._scheduler = scheduler
        scheduler.handlers[HANDLER] = self.exchange
        prometheus.export_scheduler(self.snapshots)
        if _has_dashboard(scheduler):
            from dask_bpe.monitor.page import add_page

            add_page(scheduler, self)

    async def close(self) -> None:
        """See `SchedulerPlugin.close`."""
        prometheus.forget_scheduler(self.snapshots)
        self.jobs.clear()

    def snapshots(self) -> list[Snapshot]:
        """The last one of every job."""
        return [known.snapshot for known in self.jobs.values()]

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels to the scheduler as it was made: without jobs."""
        return (JobPlugin, ())

    async def exchange(self, snapshot: Snapshot, stages: Mapping[str, str]) -> News:
        """Take the snapshot of a job; give what the workers have done for its stages (names that its tasks report
        under, and units)."""
        self.jobs[snapshot["id"]] = KnownJob(snapshot, time.monotonic())
        self._forget()
        return self._totals.news(snapshot["id"], stages, heartbeats(self._scheduler))

    def _forget(self) -> None:
        while len(self.jobs) > _JOBS:
            ended = (job for job, known in self.jobs.items() if known.snapshot["state"] != "running" or known.silent)
            del self.jobs[next(ended, next(iter(self.jobs)))]


def _has_dashboard(scheduler: Any) -> bool:
    """Whether Dask shows its dashboard: bokeh is installed, and it was not switched off."""
    return any(hasattr(app, "app_paths") for app in getattr(scheduler.http_application, "applications", ()))


def heartbeats(scheduler: Any) -> list[Heard]:
    """The last heartbeat of each worker."""
    return [heard_of(state) for state in scheduler.workers.values()]


def heard_of(state: Any) -> Heard:
    """The last heartbeat of a worker, of its `distributed.scheduler.WorkerState`."""
    metrics = state.metrics
    return Heard(str(state.name), int(metrics.get("memory", 0)), int(state.memory_limit or 0), metrics)
