"""A plan as lines for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dask_bpe.cluster.planning.forecast import Forecast
    from dask_bpe.cluster.planning.plan import Plan

_LABEL = 18
_HEAD = ("workers", "count", "reduce", "merge", "encode", "total", "speed-up", "efficiency")
_WIDTHS = (7, 8, 8, 8, 8, 9, 9, 11)
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_TIMES = ((86_400.0, 3 * 86_400.0, "d"), (3600.0, 2 * 3600.0, "h"), (60.0, 2 * 60.0, "min"))


def lines_of(plan: Plan, source: Sequence[str], width: int) -> Iterator[str]:
    """The lines, none longer than `width` characters where words allow it."""
    name = source[0] if len(source) == 1 else f"{source[0]} and {len(source) - 1} more"
    workers = plan.forecast.workers, plan.forecast.threads
    yield f"{name}: {duration(plan.forecast.total)} to train and encode {size(plan.n_bytes)} on {_workers(*workers)}"
    for sentence in plan.warnings:
        yield from textwrap.wrap(sentence, width, initial_indent="  ! ", subsequent_indent="    ")
    for title, rows in (
        ("Corpus", _corpus(plan)),
        (f"Sample, on one thread of this machine in {duration(plan.sample.seconds)}", _sample(plan)),
        (f"Jobs, on {_workers(*workers)}", _jobs(plan)),
        ("Time", _time(plan.forecast)),
    ):
        yield ""
        yield title
        for label, text in rows:
            yield from _row(label, text, width)
    yield ""
    yield f"Simulation, workers of {_count(plan.forecast.threads, 'thread')}"
    yield from _table(plan.rows)
    yield ""
    yield "Assumptions"
    for sentence in plan.assumptions:
        yield from textwrap.wrap(sentence, width, initial_indent="  - ", subsequent_indent="    ")


def _row(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=f"  {label:<{_LABEL}}", subsequent_indent=" " * (_LABEL + 2))


def _corpus(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.n_bytes != plan.source_bytes:
        yield "there is", f"{size(plan.source_bytes)} in {_count(plan.source_files, 'file')}"
        yield "planned for", f"{size(plan.n_bytes)} in {_count(plan.files, 'file')}"
    else:
        yield "files", f"{size(plan.n_bytes)} in {_count(plan.files, 'file')}"
    yield "text", size(plan.text_bytes)
    growth = plan.sample.distinct
    yield (
        "pre-tokens",
        f"about {_short(plan.distinct)} distinct: {growth.scale:.3g} n^{growth.exponent:.3f} in n bytes"
        f" (residual {growth.residual:.1%})",
    )


def _sample(plan: Plan) -> Iterator[tuple[str, str]]:
    sample = plan.sample
    yield "pieces", f"{sample.n_pieces:,}, of {size(sample.n_bytes)} together, from everywhere"
    if sample.n_bad:
        yield "not read", f"{sample.n_bad:,} documents, or rests of files"
    if sample.busy > 0.1:
        yield "other programs", f"had the CPUs {sample.busy:.0%} of the time, which is left out of what follows"
    yield "reading", speed(sample.read)
    for item in sample.formats:
        rate = speed(item.n_bytes / item.seconds) if item.seconds else "no time measured"
        more = "" if abs(item.expansion - 1) < 0.01 else f", {item.expansion:.2f} bytes of text a byte"
        yield f"  {item.name}", f"taken apart at {rate}{more}"
    yield "counting", speed(sample.count)
    yield "sorting", f"{_short(sample.freeze)} distinct pre-tokens/s"
    yield "adding up", f"{_short(sample.combine)} distinct pre-tokens/s"
    distinct = sample.distinct.points[-1][1]
    seconds = sample.merge_seconds(distinct)
    yield (
        "merging",
        f"{sample.n_merges:,} merges of {_short(distinct)} pre-tokens in {duration(seconds)},"
        f" {seconds / max(sample.n_merges, 1) * 1e6:.3g} µs each",
    )
    yield "encoding", f"{speed(sample.encode)}, {sample.bytes_per_token:.2f} bytes a token"
    yield "writing", speed(sample.write)


def _jobs(plan: Plan) -> Iterator[tuple[str, str]]:
    yield (
        "partitions",
        f"{plan.partitions:,} to count, {plan.encodings:,} to encode, of about {size(plan.forecast.block_bytes)}",
    )
    whole = f"; the largest file read as a whole: {size(plan.whole)}" if plan.whole else ""
    yield "largest", f"{size(plan.largest)} of text, {plan.skew:.2f} times the mean{whole}"
    tasks = ", ".join(f"{name} {size(n_bytes)}" for name, n_bytes in plan.tasks_memory.items())
    yield "memory, worker", f"{size(plan.worker_memory)} of {size(plan.memory_limit)}"
    yield "memory, task", tasks
    yield "memory, driver", f"{size(plan.driver_memory)}, to merge"
    yield "buckets", f"{plan.buckets:,}" + (" (all pre-tokens fit into a worker)" if plan.buckets == 1 else "")
    yield (
        "output",
        f"{size(plan.output_bytes)} in {_count(plan.shards, 'shard')}: {_short(plan.tokens)} tokens of"
        f" {plan.sample.dtype}",
    )


def _time(forecast: Forecast) -> Iterator[tuple[str, str]]:
    more = ": more of them help" if forecast.bound == "workers" else ""
    yield "counting", duration(forecast.counting)
    yield "reducing", duration(forecast.reducing)
    yield "merging", f"{duration(forecast.merging)}, on the driver"
    yield "encoding", duration(forecast.encoding)
    yield "total", f"{duration(forecast.total)}, bound by {forecast.bound}{more}"


def _table(rows: Sequence[Forecast]) -> Iterator[str]:
    yield "".join(f"{name:>{width}}" for name, width in zip(_HEAD, _WIDTHS, strict=True)) + "  bound by"
    for row in rows:
        stages = [duration(seconds, 2) for seconds in (row.counting, row.reducing, row.merging, row.encoding)]
        cells = (f"{row.workers:,}", *stages, duration(row.total), _digits(row.speed_up), _percent(row.efficiency))
        yield "".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)) + f"  {row.bound}"


def size(n_bytes: float) -> str:
    """Three digits of bytes: `1.25 GB`."""
    for factor, unit in _SIZES:
        if n_bytes >= 0.9995 * factor:
            return f"{_digits(n_bytes / factor)} {unit}"
    return f"{n_bytes:,.0f} bytes"


def speed(n_bytes: float) -> str:
    """Bytes a second: `312 MB/s`."""
    return f"{size(n_bytes)}/s"


def duration(seconds: float, digits: int = 3) -> str:
    """Some digits of time: `8.21 s`, `12.5 min`, `3.50 h`, `4.10 d`."""
    for factor, least, unit in _TIMES:
        if seconds >= least:
            return f"{_digits(seconds / factor, digits)} {unit}"
    return f"{_digits(seconds, digits)} s" if seconds >= 0.9995 else f"{_digits(seconds * 1e3, digits)} ms"


def _digits(number: float, digits: int = 3) -> str:
    """So many digits, and all of those before the point."""
    decimals = digits - 1
    while decimals and abs(number) >= 10 ** (digits - decimals) - 0.5 / 10**decimals:
        decimals -= 1
    return f"{number:,.{decimals}f}"


def _percent(share: float) -> str:
    return "<1%" if share < 0.01 else f"{share:.0%}"


def _short(number: float) -> str:
    for factor, unit in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= factor:
            return f"{_digits(number / factor)} {unit}"
    return f"{number:,.0f}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


def _workers(workers: int, threads: int) -> str:
    return f"{_count(workers, 'worker')} of {_count(threads, 'thread')}"
