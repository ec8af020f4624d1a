"""Tasks computed one by one: what one reports is there at once, and what one lacks stops no other."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any

import dask
import dask.bag as db
from dask.callbacks import Callback

from dask_bpe.cluster import schedule
from dask_bpe.cluster.compute import DIED, WorkerWatch

if TYPE_CHECKING:
    from distributed import Client

# Makes the tasks of some items, each of which gives a list of reports; another attempt must have other keys, or Dask
# takes it for the first one.
Make = Callable[[Sequence[int], int], Sequence[Any]]

_SECONDS_BETWEEN_POLLS, _SECONDS_BETWEEN_LOOKS = 0.02, 1.0
# So many tasks for each thread, and at least so many, are given to the cluster; the others wait here. A worker that
# dies takes no more than its share of these with it, and the scheduler need not know of a hundred thousand.
_IN_FLIGHT, _LEAST_IN_FLIGHT = 4, 16
# A report is small: if it takes so long it was lost with its worker.
_SECONDS_TO_GATHER = 10.0
# When nothing waits any more, a task is begun once more if it takes so many times the median, and so many seconds.
_SLOW_TIMES, _SLOW_SECONDS = 3.0, 10.0


def partitioned(items: Sequence[Any], function: Callable[..., list[Any]], **told: Any) -> Make:
    """Tasks that are the partitions of a bag, an item in each: ``function(partition, attempt=..., **told)``."""

    def make(numbers: Sequence[int], attempt: int) -> Sequence[Any]:
        bag = db.from_sequence([items[number] for number in numbers], npartitions=len(numbers))
        return tasks_of(bag.map_partitions(function, attempt=attempt, **told))

    return make


def tasks_of(bag: db.Bag) -> Sequence[Any]:
    """The partitions of a bag. Not optimized: a future is then the task that works, not one behind it."""
    return list(bag.to_delayed(optimize_graph=False))


def run(
    make: Make,
    n_items: int,
    client: Client | None,
    collect: Callable[[Any], None],
    failed: Callable[[int, str], Any],
) -> None:
    """Compute the tasks of items, and hand every report on as soon as it is there.

    On a cluster every task is a future of its own, a bounded number of them at a time: one whose worker dies again and
    again, at last also alone, is reported as failed and the others go on; when nothing waits any more, those that take
    much longer than the others are begun once more on another worker, and the first to end counts. The other one may
    go on until the job ends: see `schedule.job`.

    Parameters
    ----------
    make : makes the tasks of the items with some numbers, given these and the number of the attempt: Delayed objects
        in the order in which they are to begin, each giving a list of reports.
    n_items : the items' numbers are those below.
    collect : is given the reports in any order, one or two for an item. What it raises stops the job.
    failed : makes the report of an item that killed its workers.

    Raises
    ------
    ClusterError
        When there have been no workers for a minute.
    """
    if client is None:
        _run_here(make(range(n_items), 0), collect)
    else:
        _Run(make, n_items, client, collect, failed).go()


def _run_here(tasks: Sequence[Any], collect: Callable[[Any], None]) -> None:
    wanted = {task.key for task in tasks}

    def ended(key: Any, reports: Any, *_: Any) -> None:
        if key in wanted:
            for report in reports:
                collect(report)

    with Callback(posttask=ended):
        results = dask.compute(*tasks, scheduler=dask.config.get("scheduler", None) or "threads")
    # A scheduler of the user's own may know nothing of callbacks; a second report of an item is no news.
    for reports in results:
        for report in reports:
            collect(report)


class _Run:
    """The futures of a job; see `run`."""

    def __init__(
        self,
        make: Make,
        n_items: int,
        client: Client,
        collect: Callable[[Any], None],
        failed: Callable[[int, str], Any],
    ) -> None:
        self._make, self._client = make, client
        self._collect, self._failed = collect, failed
        self._queue = deque(range(n_items))
        self._n_threads = schedule.n_threads(client)
        self._attempts = 0
        self._futures: dict[Any, int] = {}
        self._waiting = set(range(n_items))
        self._began: dict[str, float] = {}
        self._seconds: list[float] = []
        self._doubled: set[int] = set()
        self._twins: dict[Any, Sequence[str]] = {}
        self._failures: dict[int, Any] = {}
        # Those whose workers died again and again; the ones among them that are to be tried alone.
        self._suspects: set[int] = set()
        self._alone: list[int] = []
        self._workers = WorkerWatch(client)

    def go(self) -> None:
        """Until every item is reported."""
        from distributed import as_completed

        running = as_completed(loop=self._client.loop)
        looked = time.monotonic()
        try:
            while self._waiting:
                running.update(self._fill())
                batch = running.next_batch(block=False)
                for future in batch:
                    running.update(self._take(future))
                if time.monotonic() - looked > _SECONDS_BETWEEN_LOOKS:
                    looked = time.monotonic()
                    running.update(self._look())
                if self._alone and not self._futures and not self._queue:
                    running.update(self._submit_again(self._alone.pop()))
                if not batch:
                    time.sleep(_SECONDS_BETWEEN_POLLS)
        finally:
            left = [future for future, number in self._futures.items() if not future.done() or number in self._waiting]
            if left:
                self._client.cancel(left, force=True)

    def _fill(self) -> list[Any]:
        """Give more tasks to the cluster when half of those that it may have are done."""
        most = max(_LEAST_IN_FLIGHT, _IN_FLIGHT * self._n_threads)
        room = min(most - len(self._futures), len(self._queue))
        if not room or 2 * len(self._futures) > most:
            return []
        return self._submit([self._queue.popleft() for _ in range(room)])

    def _submit(self, numbers: Sequence[int], attempt: int = 0, workers: Sequence[str] | None = None) -> list[Any]:
        tasks = self._make(numbers, attempt)
        futures = self._client.compute(tasks, workers=workers, allow_other_workers=workers is not None)
        self._futures.update(zip(futures, numbers, strict=True))
        return list(futures)

    def _submit_again(self, number: int, workers: Sequence[str] | None = None) -> list[Any]:
        self._attempts += 1
        return self._submit([number], self._attempts, workers)

    def _take(self, future: Any) -> list[Any]:
        """Hand on what a future gives that has ended; itself if it is to be waited for again."""
        from distributed import KilledWorker

        number = self._futures.pop(future)
        twin = self._twins.pop(future, None)
        if number not in self._waiting:
            return []
        if future.status == "finished":
            try:
                reports = future.result(timeout=_SECONDS_TO_GATHER)
            except (TimeoutError, KilledWorker):
                # Its worker died before it could give it: it is done anew, which may fail, or wait for a worker.
                self._futures[future] = number
                if twin is not None:
                    self._twins[future] = twin
                return [future]
            for report in reports:
                self._collect(report)
            began = self._began.pop(future.key, None)
            if began is not None:
                self._seconds.append(time.monotonic() - began)
        elif number in self._futures.values():
            self._failures[number] = future
            return []  # its twin may do better
        else:
            reason = _reason_of(self._failures.pop(number, future))
            if number not in self._suspects:
                # Dask blames all tasks of a worker that dies: another one may have been the cause.
                self._suspects.add(number)
                self._alone.append(number)
                return []
            self._collect(self._failed(number, reason))
        self._waiting.discard(number)
        return []

    def _look(self) -> list[Any]:
        """See whether there are workers, and which tasks take too long; the futures of their twins."""
        now = time.monotonic()
        processing = self._client.processing()
        self._workers.see(processing)
        self._give_up_twins(processing)
        place = {key: worker for worker, keys in processing.items() for key in keys}
        for key in place:
            self._began.setdefault(key, now)
        self._n_threads = schedule.n_threads(self._client)
        if len(self._waiting) >= self._n_threads or not self._seconds:
            return []
        limit = max(_SLOW_SECONDS, _SLOW_TIMES * statistics.median(self._seconds))
        twins: list[Any] = []
        for future, number in list(self._futures.items()):
            slow = future.key in place and now - self._began[future.key] > limit
            others = [worker for worker in processing if worker != place.get(future.key)]
            if slow and others and number in self._waiting and number not in self._doubled:
                self._doubled.add(number)
                (twin,) = self._submit_again(number, others)
                self._twins[twin] = others
                twins.append(twin)
        return twins

    def _give_up_twins(self, workers: Container[str]) -> None:
        """Cancel those whose workers are all gone: in spite of `allow_other_workers` Dask gives them to no new one."""
        for future, others in list(self._twins.items()):
            if not any(worker in workers for worker in others):
                self._doubled.discard(self._futures[future])
                del self._twins[future]
                self._client.cancel([future], force=True)


def _reason_of(future: Any) -> str:
    """Why a future has no result, for what is no fault of the input; else its exception is raised."""
    from distributed import KilledWorker

    error = future.exception() if future.status == "error" else None
    if error is not None and not isinstance(error, KilledWorker):
        raise error
    return DIED if error else "its task was lost"
