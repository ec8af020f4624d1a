"""How fast this machine reads bytes at all: contestants of every job whose absolute speed is of interest."""

from __future__ import annotations

import subprocess
from typing import Any

from benchmarks.contest import Entry
from benchmarks.texts import Text
from benchmarks.work import SetUp, Task, Work

CAT, SUM = "cat", "numpy sum"


def _nothing(result: Any) -> list[bytes]:
    return []


def _cat(task: Task) -> Work:
    command = ["sh", "-c", 'cat "$1" > /dev/null', "sh", task.text]
    return Work(lambda: subprocess.run(command, check=True), _nothing)


def _sum(task: Task) -> Work:
    import numpy as np

    text = np.fromfile(task.text, np.uint8)
    return Work(lambda: int(text.sum()), _nothing)


CONTESTANTS: dict[str, SetUp] = {CAT: _cat, SUM: _sum}


def entries(text: Text) -> list[Entry]:
    """`cat` of the file to /dev/null, and one pass of numpy over its bytes in memory, in one thread."""
    return [Entry(name, text, same_as=None, against=None, threads=1) for name in CONTESTANTS]
