"""Where a graph runs: on the threads of this process, or on the cluster of a client."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
from dask.system import CPU_COUNT

from dask_bpe import __version__
from dask_bpe.cluster import own_worker
from dask_bpe.errors import ClusterError, ParameterError, whole_number
from dask_bpe.monitor import worker_counters
from dask_bpe.progress import JobState, Progress, watch

if TYPE_CHECKING:
    from distributed import Client

    from dask_bpe.monitor.publisher import Publisher

_SECONDS_TO_CONNECT = 30
# For what is good to know, and no more.
_SECONDS_TO_TELL = 5
# Dask gives up a worker that died and is not there again after so long; on a busy machine its 15 s are too few.
_SECONDS_TO_RESTART = 300
# How long a task is waited for that has lost against its twin.
_SECONDS_FOR_LOSERS = 5.0
# Jobs that this process started, by the name that their tasks report under. A task that runs in another process finds
# nothing here, and leaves its news to the heartbeats of its worker.
_JOBS: dict[str, _Here] = {}
# What this process does for jobs of any process: how many of a job's tasks are running, and which jobs are over.
_RUNNING: Counter[str] = Counter()
_OVER: set[str] = set()
_CHANGE = threading.Condition()


class CancelledError(Exception):
    """Raised inside a task whose job has ended: it was interrupted, or another of its tasks failed."""


@contextmanager
def connect(
    scheduler: str | None = None, workers: int | None = None, memory_per_worker: int | None = None
) -> Iterator[Client | None]:
    """A client for an address or scheduler file, for an own cluster of `workers` processes, or None.

    What is opened here is closed at the end. The workers of an own cluster are ended by Dask when they need more than
    `memory_per_worker` bytes; by default they share the memory of the machine.

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
        logging.getLogger("tornado.application").addFilter(_is_worth_saying)
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": _SECONDS_TO_RESTART}),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit="auto" if memory_per_worker is None else memory_per_worker,
                processes=True,
                dashboard_address="127.0.0.1:0",
                preload="dask_bpe.cluster.own_worker",
            ) as cluster,
            Client(cluster) as client,
        ):
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


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """False for what Dask's `sync` logs when Ctrl-C comes before its coroutine has begun: a name not bound yet."""
    return record.exc_info is None or not isinstance(record.exc_info[1], NameError)


def active_client(client: Client | None) -> Client | None:
    """The client to run on: the one given, else the one that is active, else none.

    Raises
    ------
    ClusterError
        When its cluster has no workers within 30 seconds (Dask itself would wait for ever), or a worker has no dask_bpe
        or another version of it.
    """
    client = client or _default_client()
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
    _check_workers(client)
    return client


def _check_workers(client: Client) -> None:
    """Refuse workers that have no dask_bpe, or another one: they would fail one task after the other, or worse.

    Those that are children of this process are told to leave interrupts to it.
    """
    expected, family = __version__, own_worker.family()

    def version() -> str | None:
        """That of the package there; None without it. Travels by value: a worker without the package can say so."""
        try:
            import dask_bpe
        except ImportError:
            return None
        if dask_bpe.__version__ == expected:
            from dask_bpe.cluster import own_worker

            own_worker.leave_interrupts_to(family)
        return dask_bpe.__version__

    for worker, found in client.run(version, on_error="return").items():
        if found is None:
            raise ClusterError(f"the worker {worker} has no dask_bpe: pip install dask-bpe=={__version__} there")
        if isinstance(found, BaseException):
            raise ClusterError(f"the worker {worker} cannot be asked for its version: {_first_line(found)}") from found
        if found != __version__:
            raise ClusterError(
                f"the worker {worker} has dask_bpe {found}, this process has {__version__}: install the same on both"
            )


def _default_client() -> Client | None:
    if not os.environ.get("DASK_SCHEDULER_ADDRESS") and "distributed" not in sys.modules:
        return None
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


def memory_per_thread(client: Client | None, asked: int | None) -> int | None:
    """Bytes that a task may use: of what is asked for a worker, or of its limit; None if neither says anything."""
    if asked is not None:
        whole_number("memory_per_worker", asked)
    if client is None:
        return None if asked is None else asked // n_threads(None)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [(asked or int(worker["memory_limit"])) // max(1, int(worker["nthreads"])) for worker in workers]
    return min((limit for limit in limits if limit), default=None)


@dataclass(frozen=True)
class _Here:
    """A stage of a job of this process."""

    job: JobState
    stage: str

    def take(self, event: tuple[float, Any]) -> None:
        """What a worker says at once, because it is rare: a line, or a document that cannot be read."""
        said = event[1]
        if isinstance(said, str):
            self.job.say(said)
        else:
            self.job.quarantine(*said)


@contextmanager
def job(stage: str, total: int | None, unit: str, progress: Progress, client: Client | None) -> Iterator[str]:
    """A stage whose tasks call `report`; gives the name they report under."""
    with watch(stage, "", progress) as state:
        name = f"{state.id}/{stage}/{uuid.uuid4().hex[:8]}"
        here = _JOBS[name] = _Here(state, stage)
        state.start(stage, total, unit)
        state.engage(n_threads(client))
        if client is not None:
            client.subscribe_topic(name, here.take)
            show(state, client).follow(name, stage, unit)
        try:
            yield name
            if client is not None:
                show(state, client).leave(name)
                _end_in_workers(name, state, client)
                if total is not None:
                    # Heartbeats come too late for the end.
                    state.reach(stage, total)
            state.finish(stage)
        except BaseException:
            _stop(name, client)
            raise
        finally:
            del _JOBS[name]
            if client is not None:
                client.unsubscribe_topic(name)
                show(state, client).leave(name)


def _end_in_workers(name: str, state: JobState, client: Client) -> None:
    """End a stage that has its results: what still runs of it, because its twin was faster, stops, and it is added up
    what the tasks have spent their time on. A worker that does not answer keeps no job waiting."""
    patience = _SECONDS_FOR_LOSERS + _SECONDS_TO_TELL
    with suppress(TimeoutError):
        for spent in client.run(_end_in_worker, name, on_error="ignore", callback_timeout=patience).values():
            state.spend(spent)


async def _end_in_worker(name: str) -> dict[str, int]:
    await _stop_in_worker(name, _SECONDS_FOR_LOSERS)
    return worker_counters.spent_on(name)


def show(state: JobState, client: Client) -> Publisher:
    """Show a job on the dashboard of the client's cluster."""
    from dask_bpe.monitor.publisher import publisher_of

    return publisher_of(state, client)


def show_anywhere(state: JobState, client: Client | None) -> None:
    """Show a job that runs here on the dashboard of the client given, or of the active one, if there is any."""
    client = client or _default_client()
    if client is not None:
        show(state, client)


def _stop(name: str, client: Client | None) -> None:
    """Stop what still runs of a job that has failed, and wait for it: afterwards no task of it writes."""
    _OVER.add(name)
    with _CHANGE:
        _CHANGE.wait_for(lambda: not _RUNNING[name])
    if client is not None:
        client.run(_stop_in_worker, name, on_error="ignore")


async def _stop_in_worker(name: str, patience: float = math.inf) -> None:
    _OVER.add(name)
    give_up = time.monotonic() + patience
    while _RUNNING[name] and time.monotonic() < give_up:
        await asyncio.sleep(0.01)


@contextmanager
def task(name: str, partition: int | None = None) -> Iterator[None]:
    """The extent of a task of a job; with it the `partition` is done, if it is given.

    Raises
    ------
    CancelledError
        When the job is over: on Ctrl-C or an error, threads that have started go on by themselves.
    """
    here, began = _JOBS.get(name), time.monotonic()
    worker = None if here is not None else _this_worker()
    if worker is not None:
        worker_counters.ride(worker)
    with _CHANGE:
        if name in _OVER:
            raise CancelledError(name)
        _RUNNING[name] += 1
    try:
        yield
        if partition is not None and here is not None:
            here.job.partition(partition, "done", time.monotonic() - began)
        elif partition is not None:
            worker_counters.partition(name, partition, time.monotonic() - began)
    finally:
        with _CHANGE:
            _RUNNING[name] -= 1
            if not _RUNNING[name]:
                del _RUNNING[name]
            _CHANGE.notify_all()


def report(name: str, amount: int = 0, **figures: int) -> None:
    """Say from inside a task that `amount` more is done, and so much more of some figures of `Snapshot.figures`.

    Raises
    ------
    CancelledError
        When the job is over.
    """
    if name in _OVER:
        raise CancelledError(name)
    here = _JOBS.get(name)
    if here is None:
        worker_counters.add(name, {"done": amount, **figures})
        return
    if amount:
        here.job.advance(here.stage, amount)
    if figures:
        here.job.add(figures)


class Reported:
    """What a task says that it has done of a file, or of a part of one.

    What is done is text, and what there is to do are bytes of the file: a compressed one gives more text than it has
    bytes, a file of documents less.
    """

    def __init__(self, job: str, most: int) -> None:
        self._job = job
        self._left = most

    def add(self, amount: int, **figures: int) -> None:
        """So much text was done."""
        amount = min(amount, self._left)
        self._left -= amount
        report(self._job, amount, **figures)

    def rest(self) -> None:
        """All is done."""
        self.add(self._left)


def spend(name: str, activity: str, nanoseconds: int) -> None:
    """Say from inside a task that an activity took so long. Workers tell it when the stage ends."""
    here = _JOBS.get(name)
    if here is not None:
        here.job.spend({activity: nanoseconds})
    else:
        worker_counters.spend(name, activity, nanoseconds)


def grown(name: str, n_bytes: int, n_distinct: int) -> None:
    """Say from inside a task that a part of so many bytes of text holds so many distinct pre-tokens."""
    here = _JOBS.get(name)
    if here is not None:
        here.job.grown(n_bytes, n_distinct)
    else:
        worker_counters.grown(name, n_bytes, n_distinct)


def say(name: str, fact: str) -> None:
    """Say from inside a task something that is worth a line. It is sent at once: for what is rare."""
    _send(name, fact)


def quarantine(name: str, source: str, position: int | None, reason: str) -> None:
    """Say from inside a task that a document cannot be read. It is sent at once: for the first of a task."""
    _send(name, (source, position, reason))


def _send(name: str, said: Any) -> None:
    here = _JOBS.get(name)
    worker = None if here is not None else _this_worker()
    if here is not None:
        here.take((0.0, said))
    elif worker is not None:
        worker.log_event(name, said)


def worker_name() -> str:
    """Of the worker that this task runs on; "" in a process that is none."""
    worker = _this_worker()
    return "" if worker is None else str(worker.name)


def _this_worker() -> Any:
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None
