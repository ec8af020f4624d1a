"""Where blocks of a text may begin and end.

A cut is a position at which a text can be taken apart without changing a single pre-token or special
token: the end of a separator (a document starts there), or a place inside a document where the pattern
starts a pre-token whatever stands around it. For GPT-2's pattern the latter is an ASCII letter or digit, a
space, an ASCII letter; other patterns and whole documents are cut at separators only.

Every worker finds the cuts at both ends of its own block by reading a little around them. Whoever asks
for the cut at a position gets the same answer, so blocks tile the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dask_bpe.pretokenize.patterns import Pattern
from dask_bpe.pretokenize.special import SpecialTokens

Text = npt.NDArray[np.uint8]
_WINDOW = 1 << 16


@dataclass(frozen=True)
class Cut:
    """A position in a text, and whether a document starts there."""

    position: int
    starts_document: bool


def last_safe_cut(text: Text, pattern: Pattern) -> int:
    """The last position where `text` may be cut whatever follows it, by the pattern alone; 0 if nowhere."""
    if pattern.name != "gpt2":
        return 0
    from dask_bpe.kernels.special import last_certain_cut_gpt2

    return max(int(last_certain_cut_gpt2(text)), 0)


@dataclass(frozen=True)
class Cutter:
    """Finds the cuts of one text.

    Parameters
    ----------
    read : ``read(start, stop)`` gives those bytes of the text, uint8[stop - start].
    size : bytes of the text.
    specials : all special tokens; one that is cut off would be text.
    separators : indices into `specials` of those that end a document.
    pattern : the split pattern.
    patience : how many bytes after a position a document start is waited for before a place inside the
        document will do.
    """

    read: Callable[[int, int], Text]
    size: int
    specials: SpecialTokens
    separators: frozenset[int]
    pattern: Pattern
    patience: int

    def at_or_after(self, position: int) -> Cut:
        """The cut for a nominal block end: the first document start within `patience`, else the first cut."""
        if position <= 0:
            return Cut(0, True)
        if position >= self.size or not (self.separators or self.pattern.name == "gpt2"):
            return Cut(self.size, True)
        inside: int | None = None
        start = self._in_step(position)
        width = _WINDOW
        while start < self.size:
            stop = min(start + width, self.size)
            document, certain, start = self._look(start, stop, position)
            inside = certain if inside is None else inside
            if document is not None and (document <= position + self.patience or inside is None):
                return Cut(document, True)
            if document is not None and inside is not None:
                return Cut(document, True) if document < inside else Cut(inside, False)
            if inside is not None and start > position + self.patience:
                return Cut(inside, False)
            width = min(2 * width, 1 << 24)
        return Cut(self.size, True) if inside is None else Cut(inside, False)

    def _look(self, start: int, stop: int, position: int) -> tuple[int | None, int | None, int]:
        """First document start and first certain cut at or after `position` in a window, and where to go on.

        `start` lies inside no special token. The window goes on as far as a special token may reach.
        """
        last = stop == self.size
        end = self.size if last else min(stop + self.specials.longest, self.size)
        text = self.read(start, min(end + 1, self.size))
        starts, ends, index = self.specials.find(text, 0, end - start)
        if not last:
            # Those that start beyond the window belong to the next one.
            inside = starts < stop - start
            starts, ends, index = starts[inside], ends[inside], index[inside]
        document = None
        for to, which in zip(ends.tolist(), index.tolist(), strict=True):
            if which in self.separators and start + to >= position:
                document = start + to
                break
        resume = self.size if last else start + max(stop - start, int(ends[-1]) if len(ends) else 0)
        certain = self._first_certain(text, max(position - start, 1), resume - start, starts, ends)
        return document, None if certain is None else start + certain, resume

    def _first_certain(
        self, text: Text, low: int, high: int, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
    ) -> int | None:
        """First place from `low` to `high` where the pattern cuts for certain, outside the special tokens.

        A special token next to it would end the text there, which is why its first byte may not be the
        letter after the space, nor its last one the letter before.
        """
        if self.pattern.name != "gpt2":
            return None
        from dask_bpe.kernels.special import first_certain_cut_gpt2

        at = low
        for begin, end in [*zip(starts.tolist(), ends.tolist(), strict=True), (high, high)]:
            if begin > at:
                cut = int(first_certain_cut_gpt2(text, at, min(begin - 1, high) if begin < high else high))
                if cut >= 0:
                    return cut
            at = max(at, end + 1)
        return None

    def _in_step(self, position: int) -> int:
        """The last place up to `position` that no special token reaches over, whether `find` chooses it or not."""
        reach = self.specials.longest
        if reach <= 1:
            return position
        lookback = 4 * reach
        while True:
            start = max(position - lookback, 0)
            text = self.read(start, min(position + reach, self.size)).tobytes()
            for at in range(position, start + reach - 1 if start else 0, -1):
                if not self.specials.straddles(text, at - start):
                    return at
            if start == 0:
                return 0
            lookback *= 4
