"""Memory: what this process may use, what it uses, and what it has used."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit() -> int:
    """Bytes of memory that this process may use: the machine's, or the limit of its control group."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    for path in _CGROUPS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue  # another version of control groups, or none
        if text.isdigit():
            limits.append(int(text))
    return min(limits, default=1 << 62)


def memory_used() -> int:
    """Resident size of this process in bytes; where the system does not say, the largest so far."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _page_size()
    except OSError:
        return peak_memory()


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


@cache
def _page_size() -> int:
    return os.sysconf("SC_PAGE_SIZE")
