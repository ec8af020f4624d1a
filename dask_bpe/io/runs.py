"""What the runs of a job have said of themselves: ``runs.jsonl`` beside what they made.

A line when a run begins, and one when it ends:

    {"id": "encode-1f0c...", "state": "running", ...}
    {"id": "encode-1f0c...", "state": "finished", "seconds": 12.3, "stages": [...], "curves": {...}, ...}

A run of which there is only the first line was killed. No byte of a job's output depends on this file, and nothing that
reads the output reads it. What is lost when a process dies in the middle of a line is that line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dask_bpe.errors import OutputError, ShardError
from dask_bpe.io import paths
from dask_bpe.io.atomic import atomic_write

NAME = "runs.jsonl"


@dataclass(frozen=True)
class Runs:
    """The runs of a folder in the order in which they began, each as its last line says; and lines that are no JSON."""

    runs: tuple[dict[str, Any], ...]
    n_torn: int


def append_run(folder: str, run: Mapping[str, Any]) -> None:
    """Add the line of a run, which has an "id", to those of a folder that is there. Raises OutputError."""
    path = paths.join(folder, NAME)
    line = json.dumps(run, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
    if paths.is_remote(path):
        before = b""
        # A store of objects cannot append: all is written again.
        with suppress(FileNotFoundError), paths.open_to_read(path) as file:
            before = file.read()
        with atomic_write(path) as new:
            new.write(before + b"\n" * (not before.endswith(b"\n") and before != b"") + line)
        return
    try:
        with Path(path).open("a+b", buffering=0) as file:
            # A line that a killed process has left is closed, so that it takes no other with it.
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {paths.one_line(error)}") from error


def read_runs(folder: str) -> Runs:
    """The runs of a folder; none if nothing was recorded. Raises ShardError when the file cannot be read."""
    path = paths.join(folder, NAME)
    try:
        with paths.open_to_read(path) as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return Runs((), 0)
    except OSError as error:
        raise ShardError(f"{path}: cannot be read: {paths.one_line(error)}") from error
    runs: dict[str, dict[str, Any]] = {}
    n_torn = 0
    for line in filter(None, lines):
        try:
            run = json.loads(line)
            runs[run["id"]] = run
        except (ValueError, TypeError, KeyError):
            n_torn += 1
    return Runs(tuple(runs.values()), n_torn)
