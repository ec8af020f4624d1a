"""Contestants in fresh processes take turns, after their results have been compared."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks import texts
from benchmarks.figures import OURS, Contest, Row
from benchmarks.texts import Text
from benchmarks.vocabularies import VocabularyFile
from benchmarks.work import MARK, Task

PEERS = ("gigatoken", "rustbpe", "tiktoken", "tokenizers")
PREFIX = "dask_bpe on the prefix"
_ONE_THREAD = {
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


class FailedError(Exception):
    """A contestant's process ended, or was ended, without a report."""


@dataclass(frozen=True)
class Entry:
    """A contestant of a contest.

    Attributes
    ----------
    contestant : what the process looks up in the job's `CONTESTANTS`; its first word is the package that it needs.
    text : what it works on.
    vocabulary : with which.
    name : of its row; the contestant's.
    runs : timed runs after the warm-up; 0: the first call is the figure; None: as many as the options say.
    same_as : the row whose result it must have made; None: there is none.
    against : the row that its speed is compared with.
    digest : SHA-256 of the result that it must have made, where that is known beforehand.
    threads : how many it may use; None: one for every core.
    settings : of its `Task`.
    """

    contestant: str
    text: Text | None = None
    vocabulary: VocabularyFile | None = None
    name: str = ""
    runs: int | None = None
    same_as: str | None = OURS
    against: str | None = OURS
    digest: str | None = None
    threads: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def row_name(self) -> str:
        """The name of its row."""
        return self.name or self.contestant

    @property
    def package(self) -> str:
        """What has to be installed."""
        return self.contestant.split(",")[0].split(" ")[0]


class Process:
    """A contestant at work."""

    def __init__(self, task: Task, environment: dict[str, str]) -> None:
        self._folder = Path(task.folder)
        command = [sys.executable, "-P", "-m", "benchmarks.process", task.to_json()]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )

    def report(self, limit: float) -> dict[str, Any]:
        """Wait for the next report. Raises FailedError if none comes within the limit, in seconds."""
        assert self._process.stdout is not None
        timer = threading.Timer(limit, self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout:
                if line.startswith(MARK):
                    report: dict[str, Any] = json.loads(line[len(MARK) :])
                    return report
        finally:
            timer.cancel()
        code = self._process.wait()
        log = (self._folder / "log").read_text(errors="replace").strip().splitlines()
        raise FailedError(
            f"exit status {code}{', perhaps for want of time or memory' if code == -9 else ''}: {''.join(log[-1:])}"
        )

    def run(self, limit: float) -> dict[str, Any]:
        """One timed run. Raises FailedError."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the report says why
        return self.report(limit)

    def close(self) -> None:
        """End the process, and delete its files."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Bench:
    """What all jobs share: the options, the texts, the vocabularies, and how a contest is held."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.vocabularies = [VocabularyFile.at(path, folder) for path in options.vocabs]
        self._prefixes: dict[tuple[str, float], Text] = {}
        self._chained: dict[float, Text] = {}
        self._missing: set[str] = set()

    @cached_property
    def texts(self) -> list[Text]:
        """A prefix of every text."""
        return [self._prefix(path.stem, path, self.options.megabytes) for path in self.options.texts]

    @cached_property
    def sample(self) -> Text:
        """A small text, for a set-up that is to have everything loaded."""
        return self.prefix(self.texts[0], min(self.options.megabytes, 1))

    def prefix(self, text: Text, megabytes: float) -> Text:
        """A prefix of a text; the text itself if it is not longer."""
        if text.n_bytes <= megabytes * 1e6:
            return text
        return self._prefix(text.name, Path(text.path), megabytes)

    def _prefix(self, name: str, path: Path, megabytes: float) -> Text:
        key = str(path), megabytes
        if key not in self._prefixes:
            target = self.folder / f"{name}-{megabytes:g}MB.txt"
            self._prefixes[key] = texts.write(target, texts.blocks(path), int(megabytes * 1e6), name)
        return self._prefixes[key]

    def chained(self, megabytes: float) -> Text:
        """A text of this size from all the files; a smaller one, which is said, where they do not suffice."""
        if megabytes not in self._chained:
            say(f"chaining {megabytes:g} MB")
            target = self.folder / f"chained-{megabytes:g}MB.txt"
            text = texts.write(target, texts.chained(self.options.texts), int(megabytes * 1e6), "all texts")
            if text.n_bytes < megabytes * 0.99e6:
                say(f"the texts give no more than {text.n_bytes / 1e6:.0f} MB")
            self._chained[megabytes] = text
        return self._chained[megabytes]

    def slow(self, contestants: Iterable[str], text: Text, megabytes: float, **common: Any) -> list[Entry]:
        """Entries of slow peers: one call each, of a prefix of the text, on which ours works too, to be compared with.

        Their speed is compared with ours on the whole text: our fixed costs would count for more on a short one.
        """
        prefix = self.prefix(text, megabytes)
        if prefix is text:
            return [Entry(name, text, runs=0, **common) for name in contestants]
        check = Entry(OURS, prefix, name=PREFIX, runs=0, same_as=None, against=None, **common)
        return [check, *(Entry(name, prefix, runs=0, same_as=PREFIX, **common) for name in contestants)]

    def launch(self, job: str, entry: Entry, environment: dict[str, str] | None = None) -> Process:
        """Start the process of a contestant, in a folder of its own."""
        threads = entry.threads or self.cores
        task = Task(
            job=job,
            contestant=entry.contestant,
            folder=tempfile.mkdtemp(dir=self.folder),
            text=entry.text.path if entry.text else "",
            vocabulary=entry.vocabulary,
            threads=threads,
            settings=entry.settings,
        )
        limits = _ONE_THREAD if threads == 1 else {"TOKENIZERS_PARALLELISM": "true"}
        return Process(task, os.environ | limits | (environment or {}))

    def takes_part(self, entry: Entry) -> bool:
        """Whether a contestant is installed and wanted. What is missing is said once."""
        package, wanted = entry.package, self.options.peers
        if package not in PEERS:
            return True
        if wanted is not None and package not in wanted:
            return False
        if importlib.util.find_spec(package) is not None:
            return True
        if package not in self._missing:
            say(f"{package} is not installed: left out")
        self._missing.add(package)
        return False

    def contest(self, job: str, labels: dict[str, str], entries: Sequence[Entry]) -> Contest:
        """Warm up all, compare their results, and let those that made the same take turns: the machine's speed drifts.

        An entry stands behind the one that its result is compared with.
        """
        contest = Contest(job, labels)
        place = ", ".join((job, *labels.values()))
        digests: dict[str, str] = {}
        waiting: list[tuple[Entry, Row, Process]] = []
        try:
            for entry in entries:
                if not self.takes_part(entry):
                    continue
                say(f"{place}: {entry.row_name}")
                row = Row(entry.row_name, entry.text.n_bytes if entry.text else 0)
                contest.rows.append(row)
                process = self.launch(job, entry)
                waiting.append((entry, row, process))
                self._warm_up(entry, row, process, digests)
                if row.problem or not self._runs(entry):
                    waiting.pop()[2].close()
            self._take_turns(place, waiting)
        finally:
            for _, _, process in waiting:
                process.close()
        rank(contest, entries)
        return contest

    def _runs(self, entry: Entry) -> int:
        return int(self.options.runs if entry.runs is None else entry.runs)

    def _warm_up(self, entry: Entry, row: Row, process: Process, digests: dict[str, str]) -> None:
        try:
            report = process.report(self.options.limit)
        except FailedError as error:
            row.error = str(error)
            return
        row.first, row.peak, row.facts = report["seconds"], report["peak"], report["facts"]
        digests[row.name] = report["digest"]
        if entry.digest is None and entry.same_as in (None, row.name):
            return
        expected = entry.digest or digests.get(str(entry.same_as))
        if expected is None:
            row.error = f"there is no result of {entry.same_as} to compare with"
        row.same = report["digest"] == expected

    def _take_turns(self, place: str, waiting: Sequence[tuple[Entry, Row, Process]]) -> None:
        turns = max((self._runs(entry) for entry, _, _ in waiting), default=0)
        for turn in range(turns):
            say(f"{place}: run {turn + 1} of {turns}")
            for entry, row, process in waiting if turn % 2 else reversed(waiting):
                if turn >= self._runs(entry) or row.error:
                    continue
                try:
                    report = process.run(self.options.limit)
                except FailedError as error:
                    row.error = str(error)
                    continue
                row.runs.append(report["seconds"])
                row.cpu.append(report["cpu"])


def rank(contest: Contest, entries: Sequence[Entry]) -> None:
    """Compare the speeds of what made the same."""
    against = {entry.row_name: entry.against for entry in entries}
    for row in contest.rows:
        other = contest.row(against[row.name] or "")
        if other is not None and other is not row and not (row.problem or other.problem):
            row.slower = (row.seconds / (row.n_bytes or 1)) / (other.seconds / (other.n_bytes or 1))


def say(line: str) -> None:
    """Progress, on standard error."""
    print(f"  {line}", file=sys.stderr, flush=True)
