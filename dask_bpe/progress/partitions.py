"""What has become of the partitions of a stage, of any number of them, in a bounded table."""

from __future__ import annotations

import heapq
from typing import Literal

import numpy as np

from dask_bpe.progress.snapshot import Partitions, SlowPartition

Fate = Literal["done", "failed", "resumed"]

_WAITING, _DONE, _FAILED, _RESUMED = range(4)
_CODES: dict[Fate, int] = {"done": _DONE, "failed": _FAILED, "resumed": _RESUMED}
# Cells of the table, and how many of the slowest are kept.
_CELLS, _SLOWEST = 400, 8


class PartitionTable:
    """The fate of each partition, a byte each; where only numbers are known, those."""

    def __init__(self, total: int = 0) -> None:
        self._fates = np.zeros(total, np.uint8)
        self._told = False
        self._counted = dict.fromkeys(_CODES, 0)
        self._slowest: list[tuple[float, int, str]] = []

    def put(self, number: int, fate: Fate, seconds: float, worker: str) -> None:
        """Partition `number` has come to its end: it took so long, on that worker."""
        if number >= len(self._fates):
            # Of a bag nobody says beforehand how many there are.
            self._fates = np.pad(self._fates, (0, number + 1 - len(self._fates)))
        self._fates[number] = _CODES[fate]
        self._told = True
        if fate == "done":
            self.slow(number, seconds, worker)

    def slow(self, number: int, seconds: float, worker: str) -> None:
        """A partition that may be among the slowest; told again, it is the same."""
        row = (seconds, number, worker)
        if row not in self._slowest:
            self._slowest = heapq.nlargest(_SLOWEST, [*self._slowest, row])

    def count(self, fate: Fate, amount: int) -> None:
        """So many more, nobody knows which."""
        self._counted[fate] += amount

    def finish(self) -> None:
        """All that were counted have come to a good end, also those that nobody told of."""
        self._counted["done"] = len(self._fates) - self._counted["failed"] - self._counted["resumed"]

    def summary(self) -> Partitions:
        """As it stands in a snapshot."""
        total = len(self._fates)
        numbers = np.bincount(self._fates, minlength=4)[1:].tolist() if self._told else self._counted.values()
        done, failed, resumed = (min(number, total) for number in numbers)
        per_cell = max(1, -(-total // _CELLS))
        slowest: list[SlowPartition] = [
            {"partition": number, "seconds": round(seconds, 3), "worker": worker}
            for seconds, number, worker in self._slowest
        ]
        return {
            "total": total,
            "done": done,
            "failed": failed,
            "resumed": resumed,
            "per_cell": per_cell,
            "cells": self._cells(per_cell) if self._told else [],
            "slowest": slowest,
        }

    def _cells(self, per_cell: int) -> list[list[int]]:
        starts = np.arange(0, len(self._fates), per_cell)
        codes = (_DONE, _FAILED, _RESUMED, _WAITING)
        columns = [np.add.reduceat(self._fates == code, starts, dtype=np.int64) for code in codes]
        cells: list[list[int]] = np.stack(columns, axis=1).tolist()
        return cells
