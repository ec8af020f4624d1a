"""A cluster in time: which task runs when, without running any.

An event simulation. Tasks wait for those before them, for a thread, and for the scheduler, which deals them out one by
one. Then each reads, works and writes. All that read or write at the same time share one storage: everyone gets the
same, but none more than a task can take alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cluster:
    """Where tasks run.

    Attributes
    ----------
    workers, threads : processes, and tasks that each runs at the same time.
    read, write : bytes per second that one task reads and writes when it has the storage for itself.
    storage : bytes per second of all tasks together.
    network : bytes per second from one worker to another.
    overhead : seconds of the scheduler per task.
    """

    workers: int
    threads: int
    read: float = math.inf
    write: float = math.inf
    storage: float = math.inf
    network: float = math.inf
    overhead: float = 0.0

    @property
    def slots(self) -> int:
        """Tasks that run at the same time."""
        return self.workers * self.threads


@dataclass(frozen=True, eq=False)
class Tasks:
    """Work to be done.

    Attributes
    ----------
    read, write : float64[n], bytes that each task reads first and writes last.
    seconds : float64[n], what it does in between.
    rank : float64[n]; of those that are ready the one with the lowest begins first, among equals the first.
    after : for each task, those that must have ended; empty: none waits for any.
    messages : int64[n], how many tasks of the scheduler it stands for; empty: one.
    """

    read: Floats
    seconds: Floats
    write: Floats
    rank: Floats
    after: Sequence[Sequence[int]] = ()
    messages: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.seconds)

    def first(self, n: int) -> Tasks:
        """The first `n`, which wait for no others."""
        return Tasks(self.read[:n], self.seconds[:n], self.write[:n], self.rank[:n], (), self.messages[:n])

    def alone(self, cluster: Cluster) -> Floats:
        """Seconds that each takes when it has the storage for itself. float64[n]."""
        return self.read / cluster.read + self.seconds + self.write / cluster.write


@dataclass(frozen=True, eq=False)
class Schedule:
    """When each task began and ended, in seconds from the beginning. float64[n] each."""

    start: Floats
    end: Floats

    @property
    def seconds(self) -> float:
        """Until the last one has ended."""
        return float(self.end.max(initial=0.0))


def simulate(tasks: Tasks, cluster: Cluster) -> Schedule:
    """Run tasks on a cluster, in imagination. n log n in the number of tasks."""
    if cluster.slots * max(cluster.read, cluster.write) <= cluster.storage or math.isinf(cluster.storage):
        # Nobody ever waits for the storage: then reading and writing are work like all other.
        nothing = np.zeros(len(tasks))
        tasks = Tasks(nothing, tasks.alone(cluster), nothing, tasks.rank, tasks.after, tasks.messages)
    return _Simulation(tasks, cluster).run()


def lower_bounds(tasks: Tasks, cluster: Cluster) -> dict[str, float]:
    """Seconds below which no schedule of independent tasks can come, by what stands in the way."""
    alone = tasks.alone(cluster)
    n_messages = sum(tasks.messages) if len(tasks.messages) else len(tasks)
    return {
        "workers": float(alone.sum()) / cluster.slots,
        "storage": float((tasks.read + tasks.write).sum()) / cluster.storage,
        "scheduler": n_messages * cluster.overhead,
        "one task": float(alone.max(initial=0.0)),
    }


class _Channel:
    """Transfers that all go on at the same speed: those of one kind, reads or writes.

    `clock` is the bytes that a transfer would have by now that had begun with the first; each ends when the clock shows
    what it showed at its beginning, and its bytes.
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self.rate = most
        self.clock = 0.0
        self._ends: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._ends)

    def begin(self, task: int, n_bytes: float) -> None:
        heappush(self._ends, (self.clock + n_bytes, task))

    def seconds_left(self) -> float:
        """Until the next one ends."""
        return max(0.0, self._ends[0][0] - self.clock) / self.rate if self._ends else math.inf

    def end(self) -> int:
        """The one that ends now."""
        self.clock, task = heappop(self._ends)
        if not self._ends:
            self.clock = 0.0
        return task


def _share(channels: Sequence[_Channel], storage: float) -> None:
    """Give every transfer the same of the storage, but none more than its most."""
    left, n = storage, sum(map(len, channels))
    for channel in sorted(channels, key=lambda channel: channel.most):
        if len(channel):
            channel.rate = min(channel.most, left / n)
            left -= channel.rate * len(channel)
            n -= len(channel)


class _Simulation:
    """The state of a simulation at one moment."""

    def __init__(self, tasks: Tasks, cluster: Cluster) -> None:
        n = len(tasks)
        self._read, self._seconds, self._write = tasks.read.tolist(), tasks.seconds.tolist(), tasks.write.tolist()
        self._rank = tasks.rank.tolist()
        self._messages = list(tasks.messages) or [1] * n
        self._storage, self._overhead = cluster.storage, cluster.overhead
        self._lacking = [0] * n
        self._followers: list[list[int]] = [[] for _ in range(n)]
        for task, before in enumerate(tasks.after):
            self._lacking[task] = len(before)
            for earlier in before:
                self._followers[earlier].append(task)
        self._ready = [(self._rank[task], task) for task in range(n) if not self._lacking[task]]
        heapify(self._ready)
        self._idle = cluster.slots
        self._now = self._scheduler_free = 0.0
        self._moments: list[tuple[float, int, bool]] = []  # when a task begins (True), or has done its work
        self._reading, self._writing = _Channel(cluster.read), _Channel(cluster.write)
        self._start, self._end = np.zeros(n), np.zeros(n)

    def run(self) -> Schedule:
        """Go from event to event until nothing is left."""
        channels = (self._reading, self._writing)
        while True:
            while self._ready and self._idle:
                self._deal_out(heappop(self._ready)[1])
            left = self._moments[0][0] - self._now if self._moments else math.inf
            first = min(channels, key=_Channel.seconds_left)
            transfer = first.seconds_left()
            if math.isinf(left) and math.isinf(transfer):
                return Schedule(self._start, self._end)
            passed = min(left, transfer)
            for channel in channels:
                if len(channel):
                    channel.clock += passed * channel.rate
            if left <= transfer:
                self._now, task, begins = heappop(self._moments)
                if begins:
                    self._begin(task)
                else:
                    self._worked(task)
            else:
                self._now += passed
                task = first.end()
                if first is self._reading:
                    self._work(task)
                else:
                    self._done(task)
            if len(self._reading) or len(self._writing):
                _share(channels, self._storage)

    def _deal_out(self, task: int) -> None:
        self._idle -= 1
        self._scheduler_free = max(self._scheduler_free, self._now) + self._overhead * self._messages[task]
        self._start[task] = self._scheduler_free
        if self._read[task]:
            heappush(self._moments, (self._scheduler_free, task, True))
        else:
            heappush(self._moments, (self._scheduler_free + self._seconds[task], task, False))

    def _begin(self, task: int) -> None:
        self._reading.begin(task, self._read[task])

    def _work(self, task: int) -> None:
        heappush(self._moments, (self._now + self._seconds[task], task, False))

    def _worked(self, task: int) -> None:
        if self._write[task]:
            self._writing.begin(task, self._write[task])
        else:
            self._done(task)

    def _done(self, task: int) -> None:
        self._end[task] = self._now
        self._idle += 1
        for follower in self._followers[task]:
            self._lacking[follower] -= 1
            if not self._lacking[follower]:
                heappush(self._ready, (self._rank[follower], follower))
