"""A `dask-bpe` command in a process of its own: its driver, its workers, and the moments of its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

# Nothing here takes longer unless it hangs.
LONGEST = 600.0
_SCRIPTS = Path(__file__).parents[1]
_BETWEEN_LOOKS = 0.003


class Failure(Exception):
    """Something was lost, doubled, different, left over, or ended in another way than it should."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: by a signal) and the lines on standard error."""

    code: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"exit code {self.code}, " + ("\n  ".join(self.lines[-40:]) or "nothing said")


class Job:
    """A command that runs; it and what it has started are killed at the end of the block.

    Parameters
    ----------
    arguments : those of `dask-bpe`, or of another module of Python.
    log : a file for what it says.
    environment : more than that of this process.
    module : what Python runs.
    """

    def __init__(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        log: Path,
        environment: Mapping[str, str] | None = None,
        module: str = "dask_bpe",
    ) -> None:
        self._log = log
        told = {**os.environ, **(environment or {})}
        told["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_SCRIPTS), told.get("PYTHONPATH"))))
        with log.open("wb") as errors, log.with_suffix(".out").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                env=told,
                start_new_session=True,
            )
        self._known = psutil.Process(self._process.pid)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            family = [*self.workers(), self._known]
            kill(family)
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()

    @property
    def driver(self) -> psutil.Process:
        """The process itself."""
        return self._known

    def workers(self) -> list[psutil.Process]:
        """The worker processes that it has now."""
        try:
            children = self._known.children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [child for child in children if _is_worker(child)]

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def reached(self, moment: Callable[[], bool]) -> bool:
        """Wait for a moment of its work; False if it ended before. Raises Failure when neither comes."""
        give_up = time.monotonic() + LONGEST
        while not moment():
            if not self.running():
                return False
            if time.monotonic() > give_up:
                raise Failure(f"nothing happened for {LONGEST:.0f} s: {self._ended()}")
            time.sleep(_BETWEEN_LOOKS)
        return self.running()

    def interrupt(self) -> None:
        """What Ctrl-C does: SIGINT to the driver and all of its processes."""
        os.killpg(self._process.pid, signal.SIGINT)

    def wait(self) -> Ended:
        """Its end. Raises Failure when it hangs."""
        try:
            self._process.wait(LONGEST)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"it hangs: no end within {LONGEST:.0f} s: {self._ended()}") from error
        return self._ended()

    def said(self) -> str:
        """What is on its standard output."""
        return self._log.with_suffix(".out").read_text(encoding="utf-8", errors="replace")

    def _ended(self) -> Ended:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return Ended(self._process.poll() or 0, tuple(lines))


def kill(processes: Iterable[psutil.Process]) -> int:
    """SIGKILL; how many were there to be killed."""
    hit = 0
    for process in processes:
        try:
            process.kill()
            hit += 1
        except psutil.NoSuchProcess:
            continue
    return hit


def gone(processes: Sequence[psutil.Process], within: float = LONGEST) -> float:
    """Seconds until none of the processes is left. Raises Failure."""
    began = time.monotonic()
    left = list(processes)
    while left := [process for process in left if _alive(process)]:
        if time.monotonic() - began > within:
            raise Failure(f"processes {[process.pid for process in left]} still run after {within:.0f} s")
        time.sleep(_BETWEEN_LOOKS)
    return time.monotonic() - began


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _is_worker(process: psutil.Process) -> bool:
    """Among the children of a LocalCluster is also the tracker of shared resources, which is nobody's worker."""
    try:
        return any("multiprocessing.spawn" in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
