"""Where the figures were found: machine, versions, texts."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.texts import Text

PACKAGES = (
    "dask-bpe", "dask", "distributed", "numba", "llvmlite", "numpy", "pyarrow", "regex",
    "gigatoken", "rustbpe", "tiktoken", "tokenizers",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system; and the load before the start, which should be near 0."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }


def versions() -> dict[str, str]:
    """Installed versions of what takes part."""
    installed = {}
    for package in PACKAGES:
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed


def describe(texts: Iterable[Text], files: Iterable[Path]) -> list[dict[str, Any]]:
    """The texts, and the files that they are prefixes of."""
    described = []
    for text, path in zip(texts, files, strict=True):
        with path.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest()
        described.append(
            {
                "name": text.name,
                "n_bytes": text.n_bytes,
                "sha256": text.sha256,
                "file_bytes": path.stat().st_size,
                "file_sha256": whole,
            }
        )
    return described
