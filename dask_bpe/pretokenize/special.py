"""Special tokens in text: the leftmost first, the longest of those that start at one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError
from dask_bpe.ragged import Ragged

Int64s = npt.NDArray[np.int64]

RULES = ("lstrip", "rstrip", "single_word", "normalized", "ordinary")


class SpecialTokens:
    """The special tokens of a vocabulary.

    Parameters
    ----------
    tokens : their texts; ``index`` in what `find` returns counts in this order.
    rules : of some of them, which of `RULES` they follow.

    Raises
    ------
    ParameterError
        When one is empty, not encodable as UTF-8, or given twice; when a rule does not exist, or is one of a text
        that is not among them.
    """

    def __init__(self, tokens: Sequence[str], rules: Mapping[str, Iterable[str]] | None = None) -> None:
        if isinstance(tokens, str):
            raise ParameterError(f"special_tokens is the text {tokens!r}, not a list of texts: give [{tokens!r}]")
        try:
            self.tokens = tuple(tokens)
        except TypeError:
            raise ParameterError(f"special_tokens is {tokens!r}: a list of texts was expected") from None
        for position, token in enumerate(self.tokens):
            if not isinstance(token, str):
                raise ParameterError(f"special token {position} is {token!r}, not a text")
            if not token:
                raise ParameterError(f"special token {position} is empty: leave it out")
            if token in self.tokens[:position]:
                raise ParameterError(f"special token {token!r} is given twice: leave one out")
        try:
            self.encoded = tuple(token.encode() for token in self.tokens)
        except UnicodeEncodeError as error:
            raise ParameterError(f"special token {error.object!r} holds a lone surrogate: no UTF-8") from error
        self.rules = _checked_rules(self.tokens, {} if rules is None else rules)

    @property
    def longest(self) -> int:
        """Bytes of the longest one, 0 without any."""
        return max(map(len, self.encoded), default=0)

    @cached_property
    def _kernel_arguments(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], Int64s, Int64s]:
        order = sorted(range(len(self.tokens)), key=lambda i: -len(self.encoded[i]))
        ragged = Ragged.from_list(self.encoded[i] for i in order)
        first_bytes = np.unique(np.array([token[0] for token in self.encoded], np.uint8))
        return first_bytes, ragged.values, ragged.offsets, np.array(order, np.int64)

    def find(self, text: npt.NDArray[np.uint8], start: int, end: int) -> tuple[Int64s, Int64s, Int64s]:
        """Starts, ends and indices, int64[n] each, of the special tokens in ``text[start:end]``."""
        if not self.tokens:
            empty = np.empty(0, np.int64)
            return empty, empty, empty
        from dask_bpe.kernels.special import find_specials

        first_bytes, values, offsets, order = self._kernel_arguments
        cursor = np.array([start], np.int64)
        scratch = np.empty(64, np.uint8)
        parts = []
        capacity = 64
        while cursor[0] < end:
            found = np.empty((3, capacity), np.int64)
            n = find_specials(text, end, cursor, first_bytes, values, offsets, scratch, found)
            parts.append(found[:, :n])
            capacity = min(2 * capacity, 65536)
        starts, ends, index = np.concatenate(parts, axis=1) if parts else np.empty((3, 0), np.int64)
        return starts, ends, order[index]

    def reach(self, text: npt.NDArray[np.uint8], *, edges: bool) -> npt.NDArray[np.bool_]:
        """Which of the n + 1 places between the bytes of `text` lie within an occurrence, chosen by `find` or not.

        With `edges`, the two ends of an occurrence count too.
        """
        change = np.zeros(len(text) + 2, np.int64)
        for token in self.encoded:
            n = len(text) - len(token) + 1
            if n > 0:
                found = np.ones(n, np.bool_)
                for offset, byte in enumerate(token):
                    found &= text[offset : offset + n] == byte
                at = np.flatnonzero(found)
                change[at + (0 if edges else 1)] += 1
                change[at + len(token) + (1 if edges else 0)] -= 1
        return np.cumsum(change[:-1]) > 0


def _checked_rules(tokens: tuple[str, ...], rules: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """The rules of those tokens that have any."""
    if not isinstance(rules, Mapping):
        raise ParameterError(f"the rules of special tokens are {rules!r}: a mapping of text to rules was expected")
    checked = {}
    for text, given in rules.items():
        if text not in tokens:
            raise ParameterError(
                f"there are rules for {text!r}, which is not a special token: add it or leave them out"
            )
        try:
            names = frozenset([given] if isinstance(given, str) else given)
        except TypeError:
            raise ParameterError(f"the rules of special token {text!r} are {given!r}: a set was expected") from None
        unknown = next((name for name in names if name not in RULES), None)
        if unknown is not None:
            raise ParameterError(f"unknown rule {unknown!r} of special token {text!r}: known are {', '.join(RULES)}")
        if names:
            checked[text] = names
    return checked
