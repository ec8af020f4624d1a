"""A table of counts that grows while text is added to it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dask_bpe.heaps import expected_distinct
from dask_bpe.kernels import count as kernels
from dask_bpe.kernels import front, lanes, memory, sort, table
from dask_bpe.pretokenize import Scanner
from dask_bpe.ragged import Ragged

Int64s = npt.NDArray[np.int64]

# Lines of the front table, 64 bytes each: 2 MB. English took 10 % longer with half of it; more gained nothing.
_FRONT_LINES = 1 << 15


class CountTable:
    """A table of counts that text is added to; see `kernels.count` for its arrays.

    Parameters
    ----------
    expected : how many distinct strings to make room for; it grows when there are more.
    """

    def __init__(self, expected: int = 1024) -> None:
        capacity = 1 << max(12, (2 * expected - 1).bit_length())
        self._table = kernels.Table(
            front=memory.zeros(front.LINE * _FRONT_LINES),
            waiting=memory.zeros(table.WIDTH * kernels.WAITING),
            hashes=memory.zeros(kernels.WAITING),
            index=memory.zeros(capacity),
            entries=memory.zeros(table.WIDTH * (capacity // 8 * 5)),
            values=np.empty(1 << 16, np.uint8),
            offsets=np.zeros(1 << 12, np.int64),
            used=np.zeros(4, np.int64),
        )
        # Where the text ended that was counted last; whether the front table may have tallies.
        self._reached, self._unsettled = 0, False
        self._batch = front.Batch.empty()
        self._cursor, self._cut = np.zeros(1, np.int64), np.zeros(3, np.int64)
        self.n_unmatched = 0

    @classmethod
    def for_text(cls, n_bytes: int) -> CountTable:
        """A table with room for twice what so much web text holds: to grow once took a tenth of the time of 150 MB."""
        return cls(max(1024, 2 * expected_distinct(n_bytes)))

    def __len__(self) -> int:
        """Distinct strings so far."""
        self._settle()
        return int(self._table.used[0])

    def add_segments(self, text: npt.NDArray[np.uint8], segments: Int64s, scanner: Scanner, origin: int) -> None:
        """Cut segments of text and count their pre-tokens. segments : int64[2, n], ascending; `origin` is where in the
        corpus ``text[0]`` stands. `n_unmatched` grows by the bytes that the pattern leaves unmatched."""
        if not segments.size:
            return
        segments = np.ascontiguousarray(segments)  # a slice of those of a block is not
        unmatched_before = scanner.n_unmatched
        first, last = origin + int(segments[0, 0]), origin + int(segments[1, -1])
        if first < self._reached:  # an entry of the front table knows no earlier position than its own
            self._settle()
            self._table.front.fill(0)
        self._reached, self._unsettled = last, True
        cutting = scanner.begin(segments)
        if cutting is None:
            for batch in scanner.scan(text, segments):
                self._cursor.fill(0)
                arguments = text, batch.spans, batch.n_spans, origin, self._cursor
                while kernels.count_batch(*arguments, self._table, self._batch, lanes.IN_USE) == kernels.FULL:
                    self._make_room(batch.spans[:, : batch.n_spans])
        else:
            self._cut.fill(0)
            self._cursor.fill(0)
            count = cutting.kernel("count")
            while state := count(
                text, segments, cutting.place, *cutting.arguments, cutting.spans, cutting.stops, self._cut,
                self._cursor, origin, self._table, self._batch, lanes.IN_USE,
            ):  # fmt: skip
                if state == kernels.FULL:
                    self._make_room(cutting.spans[:, : self._cut[0]])
                else:
                    cutting = scanner.go_on(state, text, segments, cutting)
            scanner.end()
        self.n_unmatched += scanner.n_unmatched - unmatched_before

    def add_strings(self, strings: Ragged, counts: Int64s, first: Int64s) -> None:
        """Add distinct strings with their counts and first positions."""
        self._cursor.fill(0)
        arguments = strings.values, strings.offsets, counts, first, self._cursor
        while kernels.add_strings(*arguments, self._table, self._batch) == kernels.FULL:
            start = int(self._cursor[0])
            bounds = strings.offsets[start : start + front.BATCH + 1]
            self._grow(len(bounds) - 1, int(bounds[-1] - bounds[0]))

    def _make_room(self, spans: Int64s) -> None:
        """Make room for the batch of pre-tokens at which a kernel stopped."""
        start = int(self._cursor[0])
        starts, ends = spans[:, start : start + front.BATCH]
        self._grow(kernels.WAITING + front.BATCH, int((ends - starts).sum()))

    def _settle(self) -> None:
        """Add up what is counted in the front table only."""
        if self._unsettled:
            self._grow(kernels.WAITING + int(np.count_nonzero(self._table.front[3 :: table.WIDTH])), 0)
            kernels.settle(self._table)
            self._unsettled = False

    def _grow(self, count: int, n_bytes: int) -> None:
        """Make room for `count` more strings of `n_bytes` together."""
        index, entries, values, offsets = (
            self._table.index,
            self._table.entries,
            self._table.values,
            self._table.offsets,
        )
        n_entries, n_long, filled, _ = self._table.used.tolist()
        wanted = (n_entries + count) * table.WIDTH
        if wanted > len(entries):
            larger = memory.zeros(max(wanted, 2 * len(entries)))
            larger[: len(entries)] = entries
            entries = larger
        slots = len(index)
        while (n_entries + count) * 8 > slots * 5:
            slots *= 2
        if slots > len(index):
            index = memory.zeros(slots)
            table.rebuild_index(entries, n_entries, index)
        if n_long + count >= len(offsets):
            offsets = np.concatenate([offsets, np.zeros(len(offsets) + count, np.int64)])
        if filled + n_bytes > len(values):
            values = np.concatenate([values, np.empty(len(values) + n_bytes, np.uint8)])
        self._table = self._table._replace(index=index, entries=entries, values=values, offsets=offsets)

    def in_order(self) -> tuple[Ragged, Int64s, Int64s]:
        """The strings so far, ascending; int64[n], the count of each; int64[n], where each came first."""
        n = len(self)
        counted = self._table
        table_ = counted.entries, counted.values, counted.offsets
        keys, second = np.empty(n, np.uint64), np.empty(n, np.uint64)
        sort.sort_keys(*table_, keys, second)
        order = np.argsort(keys)
        sort.sort_equal(keys, second, *table_, order, np.empty(n, np.int64))
        n_bytes = kernels.total_bytes(counted.entries, n, counted.offsets)
        strings, bounds = np.empty(n_bytes + sort.SPARE, np.uint8), np.empty(n + 1, np.int64)
        counts, first = np.empty(n, np.int64), np.empty(n, np.int64)
        sort.extract(*table_, order, strings, bounds, counts, first)
        return Ragged(strings[:n_bytes], bounds), counts, first
