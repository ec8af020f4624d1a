"""What the report of a job shows."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from dask_bpe.monitor.amounts import format_amount, format_rate
from dask_bpe.pages import Axis, Block, Document, Facts, Plot, Points, Section, Series, Table, Text
from dask_bpe.pages.cells import format_bytes, format_seconds
from dask_bpe.pages.document import Value
from dask_bpe.progress.snapshot import Snapshot, Stage
from dask_bpe.run_report.evidence import Evidence
from dask_bpe.run_report.findings import findings, share_of

Row = tuple[str, Value]

_VERBS = {"encode": "Encoding", "train": "Training", "count": "Counting", "verify": "Verification"}
_ENDS = {
    "finished": "finished",
    "failed": "failed",
    "interrupted": "interrupted",
    "running": "never said how it ended: it was killed, or runs still",
}
_MEGABYTE = 1e6
# Fewer points make no curve.
_WORTH_DRAWING = 3


def report(evidence: Evidence) -> Document:
    """The report: the figures of the whole, then what would have been faster, then how it went in detail."""
    run = evidence.run
    where = evidence.path or run["name"]
    sections = [
        Section("What was done", [Facts(_outcome(evidence))]),
        Section("What would have made it faster", [Points(findings(evidence))]),
        *_runs(evidence),
        Section("Where the time went", _times(evidence)),
        *_optional("Throughput", _throughput(run)),
        *_optional("What was learned", _learned(run)),
        *_optional("Partitions", _partitions(run)),
        Section("Workers and memory", _machines(run)),
        *_optional("What could not be read", _quarantine(evidence)),
        *_optional("What was written", _written(evidence)),
    ]
    return Document(f"{_VERBS.get(run['kind'], run['kind'])}: {where}", _lead(evidence), sections, _data(evidence))


def _optional(title: str, blocks: Sequence[Block]) -> list[Section]:
    return [Section(title, blocks)] if blocks else []


def _lead(evidence: Evidence) -> str:
    run, figures = evidence.outcome, evidence.outcome["figures"]
    text = f"{format_bytes(figures['bytes'])} of text in " if figures.get("bytes") else ""
    more = f" It took {len(evidence.runs)} runs; times are those of the longest." if len(evidence.runs) > 1 else ""
    error = f": {run['error']}" if run["error"] else ""
    began = _moment(evidence.runs[0])
    return f"{text}{format_seconds(evidence.seconds)}, begun {began}, {_ENDS[run['state']]}{error}.{more}"


def _moment(run: Snapshot) -> str:
    """When a run began: `2026-11-30 16:17:05 UTC`."""
    return datetime.datetime.fromtimestamp(run["began"], datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _outcome(evidence: Evidence) -> list[Row]:
    figures, seconds = evidence.outcome["figures"], evidence.seconds
    names = (
        *(("documents", "documents"), ("quarantined", "documents not read"), ("invalid", "places not UTF-8, mended")),
        *(("pretokens", "pre-tokens"), ("distinct", "distinct pre-tokens"), ("merges", "merges")),
        *(("tokens", "tokens"), ("shards", "shards")),
    )
    rows: list[Row] = [("text", format_bytes(figures.get("bytes", 0)))]
    rows += [(label, figures[name]) for name, label in names if name in figures]
    if figures.get("tokens"):
        rows.append(("bytes per token", figures["bytes"] / figures["tokens"]))
    rows.append(("time", format_seconds(seconds)))
    if seconds and figures.get("bytes"):
        rows.append(("MB of text a second", figures["bytes"] / _MEGABYTE / seconds))
    return rows


def _runs(evidence: Evidence) -> list[Section]:
    """All runs, if there are several."""
    if len(evidence.runs) < 2 and not evidence.n_torn:
        return []
    rows: list[list[Value]] = []
    for run in evidence.runs:
        parts = run["partitions"]
        ended = f"{_ENDS[run['state']]}{': ' + run['error'] if run['error'] else ''}"
        rows.append(
            [_moment(run), format_seconds(run["seconds"]), parts["done"], parts["resumed"], parts["failed"], ended]
        )
    columns = ("begun", "time", "partitions done", "done before", "failed", "end")
    blocks: list[Block] = [Table(columns, rows)]
    if evidence.n_torn:
        blocks.append(Text(f"{evidence.n_torn} lines of the record are torn: a process died while it wrote them."))
    return [Section("Runs", blocks)]


def _times(evidence: Evidence) -> list[Block]:
    """Stages by the clock, and what tasks did by their own."""
    total = evidence.run["seconds"]
    rows: list[list[Value]] = [
        [
            stage["name"],
            _amount(stage),
            format_seconds(stage["seconds"]),
            _percent(stage["seconds"], total),
            _rate(stage),
        ]
        for stage in evidence.stages
    ]
    inside = _covered(evidence.stages)
    rows.append(
        ["outside of stages", None, format_seconds(max(0.0, total - inside)), _percent(total - inside, total), None]
    )
    blocks: list[Block] = [Table(("stage", "done", "time", "share", "speed"), rows, "By the clock")]
    spent = evidence.run["spent"]
    if spent:
        of_tasks: list[list[Value]] = [
            [name, format_seconds(seconds), f"{share_of(evidence, name):.0%}"] for name, seconds in spent.items()
        ]
        caption = "Within the tasks, all threads together"
        blocks.append(Table(("activity", "time", "share"), of_tasks, caption))
    return blocks


def _covered(stages: Sequence[Stage]) -> float:
    """Seconds in which some stage ran; stages may overlap."""
    covered, until = 0.0, 0.0
    for stage in sorted(stages, key=lambda stage: stage["began"]):
        end = stage["began"] + stage["seconds"]
        covered += max(0.0, end - max(until, stage["began"]))
        until = max(until, end)
    return covered


def _amount(stage: Stage) -> str:
    return format_amount(stage["done"], stage["unit"])


def _rate(stage: Stage) -> str | None:
    if not stage["seconds"]:
        return None
    return format_rate(stage["done"] / stage["seconds"], stage["unit"])


def _percent(part: float, whole: float) -> str:
    return f"{max(0.0, part) / whole:.0%}" if whole else "–"


def _throughput(run: Snapshot) -> list[Block]:
    """Over time, of all and of single workers; over the text, what a token holds."""
    curve = run["curves"]["throughput"]
    blocks: list[Block] = []
    if len(curve["seconds"]) >= _WORTH_DRAWING:
        x, y = Axis("time since the beginning", "s"), Axis("text", "MB/s")
        everything = [Series("", curve["seconds"], [rate / _MEGABYTE for rate in curve["all"]])]
        blocks.append(Plot("line", x, y, everything, "All threads together"))
        if len(curve["workers"]) > 1:
            lines = [
                Series(name, curve["seconds"], [rate / _MEGABYTE for rate in rates])
                for name, rates in curve["workers"].items()
            ]
            blocks.append(Plot("line", x, y, lines, "By worker"))
    ratio = run["curves"]["compression"]
    if len(ratio["bytes"]) >= _WORTH_DRAWING:
        series = Series("", [n / _MEGABYTE for n in ratio["bytes"]], ratio["bytes_per_token"])
        blocks.append(
            Plot(
                "line", Axis("text encoded", "MB"), Axis("bytes per token"), [series], "Bytes of text per token so far"
            )
        )
    return blocks


def _learned(run: Snapshot) -> list[Block]:
    growth, merges = run["curves"]["growth"], run["curves"]["merges"]
    blocks: list[Block] = []
    if len(growth["bytes"]) >= _WORTH_DRAWING:
        series = Series("", [n / _MEGABYTE for n in growth["bytes"]], growth["distinct"])
        caption = "Distinct pre-tokens in parts of the corpus and in all of it"
        blocks.append(
            Plot("line", Axis("text", "MB", log=True), Axis("distinct pre-tokens", log=True), [series], caption)
        )
    if merges["rank"]:
        rank = Axis("rank of the merge", log=True)
        count = Series("", merges["rank"], merges["count"])
        left = Series("", merges["rank"], [n / _MEGABYTE for n in merges["tokens_left"]])
        blocks += [
            Plot("points", rank, Axis("count of its pair", log=True), [count], "How often the merged pair occurred"),
            Plot("line", rank, Axis("tokens", "millions"), [left], "Tokens that are left of the corpus"),
        ]
    if run["merges"]:
        rows: list[list[Value]] = [
            [merge["rank"], f"'{merge['left']}'", f"'{merge['right']}'", merge["count"]] for merge in run["merges"]
        ]
        blocks.append(Table(("rank", "left", "right", "count"), rows, "The last merges"))
    return blocks


def _partitions(run: Snapshot) -> list[Block]:
    parts = run["partitions"]
    if not parts["total"]:
        return []
    fates: list[Row] = [
        ("all", parts["total"]),
        ("done", parts["done"]),
        ("done before", parts["resumed"]),
        ("failed", parts["failed"]),
    ]
    rows: list[list[Value]] = [[slow["partition"], format_seconds(slow["seconds"])] for slow in parts["slowest"]]
    columns = ["partition", "time"]
    if any(slow["worker"] for slow in parts["slowest"]):
        columns.append("worker")
        rows = [[*row, slow["worker"] or None] for row, slow in zip(rows, parts["slowest"], strict=True)]
    return [Facts(fates), *([Table(columns, rows, "The slowest")] if rows else [])]


def _machines(run: Snapshot) -> list[Block]:
    memory = run["memory"]
    rows: list[Row] = [
        ("threads that work", run["threads"] or None),
        ("workers", run["n_workers"] or "the threads of one process"),
        ("memory of this process at most", format_bytes(memory["driver_peak"])),
    ]
    if memory["driver_limit"]:
        rows.append(("that it may use", format_bytes(memory["driver_limit"])))
    if memory["workers"] is not None:
        rows.append(("memory of all workers at the end", format_bytes(memory["workers"])))
    if memory["workers_limit"]:
        rows.append(("their limits together", format_bytes(memory["workers_limit"])))
    blocks: list[Block] = [Facts(rows)]
    if run["workers"]:
        columns = ("worker", "text done, MB", "memory, MB", "limit, MB")
        table = [
            [
                worker["name"],
                worker["done"] / _MEGABYTE,
                worker["memory"] / _MEGABYTE,
                worker["memory_limit"] / _MEGABYTE if worker["memory_limit"] else None,
            ]
            for worker in run["workers"]
        ]
        more = run["n_workers"] - len(run["workers"])
        blocks.append(
            Table(columns, table, f"The fullest, as last heard of; {more} more" if more > 0 else "As last heard of")
        )
    return blocks


def _quarantine(evidence: Evidence) -> list[Block]:
    rows = evidence.quarantined or evidence.run["quarantined"]
    n = evidence.n_quarantined or evidence.run["figures"].get("quarantined", len(rows))
    if not rows:
        return []
    table = Table(
        ("source", "position", "reason"),
        [[row["source"], row["position"], row["reason"]] for row in rows],
        f"{len(rows)} of {n:,}" if n > len(rows) else "",
    )
    return [table]


def _written(evidence: Evidence) -> list[Block]:
    manifest = evidence.manifest
    if manifest is None:
        return []
    rows: list[Row] = [
        ("tokens", manifest.tokens),
        ("documents", manifest.documents),
        ("shards", len(manifest.shards)),
        ("format", f"{manifest.format}, {manifest.dtype}"),
        ("size", format_bytes(manifest.bytes)),
        ("largest id", manifest.max_id),
        ("vocabulary", f"{manifest.vocab_size:,} ids, {manifest.vocabulary[:16]}"),
        *((f"marks at the {name}", f"{mark['count']:,} of {mark['text']}") for name, mark in manifest.marks.items()),
    ]
    options: list[Row] = [
        (name, _short(value)) for name, value in sorted(manifest.options.items()) if value is not None
    ]
    return [Facts(rows), Table(("option", "value"), options)]


def _short(value: Any) -> Value:
    if isinstance(value, dict):
        return ", ".join(f"{name}={inner}" for name, inner in value.items() if inner is not None)
    return value if isinstance(value, bool | int) else str(value)


def _data(evidence: Evidence) -> dict[str, Any]:
    """For programs: the snapshots as they are, the findings, and the figures of the manifest."""
    manifest = evidence.manifest
    written = manifest and {
        "tokens": manifest.tokens,
        "documents": manifest.documents,
        "shards": len(manifest.shards),
        "bytes": manifest.bytes,
        "max_id": manifest.max_id,
        "text": dict(manifest.text),
        "vocabulary": manifest.vocabulary,
    }
    return {
        "path": evidence.path,
        "run": evidence.run["id"],
        "findings": findings(evidence),
        "shares": {name: share_of(evidence, name) for name in evidence.run["spent"]},
        "manifest": written,
        "runs": list(evidence.runs),
        "torn_lines": evidence.n_torn,
        "quarantined": evidence.n_quarantined,
    }
