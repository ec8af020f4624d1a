"""What the benchmark found, as Markdown; and where it was found: machine, versions, corpus."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from pathlib import Path
from statistics import median
from typing import Any

OURS = "dask_bpe"
OTHER_IDS = "OTHER IDS"  # nothing is compared then
PACKAGES = (
    "dask-bpe", "dask", "numba", "llvmlite", "numpy", "pyarrow", "regex",
    "gigatoken", "rustbpe", "tiktoken", "tokenizers",
)  # fmt: skip
Figures = dict[str, Any]


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


def sha256(path: Path) -> str:
    """Of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compare(figures: Figures) -> None:
    """Put into every result its median, its ratio to ours, and whether it made the same.

    `identical`: the same ids on disk, or the same tokens learned in the same order. `shared`: the part of the
    learned tokens that ours learned too (tie rules differ); the lists of tokens are taken out.
    """
    for job in ("train", "encode"):
        results = figures.get(job, {})
        if not results:
            continue
        ours = results[OURS]
        learned = ours.get("learned")
        for result in results.values():
            result["median"] = median(result["seconds"] or [result["first_seconds"]])
            result["mb_per_s"] = figures["corpus"]["bytes"] / 1e6 / result["median"]
            result["identical"] = result["digest"] == ours["digest"]
        for result in results.values():
            result["ours_is_faster_by"] = result["median"] / ours["median"]
            if learned is not None:
                common = set(learned) & set(result["learned"])
                result["shared"] = len(common) / max(len(set(result["learned"])), 1)
        for result in results.values():
            result.pop("learned", None)


def markdown(figures: Figures) -> str:
    """The tables, and below them the facts that make them repeatable."""
    parts = []
    corpus = figures["corpus"]
    text = f"{corpus['bytes'] / 1e6:.0f} MB of {corpus['name']}"
    size = figures["options"]["vocab_size"]
    if "train" in figures:
        parts.append(f"**Training {size:,} ids on {text}**\n\n" + _job_table(figures["train"], _same_tokens))
    if "encode" in figures:
        parts.append(f"**Encoding {text} to uint16 on disk**\n\n" + _job_table(figures["encode"], _same_ids))
    if "start" in figures:
        rows = [[label, f"{seconds:.2f}"] for label, seconds in figures["start"].items()]
        parts.append("**Starting**\n\n" + _table(["from launching Python to", "s"], rows))
    if "memory" in figures:
        rows = [
            [
                row["peer"],
                f"{row['bytes'] / 1e9:.2f}",
                f"{row['peak_memory'] / 2**20:,.0f}",
                f"{row['first_seconds']:.1f}",
            ]
            for row in figures["memory"]
        ]
        parts.append("**Memory of encoding**\n\n" + _table(["", "text, GB", "peak, MiB", "s"], rows))
    parts.append(_facts(figures))
    return "\n\n".join(parts) + "\n"


def _job_table(results: Figures, same: Any) -> str:
    rows = [
        [
            peer,
            f"{len(result['seconds']) or 'first'}",
            f"{result['median']:.2f}",
            f"{result['mb_per_s']:,.1f}",
            f"{result['ours_is_faster_by']:.2f}" if same(result) != OTHER_IDS else "-",
            f"{result['peak_memory'] / 2**20:,.0f}",
            same(result),
        ]
        for peer, result in results.items()
    ]
    return _table(["", "runs", "s", "MB/s", "dask_bpe is faster by", "peak, MiB", "result"], rows)


def _same_ids(result: Figures) -> str:
    return "same ids" if result["identical"] else OTHER_IDS


def _same_tokens(result: Figures) -> str:
    return "same vocabulary" if result["identical"] else f"{result['shared']:.1%} of the tokens are ours"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _facts(figures: Figures) -> str:
    where, corpus = figures["machine"], figures["corpus"]
    packages = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    return (
        "Medians after a warm-up, each contestant in a process of its own, taking turns ('first': timed once,"
        " without a warm-up); peak: of the first job.\n"
        f"`{figures['command']}`\n\n"
        f"{where['cpu']}, {where['cores']} cores, {where['memory_bytes'] / 2**30:.0f} GiB, {where['system']},"
        f" Python {where['python']}; load before: {where['load_before']:.1f}.\n"
        f"{packages}.\n"
        f"Text: {corpus['bytes']:,} bytes, sha256 {corpus['sha256'][:16]}."
    )
