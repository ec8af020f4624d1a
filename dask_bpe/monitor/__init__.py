"""How a job is seen: every surface shows the snapshots of `dask_bpe.progress`.

with terminal_progress() as progress:
    tokenizer = dask_bpe.train("corpus/", 32_000, progress=progress)

    bars, lines, json_lines    in a terminal, in a log, for machines
    notebook                   one output of a notebook, updated in place
    amounts                    numbers as people read them
    worker_counters            what a worker has done, carried by the heartbeats that it sends anyway
    worker_totals              what all of them have done, from their heartbeats
    plugin, publisher          the job's snapshot on the scheduler, and the workers' figures back to the job
    prometheus                 the same figures on /metrics
    page/                      the page /dask-bpe of Dask's dashboard
"""

from __future__ import annotations

import sys
from typing import Literal, get_args

from dask_bpe.monitor.view import Quiet, View

__all__ = ["CHOICES", "Choice", "View", "automatic", "terminal_progress"]

Choice = Literal["auto", "bars", "lines", "json", "none"]
CHOICES: tuple[str, ...] = get_args(Choice)


def terminal_progress(choice: str = "auto") -> View:
    """A view on standard error: "bars", "lines" for a log, "json" lines, "none"; "auto": bars if it is a terminal."""
    if choice == "none":
        return Quiet()
    if choice == "json":
        from dask_bpe.monitor.json_lines import JsonLines

        return JsonLines()
    if choice == "lines" or (choice == "auto" and not sys.stderr.isatty()):
        from dask_bpe.monitor.lines import Lines

        return Lines()
    from dask_bpe.monitor.bars import Bars

    return Bars()


def automatic() -> View | None:
    """What shows a job for which nobody asked for anything: in a notebook an output, in IPython's terminal bars.

    Elsewhere None: a program says nothing by itself. `Progress()` is what asks for silence.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return None
    if getattr(shell, "kernel", None) is not None:
        from dask_bpe.monitor.notebook import NotebookOutput

        return NotebookOutput()
    from dask_bpe.monitor.bars import Bars

    return Bars()
