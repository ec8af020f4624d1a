"""Processes that die, at any moment."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

import psutil

from faults.job import Failure, Job, gone, kill
from faults.trial import Encoding, Trial

_KILLS = 4


def one_worker(trial: Trial, kills: int = _KILLS) -> None:
    """kill -9 of a worker, several times in a job."""
    _workers(trial, kills, lambda job: [trial.draw.choice(workers)] if (workers := job.workers()) else [])


def all_workers(trial: Trial, kills: int = 2) -> None:
    """kill -9 of all workers at once, several times in a job."""
    _workers(trial, kills, lambda job: job.workers())


def _workers(trial: Trial, kills: int, victims: Callable[[Job], Sequence[psutil.Process]]) -> None:
    with trial.start() as job:
        for moment in moments(trial, kills):
            if not job.reached(moment):
                break
            trial.injected += kill(victims(job))
            done, killed = trial.done(), time.monotonic()
            if job.reached(partial(_more_is_done, trial, done)):
                trial.took("until the next partition was done", time.monotonic() - killed)
        ended = job.wait()
    trial.complete(ended)


def driver(trial: Trial, kills: int = _KILLS) -> None:
    """kill -9 of the driver, several times until the job is complete. Its workers must not outlive it."""
    for moment in moments(trial, kills):
        with trial.start() as job:
            if not job.reached(moment):
                trial.complete(job.wait())
                return
            workers = job.workers()
            trial.injected += kill([job.driver])
            code = job.wait().code
            if code != -9:
                raise Failure(f"the driver was killed and ended with exit code {code}")
            # By chance the next run begins while they die.
            if trial.draw.random() < 0.5:
                trial.took("until the workers were gone", gone(workers, within=60))
    trial.complete()


def process(trial: Trial, kills: int = _KILLS) -> None:
    """kill -9 of the one process of a job that works on threads."""
    trial.where = ()
    driver(trial, kills)


def driver_at_the_end(trial: Encoding) -> None:
    """kill -9 of the driver when all is done but the manifest."""
    with trial.start() as job:
        if job.reached(lambda: trial.done() == trial.steps):
            trial.injected += kill([job.driver])
        job.wait()
    trial.complete()


def interrupted(trial: Encoding) -> None:
    """Ctrl-C: one line, exit code 130, no file half written, no lock; the job can be gone on with."""
    # What a shell runs in the background ignores Ctrl-C, and children inherit that; they do not inherit a handler.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with trial.start() as job:
        if job.reached(moments(trial, 1)[0]):
            job.interrupt()
            trial.injected += 1
            ended = job.wait()
            if ended.code != 130 or ended.lines != ("Interrupted.",):
                raise Failure(f"exit code 130 and the line 'Interrupted.' were expected, not {ended}")
            if trial.writing() or (trial.out / "job.lock").exists():
                raise Failure(f"{trial.out} holds a lock, or a file half written, after Ctrl-C")
        else:
            trial.complete(job.wait())
            return
    trial.complete()


def _more_is_done(trial: Trial, done: int) -> bool:
    return trial.done() > done


def moments(trial: Trial, n: int) -> list[Callable[[], bool]]:
    """Random moments in a job, one after the other: so much is done, and a while later, or a file is being written."""
    # From the first partition on; before it nothing has begun.
    numbers = sorted(trial.draw.sample(range(1, max(trial.steps - 1, n + 1)), n))
    return [_moment(trial, number) for number in numbers]


def _moment(trial: Trial, number: int) -> Callable[[], bool]:
    if trial.draw.random() < 0.5:
        return lambda: trial.done() >= number and trial.writing()
    wait = trial.draw.uniform(0, 0.05)

    def later() -> bool:
        if trial.done() < number:
            return False
        time.sleep(wait)
        return True

    return later
