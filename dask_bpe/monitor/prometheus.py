"""The figures of jobs for Prometheus, on the /metrics that Dask's schedulers and workers serve already.

A scheduler shows the snapshots of jobs: `dask_bpe_stage_done{job, stage, unit}`, `dask_bpe_job_bytes{job}` and so on.
A worker shows what it has done by itself: `dask_bpe_worker_bytes{job, stage}` and so on. All are gauges: what was done
is corrected downwards when a task ran twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from dask_bpe.monitor import worker_counters
from dask_bpe.progress import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

Snapshots = Callable[[], Iterable[Snapshot]]


class SchedulerCollector:
    """The jobs that the schedulers of this process know: mostly one, in a notebook perhaps several."""

    def __init__(self) -> None:
        self.schedulers: list[Snapshots] = []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called for each request of /metrics."""
        families = _Families("dask_bpe")
        for snapshot in chain.from_iterable(snapshots() for snapshots in list(self.schedulers)):
            job = {"job": snapshot["id"]}
            state = {**job, "kind": snapshot["kind"], "state": snapshot["state"]}
            families.add("job_state", "1 for the state in which the job is", state, 1)
            families.add("job_seconds", "Seconds since the job began", job, snapshot["seconds"])
            for name, value in snapshot["figures"].items():
                families.add(f"job_{name}", f"Of the job so far: {name}", job, value)
            memory, partitions = snapshot["memory"], snapshot["partitions"]
            for name, used in (("driver", memory["driver"]), ("workers", memory["workers"])):
                families.add(f"job_{name}_memory_bytes", f"Resident memory: {name}", job, used)
            for name, limit in (("driver", memory["driver_limit"]), ("workers", memory["workers_limit"])):
                families.add(f"job_{name}_memory_limit_bytes", f"Budget of memory: {name}", job, limit)
            fates = {name: partitions[name] for name in ("done", "failed", "resumed")}
            for fate, n in fates.items():
                families.add("job_partitions", "Partitions of the job by their fate", {**job, "fate": fate}, n)
            for stage in snapshot["stages"]:
                labels = {**job, "stage": stage["name"], "unit": stage["unit"]}
                families.add("stage_done", "Units of the stage that are done", labels, stage["done"])
                families.add("stage_total", "Units of the stage", labels, stage["total"])
                families.add("stage_rate", "Units a second in the last ten seconds", labels, stage["rate_now"])
        yield from families


class WorkerCollector:
    """What the tasks of this process have done."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called for each request of /metrics."""
        families = _Families("dask_bpe_worker")
        for name, figures in worker_counters.figures_by_job().items():
            job, stage, *_ = [*name.split("/"), ""]
            for figure, value in figures.items():
                families.add(figure, f"Of this worker's tasks: {figure}", {"job": job, "stage": stage}, value)
        yield from families


class _Families:
    """Metrics by name; what is None is not there."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._families: dict[str, GaugeMetricFamily] = {}

    def add(self, name: str, help_text: str, labels: dict[str, str], value: float | None) -> None:
        from prometheus_client.core import GaugeMetricFamily

        if value is None:
            return
        if name not in self._families:
            self._families[name] = GaugeMetricFamily(f"{self._prefix}_{name}", help_text, labels=list(labels))
        self._families[name].add_metric(list(labels.values()), value)

    def __iter__(self) -> Iterator[GaugeMetricFamily]:
        return iter(self._families.values())


# Dask's processes have one registry each; one process may be scheduler and worker, several times.
_registered: set[str] = set()
_SCHEDULERS = SchedulerCollector()


def export_scheduler(snapshots: Snapshots) -> None:
    """Show the jobs of a scheduler until `forget_scheduler` is called with the same."""
    _SCHEDULERS.schedulers.append(snapshots)
    _register("scheduler", _SCHEDULERS)


def forget_scheduler(snapshots: Snapshots) -> None:
    """Show no more of a scheduler that is closed."""
    if snapshots in _SCHEDULERS.schedulers:
        _SCHEDULERS.schedulers.remove(snapshots)


def export_worker() -> None:
    """Show what this process does."""
    _register("worker", WorkerCollector())


def _register(name: str, collector: Any) -> None:
    if name in _registered:
        return
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        return  # /metrics says so itself
    REGISTRY.register(collector)
    _registered.add(name)
