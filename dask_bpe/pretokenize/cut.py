"""Where blocks of a text may begin and end.

A cut is a position at which a text can be taken apart without changing a single pre-token or special
token: the end of a separator (a document starts there), or a place inside a document where the pattern
starts a pre-token whatever stands around it, and no special token is near. Where that is follows from the
automata of the pattern (`automaton.certain_cuts`): between a letter and a space, say. Patterns that `regex` has to run
and whole documents are cut at separators only. A text whose special tokens look at what stands around them is
not cut at all.

Every worker finds the cuts at both ends of its own block by reading a little around them. Whether a position is
a cut depends on the text alone, not on where the search began: whoever asks gets the same answer, and blocks
tile the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dask_bpe.pretokenize.patterns import Pattern
from dask_bpe.pretokenize.special import SpecialTokens

if TYPE_CHECKING:
    from dask_bpe.pretokenize.tables import Tables

Text = npt.NDArray[np.uint8]
# Bytes of a look around a position; later looks of the same search are twice as wide, up to the widest.
_WINDOW, _WIDEST = 1 << 16, 1 << 24


@dataclass(frozen=True)
class Cut:
    """A position in a text, and whether a document starts there."""

    position: int
    starts_document: bool


def last_safe_cut(text: Text, pattern: Pattern) -> int:
    """The last position where `text` may be cut whatever follows it, by the pattern alone; 0 if nowhere."""
    tables = _tables(pattern)
    if tables is None:
        return 0
    from dask_bpe.kernels.cut import last_certain_cut

    return max(int(last_certain_cut(text, tables.classes, tables.n_classes, tables.cuts)), 0)


def _tables(pattern: Pattern) -> Tables | None:
    """The tables that say where the pattern cuts for certain; None if it does nowhere."""
    if not pattern.splits:
        return None
    from dask_bpe.pretokenize.tables import tables_of

    tables = tables_of(pattern)
    return tables if tables is not None and tables.cuts.any() else None


@dataclass(frozen=True)
class Cutter:
    """Finds the cuts of one text.

    Parameters
    ----------
    read : ``read(start, stop)`` gives those bytes of the text, uint8[stop - start].
    size : bytes of the text.
    specials : all special tokens; one that is cut off would be text. If they are `contextual` there is no cut
        but the two ends of the text.
    separators : indices into `specials` of those that end a document.
    pattern : the split pattern; None's, which is cut nowhere inside a document, for text that is normalized.
    patience : how many bytes after a position a document start is waited for before a place inside the
        document will do.
    others : further patterns that must cut for certain wherever this one does, for a text that several encode.
    """

    read: Callable[[int, int], Text]
    size: int
    specials: SpecialTokens
    separators: frozenset[int]
    pattern: Pattern
    patience: int
    others: tuple[Pattern, ...] = ()

    def at_or_after(self, position: int) -> Cut:
        """The cut for a nominal block end: the first document start within `patience`, else the first cut."""
        if position <= 0:
            return Cut(0, True)
        if position >= self.size or self.specials.contextual:
            return Cut(self.size, True)
        document = self._document_start(position, position + self.patience)
        if document is None:
            inside = self._certain_cut(position)
            document = self._document_start(position, self.size if inside is None else inside)
            if document is None and inside is not None:
                return Cut(inside, False)
        return Cut(self.size if document is None else document, True)

    def _document_start(self, position: int, limit: int) -> int | None:
        """The end of the first separator that ends at `position` or later, but not after `limit`."""
        if not self.separators:
            return None
        start, width = self._in_step(position), _WINDOW
        while start < min(self.size, limit):
            stop = min(start + width, self.size)
            text = self.read(start, min(stop + self.specials.longest, self.size))
            last = start
            for at, end, which in zip(
                *(found.tolist() for found in self.specials.find(text, 0, len(text))), strict=True
            ):
                if start + at >= stop:
                    break
                last = start + end
                if which in self.separators and last >= position:
                    return last if last <= limit else None
            start, width = max(stop, last), min(2 * width, _WIDEST)
        return None

    def _in_step(self, position: int) -> int:
        """The last place up to `position` that no special token reaches over: looking from there on, `find`
        chooses those that it chooses in the whole text."""
        lookback = 4 * self.specials.longest
        while True:
            start = max(position - lookback, 0)
            text = self.read(start, min(position + self.specials.longest, self.size))
            free = np.flatnonzero(~self.specials.reach(text, edges=False)[: position - start + 1])
            # The first bytes may lie in one that begins before them.
            free = free[free >= (self.specials.longest if start else 0)]
            if len(free):
                return start + int(free[-1])
            if start == 0:
                return 0
            lookback *= 4

    def _certain_cut(self, position: int) -> int | None:
        """The first place at `position` or later where all patterns cut for certain and no special token is near."""
        at: int | None = position
        found: int | None = None
        while at != found and at is not None:
            found = at
            for pattern in (self.pattern, *self.others):
                at = None if at is None else self._first_cut(pattern, at)
        return at

    def _first_cut(self, pattern: Pattern, position: int) -> int | None:
        """The same for one pattern."""
        tables = _tables(pattern)
        if tables is None:
            return None
        from dask_bpe.kernels.cut import first_certain_cut

        start, width = position, _WINDOW
        while start < self.size:
            stop = min(start + width, self.size)
            # A character around a cut has up to four bytes.
            base = max(start - 4, 0)
            text = self.read(base, min(stop + 4, self.size))
            at = start - base
            while (
                at := int(first_certain_cut(text, at, stop - base, tables.classes, tables.n_classes, tables.cuts))
            ) >= 0:
                if not self._touches_special(base + at):
                    return base + at
                at += 1
            start, width = stop, min(2 * width, _WIDEST)
        return None

    def _touches_special(self, position: int) -> bool:
        """Whether a special token reaches over a position, ends or begins there."""
        longest = self.specials.longest
        start = max(position - longest, 0)
        text = self.read(start, min(position + longest, self.size))
        return bool(longest and self.specials.reach(text, edges=True)[position - start])
