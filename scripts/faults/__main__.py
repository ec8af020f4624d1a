"""Breaks jobs and compares what they make with what they make when nothing happens.

Every fault meets an encoding, or a training, in processes of its own; the job is asked for again until it is complete.
Then all of its files must be, byte for byte, those of a job that nothing happened to, hold every document once, and
nothing else may be left. The table is Markdown; anything that is not as it should be makes the exit code 1.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask_bpe
from faults import corpus as corpora
from faults import killing, sharing, storage
from faults.corpus import END, Corpus
from faults.job import Failure
from faults.trial import Encoding, Training, Trial, encode

_BYTES, _SHORT_BYTES = 4 << 20, 1500 << 10


@dataclass(frozen=True)
class Fault:
    """A line of the table: what is done to which job, and how in the short selection, if it is in it."""

    name: str
    job: type[Trial]
    inject: Callable[[Any], None]
    short: Callable[[Any], None] | None = None


ALL = (
    Fault("a worker is killed", Encoding, killing.one_worker, partial(killing.one_worker, kills=2)),
    Fault("all workers are killed", Encoding, killing.all_workers, partial(killing.all_workers, kills=1)),
    Fault("the driver is killed", Encoding, killing.driver, partial(killing.driver, kills=1)),
    Fault("the only process is killed", Encoding, killing.process, partial(killing.process, kills=1)),
    Fault("the driver is killed before the manifest", Encoding, killing.driver_at_the_end),
    Fault("the driver is killed, its tasks go on", Encoding, sharing.orphans, partial(sharing.orphans, kills=2)),
    Fault("Ctrl-C", Encoding, killing.interrupted),
    Fault("a full disk", Encoding, storage.full_disk, storage.full_disk),
    Fault("a folder that cannot be written to", Encoding, storage.read_only),
    Fault("a source that changes between runs", Encoding, storage.changed_between),
    Fault("a source that changes during a run", Encoding, storage.changed_during),
    Fault("a source of which every 13th read fails", Encoding, storage.flaky, storage.flaky),
    Fault("a source of which a file is broken", Encoding, storage.broken),
    Fault("a worker that runs out of memory", Encoding, sharing.memory),
    Fault("a partition that kills its workers", Encoding, sharing.deadly),
    Fault("two jobs in one folder", Encoding, sharing.two_jobs, sharing.two_jobs),
    Fault("training: a worker is killed", Training, killing.one_worker),
    Fault("training: all workers are killed", Training, killing.all_workers),
    Fault("training: a source of which every 13th read fails", Training, storage.flaky),
    Fault("training: a worker that runs out of memory", Training, sharing.memory),
    Fault("training: a source of which a file is broken", Training, storage.broken),
    Fault("training: a partition that kills its workers", Training, sharing.deadly, sharing.deadly),
    Fault("training: the driver is killed", Training, killing.driver),
    Fault("training: the only process is killed", Training, killing.process, partial(killing.process, kills=2)),
)


@dataclass
class Row:
    """What a fault has done in all of its runs."""

    runs: int = 0
    injected: int = 0
    documents_in: int = 0
    documents_out: int = 0
    wrong: int = 0
    skipped: str = ""


class Round:
    """A corpus, and what encoding it and training on it give when nothing happens."""

    def __init__(self, folder: Path, n_bytes: int, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.form = ("bin", "parquet")[seed % 2]
        self.corpus: Corpus = corpora.make(folder / "corpus", n_bytes, seed)
        self._references: dict[type[Trial], Path] = {}

    def reference(self, job: type[Trial]) -> Path:
        """The folder of tokens, or the vocabulary."""
        if job not in self._references:
            path = self._references[job] = self.folder / f"reference of {job.__name__}"
            if job is Encoding:
                encode(str(self.corpus.folder), self.corpus, path, self.form)
            else:
                dask_bpe.train(self.corpus.folder, 3000, special_tokens=[END]).save(path)
        return self._references[job]

    def trial(self, fault: Fault, name: str) -> Trial:
        """A job to be broken."""
        common = (
            self.corpus,
            self.reference(fault.job),
            self.folder / name,
            random.Random(f"{self.seed} {fault.name}"),
        )
        return Encoding(*common, self.form) if fault.job is Encoding else Training(*common)


def run(fault: Fault, trial: Trial, row: Row, *, short: bool = False) -> None:
    """Break one job and compare; what is wrong is said."""
    inject = fault.short if short and fault.short else fault.inject
    began = time.monotonic()
    with trial.at_the_end:
        try:
            inject(trial)
            documents = trial.check()
        except storage.SkippedError as reason:
            row.skipped = str(reason)
            return
        except Exception as error:
            row.wrong += 1
            documents = 0
            say(f"WRONG: {fault.name}: {error if isinstance(error, Failure) else traceback.format_exc()}")
            say(f"  see {trial.folder}")
    row.runs += 1
    row.injected += trial.injected
    row.documents_in += len(trial.corpus.documents)
    row.documents_out += documents
    times = "".join(f"; {seconds:.1f} s {what}" for what, seconds in trial.longest.items())
    say(f"{fault.name}: {trial.injected} faults, {documents} documents, {time.monotonic() - began:.1f} s{times}")


def table(rows: dict[str, Row]) -> str:
    """Markdown."""
    lines = [
        "| fault | runs | faults injected | documents in | documents out | bytes equal |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name, row in rows.items():
        if row.runs:
            equal = f"no, {row.wrong} times" if row.wrong else "yes"
            counts = (row.runs, row.injected, row.documents_in, row.documents_out)
            lines.append(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {equal} |")
        elif row.skipped:
            lines.append(f"| {name} | 0 | 0 | 0 | 0 | not run: {row.skipped} |")
    return "\n".join(lines)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=int, default=1, metavar="N", help="of every fault, each time with another text (1)"
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="go on with other texts for so long")
    parser.add_argument("--seed", type=int, default=0, help="of the texts and of chance (0)")
    parser.add_argument("--short", action="store_true", help="some faults on little text, a minute or two")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="faults whose name holds one of these")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="where to work; what went wrong stays there")
    return parser.parse_args(arguments)


def chosen_faults(options: argparse.Namespace) -> list[Fault]:
    """The faults to be run."""
    return [
        fault
        for fault in ALL
        if (fault.short or not options.short) and (not options.only or any(part in fault.name for part in options.only))
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Break, compare, print the table, fail at anything wrong."""
    options = parse(arguments)
    faults = chosen_faults(options)
    rows = {fault.name: Row() for fault in faults}
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="chaos-", dir=options.folder))
    until = time.monotonic() + 60 * options.minutes if options.minutes else 0.0
    number = 0
    try:
        while number < options.runs or time.monotonic() < until:
            seed = options.seed + number
            place = Round(folder / f"round-{seed}", _SHORT_BYTES if options.short else _BYTES, seed)
            for i, fault in enumerate(faults):
                if number >= options.runs and time.monotonic() >= until:
                    break
                run(fault, place.trial(fault, f"{i:02d}"), rows[fault.name], short=options.short)
            number += 1
            if not any(row.wrong for row in rows.values()):
                shutil.rmtree(place.folder)
    except KeyboardInterrupt:
        say("interrupted: what was found so far")
    print(table(rows))
    if any(row.wrong for row in rows.values()):
        sys.exit(f"Not all is well: see above, and {folder}")
    if not any(row.runs for row in rows.values()):
        sys.exit("Nothing was run: no fault has such a name, or this machine allows none of them.")
    shutil.rmtree(folder)


def say(line: str) -> None:
    """Where the work is, apart from the table."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
