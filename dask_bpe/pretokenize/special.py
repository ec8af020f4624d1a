"""Special tokens in text: the leftmost first, the longest of those that start at one place.

Some look at the text around them; what they do then is what Hugging Face's `AddedToken` does:

    lstrip, rstrip   take the white space before, after them with them
    single_word      are text where a character of a word stands beside them
    normalized       are looked for in what the others leave
    ordinary         are part of the text: not left out by ``decode(..., skip_special_tokens=True)``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import AnyStr

import numpy as np
import numpy.typing as npt
import regex

from dask_bpe.errors import ParameterError
from dask_bpe.ragged import Ragged

Int64s = npt.NDArray[np.int64]

RULES = ("lstrip", "rstrip", "single_word", "normalized", "ordinary")
_LOOKING = frozenset(("lstrip", "rstrip", "single_word"))
# \w and \s of Hugging Face's regular expressions are those of this package, but for the age of their Unicode.
_WORD = regex.compile(r"\w")
_SPACES = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


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
    def contextual(self) -> bool:
        """Whether a special token may depend on text that it is not: such text cannot be cut between documents' ends.

        It may by its rules, and where a "normalized" one and another one can overlap.
        """
        if any(rules & _LOOKING for rules in self.rules.values()):
            return True
        first, second = self._passes
        return any(overlap(self.encoded[i], self.encoded[k]) for i in first for k in second)

    @cached_property
    def _passes(self) -> tuple[list[int], list[int]]:
        """Which are looked for first, and which in what those leave."""
        late = ["normalized" in self.rules.get(token, ()) for token in self.tokens]
        return [i for i, last in enumerate(late) if not last], [i for i, last in enumerate(late) if last]

    @cached_property
    def _all(self) -> _Matcher:
        return _Matcher(self.encoded, list(range(len(self.tokens))))

    @cached_property
    def _matchers(self) -> list[_Matcher]:
        """One for each pass that there is."""
        return [_Matcher(self.encoded, indices) for indices in self._passes if indices]

    @cached_property
    def _looking(self) -> list[frozenset[str]]:
        return [self.rules.get(token, frozenset()) & _LOOKING for token in self.tokens]

    def find(self, text: npt.NDArray[np.uint8], start: int, end: int) -> tuple[Int64s, Int64s, Int64s]:
        """Starts, ends and indices, int64[n] each, of the special tokens in ``text[start:end]``.

        White space that a token takes with it counts as part of it.
        """
        if not self.tokens:
            empty = np.empty(0, np.int64)
            return empty, empty, empty
        if not self.contextual:
            return self._all.find(text, start, end)
        found: list[tuple[int, int, int]] = []
        for matcher in self._matchers:
            gaps = _gaps(found, start, end)
            more = [match for gap in gaps for match in self._find_by_rules(text, *gap, matcher)]
            found = sorted(found + more)
        starts, ends, index = np.array(found, np.int64).reshape(-1, 3).T
        return starts, ends, index

    def _find_by_rules(
        self, text: npt.NDArray[np.uint8], start: int, end: int, matcher: _Matcher
    ) -> list[tuple[int, int, int]]:
        """What a pass finds in a section of text: (start, end, index)."""
        found: list[tuple[int, int, int]] = []
        # Where the last one ends; white space from `blank` to `solid` has been seen.
        done, blank, solid = start, end, start
        for begin, stop, index in zip(*(part.tolist() for part in matcher.find(text, start, end)), strict=True):
            rules = self._looking[index]
            if "single_word" in rules and _beside_word(text, start, begin, stop, end):
                continue
            if "lstrip" in rules:
                begin = max(begin - _blank_before(text, min(done, begin), begin), done)
            if "rstrip" in rules:
                if not blank <= stop <= solid:
                    blank, solid = stop, stop + _blank_after(text, stop, end)
                stop = solid
            # White space that the one before took may be a token too: then it is that.
            if found and found[-1][1] > begin:
                found[-1] = (found[-1][0], begin, found[-1][2])
            found.append((begin, max(begin, stop), index))
            done = stop
        return found

    def reach(self, text: npt.NDArray[np.uint8], *, edges: bool) -> npt.NDArray[np.bool_]:
        """Which of the n + 1 places between the bytes of `text` lie within an occurrence, chosen by `find` or not.

        With `edges`, the two ends of an occurrence count too.
        """
        change = np.zeros(len(text) + 2, np.int64)
        data = text.tobytes()
        for token in self.encoded:
            at = data.find(token)
            while at >= 0:
                change[at + (0 if edges else 1)] += 1
                change[at + len(token) + (1 if edges else 0)] -= 1
                at = data.find(token, at + 1)
        return np.cumsum(change[:-1]) > 0


class _Matcher:
    """Finds some of the special tokens as they stand."""

    def __init__(self, encoded: Sequence[bytes], indices: list[int]) -> None:
        order = sorted(indices, key=lambda i: encoded[i])
        self._tokens = Ragged.from_list(encoded[i] for i in order)
        self._first_bytes = np.unique(np.array([encoded[i][0] for i in order], np.uint8))
        self._order = np.array(order, np.int64)

    def find(self, text: npt.NDArray[np.uint8], start: int, end: int) -> tuple[Int64s, Int64s, Int64s]:
        """As `SpecialTokens.find`."""
        from dask_bpe.kernels.special import find_specials

        cursor = np.array([start], np.int64)
        scratch = np.empty(64, np.uint8)
        parts = []
        capacity = 64
        while cursor[0] < end:
            found = np.empty((3, capacity), np.int64)
            n = find_specials(
                text, end, cursor, self._first_bytes, self._tokens.values, self._tokens.offsets, scratch, found
            )
            parts.append(found[:, :n])
            capacity = min(2 * capacity, 65536)
        starts, ends, index = np.concatenate(parts, axis=1) if parts else np.empty((3, 0), np.int64)
        return starts, ends, self._order[index]


def overlap(one: AnyStr, other: AnyStr) -> bool:
    """Whether occurrences of the two can share characters of a text."""
    if one in other or other in one:
        return True
    shorter = min(len(one), len(other))
    return any(one.endswith(other[:n]) or other.endswith(one[:n]) for n in range(1, shorter))


def _gaps(found: list[tuple[int, int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """What lies before, between and after the tokens found, where there is anything."""
    begins = [start, *(stop for _, stop, _ in found)]
    stops = [*(begin for begin, _, _ in found), end]
    return [(begin, stop) for begin, stop in zip(begins, stops, strict=True) if begin < stop]


def _characters(text: npt.NDArray[np.uint8], start: int, end: int) -> str:
    return text[start:end].tobytes().decode("utf-8", "surrogateescape")


def _beside_word(text: npt.NDArray[np.uint8], start: int, begin: int, stop: int, end: int) -> bool:
    """Whether a character of a word ends at `begin` or begins at `stop`, within ``text[start:end]``."""
    before = _characters(text, max(start, begin - 4), begin)[-1:]
    after = _characters(text, stop, min(end, stop + 4))[:1]
    return bool(_WORD.match(before) or _WORD.match(after))


def _blank_before(text: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Bytes of white space at the end of ``text[start:end]``."""
    characters = _characters(text, start, end)
    return len(characters[len(characters.rstrip(_SPACES)) :].encode())


def _blank_after(text: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Bytes of white space at the beginning of ``text[start:end]``."""
    width = 64
    while True:
        stop = min(start + width, end)
        characters = _characters(text, start, stop)
        blank = len(characters[: len(characters) - len(characters.lstrip(_SPACES))].encode())
        # A character cut by the window is no white space, and it is at most four bytes.
        if stop == end or blank < width - 4:
            return blank
        width *= 4


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
