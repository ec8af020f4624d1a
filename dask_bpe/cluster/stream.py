"""Compressed text, cut while it is read: pieces that begin and end at cuts, in bounded memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import CorruptError
from dask_bpe.io.inputs import Bad
from dask_bpe.io.inputs.compression import Compression, open_stream
from dask_bpe.pretokenize.cut import Cut, Cutter

Text = npt.NDArray[np.uint8]
_CHUNK = 1 << 20
# A cut is looked for with so much text behind it: more than what a pattern or a special token may look at, once.
_MARGIN = 64


@dataclass(frozen=True)
class Piece:
    """Text between two cuts. `start`: its position in the decompressed text."""

    text: Text
    start: int
    continues: bool
    ends_document: bool


def cut_stream(
    path: str, compression: Compression | None, make: Callable[..., Cutter], size: int
) -> Iterator[Piece | Bad]:
    """The decompressed text of a file in pieces of about `size` bytes, the last document possibly cut off.

    Parameters
    ----------
    make : makes the `Cutter` of a text, given ``read`` and ``size``. Every piece is looked at as the beginning of a
        text: what is a cut does not depend on what stands before another cut.

    Where the file is damaged, the documents before that are given, then one `Bad` for the rest. Raises InputError when
    it cannot be read.
    """
    start, starts_document = 0, True
    with contextlib.closing(_Window(path, compression)) as window:
        while True:
            cut = _next_cut(window, make, size)
            if window.damage and cut.position == len(window):
                yield from _up_to_damage(path, window, make, start, starts_document)
                return
            if cut.position:
                yield Piece(window.take(cut.position), start, not starts_document, cut.starts_document)
            start, starts_document = start + cut.position, cut.starts_document
            if window.ended and not len(window):
                return


def _next_cut(window: _Window, make: Callable[..., Cutter], size: int) -> Cut:
    """The first cut at `size` or later in the text of the window, which is filled as far as that takes."""
    cutter = make(read=window.read, size=0)
    margin = 4 * cutter.specials.longest + _MARGIN
    need = size + cutter.patience + margin
    while True:
        window.fill(need)
        cut = make(read=window.read, size=len(window)).at_or_after(size)
        if window.ended or cut.position + margin <= len(window):
            return cut
        need = 2 * len(window)


def _up_to_damage(
    path: str, window: _Window, make: Callable[..., Cutter], start: int, starts_document: bool
) -> Iterator[Piece | Bad]:
    """The whole documents at the end of a damaged text, and what is said of the rest."""
    text = window.take(len(window))
    cutter = make(read=window.read, size=0)
    _, ends, which = cutter.specials.find(text, 0, len(text))
    ends = ends[np.isin(which, list(cutter.separators))]
    whole = int(ends[-1]) if len(ends) else 0
    if whole:
        yield Piece(text[:whole], start, not starts_document, ends_document=True)
    yield Bad(path, start + whole, None, f"{window.damage}; the text before it was read")


class _Window:
    """The part of a decompressed text from the last cut on, as far as it is read."""

    def __init__(self, path: str, compression: Compression | None) -> None:
        self._stream: Any = open_stream(path, compression)
        self._buffer = bytearray()
        self.ended = False
        self.damage = ""

    def __len__(self) -> int:
        return len(self._buffer)

    def fill(self, size: int) -> None:
        """Read until there are `size` bytes, or the text ends."""
        while len(self._buffer) < size and not self.ended:
            try:
                chunk = self._stream.read(_CHUNK)
            except CorruptError as error:
                self.damage, self.ended = str(error), True
                return
            self._buffer += chunk
            self.ended = not chunk

    def read(self, start: int, stop: int) -> Text:
        """A copy of some bytes."""
        return np.frombuffer(bytes(self._buffer[start:stop]), np.uint8)

    def take(self, stop: int) -> Text:
        """The first bytes, which leave the window."""
        text = self.read(0, stop)
        del self._buffer[:stop]
        return text

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
