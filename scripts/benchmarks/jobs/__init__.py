"""What is measured, a module each. A module has

    CONTESTANTS             set-ups by name, for the processes
    measure(bench)          the contests
    report(contests)        its part of the report, in Markdown
    bars(contests)          what has to be reached

Libraries are imported by set-ups only: a process loads what it measures.
"""

from __future__ import annotations

import importlib
from typing import Any

# Those of one thread come first, those that take longest last.
NAMES = (
    "memory-to-memory",
    "short",
    "decode",
    "pathological",
    "count",
    "train-counts",
    "encode",
    "parquet",
    "train-whole",
    "train",
    "memory",
    "scaling",
    "monitoring",
    "growth",
    "start",
)


def module(name: str) -> Any:
    """The module of a job."""
    return importlib.import_module(f"benchmarks.jobs.{name.replace('-', '_')}")
