"""The process of one contestant: `python -m benchmarks.process TASK`, with the task as JSON.

It makes its set-up, calls what is timed once to warm up, and reports; then once more for every line on standard input.
A report is a line on standard output that begins with `work.MARK`, the rest of it JSON; whatever else a library prints
there is no report. The end of standard input is the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import jobs
from benchmarks.work import MARK, Task


def report(facts: dict[str, Any]) -> None:
    """Tell the process that started this one."""
    print(f"{MARK}{json.dumps(facts)}", flush=True)


def peak_memory() -> int:
    """Largest resident size so far of this process, or of the largest of its children, in bytes.

    Not `ru_maxrss` where it can be had otherwise: it begins with the size of the process that started this one.
    """
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    own = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(own, children) * (1 if sys.platform == "darwin" else 1024)


def cpu_seconds() -> float:
    """Of this process and of those that it has started, so far."""
    own = time.process_time()
    if "distributed" not in sys.modules:
        return own
    import psutil

    spent = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return own + sum(float(times.user + times.system) for times in spent)


def stay_on_one_core() -> None:
    """Whatever threads a library starts get one core between them. Called before any library is loaded."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def main() -> None:
    """Run one task; see the module's first lines."""
    task = Task.from_json(sys.argv[1])
    if task.threads == 1:
        stay_on_one_core()
    work = jobs.module(task.job).CONTESTANTS[task.contestant](task)
    began = time.perf_counter()
    result = work.run()
    seconds = time.perf_counter() - began
    finished_at = time.time()
    # After one call in a fresh process: the figure that a user sees. Later ones add what the allocator keeps.
    peak, facts = peak_memory(), work.facts(result)
    digest = hashlib.sha256()
    for part in work.made(result):
        digest.update(part)
    report(
        {
            "seconds": seconds,
            "finished_at": finished_at,
            "peak": peak,
            "digest": digest.hexdigest(),
            "facts": facts,
        }
    )
    while sys.stdin.readline():
        del result  # giving back its memory belongs to no run
        began, cpu_began = time.perf_counter(), cpu_seconds()
        result = work.run()
        report({"seconds": time.perf_counter() - began, "cpu": cpu_seconds() - cpu_began})


if __name__ == "__main__":
    main()
