"""What jobs do to each other, and what a machine that is too small does to them."""

from __future__ import annotations

from distributed.system import MEMORY_LIMIT

from faults import trouble
from faults.job import Failure, Job, kill
from faults.killing import moments
from faults.storage import SkippedError, assert_incomplete, troubled
from faults.trial import Encoding, Trial

_WORKER_BYTES = 1_200_000_000


def two_jobs(trial: Encoding) -> None:
    """Two jobs write to one folder: the second is refused, until the first is dead."""
    with trial.start() as job:
        if not job.reached(lambda: trial.done() > 0):
            raise Failure(f"the first job ended before the second began: {job.wait()}")
        job.driver.suspend()
        trial.refused([str(trial.out), "another job works in this folder"])
        trial.injected += 1
        kill([job.driver])
        job.wait()
    trial.complete()


def orphans(trial: Encoding, kills: int = 4) -> None:
    """kill -9 of the driver on a cluster that lives on: its tasks go on beside those of the next driver."""
    address = trial.folder / "scheduler.json"
    with Job([str(address)], trial.folder / "cluster.err", module="faults.cluster") as cluster:
        if not cluster.reached(address.exists):
            raise Failure(f"no cluster: {cluster.wait()}")
        trial.where = ("--scheduler", str(address))
        for moment in moments(trial, kills):
            with trial.start() as job:
                if not job.reached(moment):
                    trial.complete(job.wait())
                    return
                trial.injected += kill([job.driver])
        trial.complete()


def deadly(trial: Trial, allowed_failures: int = 3) -> None:
    """A partition kills every worker that has it: all others are done, it is named, and the next run does only it."""
    environment = troubled(trial, deadly="text-3.txt")
    settings = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)}
    with trial.start(environment=environment | settings) as job:
        ended = job.wait()
    assert_incomplete(trial, ended.lines, ended.code, "died again and again")
    trial.injected += trouble.faults(environment)
    trial.complete(environment=trouble.installed(trial.folder))


def memory(trial: Trial, allowed_failures: int = 3) -> None:
    """A partition takes more memory than a worker may: it is given up and named; with more memory it is completed."""
    if MEMORY_LIMIT < 6 * _WORKER_BYTES:
        raise SkippedError(f"a machine of {MEMORY_LIMIT / 1e9:.0f} GB has no room for a worker that takes too much")
    environment = troubled(trial, greedy="text-3.txt", bytes=2 * _WORKER_BYTES)
    settings = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)}
    with trial.start("--memory-per-worker", str(_WORKER_BYTES), environment=environment | settings) as job:
        ended = job.wait()
    # The rest is done; whoever stood in the same queue may be given up too.
    assert_incomplete(trial, ended.lines, ended.code, "died again and again", failed=4)
    trial.injected += trouble.faults(environment)
    trial.complete(environment=environment)
