"""A clock for measurements on a machine that others use as well."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

# Linux tells of each thread: nanoseconds on a CPU, nanoseconds that it was ready and got none, and how often it ran.
_WAITED = Path("/proc/thread-self/schedstat")


def seconds() -> float:
    """Seconds that stand still while this thread is ready and no CPU is free, where the system knows; for differences.

    They run while it works, and while it waits for a disk or a network.
    """
    return time.perf_counter() - waited()


def waited() -> float:
    """Seconds that this thread has waited for a CPU so far; 0 where the system does not say."""
    with suppress(OSError, IndexError, ValueError):
        return int(_WAITED.read_text().split()[1]) / 1e9
    return 0.0
