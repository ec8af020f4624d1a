"""One job at a time in a folder: a lock that a dead job does not hold.

A local folder is locked by the operating system (`filelock`), which lets go when the process ends, however it ends. On
a remote one a file says who works there and is written again every minute; when it is five minutes old, its writer is
taken for dead. Object stores cannot create a file on the condition that there is none: two jobs that begin within the
same second are not told apart there.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from filelock import FileLock, Timeout

from dask_bpe.errors import OutputError
from dask_bpe.io import paths
from dask_bpe.io.atomic import atomic_write

_RENEWED_EVERY, _DEAD_AFTER = 60.0, 300.0


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock that is the file `path`; it is gone afterwards.

    Raises
    ------
    OutputError
        Another job holds it, or the file cannot be made.
    """
    with _leased(path) if paths.is_remote(path) else _locked(path):
        yield


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise OutputError(
            f"{path} is locked: another job works in this folder; wait until it has ended, or choose another folder"
        ) from error
    except (OSError, NotImplementedError) as error:  # the latter where the file system has no locks
        raise OutputError(f"cannot lock {path}: {paths.one_line(error)}") from error
    try:
        yield
    finally:
        # Removed while it is held: whoever waits for the same file finds the job as it was left.
        with contextlib.suppress(OSError):
            paths.remove(path)
        lock.release()


@contextlib.contextmanager
def _leased(path: str) -> Iterator[None]:
    holder = _read(path)
    age = time.time() - float(holder.get("time", 0))
    if age < _DEAD_AFTER:
        raise OutputError(
            f"{path}: process {holder.get('pid')} on {holder.get('host')} works in this folder and was heard of"
            f" {age:.0f} s ago; wait until it has ended (a dead one is given up after {_DEAD_AFTER:.0f} s), or choose"
            " another folder"
        )
    over = threading.Event()
    _write(path)
    thread = threading.Thread(target=_renew, args=(path, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with contextlib.suppress(OSError):
            paths.remove(path)


def _renew(path: str, over: threading.Event) -> None:
    while not over.wait(_RENEWED_EVERY):
        # The next one may succeed; four may fail until somebody takes the job for dead.
        with contextlib.suppress(OutputError):
            _write(path)


def _write(path: str) -> None:
    with atomic_write(path) as file:
        about = {"pid": os.getpid(), "host": socket.gethostname(), "time": time.time()}
        file.write(json.dumps(about).encode())


def _read(path: str) -> dict[str, Any]:
    try:
        with paths.open_to_read(path) as file:
            about = json.loads(file.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise OutputError(f"cannot read {path}: {paths.one_line(error)}; delete it if no job works there") from error
    return about if isinstance(about, dict) else {}
