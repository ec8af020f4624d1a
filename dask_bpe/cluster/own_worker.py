"""Workers that run on the machine of the process that started the job, and share its terminal or notebook."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading

Family = tuple[str, int, int]


def dask_setup(_: object) -> None:
    """What a worker of an own cluster does first, also one that takes the place of another that died.

    Dask calls this in the worker's process, see `schedule.connect`.
    """
    # On Ctrl-C the driver ends the cluster; workers that hear it too only add their tracebacks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever a task raises the driver says, in one line; here it would be a page for every task. Of memory that runs
    # out only the worker knows.
    logging.getLogger("distributed.worker.memory").setLevel(logging.WARNING)
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)


def family() -> Family:
    """Machine, process group and number of this process."""
    return socket.gethostname(), os.getpgrp() if hasattr(os, "getpgrp") else 0, os.getpid()


def leave_interrupts_to(driver: Family) -> None:
    """Ignore Ctrl-C, and a notebook's interrupt, in a worker that the driver's cluster has started; nothing else does.

    A terminal and Jupyter send it to all processes of the group: workers would end, the driver stop the job, and the
    same call find no workers to go on with.
    """
    machine, group, process = family()
    if not group or (machine, group) != driver[:2] or process == driver[2]:
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
