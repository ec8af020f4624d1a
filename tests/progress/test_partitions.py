"""The fate of partitions in a bounded table, against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.progress.partitions import PartitionTable

FATES = ("done", "failed", "resumed")
ORDER = (*FATES, "waiting")


@given(st.integers(0, 3000), st.lists(st.tuples(st.integers(0, 3500), st.sampled_from(FATES)), max_size=200))
def test_cells_are_runs_of_the_list(total: int, ends: list[tuple[int, str]]) -> None:
    table, fates = PartitionTable(total), ["waiting"] * total
    for number, fate in ends:
        table.put(number, fate, 1.0, "w")  # type: ignore[arg-type]
        fates += ["waiting"] * (number + 1 - len(fates))
        fates[number] = fate
    found = table.summary()
    assert found["total"] == len(fates)
    assert [found["done"], found["failed"], found["resumed"]] == [fates.count(fate) for fate in FATES]
    size = found["per_cell"]
    runs = [fates[start : start + size] for start in range(0, len(fates), size)] if ends else []
    assert found["cells"] == [[run.count(fate) for fate in ORDER] for run in runs]
    assert len(found["cells"]) <= 400


@given(st.lists(st.floats(0, 1000), max_size=60))
def test_the_slowest_come_first(seconds: list[float]) -> None:
    table = PartitionTable(len(seconds))
    for number, spent in enumerate(seconds):
        table.put(number, "done", spent, "a")
    expected = sorted((round(spent, 3) for spent in seconds), reverse=True)[:8]
    assert [row["seconds"] for row in table.summary()["slowest"]] == expected


def test_numbers_without_names() -> None:
    table = PartitionTable(5)
    table.count("done", 3)
    table.count("resumed", 1)
    for _ in range(2):  # workers tell their slowest again and again
        table.slow(4, 2.5, "w1")
    assert table.summary() == {
        "total": 5,
        "done": 3,
        "failed": 0,
        "resumed": 1,
        "per_cell": 1,
        "cells": [],
        "slowest": [{"partition": 4, "seconds": 2.5, "worker": "w1"}],
    }
