"""failed.jsonl: the partitions of a job that failed for good, one a line; there until a run has done them.

    {"partition": 12, "reason": "its worker died again and again ...", "pieces": [["a.txt", 0, 67108864], ...]}

A piece is a file, and where in it the partition begins and ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dask_bpe.errors import OutputError
from dask_bpe.io import paths
from dask_bpe.io.atomic import atomic_write

NAME = "failed.jsonl"


@dataclass(frozen=True)
class Failure:
    """A partition, why it failed, and the file, start and stop of each of its pieces."""

    partition: int
    reason: str
    pieces: Sequence[tuple[str, int, int]]


def write_failures(folder: str, failures: Iterable[Failure]) -> None:
    """Write the file; without failures there is none. Raises OutputError."""
    path = paths.join(folder, NAME)
    lines = [json.dumps(vars(failure), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for failure in failures]
    if lines:
        with atomic_write(path) as file:
            file.write(b"".join(lines))
        return
    try:
        paths.remove(path)
    except OSError as error:
        raise OutputError(f"cannot delete {path}: {paths.one_line(error)}") from error
