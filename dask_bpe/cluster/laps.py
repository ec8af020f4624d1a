"""What a task spends its time on."""

from __future__ import annotations

import time

from dask_bpe.cluster import schedule


class Laps:
    """Tells a job how long each activity of a task took, by the clock: from the end of the one before to its own.

    Told per piece of text of some hundred kilobytes and more, never per document.
    """

    def __init__(self, job: str) -> None:
        self._job = job
        self._since = time.perf_counter_ns()

    def end(self, activity: str) -> None:
        """An activity of `Snapshot.spent` ends here."""
        now = time.perf_counter_ns()
        schedule.spend(self._job, activity, now - self._since)
        self._since = now
