"""The record that a job with a folder keeps of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dask_bpe.errors import OutputError
from dask_bpe.io.runs import append_run
from dask_bpe.progress import JobState, ending


@contextmanager
def recorded(job: JobState, folder: str) -> Iterator[None]:
    """The extent of a run: its snapshots at both ends go to ``runs.jsonl`` in the folder, see `io.runs`.

    A record that cannot be written ends no job; it is said.
    """
    job.keep(folder)
    _append(job, folder, None)
    try:
        yield
    except BaseException as error:
        _append(job, folder, error)
        raise
    _append(job, folder, None, ended=True)


def _append(job: JobState, folder: str, error: BaseException | None, *, ended: bool = False) -> None:
    run = dict(job.snapshot())
    if ended or error is not None:
        run["state"], run["error"] = ending(error)
    try:
        append_run(folder, run)
    except OutputError as failure:
        job.say(f"this run is not recorded: {failure}")
