"""Peak memory of training and of encoding a large text: of a process that does it once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.bars import Bar, Measured
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.jobs import encode, train
from benchmarks.report import mebibytes, seconds, section, table, title
from benchmarks.work import SetUp

_WORKS: dict[str, dict[str, SetUp]] = {"training": train.CONTESTANTS, "encoding": encode.CONTESTANTS}
CONTESTANTS: dict[str, SetUp] = {
    f"{name}, {work}": set_up for work, contestants in _WORKS.items() for name, set_up in contestants.items()
}


def measure(bench: Bench) -> Iterator[Contest]:
    """Ours and gigatoken, and the peers that are asked for, one after the other."""
    text = bench.chained(bench.options.large_megabytes)
    common: dict[str, Any] = {"runs": 0, "settings": {"vocab_size": bench.options.vocab_size}}
    for work, known in _WORKS.items():
        names = [OURS, *(peer for peer in ("gigatoken", *bench.options.memory_peers) if peer in known)]
        entries = [Entry(f"{name}, {work}", text, bench.vocabularies[0], name=name, **common) for name in names]
        if "rustbpe" in names:
            # It has another tie rule than the others.
            theirs = Entry(f"{train.BY_IDS}, {work}", text, name=train.BY_IDS, same_as=None, against=None, **common)
            at = names.index("rustbpe")
            entries[at : at + 1] = [
                theirs,
                Entry(f"rustbpe, {work}", text, name="rustbpe", same_as=theirs.row_name, **common),
            ]
        yield bench.contest("memory", {"work": work, "text": f"{text.n_bytes / 1e9:.3g} GB"}, entries)


def report(contests: list[Contest]) -> str:
    """MiB."""
    lines = [
        [
            *contest.labels.values(),
            title(row.name),
            row.problem or mebibytes(row.peak),
            row.problem or seconds(row),
        ]
        for contest in contests
        for row in contest.rows
    ]
    head = ["", "text", "", "peak, MiB", "s, once"]
    return section("Peak memory of a large text", table(head, lines, left=(0, 1, 2)))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Not above the best peer's."""
    for contest in contests:
        ours = contest.row(OURS)
        peers = [row for row in contest.rows if not row.name.startswith(OURS) and not row.problem]
        if ours is None or not peers:
            continue
        best = min(peers, key=lambda row: row.peak)
        found = Measured(ours.peak / 2**20, f"against {title(best.name)}", ours.problem)
        yield Bar(f"peak memory, {contest.place}", best.peak / 2**20, "MiB", (found,), most=True)
