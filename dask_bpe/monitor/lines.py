"""Lines for a log: one when a stage ends, one a minute for each stage that runs."""

from __future__ import annotations

import sys
from typing import ClassVar, TextIO

from dask_bpe.monitor.amounts import format_amount, format_part, format_rate, format_seconds
from dask_bpe.monitor.view import View
from dask_bpe.progress import JobState, Snapshot
from dask_bpe.progress.snapshot import Stage


class Lines(View):
    """See the module."""

    interval: ClassVar[float] = 60.0

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream or sys.stderr
        self._ended: set[str] = set()

    def begin(self, job: JobState) -> None:
        """See `Progress.begin`."""
        super().begin(job)
        self._ended = set()

    def say(self, fact: str) -> None:
        """See `Progress.say`."""
        print(fact, file=self._stream, flush=True)

    def finish(self, stage: str) -> None:
        """See `Progress.finish`."""
        with self._showing:
            if self._job is not None:
                self._show_stages(self._job.snapshot(), running=False)

    def show(self, snapshot: Snapshot) -> None:
        """See `View.show`."""
        self._show_stages(snapshot, running=snapshot["state"] == "running")

    def _show_stages(self, snapshot: Snapshot, running: bool) -> None:
        for stage in snapshot["stages"]:
            if stage["state"] == "running":
                if running:
                    self.say(_while_it_runs(stage))
            elif stage["name"] not in self._ended:
                self._ended.add(stage["name"])
                self.say(_at_its_end(stage))


def _while_it_runs(stage: Stage) -> str:
    unit, rate, left = stage["unit"], stage["rate_now"], stage["seconds_left"]
    done = format_part(stage["done"], stage["total"], unit)
    speed = "" if rate is None else f", {format_rate(rate, unit)}"
    time = "" if left is None else f", {format_seconds(left)} left"
    return f"{stage['name']}: {done}{speed}{time}"


def _at_its_end(stage: Stage) -> str:
    speed = "" if stage["rate"] is None else f", {format_rate(stage['rate'], stage['unit'])}"
    how = "" if stage["state"] == "finished" else f" ({stage['state']})"
    done = format_amount(stage["done"], stage["unit"])
    return f"{stage['name']}: {done} in {format_seconds(stage['seconds'])}{speed}{how}"
