"""A file system that makes trouble: `trouble://` is the local one, but reads of it fail, or take memory.

Workers load it as they load any file system of fsspec: through the entry point that `installed` puts on their path.
What it does is told by the environment:

    TROUBLE_EVERY    every n-th read of a process fails
    TROUBLE_BROKEN   reads of files of this name fail, always
    TROUBLE_DEADLY   reads of files of this name end the process
    TROUBLE_GREEDY   reads of files of this name take TROUBLE_BYTES of memory for some seconds
    TROUBLE_LOG      a file to which a byte is added for every fault
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fsspec.implementations.local import LocalFileSystem

_COUNT = itertools.count(1)
# The nanny looks ten times a second.
_SECONDS_GREEDY = 3.0


class TroubleFileSystem(LocalFileSystem):  # type: ignore[misc]  # fsspec carries no types
    """The local file system, with trouble."""

    protocol = "trouble"

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(super()._strip_protocol(os.fspath(path).removeprefix("trouble://")))

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a path."""
        return f"trouble://{self._strip_protocol(name)}"

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """Bytes of a file, or trouble. Raises OSError."""
        name = Path(path).name
        every = int(os.environ.get("TROUBLE_EVERY", "0"))
        if name == os.environ.get("TROUBLE_GREEDY"):
            _log()
            memory = np.ones(int(os.environ["TROUBLE_BYTES"]), np.uint8)
            time.sleep(_SECONDS_GREEDY)
            del memory
        if name == os.environ.get("TROUBLE_DEADLY"):
            _log()
            os._exit(1)
        if name == os.environ.get("TROUBLE_BROKEN") or (every and next(_COUNT) % every == 0):
            _log()
            raise OSError(5, "Input/output error")
        return bytes(super().cat_file(path, start, end, **options))


def _log() -> None:
    with Path(os.environ["TROUBLE_LOG"]).open("ab") as log:
        log.write(b".")


def installed(folder: Path, **trouble: object) -> dict[str, str]:
    """An environment in which `trouble://` is known and makes this trouble; the log is `folder/log`."""
    about = folder / "trouble-1.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: trouble\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[fsspec.specs]\ntrouble = {__name__}:{TroubleFileSystem.__name__}\n")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    told = {f"TROUBLE_{name.upper()}": str(value) for name, value in trouble.items()}
    return {"PYTHONPATH": path, "TROUBLE_LOG": str(folder / "log"), **told}


def faults(environment: Mapping[str, str]) -> int:
    """How many faults there were in this environment."""
    log = Path(environment["TROUBLE_LOG"])
    return log.stat().st_size if log.exists() else 0
