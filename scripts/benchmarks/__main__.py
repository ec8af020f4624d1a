"""One job after the other. What a job has found is printed and kept before the next one begins."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType

from benchmarks import jobs, machine, options, report
from benchmarks.bars import bars_table
from benchmarks.contest import Bench, say
from benchmarks.figures import Figures


def measure(chosen: argparse.Namespace, figures: Figures) -> None:
    """All jobs; a job that breaks does not end the others. Ctrl-C ends all, and what there is is reported."""
    with tempfile.TemporaryDirectory(dir=chosen.work, prefix="bench-") as name:
        bench = Bench(chosen, Path(name))
        figures.texts = machine.describe(bench.texts, chosen.texts)
        for job in jobs.NAMES:
            if job not in chosen.jobs:
                continue
            found = figures.results.setdefault(job, [])
            try:
                for contest in jobs.module(job).measure(bench):
                    found.append(contest)
                    keep(chosen, figures)
            except KeyboardInterrupt:
                figures.broken[job] = "interrupted"
                return
            except Exception as error:
                traceback.print_exc()
                figures.broken[job] = repr(error)
            finally:
                keep(chosen, figures)
            if found:
                print(jobs.module(job).report(found) + "\n", flush=True)


def keep(chosen: argparse.Namespace, figures: Figures) -> None:
    """Write what there is; the file is whole at any time."""
    if chosen.json:
        unfinished = chosen.json.with_name(chosen.json.name + ".part")
        unfinished.write_text(json.dumps(figures.to_json(), indent=1) + "\n")
        unfinished.replace(chosen.json)


def finish(chosen: argparse.Namespace, figures: Figures) -> None:
    """What comes after all tables: facts, bars, the plot; and whether all was well."""
    print(report.facts(figures) + "\n")
    bars = [bar for job, found in figures.results.items() if found for bar in jobs.module(job).bars(found)]
    if bars:
        quick = " (they are meant for the sizes of a full run, not for these)" if figures.options["quick"] else ""
        print(report.section(f"Bars{quick}", bars_table(bars)))
    if chosen.plot:
        from benchmarks import plot

        plot.draw(figures, chosen.plot)
        say(f"{chosen.plot} is drawn")
    if problems := list(figures.problems()):
        sys.exit("Not all is well:\n" + "\n".join(problems))


def interrupt(number: int, frame: FrameType | None) -> None:
    """A signal to end is Ctrl-C: what there is is reported, and files are removed."""
    raise KeyboardInterrupt


def main() -> None:
    """What the command line says."""
    chosen = options.parse()
    if chosen.patterns:
        from benchmarks import patterns

        patterns.run(chosen)
        return
    if chosen.report:
        figures = Figures.from_json(json.loads(chosen.report.read_text()))
        for job, found in figures.results.items():
            if found:
                print(jobs.module(job).report(found) + "\n")
    else:
        signal.signal(signal.SIGTERM, interrupt)
        figures = Figures(
            command=shlex.join(["scripts/bench", *sys.argv[1:]]),
            machine=machine.machine(),
            versions=machine.versions(),
            options={key: _plain(value) for key, value in vars(chosen).items()},
        )
        measure(chosen, figures)
    finish(chosen, figures)


def _plain(value: object) -> object:
    """An option for JSON."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return os.fspath(value) if isinstance(value, Path) else value


if __name__ == "__main__":
    main()
