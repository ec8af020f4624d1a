"""Where a graph runs: on the threads of this process, or on the cluster of a client."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
from dask.system import CPU_COUNT

from dask_bpe.errors import ClusterError, ParameterError
from dask_bpe.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

_SECONDS_TO_CONNECT = 30
# Progress of the jobs that this process started, by name. A task that runs in another process finds nothing
# here and sends its news over the cluster.
_JOBS: dict[str, Callable[[int], None]] = {}
# What this process does for jobs of any process: how many of a job's tasks are running, and which jobs are over.
_RUNNING: Counter[str] = Counter()
_OVER: set[str] = set()
_CHANGE = threading.Condition()


class CancelledError(Exception):
    """Raised inside a task whose job has ended: it was interrupted, or another of its tasks failed."""


@contextmanager
def connect(scheduler: str | None = None, workers: int | None = None) -> Iterator[Client | None]:
    """A client for an address or scheduler file, for an own cluster of `workers` processes, or None.

    What is opened here is closed at the end.

    Raises
    ------
    ClusterError
        When the scheduler does not answer, or has no workers, within 30 seconds.
    """
    if scheduler is None and workers is None:
        yield None
        return
    from distributed import Client, LocalCluster

    if scheduler is None:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            # On Ctrl-C this process ends the cluster; workers that hear it too only add their tracebacks.
            client.run(_ignore_interrupts)
            try:
                yield client
            except KeyboardInterrupt:
                logging.getLogger("distributed").setLevel(logging.CRITICAL)
                raise
        return
    target = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    try:
        client = Client(**target, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError, TypeError, KeyError, AssertionError) as error:
        raise ClusterError(f"no Dask scheduler answers at {scheduler}: {_first_line(error)}") from error
    with client:
        yield client


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def active_client(client: Client | None) -> Client | None:
    """The client to run on: the one given, else the one that is active, else none.

    Raises
    ------
    ClusterError
        When its cluster has no workers within 30 seconds: Dask itself would wait for ever.
    """
    if client is None:
        if os.environ.get("DASK_SCHEDULER_ADDRESS") or "distributed" in sys.modules:
            client = _default_client()
        if client is None:
            return None
    if not hasattr(client, "wait_for_workers"):
        raise ParameterError(f"client is {client!r}: a distributed.Client was expected")
    try:
        client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
    except TimeoutError as error:
        raise ClusterError(
            f"the cluster at {client.scheduler.address} has no workers after {_SECONDS_TO_CONNECT} s: start some"
        ) from error
    return client


def _default_client() -> Client | None:
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def n_threads(client: Client | None) -> int:
    """Tasks that run at the same time."""
    if client is None:
        pool = dask.config.get("pool", None)
        return int(dask.config.get("num_workers", None) or getattr(pool, "_max_workers", None) or CPU_COUNT)
    return max(1, sum(map(int, client.nthreads().values())))


def compute(item: Any, client: Client | None) -> Any:
    """Compute a Dask collection on the client's cluster, or by the scheduler that Dask is set to: threads."""
    if client is not None:
        future = client.compute(item)
        try:
            return future.result()
        except BaseException:
            client.cancel([future])
            raise
    return item.compute(scheduler=dask.config.get("scheduler", None) or "threads")


@contextmanager
def job(stage: str, total: int | None, unit: str, progress: Progress, client: Client | None) -> Iterator[str]:
    """A stage whose tasks call `report`; gives the name they report under."""
    name = f"dask-bpe-{stage}-{uuid.uuid4().hex}"
    _JOBS[name] = lambda amount: progress.advance(stage, amount)
    if client is not None:
        client.subscribe_topic(name, lambda event: progress.advance(stage, int(event[1])))
    progress.start(stage, total, unit)
    try:
        yield name
    except BaseException:
        _stop(name, client)
        raise
    finally:
        del _JOBS[name]
        if client is not None:
            client.unsubscribe_topic(name)
        progress.finish(stage)


def _stop(name: str, client: Client | None) -> None:
    """Stop what still runs of a job that has failed, and wait for it: afterwards no task of it writes."""
    _OVER.add(name)
    with _CHANGE:
        _CHANGE.wait_for(lambda: not _RUNNING[name])
    if client is not None:
        client.run(_stop_in_worker, name, on_error="ignore")


async def _stop_in_worker(name: str) -> None:
    _OVER.add(name)
    while _RUNNING[name]:
        await asyncio.sleep(0.01)


@contextmanager
def task(name: str) -> Iterator[None]:
    """The extent of a task of a job.

    Raises
    ------
    CancelledError
        When the job is over: on Ctrl-C or an error, threads that have started go on by themselves.
    """
    with _CHANGE:
        if name in _OVER:
            raise CancelledError(name)
        _RUNNING[name] += 1
    try:
        yield
    finally:
        with _CHANGE:
            _RUNNING[name] -= 1
            if not _RUNNING[name]:
                del _RUNNING[name]
            _CHANGE.notify_all()


def report(name: str, amount: int) -> None:
    """Say from inside a task that `amount` more is done.

    Raises
    ------
    CancelledError
        When the job is over.
    """
    if name in _OVER:
        raise CancelledError(name)
    advance = _JOBS.get(name)
    if advance is not None:
        advance(amount)
        return
    worker = _this_worker()
    if worker is not None:
        worker.log_event(name, amount)


def _this_worker() -> Any:
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit
