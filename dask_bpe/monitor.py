"""How a long job shows itself: bars on a terminal, a line now and then in a log, or nothing.

with terminal_progress(quiet=False) as progress:
    tokenizer = dask_bpe.train("corpus/", 32_000, progress=progress)
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from dask_bpe.progress import Progress

_SCALES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class View(Progress):
    """A progress that is seen; a context manager, so that the screen is left tidy after an error too."""

    def close(self) -> None:
        """Stop showing anything; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class QuietProgress(View):
    """Shows nothing."""


class RichProgress(View):
    """Bars on a terminal: how much of the stage is done, how fast, how long it will take.

    The bars are live only while a stage runs; a finished bar stays on the screen.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._lock = threading.Lock()
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}

    def start(self, stage: str, total: int | None, unit: str) -> None:
        """See `Progress.start`."""
        with self._lock:
            if self._bars is None:
                self._bars = Bars(
                    TextColumn("{task.description:<9}"),
                    BarColumn(),
                    _AmountColumn(),
                    _RateColumn(),
                    TimeRemainingColumn(elapsed_when_finished=True),
                    console=self._console,
                )
                self._bars.start()
            self._tasks[stage] = self._bars.add_task(stage, total=total, unit=unit)

    def advance(self, stage: str, amount: int) -> None:
        """See `Progress.advance`."""
        with self._lock:
            if self._bars is not None and stage in self._tasks:
                self._bars.advance(self._tasks[stage], amount)

    def finish(self, stage: str) -> None:
        """See `Progress.finish`."""
        with self._lock:
            if self._bars is None or stage not in self._tasks:
                return
            task = self._tasks.pop(stage)
            # A stage that ended early (no pair left to merge) has still ended: its bar is full.
            done = next(shown.completed for shown in self._bars.tasks if shown.id == task)
            self._bars.update(task, total=done)
            self._bars.stop_task(task)
            if not self._tasks:
                self._stop()

    def say(self, fact: str) -> None:
        """See `Progress.say`."""
        self._console.print(fact, markup=False, highlight=False)

    def close(self) -> None:
        """See `View.close`."""
        with self._lock:
            self._tasks.clear()
            self._stop()

    def _stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


class PlainProgress(View):
    """Lines for a log: one when a stage ends, and while it runs one every `interval` seconds at most."""

    def __init__(self, stream: TextIO | None = None, interval: float = 5.0) -> None:
        self._stream = stream or sys.stderr
        self._interval = interval
        self._lock = threading.Lock()
        self._stages: dict[str, _Stage] = {}

    def start(self, stage: str, total: int | None, unit: str) -> None:
        """See `Progress.start`."""
        with self._lock:
            self._stages[stage] = _Stage(total, unit)

    def advance(self, stage: str, amount: int) -> None:
        """See `Progress.advance`."""
        with self._lock:
            state = self._stages.get(stage)
            if state is None:
                return
            state.done += amount
            now = time.monotonic()
            if now - state.shown >= self._interval:
                state.shown = now
                share = f" of {format_amount(state.total, state.unit)}" if state.total else ""
                self._say(f"{stage}: {format_amount(state.done, state.unit)}{share}, {state.rate(now)}")

    def finish(self, stage: str) -> None:
        """See `Progress.finish`."""
        with self._lock:
            state = self._stages.pop(stage, None)
            if state is not None:
                now = time.monotonic()
                done = format_amount(state.done, state.unit)
                self._say(f"{stage}: {done} in {now - state.began:.1f} s, {state.rate(now)}")

    def say(self, fact: str) -> None:
        """See `Progress.say`."""
        with self._lock:
            self._say(fact)

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


@dataclass
class _Stage:
    """What a stage has done so far, and when it last said so (seconds of the monotonic clock)."""

    total: int | None
    unit: str
    done: int = 0
    began: float = field(default_factory=time.monotonic)
    shown: float = field(default_factory=time.monotonic)

    def rate(self, now: float) -> str:
        return format_rate(self.done / max(now - self.began, 1e-9), self.unit)


class _AmountColumn(ProgressColumn):
    """`12.3 MB of 150.0 MB`; what was done in all when the stage has ended."""

    def render(self, task: Task) -> Text:
        unit = task.fields["unit"]
        done = format_amount(int(task.completed), unit)
        open_end = task.total is None or task.completed == task.total
        return Text(done if open_end else f"{done} of {format_amount(int(task.total or 0), unit)}")


class _RateColumn(ProgressColumn):
    """`410 MB/s`: of the last seconds while the stage runs, of all of it when it has ended."""

    def render(self, task: Task) -> Text:
        speed = task.speed if task.stop_time is None else None
        if speed is None and task.elapsed:
            speed = task.completed / task.elapsed
        return Text("" if speed is None else format_rate(speed, task.fields["unit"]))


def terminal_progress(quiet: bool) -> View:
    """The view that suits standard error: bars on a terminal, lines in a pipe, nothing when `quiet`."""
    if quiet:
        return QuietProgress()
    return RichProgress() if sys.stderr.isatty() else PlainProgress()


def format_amount(amount: int, unit: str) -> str:
    """`150.0 MB` for bytes (unit "B"; powers of 1000), `31,743 merges` for anything else."""
    if unit != "B":
        return f"{amount:,} {unit}"
    for scale, name in _SCALES:
        if amount >= scale:
            return f"{amount / scale:.1f} {name}"
    return f"{amount} B"


def format_rate(per_second: float, unit: str) -> str:
    """`410.2 MB/s` for bytes, `24,000 merges/s` for anything else."""
    # GB/s would be harder to compare with what one reads elsewhere.
    if unit == "B" and per_second >= 1e6:
        return f"{per_second / 1e6:,.1f} MB/s"
    return f"{format_amount(int(per_second), unit)}/s"
