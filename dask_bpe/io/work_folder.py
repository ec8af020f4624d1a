"""A folder in which a job keeps what it has done, so that the next run goes on where it stopped.

plan.json              what is counted, and how it is divided; written first
counts/                counts of the partitions, and of these added up; a .json with checksums for every result
counts.parquet, .json  all counts together
quarantine.jsonl       the documents that could not be read, if any
failed.jsonl           the partitions that failed for good in the last run, if any, see `failures`
merging/00012800/      the state of the merge loop after so many merges
runs.jsonl             how the runs of the job went, see `runs`
lock                   held while a job runs, see `lock`
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dask_bpe.errors import OutputError
from dask_bpe.io import paths, runs
from dask_bpe.io.atomic import TEMPORARY_MARK
from dask_bpe.io.folders import make_folder
from dask_bpe.io.lock import locked

COUNTS, MERGING = "counts", "merging"

_MARK = re.escape(TEMPORARY_MARK)
_TOP = re.compile(rf"(plan\.json|(runs|quarantine|failed)\.jsonl|counts\.(parquet|json))({_MARK}\w+)?")
_COUNTS = re.compile(rf"(part|tree|bucket)-[\d-]+\.(parquet|json)({_MARK}\w+)?")
_STATE = re.compile(r"\d+")
_ARRAYS = re.compile(rf"(\w+\.npy|state\.json)({_MARK}\w+)?")


@dataclass(frozen=True)
class WorkFolder:
    """A work folder that is open: nobody else works in it. `path` is an absolute local path, or a URL."""

    path: str

    def __truediv__(self, name: str) -> str:
        return paths.join(self.path, name)

    @property
    def counts(self) -> str:
        """The folder of the counts of partitions."""
        return self / COUNTS

    @property
    def merging(self) -> str:
        """The folder of the states of the merge loop."""
        return self / MERGING

    def has_counts(self) -> bool:
        """Whether it holds results of counting, or a plan, whole or not."""
        return any(_TOP.fullmatch(name) and name != runs.NAME for name in _names(self.path)) or any(
            map(_COUNTS.fullmatch, _names(self.counts))
        )

    def clear(self) -> None:
        """Delete all that is ours, and nothing else. Raises OutputError."""
        # The plan first: what is left of a clearing that was interrupted must not look like work to go on with.
        _remove(self.path, _TOP)
        _remove(self.counts, _COUNTS)
        clear_states(self.merging)
        for folder in (self.counts, self.merging):
            _remove_folder(folder)

    def clear_sums(self) -> None:
        """Delete the sums of some partitions: those of all are there. Raises OutputError."""
        _remove(self.counts, _COUNTS, only="tree-")

    def clear_temporary(self) -> None:
        """Delete the temporary files of processes that died. Raises OutputError."""
        for folder, ours in ((self.path, _TOP), (self.counts, _COUNTS)):
            _remove(folder, ours, only=TEMPORARY_MARK)


@contextlib.contextmanager
def open_work_folder(path: str | PathLike[str], *, overwrite: bool = False) -> Iterator[WorkFolder]:
    """Make the folder if it is missing, lock it, and clear what dead processes left half written.

    `overwrite` deletes what an earlier job did in it.

    Raises
    ------
    OutputError
        It is no folder, it cannot be written to, or another job works in it.
    """
    folder = WorkFolder(paths.normalise(path))
    make_folder(folder.path)
    with locked(folder / "lock"):
        if overwrite:
            folder.clear()
        folder.clear_temporary()
        yield folder


def states(folder: str) -> list[int]:
    """The numbers of the states of the merge loop in a folder, complete or not; descending."""
    return sorted((int(name) for name in _names(folder) if _STATE.fullmatch(name)), reverse=True)


def state_path(folder: str, number: int) -> str:
    """Where state `number` of the merge loop is."""
    return paths.join(folder, f"{number:08d}")


def clear_states(folder: str, *, but: int | None = None) -> None:
    """Delete all states of the merge loop, or all but one. Raises OutputError."""
    for name in _names(folder):
        if _STATE.fullmatch(name) and (but is None or int(name) != but):
            _remove(paths.join(folder, name), _ARRAYS)
            _remove_folder(paths.join(folder, name))


def _names(folder: str) -> list[str]:
    try:
        return paths.list_names(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise OutputError(f"cannot list {folder}: {paths.one_line(error)}") from error


def _remove(folder: str, ours: re.Pattern[str], only: str = "") -> None:
    try:
        # What says that something is complete goes first: an interrupted clearing leaves nothing that looks whole.
        names = [name for name in _names(folder) if ours.fullmatch(name) and only in name]
        for name in sorted(names, key=lambda name: ".json" not in name):
            paths.remove(paths.join(folder, name))
    except OSError as error:
        raise OutputError(f"cannot clear {folder}: {paths.one_line(error)}") from error


def _remove_folder(folder: str) -> None:
    """Delete a folder if it is empty; somebody else's files stay, and the folder with them."""
    if _names(folder):
        return
    try:
        if paths.is_remote(folder):
            fs, inner = paths.filesystem(folder)
            if fs.exists(inner):
                fs.rmdir(inner)
        elif Path(folder).is_dir():
            Path(folder).rmdir()
    except OSError as error:
        raise OutputError(f"cannot delete {folder}: {paths.one_line(error)}") from error
