"""Figures as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from benchmarks.figures import OURS, Contest, Figures, Row
from benchmarks.yardsticks import CAT, SUM

_TITLES = {"tokenizers": "HF tokenizers"}


def title(name: str) -> str:
    """What to call a contestant."""
    first, space, rest = name.partition(" ")
    return _TITLES.get(first, first) + space + rest


def table(head: Sequence[str], lines: Iterable[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """A table; the columns `left` are words, the others numbers."""
    rule = ["---" if column in left else "---:" for column in range(len(head))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))


def section(heading: str, body: str, note: str = "") -> str:
    """A heading, what stands below it, and what has to be said about it."""
    return "\n\n".join(filter(None, (f"**{heading}**", body, note)))


def seconds(row: Row) -> str:
    """The figure that counts."""
    return f"{row.seconds:.2f}" if row.seconds < 100 else f"{row.seconds:.0f}"


def speed(row: Row) -> str:
    """Megabytes a second."""
    return f"{row.speed:.1f}" if row.speed < 100 else f"{row.speed:,.0f}"


def mebibytes(n_bytes: int) -> str:
    """Of memory."""
    return f"{n_bytes / 2**20:,.0f}"


def ratio(row: Row) -> str:
    """Times that ours is faster, unless that is refused."""
    return row.problem or (f"{row.slower:.2f}x" if row.slower else "-")


def cell(contest: Contest, name: str, show: Callable[[Row], str]) -> str:
    """A contestant's figure; none where it did not take part."""
    row = contest.row(name)
    if row is None:
        return ""
    return row.problem or show(row)


def comparison(
    contests: Sequence[Contest],
    ours: Sequence[str],
    peers: Sequence[str],
    unit: str,
    show: Callable[[Row], str],
    peaks: Sequence[str] = (),
) -> str:
    """A line for every contest: the figures of ours and of the peers, in brackets how many times faster ours is; beside
    them our speed as a part of that of just reading the bytes, where this was measured; and the memory of `peaks`."""
    there = {row.name for contest in contests for row in contest.rows}
    labels = list(contests[0].labels)
    ours, peers, yardsticks, peaks = (
        [name for name in each if name in there] for each in (ours, peers, (CAT, SUM), peaks)
    )
    head = [*labels, "MB", *(f"{title(name)}, {unit}" for name in (*ours, *peers))]
    head += [f"of {name}" for name in yardsticks]
    head += [f"peak of {title(name)}, MiB" for name in peaks]
    lines = []
    for contest in contests:
        main = contest.row(OURS) or contest.rows[0]
        line = [*contest.labels.values(), f"{main.n_bytes / 1e6:.0f}"]
        line += [cell(contest, name, show) for name in ours]
        line += [cell(contest, name, partial(_with_ratio, show)) for name in peers]
        line += [cell(contest, name, partial(_part, main)) for name in yardsticks]
        line += [cell(contest, name, lambda row: mebibytes(row.peak)) for name in peaks]
        lines.append(line)
    return table(head, lines, left=range(len(labels)))


def _with_ratio(show: Callable[[Row], str], row: Row) -> str:
    return f"{show(row)} ({ratio(row)})"


def _part(row: Row, yardstick: Row) -> str:
    """A speed as a part of another one."""
    return row.problem or f"{row.speed / yardstick.speed:.3f}"


def notes(contests: Sequence[Contest]) -> str:
    """Who was timed once, and who had a part of the text only."""
    said: dict[str, list[str]] = {}
    names = dict.fromkeys(row.name for contest in contests for row in contest.rows if row.slower)
    for name in names:
        pairs = [(row, contest.rows[0]) for contest in contests if (row := contest.row(name)) and row.slower]
        parts = ["once, without a warm-up"] if all(not row.runs for row, _ in pairs) else []
        sizes = sorted(row.n_bytes / 1e6 for row, first in pairs if row.n_bytes < first.n_bytes)
        if sizes:
            low, high = f"{sizes[0]:.0f}", f"{sizes[-1]:.0f}"
            parts.append(f"on the first {low if low == high else f'{low} to {high}'} MB")
        if parts:
            said.setdefault(", ".join(parts), []).append(title(name))
    return " ".join(f"{' and '.join(who)}: {how}." for how, who in said.items())


def facts(figures: Figures) -> str:
    """What makes the figures repeatable."""
    where, options = figures.machine, figures.options
    runs = options["runs"]
    lines = [
        f"Medians of {runs} run{'s' if runs != 1 else ''} after a warm-up, each contestant in a process of its own, in"
        " turns; results were compared first, and speeds only where they were the same. In brackets: how many times"
        " faster dask_bpe is. MB: 10^6 bytes of text.",
        f"`{figures.command}`",
        f"{where['cpu']}, {where['cores']} cores, {where['memory_bytes'] / 2**30:.0f} GiB, {where['system']},"
        f" Python {where['python']}; load before: {where['load_before']:.1f}.",
        ", ".join(f"{name} {version}" for name, version in figures.versions.items()) + ".",
    ]
    lines += [
        f"{text['name']}: {text['n_bytes']:,} bytes, sha256 {text['sha256'][:16]}; of a file of"
        f" {text['file_bytes']:,} bytes, sha256 {text['file_sha256'][:16]}."
        for text in figures.texts
    ]
    return "\n\n".join(lines)
