"""What one thread keeps from one call of the encoding kernels to the next, and how they are called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.encoder.arrays import enlarged, make_cache, make_scratch
from dask_bpe.kernels import encode as kernels
from dask_bpe.kernels import frame, front, lanes, merge_windows, merging
from dask_bpe.kernels._jit import direct
from dask_bpe.pretokenize import Scanner
from dask_bpe.pretokenize.scanner import Batch, Cutting

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]

# Bytes behind a short text, so that vectors may be read at its end.
_BEHIND = 64

# Texts up to this many bytes are encoded in a `_Short`: what a call takes beside the encoding is 1 us then for 10.
SHORT = 1 << 13

NOTHING = merging.NOTHING
NOTHING_AFTER = np.empty(0, np.uint32)


class _Short(NamedTuple):
    """Short texts are copied to one place and encoded to another, by a kernel that finds everything in a frame.

    Attributes
    ----------
    run : the kernel, of the frame and the length of the text.
    frame : uint64[], see `kernels.frame`.
    text, out : uint8[] and uint32[], what the kernel reads and writes.
    alive : all arrays to which the frame points.
    """

    run: Callable[[npt.NDArray[np.uint64], int], int]
    frame: npt.NDArray[np.uint64]
    text: memoryview
    out: Ids
    alive: tuple[Any, ...]


class Workspace:
    """The caches and scratch arrays of one thread; see `kernels.encode`."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._batch = front.Batch.empty()
        self._cursor, self._cut = np.zeros(3, np.int64), np.zeros(3, np.int64)
        self._scratch = make_scratch(merge_windows.WIDE)
        self._cache = make_cache()
        self._short: _Short | None = None

    def shrunk(self) -> Workspace:
        """This workspace, with scratch arrays as it had them at first."""
        if len(self._scratch.ids) > merge_windows.WIDE:
            self._scratch, self._short = make_scratch(merge_windows.WIDE), None
        return self

    def encode(
        self,
        text: Text,
        segments: Int64s,
        after: Ids,
        rules: kernels.Rules,
        out: Ids,
        offsets: Int64s,
    ) -> int:
        """Write the ids of all segments to `out` and their bounds to `offsets`; returns the number of ids."""
        self._cursor.fill(0)
        cutting = self._scanner.begin(segments)
        if cutting is None:
            for batch in self._scanner.scan(text, segments):
                self._encode_batch(text, batch, after, rules, out, offsets)
            return int(self._cursor[1])
        self._cut.fill(0)
        keep, run = _kernels(cutting.by)
        while True:
            arguments = self._arguments(text, segments, cutting, offsets[1:], rules, after, out)
            words = _framed(keep, frame.Begun(segments, cutting.place, self._cut, self._cursor), arguments)
            state = run(words, -1)
            if state == kernels.DONE:
                self._scanner.end()
                return int(self._cursor[1])
            if state < 0:
                self._short = None
                cutting = self._scanner.go_on(state, text, segments, cutting)
            else:
                self._make_room(state)

    def _arguments(
        self, text: Text, segments: Int64s, cutting: Cutting, bounds: Int64s, rules: kernels.Rules, after: Ids, out: Ids
    ) -> tuple[Any, ...]:
        """The arguments of the kernels, in the order of `kernels.encode_by.ARGUMENTS`."""
        return (
            text, segments, cutting.place, *cutting.arguments, cutting.spans, cutting.stops, self._cut, self._cursor,
            bounds, rules, self._cache, self._batch, self._scratch, after, lanes.IN_USE, out,
        )  # fmt: skip

    def encode_short(self, data: bytes, rules: kernels.Rules) -> Ids | None:
        """The ids of a text of at most SHORT bytes, in memory that the next call writes over.

        None if no kernel knows the pattern, or if more room is needed than there is: `encode` makes it.
        """
        short = self._short
        if short is None:
            short = self._short = self._make_short(rules)
            if short is None:
                return None
        size = len(data)
        short.text[:size] = data
        state = short.run(short.frame, size)
        return short.out[: self._cursor[1]] if state == kernels.DONE else None

    def _make_short(self, rules: kernels.Rules) -> _Short | None:
        segments = np.zeros((2, 1), np.int64)
        cutting = self._scanner.begin(segments)
        if cutting is None:
            return None
        text, out = np.zeros(SHORT + _BEHIND, np.uint8), np.empty(SHORT + kernels.SPARE, np.uint32)
        arguments = self._arguments(text, segments, cutting, np.empty(1, np.int64), rules, NOTHING_AFTER, out)
        keep, run = _kernels(cutting.by)
        kept = frame.Begun(segments, cutting.place, self._cut, self._cursor), arguments
        words = _framed(keep, *kept)
        return _Short(run, words, text.data, out, kept)

    def _encode_batch(
        self, text: Text, batch: Batch, after: Ids, rules: kernels.Rules, out: Ids, offsets: Int64s
    ) -> None:
        self._cursor[0] = self._cursor[2] = 0
        segments = slice(batch.first, batch.last)
        stops, bounds = batch.stops[segments], offsets[1:][segments]
        while state := kernels.encode_batch(
            text, batch.spans, batch.n_spans, self._cursor, stops, bounds, rules, self._cache, self._batch,
            self._scratch, after[segments], lanes.IN_USE, out,
        ):  # fmt: skip
            self._make_room(state)

    def _make_room(self, state: int) -> None:
        """Give a kernel that stopped what it needs to go on."""
        self._short = None
        if state == kernels.CACHE_FULL:
            self._cache = enlarged(self._cache)
        else:
            self._scratch = make_scratch(2 * len(self._scratch.ids))


@cache
def _kernels(by: str) -> tuple[Any, Any]:
    """What keeps the arguments of the kernel for text that this scanner cuts, and the kernel."""
    module = import_module(f"dask_bpe.kernels.encode_{by}")
    return direct(getattr(module, f"keep_{by}")), direct(getattr(module, f"encode_{by}"))


def _framed(keep: Any, begun: frame.Begun, arguments: tuple[Any, ...]) -> npt.NDArray[np.uint64]:
    """The frame of a call; see `kernels.frame`."""
    words = np.empty(keep(np.empty(0, np.uint64), (begun, arguments)), np.uint64)
    keep(words, (begun, arguments))
    return words
