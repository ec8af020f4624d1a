"""A real kernel of Jupyter, as notebooks have it: cells are sent to it, and what they show is collected."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import start_new_kernel

SECONDS = 120.0


@dataclass
class Cell:
    """What a cell has shown.

    displays : for each output that can be updated all its states, in order; the others under names of their own.
    text : standard output and error.
    error : name of the exception that ended it, if one did.
    """

    displays: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    text: str = ""
    error: str = ""

    def html(self) -> list[str]:
        """The last state of each output."""
        return [states[-1].get("text/html", "") for states in self.displays.values()]


class Kernel:
    """A kernel that runs; see `kernel`."""

    def __init__(self, manager: Any, client: Any) -> None:
        self._manager, self._client = manager, client

    def run(self, code: str, *, interrupt_when: Callable[[Cell], bool] | None = None) -> Cell:
        """Run a cell to its end, or interrupt it once when what it has shown says so."""
        asked = self._client.execute(code)
        cell, until = Cell(), time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                message = self._client.get_iopub_msg(timeout=1.0)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                self._client.get_shell_msg(timeout=SECONDS)
                return cell
            _take(cell, message["msg_type"], message["content"])
            if interrupt_when is not None and interrupt_when(cell):
                self._manager.interrupt_kernel()
                interrupt_when = None
        raise TimeoutError(f"the cell has not ended after {SECONDS:.0f} s; it has shown: {cell}")


def _take(cell: Cell, kind: str, content: dict[str, Any]) -> None:
    if kind in ("display_data", "update_display_data", "execute_result"):
        name = content.get("transient", {}).get("display_id") or f"output {len(cell.displays)}"
        cell.displays.setdefault(name, []).append(content["data"])
    elif kind == "stream":
        cell.text += content["text"]
    elif kind == "error":
        cell.error = content["ename"]


@contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """A kernel with this Python, working in a folder; it finds the package where this process does."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    manager, client = start_new_kernel(cwd=str(folder), env=environment, startup_timeout=SECONDS)
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
