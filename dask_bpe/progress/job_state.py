"""The state of a job while it runs and afterwards: what it has said of itself, and what follows from it."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from dask_bpe import machine
from dask_bpe.progress.curves import Int64s, Largest, LogGrid, Meter, Thinned
from dask_bpe.progress.listener import Progress
from dask_bpe.progress.partitions import Fate, PartitionTable
from dask_bpe.progress.readable import readable
from dask_bpe.progress.snapshot import (
    VERSION,
    Curves,
    Ending,
    Memory,
    Merge,
    Quarantined,
    Rate,
    Snapshot,
    Stage,
    Worker,
)

# What a snapshot lists at most.
N_WORKERS, N_MERGES, N_QUARANTINED, N_SAID = 16, 10, 50, 10
# Figures whose growth a second is of interest.
_RATED = ("bytes", "merges", "tokens")


@dataclass
class _Stage:
    """A stage as far as it is; times are of the monotonic clock."""

    name: str
    total: int | None
    unit: str
    began: float
    meter: Meter
    done: int = 0
    ended: float | None = None
    state: Ending = "running"


class JobState(Progress):
    """Collects what a job says, from any of its threads; `snapshot` gives all of it at any time.

    What the job says of its stages goes on to the listeners, in the thread that says it.

    Parameters
    ----------
    kind, name : of the job, see `Snapshot`.
    listener : the first that is told; more are added by `listen`.
    """

    def __init__(self, kind: str, name: str = "", listener: Progress | None = None) -> None:
        self.id = f"{kind}-{uuid.uuid4().hex[:8]}"
        self._kind, self._name = kind, name
        self._folder, self._page = "", ""
        self._listeners = [] if listener is None else [listener]
        self._lock = threading.RLock()
        self._began, self._clock = time.time(), time.monotonic()
        self._ended: float | None = None
        self._state: Ending = "running"
        self._error: str | None = None
        self._stages: dict[str, _Stage] = {}
        self._figures: dict[str, int] = {}
        self._threads = 0
        self._spent: dict[str, int] = {}
        self._meters: dict[str, Meter] = {}
        self._limit = machine.memory_limit()
        self._workers: tuple[int, list[Worker], int, int] | None = None
        self._moved, self._lines = 0, dict[str, float]()
        self._throughput, self._compression = Thinned(), Thinned()
        self._growth, self._merge_curve = Largest(), LogGrid()
        self._partitions = PartitionTable()
        self._merges: deque[Merge] = deque(maxlen=N_MERGES)
        self._quarantined: deque[Quarantined] = deque(maxlen=N_QUARANTINED)
        self._said: deque[str] = deque(maxlen=N_SAID)

    def listen(self, listener: Progress) -> None:
        """Let one more be told from now on; it learns of what was before from the snapshot."""
        with self._lock:
            self._listeners.append(listener)
        listener.begin(self)

    # What every job says, and listeners are told.

    def start(self, stage: str, total: int | None, unit: str) -> None:
        """See `Progress.start`."""
        now = time.monotonic()
        with self._lock:
            self._stages[stage] = _Stage(stage, total, unit, now, Meter(now))
            if unit == "B":
                self._throughput.add(now - self._clock, {"all": self._moved, **self._lines})
        for listener in self._listeners:
            listener.start(stage, total, unit)

    def advance(self, stage: str, amount: int) -> None:
        """See `Progress.advance`."""
        now = time.monotonic()
        with self._lock:
            state = self._stages.get(stage)
            if state is None:
                return
            state.done += amount
            state.meter.see(now, state.done)
            if state.unit == "B":
                self._moved += amount
                if self._throughput.due(now - self._clock):
                    self._throughput.add(now - self._clock, {"all": self._moved, **self._lines})
        for listener in self._listeners:
            listener.advance(stage, amount)

    def reach(self, stage: str, done: int) -> None:
        """So much of a stage is done, whatever was said before."""
        with self._lock:
            amount = done - self._stages[stage].done
        if amount:
            self.advance(stage, amount)

    def advance_up_to_total(self, stage: str, amount: int) -> None:
        """So much more was done, some of it perhaps twice: never more than there is."""
        with self._lock:
            state = self._stages[stage]
            most = amount if state.total is None else max(0, min(amount, state.total - state.done))
        if most:
            self.advance(stage, most)

    def say(self, fact: str) -> None:
        """See `Progress.say`."""
        with self._lock:
            self._said.append(fact)
        for listener in self._listeners:
            listener.say(fact)

    def finish(self, stage: str) -> None:
        """See `Progress.finish`."""
        now = time.monotonic()
        with self._lock:
            state = self._stages.get(stage)
            if state is None:
                return
            state.ended, state.state = now, "finished"
            if state.unit == "B":
                self._throughput.replace_recent(now - self._clock, {"all": self._moved, **self._lines})
        for listener in self._listeners:
            listener.finish(stage)

    def begin(self, job: JobState) -> None:
        """Tell the listeners that the job begins."""
        for listener in self._listeners:
            listener.begin(job)

    def end(self, error: BaseException | None = None) -> None:
        """The job has ended, or was ended by an error."""
        with self._lock:
            self._ended = time.monotonic()
            self._state, self._error = ending(error)
            for stage in self._stages.values():
                if stage.ended is None:
                    stage.ended, stage.state = self._ended, self._state
        for listener in self._listeners:
            listener.end()

    # What only the snapshot tells.

    def add(self, figures: Mapping[str, int]) -> None:
        """So much more of these figures, see `Snapshot.figures`."""
        now = time.monotonic()
        with self._lock:
            for name, amount in figures.items():
                self._figures[name] = self._figures.get(name, 0) + amount
                self._measure(name, now)
            if figures.get("tokens") and self._compression.due(now):
                self._compression.add(now, {name: float(self._figures.get(name, 0)) for name in ("bytes", "tokens")})

    def settle(self, figures: Mapping[str, int]) -> None:
        """These figures are exactly so."""
        now = time.monotonic()
        with self._lock:
            for name, value in figures.items():
                self._figures[name] = value
                self._measure(name, now)
            if figures.get("tokens"):
                self._compression.add(now, {name: float(self._figures.get(name, 0)) for name in ("bytes", "tokens")})
            if "distinct" in figures:
                self._growth.end(self._figures.get("bytes", 0), figures["distinct"])

    def keep(self, folder: str) -> None:
        """What is done is kept in a folder."""
        with self._lock:
            self._folder = folder

    def show_at(self, page: str) -> None:
        """The job has a page at this address."""
        with self._lock:
            self._page = page

    def engage(self, n_threads: int) -> None:
        """So many tasks of the job may run at the same time."""
        with self._lock:
            self._threads = n_threads

    def spend(self, nanoseconds: Mapping[str, int]) -> None:
        """Tasks have spent so much more time on these activities, see `Snapshot.spent`."""
        with self._lock:
            for activity, amount in nanoseconds.items():
                self._spent[activity] = self._spent.get(activity, 0) + amount

    def _measure(self, name: str, now: float) -> None:
        if name not in _RATED:
            return
        if name not in self._meters:
            running = [stage.began for stage in self._stages.values() if stage.ended is None]
            self._meters[name] = Meter(running[-1] if running else self._clock)
        self._meters[name].see(now, self._figures[name])

    def merged(
        self, first: int, counts: Int64s, tokens_left: Int64s, last: Sequence[tuple[bytes, bytes, int]] = ()
    ) -> None:
        """Merges were made.

        Parameters
        ----------
        first : rank of the first of them; the first of all is 1.
        counts, tokens_left : int64[n], occurrences of each pair and tokens of the corpus after it.
        last : the halves and the count of the last ones; ten of them are of use.
        """
        with self._lock:
            self._merge_curve.add(first, counts, tokens_left)
            rank = first + len(counts) - len(last)
            for number, (left, right, count) in enumerate(last, rank):
                self._merges.append({"rank": number, "left": readable(left), "right": readable(right), "count": count})
            self._figures["merges"] = first + len(counts) - 1
            self._measure("merges", time.monotonic())

    def grown(self, n_bytes: int, n_distinct: int) -> None:
        """In some part of the corpus, of so many bytes, there are so many distinct pre-tokens."""
        with self._lock:
            self._growth.add(n_bytes, n_distinct)

    def quarantine(self, source: str, position: int | None, reason: str) -> None:
        """A document cannot be read."""
        with self._lock:
            self._quarantined.append({"source": source, "position": position, "reason": reason})

    def divide(self, n_partitions: int) -> None:
        """What follows is done in so many partitions; 0 where nobody knows."""
        with self._lock:
            self._partitions = PartitionTable(n_partitions)

    def partition(self, number: int, fate: Fate, seconds: float = 0.0, worker: str = "") -> None:
        """A partition has come to its end."""
        with self._lock:
            self._partitions.put(number, fate, seconds, worker)

    def partitions(self, fate: Fate, amount: int, slowest: Sequence[tuple[int, float, str]] = ()) -> None:
        """So many more partitions have come to their end; `slowest`: number, seconds and worker of those that took
        longest so far."""
        with self._lock:
            self._partitions.count(fate, amount)
            for number, seconds, worker in slowest:
                self._partitions.slow(number, seconds, worker)

    def partitions_done(self) -> None:
        """All partitions have come to a good end."""
        with self._lock:
            self._partitions.finish()

    def see_workers(
        self, n_workers: int, fullest: Sequence[Worker], memory: int, limit: int, lines: Mapping[str, float]
    ) -> None:
        """How the workers of the cluster are: how many, the fullest of them, resident bytes and limits (0: none) of all
        together; and bytes of text done so far by the lines of `Throughput.workers`."""
        with self._lock:
            self._workers = (n_workers, list(fullest[:N_WORKERS]), memory, limit)
            self._lines = dict(lines)

    # What is seen.

    def snapshot(self) -> Snapshot:
        """All of it now."""
        now = time.monotonic()
        with self._lock:
            n_workers, workers = (0, []) if self._workers is None else self._workers[:2]
            return {
                "version": VERSION,
                "id": self.id,
                "kind": self._kind,
                "name": self._name,
                "folder": self._folder,
                "page": self._page,
                "state": self._state,
                "error": self._error,
                "began": self._began,
                "seconds": round((self._ended or now) - self._clock, 3),
                "stages": self._stages_now(now),
                "figures": dict(self._figures),
                "rates": self._rates(now),
                "threads": self._threads,
                "spent": {activity: round(amount / 1e9, 3) for activity, amount in self._spent.items()},
                "memory": self._memory(),
                "n_workers": n_workers,
                "workers": list(workers),
                "partitions": self._partitions.summary(),
                "curves": self._curves(),
                "merges": list(self._merges),
                "quarantined": list(self._quarantined),
                "said": list(self._said),
            }

    def _stages_now(self, now: float) -> list[Stage]:
        stages = [self._seen(stage, now) for stage in self._stages.values()]
        for before, stage in pairwise(stages):
            if before["state"] == "running":
                stage["seconds_left"] = None  # it waits for the one before
        return stages

    def _seen(self, stage: _Stage, now: float) -> Stage:
        recent = None if stage.ended else stage.meter.recent(now)
        left = None
        if stage.ended is None and stage.total is not None and recent:
            left = round(max(0, stage.total - stage.done) / recent, 1)
        return {
            "name": stage.name,
            "unit": stage.unit,
            "done": stage.done,
            "total": stage.total,
            "state": stage.state,
            "began": round(stage.began - self._clock, 3),
            "seconds": round((stage.ended or now) - stage.began, 3),
            "rate": _rounded(stage.meter.average()),
            "rate_now": _rounded(recent),
            "seconds_left": left,
        }

    def _rates(self, now: float) -> dict[str, Rate]:
        rates: dict[str, Rate] = {}
        for name, meter in self._meters.items():
            average = meter.average()
            if average is not None:
                recent = 0.0 if self._ended else meter.recent(now) or 0.0
                rates[name] = {"now": round(recent, 1), "average": round(average, 1)}
        return rates

    def _memory(self) -> Memory:
        _, _, used, limit = self._workers or (0, [], 0, 0)
        now = machine.memory_used()
        return {
            "driver": now,
            "driver_peak": max(now, machine.peak_memory()),
            "driver_limit": self._limit if self._limit < 1 << 62 else None,
            "workers": used if self._workers else None,
            "workers_limit": limit or None,
        }

    def _curves(self) -> Curves:
        compression = [(int(row["bytes"]), row["bytes"] / row["tokens"]) for _, row in self._compression.rows]
        growth, merges = self._growth.points(), self._merge_curve.points()
        return {
            "throughput": {
                "seconds": [round(time, 2) for time, _ in self._throughput.rows[1:]],
                "all": [round(rate) for rate in self._throughput.rates("all")],
                "workers": {
                    name: [round(rate) for rate in self._throughput.rates(name)] for name in sorted(self._lines)
                },
            },
            "growth": {"bytes": [x for x, _ in growth], "distinct": [y for _, y in growth]},
            "merges": {
                "rank": [row[0] for row in merges],
                "count": [row[1] for row in merges],
                "tokens_left": [row[2] for row in merges],
            },
            "compression": {
                "bytes": [n_bytes for n_bytes, _ in compression],
                "bytes_per_token": [round(ratio, 4) for _, ratio in compression],
            },
        }


def ending(error: BaseException | None) -> tuple[Ending, str | None]:
    """How a job ends with an error, or without one, and the first line of the error that says something."""
    if error is None:
        return "finished", None
    state: Ending = "interrupted" if isinstance(error, KeyboardInterrupt | GeneratorExit) else "failed"
    lines = (line.strip() for line in str(error).splitlines())
    return state, next(filter(None, lines), type(error).__name__)


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)


@contextmanager
def watch(kind: str, name: str, progress: Progress | None) -> Iterator[JobState]:
    """The extent of a job; `progress` listens to it. A job within a job is part of the outer one.

    Parameters
    ----------
    kind, name : see `Snapshot`.
    progress : what listens; the state of the outer job when this is a part of one; None when nobody does.
    """
    if isinstance(progress, JobState):
        yield progress
        return
    job = JobState(kind, name, progress)
    job.begin(job)
    try:
        yield job
    except BaseException as error:
        job.end(error)
        raise
    job.end()
