"""What a worker of an own cluster does first, also one that takes the place of another that died."""

from __future__ import annotations

import logging
import signal


def dask_setup(_: object) -> None:
    """Dask calls this in the worker's process, see `schedule.connect`."""
    # On Ctrl-C the driver ends the cluster; workers that hear it too only add their tracebacks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever a task raises the driver says, in one line; here it would be a page for every task. Of memory that runs
    # out only the worker knows.
    logging.getLogger("distributed.worker.memory").setLevel(logging.WARNING)
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
