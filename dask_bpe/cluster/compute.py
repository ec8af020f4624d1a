"""Graphs computed as a whole: one task that fails for good ends all of them. `run` computes tasks one by one."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import dask

from dask_bpe.errors import ClusterError, IncompleteError

if TYPE_CHECKING:
    from distributed import Client

# So often a task may fail before it counts as failed.
_RETRIES = 2
_SECONDS_WITHOUT_WORKERS, _SECONDS_BETWEEN_LOOKS, _SECONDS_BETWEEN_POLLS = 60.0, 1.0, 0.02
DIED = "its worker died again and again, perhaps for want of memory"


def compute(item: Any, client: Client | None) -> Any:
    """Compute a Dask collection. Raises as `compute_all`."""
    return compute_all([item], client)[0]


def compute_all(items: Sequence[Any], client: Client | None) -> list[Any]:
    """Compute Dask collections together, on the client's cluster, or by the scheduler that Dask is set to: threads.

    Raises
    ------
    IncompleteError
        The workers that had a task died, one after the other; distributed's `KilledWorker` is the cause.
    ClusterError
        When there have been no workers for a minute.
    """
    if client is None:
        return list(dask.compute(*items, scheduler=dask.config.get("scheduler", None) or "threads"))
    return _results_of(client.compute(list(items), retries=_RETRIES), client)


def _results_of(futures: Sequence[Any], client: Client) -> list[Any]:
    """What futures give. If one gives nothing all are cancelled."""
    from distributed import KilledWorker

    try:
        _wait(futures, client)
        return list(client.gather(list(futures)))
    except BaseException as error:
        client.cancel(list(futures))
        if isinstance(error, KilledWorker):
            raise IncompleteError(f"a task could not be done: {DIED}; give workers more, or smaller blocks") from error
        raise


def _wait(futures: Sequence[Any], client: Client) -> None:
    """Until all are done, or one has failed. Raises ClusterError.

    Not by `distributed.wait`: it asks no future whose it is, and to tell it, by `Client.as_current`, changes Dask's
    configuration for all threads; two jobs at once left it changed.
    """
    from distributed import as_completed

    workers, looked = WorkerWatch(client), time.monotonic()
    ended = as_completed(futures, loop=client.loop)
    while not ended.is_empty():
        batch = ended.next_batch(block=False)
        if any(future.status == "error" for future in batch):
            return
        if time.monotonic() - looked > _SECONDS_BETWEEN_LOOKS:
            looked = time.monotonic()
            workers.see(client.nthreads())
        if not batch:
            time.sleep(_SECONDS_BETWEEN_POLLS)


class WorkerWatch:
    """Looks whether a cluster has workers; tasks that have none wait for ever."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last = time.monotonic()

    def see(self, workers: Collection[str]) -> None:
        """These are there now. Raises ClusterError when there have been none for a minute."""
        now = time.monotonic()
        if workers:
            self._last = now
        elif now - self._last > _SECONDS_WITHOUT_WORKERS:
            raise ClusterError(
                f"the cluster at {self._client.scheduler.address} has had no workers for"
                f" {_SECONDS_WITHOUT_WORKERS:.0f} s: start some, and ask for the job again to go on with it"
            )
