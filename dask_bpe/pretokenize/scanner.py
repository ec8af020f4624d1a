"""Cut segments of text into pre-tokens, a batch at a time, into buffers that are used again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import InputError
from dask_bpe.kernels.lanes import WIDE
from dask_bpe.kernels.marks import ENLARGE, PADDING
from dask_bpe.pretokenize import by_regex
from dask_bpe.pretokenize.classes import BITS, code_point_bits, code_point_classes
from dask_bpe.pretokenize.patterns import Pattern

if TYPE_CHECKING:
    from dask_bpe.pretokenize.tables import Tables

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

# Pre-tokens of a batch: the arrays that pass between scanner and encoder stay near the L1 cache.
CAPACITY = 2048
# Bytes of a block that the tables of a pattern cut at once: it and its marks stay within the L1 cache.
_BLOCK = 4096
_MOST_KEPT = 1 << 20
# Modules of scanners that are not called after them.
_MODULES = {"gpt2": "scan", "table": "transduce"}


class Batch(NamedTuple):
    """Pre-tokens in the order of the text, and the segments that end among them.

    Pre-token k is ``text[spans[0, k]:spans[1, k]]``, for k below `n_spans`. Of the segments numbered
    `first` to `last - 1` the ends lie in this batch: after ``stops[segment]`` pre-tokens of it.
    The arrays are written over by the next batch.
    """

    spans: Int64s
    n_spans: int
    first: int
    last: int
    stops: Int64s


class Cutting(NamedTuple):
    """What a kernel that cuts text and goes on with the pre-tokens itself needs of a scanner.

    by : "gpt2", "cl100k", "o200k" or "table", by the kernel that cuts. place : int64[7], where it stands.
    arguments : its own, between `place` and `spans`. spans, stops : as in `Batch`.
    """

    by: str
    place: Int64s
    arguments: tuple[Any, ...]
    spans: Int64s
    stops: Int64s

    def kernel(self, then: str) -> Any:
        """The kernel that cuts and goes on to "encode" or "count", or that does no more than to "scan".

        Imported here: no pattern need wait until the kernels of others are compiled.
        """
        module = _MODULES.get(self.by, f"scan_{self.by}") if then == "scan" else f"{then}_{self.by}"
        return getattr(import_module(f"dask_bpe.kernels.{module}"), f"{then}_{self.by}")


class Scanner:
    """Cuts text by one pattern. Holds buffers: one scanner serves one thread at a time.

    Parameters
    ----------
    pattern : the split pattern.
    keep_all : whether text that the pattern leaves unmatched is an error; it is passed over otherwise,
        as `regex.findall` does.
    """

    def __init__(self, pattern: Pattern, *, keep_all: bool = False) -> None:
        self._pattern = pattern
        self._keep_all = keep_all
        self._by: str | None = None
        self._tables: Tables | None = None
        self._classes = np.empty(0, np.uint8)
        self._ready = False
        self._spans = np.empty((2, CAPACITY), np.int64)
        self._place = np.zeros(7, np.int64)
        self._n_unmatched = 0
        self._scratch = np.empty(64, np.uint8)
        self._words = np.empty(73, np.uint64)
        self._lanes = np.empty((4, 5), np.int64)
        self._make_room(_BLOCK)

    @property
    def n_unmatched(self) -> int:
        """Bytes so far that the pattern left unmatched."""
        return self._n_unmatched

    def scan(self, text: Text, segments: Int64s) -> Iterator[Batch]:
        """Cut each segment ``text[segments[0, k]:segments[1, k]]`` on its own. segments : int64[2, n].

        Raises
        ------
        InputError
            With `keep_all`, where the pattern leaves text unmatched.
        """
        if not self._pattern.splits:
            return self._scan_whole(segments)
        cutting = self.begin(segments)
        if cutting is None:
            return self._scan_regex(text, segments)
        return self._scan_cutting(text, segments, cutting)

    def begin(self, segments: Int64s) -> Cutting | None:
        """What kernels need to cut these segments; None if none of them knows the pattern. After them, call `end`."""
        if not self._ready:
            self._make_ready()
        if self._by is None:
            return None
        self._place.fill(0)
        self._place[5] = -1
        return Cutting(self._by, self._place, self._arguments(), self._spans, np.empty(segments.shape[1], np.int64))

    def go_on(self, state: int, text: Text, segments: Int64s, cutting: Cutting) -> Cutting:
        """Do what a kernel that stopped asks for; raises InputError where it found text unmatched."""
        if state == ENLARGE:
            self._make_room(2 * len(self._inside))  # text that may be cut nowhere is one block
            return cutting._replace(arguments=self._arguments())
        start, end = cutting.place[5:7].tolist()
        segment = int(np.searchsorted(segments[0], start, side="right")) - 1
        raise _unmatched(start - int(segments[0, segment]), _decode(text[start:end]))

    def end(self) -> None:
        """Add up what was unmatched, and give up buffers that are extraordinarily large."""
        self._n_unmatched += int(self._place[4])
        if len(self._inside) > _MOST_KEPT:
            self._make_room(_BLOCK)

    def _make_ready(self) -> None:
        """Find what cuts this pattern: once, for it takes as long as a short text."""
        by_vectors = os.environ.get("DASK_BPE_SIMD") != "0"
        if self._pattern.name == "gpt2" and by_vectors:
            self._by, self._classes = "gpt2", code_point_classes()
        elif self._pattern.name in BITS and by_vectors and WIDE:
            self._by = "o200k" if self._pattern.name == "o200k" else "cl100k"
            self._classes = code_point_bits(self._pattern.name)
        elif self._pattern.splits:
            from dask_bpe.pretokenize.tables import tables_of

            self._tables = tables_of(self._pattern)
            self._by = None if self._tables is None else "table"
        self._ready = True

    def _arguments(self) -> tuple[Any, ...]:
        if self._tables is None:
            return self._classes, self._scratch, self._words
        # Not what only the driver asks for; `inside` is written through one name and read through the other.
        return (*self._tables[:-1], self._inside, self._inside, self._lanes, self._words, self._marks)

    def _scan_cutting(self, text: Text, segments: Int64s, cutting: Cutting) -> Iterator[Batch]:
        place, first = cutting.place, 0
        cut = cutting.kernel("scan")
        while first < segments.shape[1]:
            count = cut(text, segments, place, *cutting.arguments, cutting.spans, cutting.stops)
            if count == ENLARGE or (place[5] >= 0 and self._keep_all):
                cutting = self.go_on(min(count, 0), text, segments, cutting)
                continue
            place[5] = -1
            last = int(place[0])
            yield Batch(cutting.spans, count, first, last, cutting.stops)
            first = last
        self.end()

    def _make_room(self, size: int) -> None:
        """Buffers for blocks of `size` bytes."""
        self._inside, self._marks = np.empty(size, np.uint8), np.empty(size + PADDING, np.uint8)

    def _scan_whole(self, segments: Int64s) -> Iterator[Batch]:
        for first in range(0, segments.shape[1], CAPACITY):
            part = segments[:, first : first + CAPACITY]
            full = part[1] > part[0]
            count = int(full.sum())
            self._spans[:, :count] = part[:, full]
            stops = np.zeros(segments.shape[1], np.int64)
            stops[first : first + part.shape[1]] = np.cumsum(full)
            yield Batch(self._spans, count, first, first + part.shape[1], stops)

    def _scan_regex(self, text: Text, segments: Int64s) -> Iterator[Batch]:
        stops = np.zeros(segments.shape[1], np.int64)
        count = first = 0
        for segment, (start, end) in enumerate(segments.T.tolist()):
            for span in self._pieces(text, start, end):
                if count == CAPACITY:
                    yield Batch(self._spans, count, first, segment, stops)
                    count, first = 0, segment
                self._spans[:, count] = span
                count += 1
            stops[segment] = count
        yield Batch(self._spans, count, first, segments.shape[1], stops)

    def _pieces(self, text: Text, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Bounds in bytes of the pre-tokens of one segment."""
        characters = _decode(text[start:end])
        ascii_only = len(characters) == end - start
        at = start
        for piece in by_regex.pieces(characters, self._pattern.splits):
            part = characters[piece.start : piece.stop]
            width = len(part) if ascii_only else len(part.encode("utf-8", "surrogateescape"))
            if piece.refused:
                if self._keep_all:
                    raise _unmatched(at - start, part)
                self._n_unmatched += width
            if not piece.dropped:
                yield at, at + width
            at += width


def _decode(text: Text) -> str:
    return text.tobytes().decode("utf-8", "surrogateescape")


def _unmatched(at: int, characters: str) -> InputError:
    return InputError(
        f"the pattern leaves {characters[:20]!r} at byte {at} of the text unmatched: it could not be decoded"
        " again; add an alternative that matches it"
    )
