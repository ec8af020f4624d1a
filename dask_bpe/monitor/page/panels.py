"""The parts of the page in words and numbers: HTML of a snapshot. All texts of jobs and corpora are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from dask_bpe.monitor.amounts import format_amount, format_part, format_rate, format_seconds
from dask_bpe.monitor.page.style import GREEN, SKY, VERMILION
from dask_bpe.progress.snapshot import Partitions, Snapshot, Stage

# How many rows of a table are shown.
_ROWS = 20
_FATES = (("done", GREEN), ("failed", VERMILION), ("resumed", SKY))


def nothing_yet() -> str:
    """The page before the first job."""
    return (
        '<div class="empty">No job yet. <code>dask_bpe.train</code>, <code>count_pretokens</code> and'
        " <code>encode_corpus</code> appear here as soon as they run on this cluster.</div>"
    )


def head(snapshot: Snapshot, silent: bool) -> str:
    """What the job is, how it is, and for how long."""
    state = "silent" if silent else snapshot["state"]
    what = "no news any more" if silent else state
    error = f'<div class="error">{escape(snapshot["error"])}</div>' if snapshot["error"] else ""
    return (
        f'<div class="head"><h1>{escape(snapshot["kind"])} <span class="dim">{escape(snapshot["name"])}</span></h1>'
        f'<span class="pill {state}">{what}</span>'
        f'<span class="dim">{format_seconds(snapshot["seconds"])}</span></div>{error}'
    )


def job_links(jobs: Sequence[Snapshot], shown: str) -> str:
    """A link to each job, the latest first; nothing when there is only one."""
    if len(jobs) < 2:
        return ""
    links = (
        f'<a class="{"shown" if job["id"] == shown else ""}" href="dask-bpe?job={quote(job["id"])}"'
        f' title="{escape(job["name"])}">{escape(job["kind"])} <span class="dim">{escape(_short(job["name"]))},'
        f" {job['state']}</span></a>"
        for job in jobs
    )
    return f'<div class="jobs">{"".join(links)}</div>'


def _short(name: str) -> str:
    return name if len(name) <= 32 else f"...{name[-29:]}"


def tiles(snapshot: Snapshot) -> str:
    """The figures of the job."""
    figures = snapshot["figures"]
    running = {stage["unit"] for stage in snapshot["stages"] if stage["state"] == "running"}
    shown: list[tuple[str, str]] = []
    if "bytes" in figures:
        shown.append((format_amount(figures["bytes"], "B"), "of text"))
    for name, unit in (("bytes", "B"), ("tokens", "tokens"), ("merges", "merges")):
        rate = snapshot["rates"].get(name)
        if rate is not None:
            now = ("merges" if name == "merges" else "B") in running and rate["now"] > 0
            speed = _big(rate["now" if now else "average"]) if unit != "B" else ""
            text = f"{speed}/s" if speed else format_rate(rate["now" if now else "average"], unit)
            shown.append((text, f"{'' if unit == 'B' else unit + ' '}{'now' if now else 'on average'}".strip()))
    names = {
        "documents": "documents",
        "pretokens": "pre-tokens",
        "distinct": "distinct pre-tokens",
        "merges": "merges",
        "tokens": "tokens",
        "shards": "shards",
        "invalid": "places not UTF-8",
        "quarantined": "documents not read",
    }
    for name, label in names.items():
        if figures.get(name) or (name in figures and name not in ("invalid", "quarantined")):
            # All its digits when a pointer rests on it.
            shown.append((f'<span title="{figures[name]:,}">{_big(figures[name])}</span>', label))
    if figures.get("tokens") and figures.get("bytes"):
        shown.append((f"{figures['bytes'] / figures['tokens']:.2f}", "bytes per token"))
    cells = (f'<div class="tile"><b>{text}</b><span>{label}</span></div>' for text, label in shown)
    return f'<div class="tiles">{"".join(cells)}</div>'


def _big(number: float) -> str:
    """`12,345`, `1.23 M`, `45.6 G`."""
    for scale, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= scale:
            return f"{number / scale:.2f} {name}"
    return f"{number:,.0f}"


def stages(snapshot: Snapshot) -> str:
    """A bar for each stage: how far, how fast, how long still."""
    return f'<div class="stages">{"".join(map(_stage, snapshot["stages"]))}</div>'


def _stage(stage: Stage) -> str:
    running, total = stage["state"] == "running", stage["total"]
    if running and total is None:
        fill = '<div class="fill unknown"></div>'
    else:
        # A stage that ended early (no pair left to merge) has still ended: its bar is full.
        share = stage["done"] / max(1, total or 1) if stage["state"] != "finished" else 1.0
        fill = f'<div class="fill {stage["state"]}" style="width:{min(1.0, share):.2%}"></div>'
    # How fast a listing of unknown length is says nothing.
    rate = (stage["rate_now"] if running else None) or stage["rate"] if total or stage["unit"] == "B" else None
    left = stage["seconds_left"]
    time = format_seconds(stage["seconds"]) if not running else f"{format_seconds(left)} left" if left else ""
    done = format_part(stage["done"], total if running else None, stage["unit"])
    return (
        f'<div class="row" data-stage="{escape(stage["name"])}" data-done="{stage["done"]}">'
        f'<div>{escape(stage["name"])}</div><div class="track">{fill}</div><div class="facts">'
        f'<div class="number">{escape(done)}</div>'
        f'<div class="number">{escape(format_rate(rate, stage["unit"])) if rate else ""}</div>'
        f'<div class="number">{time}</div></div></div>'
    )


def memory(snapshot: Snapshot) -> str:
    """What the driver and the workers use of what they may."""
    used = snapshot["memory"]
    rows = [_meter("driver", used["driver"], used["driver_limit"])]
    rows += [_meter(f"worker {w['name']}", w["memory"], w["memory_limit"]) for w in snapshot["workers"][:10]]
    hidden = snapshot["n_workers"] - len(snapshot["workers"][:10])
    if hidden > 0 and used["workers"] is not None:
        rows.append(_meter(f"all {snapshot['n_workers']}", used["workers"], used["workers_limit"]))
    peak = f"driver's peak {format_amount(used['driver_peak'], 'B')}"
    return f'<h2>Memory<small>used of the budget; {peak}</small></h2><div class="meters">{"".join(rows)}</div>'


def _meter(name: str, used: int, limit: int | None) -> str:
    share = used / limit if limit else 0.0
    state = "failed" if share > 0.9 else ""
    return (
        f'<div class="name" title="{escape(name)}">{escape(name)}</div>'
        f'<div class="track"><div class="fill {state}" style="width:{min(1.0, share):.2%}"></div></div>'
        f'<div class="number">{format_part(used, limit, "B")}</div>'
    )


def partitions(found: Partitions) -> str:
    """A cell for each partition, or for some that follow each other."""
    per_cell = found["per_cell"]
    each = "one a cell" if per_cell == 1 else f"{per_cell} a cell"
    cells = "".join(map(_cell, found["cells"], range(0, found["total"], per_cell)))
    counted = " ".join(
        f'<span><i class="box" style="background:{colour}"></i>{found[fate]:,} {fate}</span>'  # type: ignore[literal-required]
        for fate, colour in _FATES
        if found[fate] or fate == "done"  # type: ignore[literal-required]
    )
    waiting = found["total"] - found["done"] - found["failed"] - found["resumed"]
    counted += f'<span><i class="box" style="background:var(--track)"></i>{waiting:,} to do</span>'
    note = f"<small>{found['total']:,}{', ' + each if cells else ''}</small>"
    if not cells:
        # Which ones are done nobody knows.
        shares = ((found["done"], GREEN), (found["resumed"], SKY), (found["failed"], VERMILION))
        parts = (
            f'<div style="width:{n / max(1, found["total"]):.2%};background:{colour}"></div>' for n, colour in shares
        )
        cells = f'<div class="track stack">{"".join(parts)}</div>'
    table = f'<h2>Partitions{note}</h2><div class="cells">{cells}</div><div class="legend">{counted}</div>'
    return table + (_slowest(found) if found["slowest"] else "")


def _cell(cell: Sequence[int], first: int) -> str:
    done, failed, resumed, waiting = cell
    n = done + failed + resumed + waiting
    title = f"{first:,}" if n == 1 else f"{first:,} to {first + n - 1:,}"
    if failed:
        return f'<i style="background:{VERMILION};outline:1px solid var(--ink)" title="{title}: {failed} failed"></i>'
    ended = done + resumed
    if not ended:
        return f'<i title="{title}"></i>'
    colour = GREEN if done >= resumed else SKY
    return f'<i style="background:{colour};opacity:{0.35 + 0.65 * ended / n:.2f}" title="{title}: {ended} done"></i>'


def _slowest(found: Partitions) -> str:
    """The partitions that took longest."""
    rows = found["slowest"]
    longest = max((row["seconds"] for row in rows), default=0.0) or 1.0
    meters = "".join(
        f'<div class="name">{row["partition"]:,}{" on " + escape(row["worker"]) if row["worker"] else ""}</div>'
        f'<div class="track"><div class="fill" style="width:{row["seconds"] / longest:.2%}"></div></div>'
        f'<div class="number">{format_seconds(row["seconds"])}</div>'
        for row in rows
    )
    return f'<h2 class="next">The slowest<small>number, time</small></h2><div class="meters">{meters}</div>'


def merges(snapshot: Snapshot) -> str:
    """The last merges, the latest first."""
    rows = [
        (
            f"{merge['rank']:,}",
            f"{_token(merge['left'])} + {_token(merge['right'])}",
            f"{merge['count']:,}",
        )
        for merge in reversed(snapshot["merges"])
    ]
    return "<h2>Last merges<small>␣ is a space</small></h2>" + _table(("rank", "pair", "count"), rows, numbers=(0, 2))


def _token(text: str) -> str:
    return f'<span class="token">{escape(text).replace(" ", "␣")}</span>'


def quarantine(snapshot: Snapshot) -> str:
    """The documents that could not be read, the latest first."""
    listed = list(reversed(snapshot["quarantined"]))[:_ROWS]
    rows = [
        (
            escape(row["source"]),
            "" if row["position"] is None else f"{row['position']:,}",
            escape(row["reason"]),
        )
        for row in listed
    ]
    total = max(snapshot["figures"].get("quarantined", 0), len(snapshot["quarantined"]))
    note = f"<small>{total:,}{f', the last {len(rows)}' if total > len(rows) else ''}</small>"
    return f"<h2>Documents not read{note}</h2>" + _table(("source", "position", "reason"), rows, numbers=(1,))


def said(snapshot: Snapshot) -> str:
    """What the job has said."""
    return "<h2>Said</h2>" + "".join(f"<div>{escape(line)}</div>" for line in snapshot["said"])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int]) -> str:
    kinds = ['class="number"' if column in numbers else "" for column in range(len(heads))]
    top = "".join(f"<th {kind}>{text}</th>" for kind, text in zip(kinds, heads, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td {kind}>{text}</td>' for kind, text in zip(kinds, row, strict=True))}</tr>" for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"
