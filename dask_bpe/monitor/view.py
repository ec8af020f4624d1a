"""What all views share: they show the snapshots of the job that they listen to."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import ClassVar, Self

from dask_bpe.progress import JobState, Progress, Snapshot


class View(Progress):
    """A progress that is seen. It shows a snapshot every `interval` seconds, at the end of each stage and of the job.

    A context manager, so that the screen is left tidy after an error too. One job after the other may be shown.
    """

    interval: ClassVar[float] = 1.0

    def __init__(self) -> None:
        self._job: JobState | None = None
        self._showing = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Show this instead of what was shown before; one call at a time."""

    def begin(self, job: JobState) -> None:
        """See `Progress.begin`."""
        self.close()
        self._job, self._stopped = job, threading.Event()
        self._thread = threading.Thread(target=self._keep_showing, args=(self._stopped,), name="progress", daemon=True)
        self._thread.start()

    def finish(self, stage: str) -> None:
        """See `Progress.finish`."""
        self._show()

    def end(self) -> None:
        """See `Progress.end`."""
        self._stop()
        self._show()
        self._job = None

    def close(self) -> None:
        """Stop showing anything; may be called twice."""
        self._stop()
        self._job = None

    def _show(self) -> None:
        with self._showing:
            if self._job is not None:
                self.show(self._job.snapshot())

    def _keep_showing(self, stopped: threading.Event) -> None:
        while not stopped.wait(self.interval):
            self._show()

    def _stop(self) -> None:
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Quiet(View):
    """Shows nothing."""

    def begin(self, job: JobState) -> None:
        """See `Progress.begin`."""
