"""The job's side of `plugin`: gives its snapshot to the scheduler, takes what the workers have done, twice a second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast
from weakref import WeakKeyDictionary

from distributed.comm import CommClosedError

from dask_bpe.monitor.plugin import HANDLER, NAME, JobPlugin
from dask_bpe.monitor.view import View
from dask_bpe.monitor.worker_totals import Heard, News, StageNews, WorkerTotals
from dask_bpe.progress import JobState, Snapshot

if TYPE_CHECKING:
    from distributed import Client

Exchange = Callable[[Snapshot, dict[str, str]], News]

_SECONDS_TO_ANSWER = 10
# What a scheduler that cannot be reached, or not any more, raises.
_LOST = (OSError, CommClosedError, TimeoutError, RuntimeError, ValueError)


class Publisher(View):
    """Shows the job to the scheduler of a client."""

    interval: ClassVar[float] = 0.5

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange
        self._lock = threading.Lock()
        # Unit and name of each stage by the name that its tasks report under; those that are not over; their figures.
        self._units: dict[str, str] = {}
        self._running: dict[str, str] = {}
        self._heard: dict[str, dict[str, int]] = {}
        self._lost = False

    def follow(self, name: str, stage: str, unit: str) -> None:
        """A stage begins whose tasks report under a name."""
        with self._lock:
            self._units[name], self._running[name] = unit, stage
            self._heard[name] = {}

    def leave(self, name: str) -> None:
        """Take no more news of a stage: what it came to is known now."""
        with self._lock:
            self._running.pop(name, None)

    def show(self, snapshot: Snapshot) -> None:
        """See `View.show`."""
        if self._lost or self._job is None:
            return
        with self._lock:
            units = dict(self._units)
        try:
            news = self._exchange(snapshot, units)
        except _LOST as error:
            # The job needs no one to watch it; if it needs the scheduler, it will say so itself.
            self._lost = True
            self._job.say(f"the scheduler is told no more of this job: {error or type(error).__name__}")
            return
        self._take(self._job, news)

    def _take(self, job: JobState, news: News) -> None:
        job.see_workers(news["n_workers"], news["fullest"], news["memory"], news["limit"], news["lines"])
        with self._lock:
            for name, stage in self._running.items():
                if name in news["stages"]:
                    self._take_stage(job, name, stage, news["stages"][name])

    def _take_stage(self, job: JobState, name: str, stage: str, news: StageNews) -> None:
        """What is new since the last time. Figures that have fallen wait until they are what they were."""
        heard = self._heard[name]
        new = {figure: n - heard.get(figure, 0) for figure, n in news["figures"].items() if n > heard.get(figure, 0)}
        for figure, amount in new.items():
            heard[figure] = heard.get(figure, 0) + amount
        job.advance_up_to_total(stage, new.pop("done", 0))
        slowest = [(int(number), float(seconds), str(worker)) for number, seconds, worker in news["slowest"]]
        job.partitions("done", new.pop("partitions", 0), slowest)
        for n_bytes, n_distinct in news["grown"]:
            job.grown(n_bytes, n_distinct)
        job.add(new)


# A job has one, whichever of its stages comes first to the cluster.
_publishers: WeakKeyDictionary[JobState, Publisher] = WeakKeyDictionary()


def publisher_of(job: JobState, client: Client) -> Publisher:
    """What shows a job on the scheduler of a client, and its page there; begun by the first call.

    Where the scheduler cannot have the plugin the job goes on without a page, which is said.
    """
    if job not in _publishers:
        _publishers[job] = publisher = Publisher(_exchange_with(client, job))
        job.listen(publisher)
    return _publishers[job]


def _exchange_with(client: Client, job: JobState) -> Exchange:
    try:
        client.register_plugin(JobPlugin(), name=NAME)
    except Exception as error:  # whatever unpickling raises there: no dask_bpe, another version of it
        reason = (str(error) or type(error).__name__).splitlines()[0]
        job.say(f"no page on the dashboard: the scheduler cannot load dask_bpe.monitor ({reason})")
        return _by_polling(client)
    job.show_at(page_link(client) or "")

    def exchange(snapshot: Snapshot, stages: dict[str, str]) -> News:
        """See `JobPlugin.exchange`, which does it."""
        if client.scheduler is None:
            raise CommClosedError("the client is closed")
        handler = getattr(client.scheduler, HANDLER)
        return cast("News", client.sync(handler, snapshot=snapshot, stages=stages, callback_timeout=_SECONDS_TO_ANSWER))

    return exchange


def _by_polling(client: Client) -> Exchange:
    """Without the plugin: heartbeats are asked for, of each worker."""
    totals = WorkerTotals()

    def exchange(snapshot: Snapshot, stages: dict[str, str]) -> News:
        """What `JobPlugin.exchange` gives; nobody takes the snapshot."""
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        heard = [
            Heard(
                str(worker["name"]),
                int(worker["metrics"].get("memory", 0)),
                int(worker["memory_limit"] or 0),
                worker["metrics"],
            )
            for worker in workers
        ]
        return totals.news(snapshot["id"], stages, heard)

    return exchange


def page_link(client: Client) -> str | None:
    """Where the page of jobs is, if the cluster has a dashboard: `http://127.0.0.1:8787/dask-bpe`."""
    link = client.dashboard_link
    return None if not link else link.rsplit("/", 1)[0] + "/dask-bpe"
