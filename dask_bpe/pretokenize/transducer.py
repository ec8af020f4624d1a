"""From automata to one table that says, character by character, where pre-tokens begin.

An automaton restarts at every pre-token, and where the longest match is shorter than what was read, it goes back.
The transducer made of it never does: it runs over the text once and marks the cuts at, or up to three bytes before,
the character at hand. Its states stand for what is not settled yet:

- the state of the automaton in the pre-token at hand,
- the few characters since its last match (``"  x"``: at the x, the pre-token is known to have ended before the
  second space, and that space to begin the next one),
- older pre-tokens that might still grow although the text after their last match is already being cut: ``"\\n    x"``
  is cut after the newline in the hope that no other newline follows (`\\s*[\\r\\n]+` would take it all),
- in a split whose unmatched characters stay together: whether the last cut is one.

What cannot be known within these bounds, or turns out otherwise than hoped, is an entry marked `AGAIN`: the text
around it is cut by the automata themselves. Such places are rare; a pattern full of them costs time, nothing else.

A sequence of splits becomes one transducer too: where the first one cuts, the second one sees the end of its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.kernels.marks import AGAIN
from dask_bpe.pretokenize.automaton import DEAD, MATCHED, NOTHING, UNMATCHED, Automaton

# A mark: bit k says that a pre-token begins k bytes before the character, k up to this.
_FARTHEST = 3
# Characters since the last match that a state knows; with more, the pre-token is taken to have ended there.
_KNOWN = 2
# Older pre-tokens that a state follows at most.
_OLDER = 2
_MOST_STATES = 500


class TooLarge(Exception):
    """The transducer would have too many states."""


class _Again(Exception):
    """This entry is left to the automata."""


@dataclass(frozen=True)
class Transducer:
    """A table of states. State 0 is where a text begins, and only there.

    Attributes
    ----------
    next_state : int32[n_states, n_symbols]
    marks : uint8[n_states, n_symbols], the cuts that the symbol settles; the beginning of the text is one.
    n_classes : symbols from 0 on are classes; ``n_classes`` is the end of the text. If there are more, then
        ``n_classes + 1 + c`` is a character of class c before which the split before this one has cut.
    """

    next_state: npt.NDArray[np.int32]
    marks: npt.NDArray[np.uint8]
    n_classes: int

    @property
    def only_cuts_here(self) -> bool:
        """Whether every cut is marked at its own character, so that another transducer can follow."""
        return bool((self.marks <= 1).all() and (self.marks[:, self.n_classes] == 0).all())


class _State(NamedTuple):
    """See the head of the module; `known` holds the classes since the last match or unmatched character, whose
    kind is `ended`; `open` holds those since a cut that falls away if the pre-token at hand is not matched."""

    at: int = 0
    ended: int = NOTHING
    known: tuple[int, ...] = ()
    older: tuple[int, ...] = ()
    open: tuple[int, ...] | None = None


_FRESH = _State()


class _Reading:
    """One step of the transducer: reads a symbol, collects marks.

    Distances count characters back from that symbol, which is at 0; as everything that is read again is ASCII, or
    the step is given up, they are bytes too.
    """

    def __init__(self, automaton: Automaton, narrow: list[bool], joins_unmatched: bool) -> None:
        self._automaton, self._narrow, self._joins_unmatched = automaton, narrow, joins_unmatched
        self.marks = 0

    def read(self, state: _State, symbols: tuple[int, ...], distance: int) -> _State:
        """The state after `symbols`, the last of which is at `distance`."""
        for place, symbol in enumerate(symbols, 1):
            state = self._read_one(state, symbol, distance + len(symbols) - place)
        return state

    def _read_one(self, state: _State, symbol: int, distance: int) -> _State:
        table = self._automaton
        older = self._follow(state.older, symbol)
        ended, known = state.ended, state.known
        if table.ended[state.at, symbol]:
            ended, known = int(table.ended[state.at, symbol]), ()
        after = int(table.next_state[state.at, symbol])
        if after == DEAD:
            fresh = self.read(self._end(ended, known, state.open, distance), (*known, symbol), distance)
            return self._with_older(fresh, older)
        if table.certain[after]:
            ended = NOTHING  # a later match is certain, so what ended before does not count
        known = (*known, symbol) if ended else ()
        opened = None if state.open is None else (*state.open, symbol)
        if len(known) > _KNOWN:
            fresh = self.read(self._end(ended, known, opened, distance - 1), known, distance)
            return self._with_older(fresh, (after, *older))
        return self._settle(_State(after, ended, known, older, opened), distance)

    def _follow(self, older: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        """The older pre-tokens that may still grow; if one does, what was taken for settled is not."""
        if any(self._automaton.ended[at, symbol] for at in older):
            raise _Again
        after = (int(self._automaton.next_state[at, symbol]) for at in older)
        return tuple(at for at in after if at != DEAD)

    def _with_older(self, state: _State, older: tuple[int, ...]) -> _State:
        together = tuple(dict.fromkeys(state.older + older))
        if len(together) > _OLDER:
            raise _Again
        return state._replace(older=together)

    def _end(self, ended: int, known: tuple[int, ...], opened: tuple[int, ...] | None, ahead: int) -> _State:
        """End the pre-token at hand before the characters `known`; the character after those is at distance `ahead`.
        Returns the state in which the next one begins."""
        if ended == UNMATCHED and self._joins_unmatched:
            self._check(known, ahead)
            return _FRESH._replace(open=())
        if opened is not None:
            self._cut(opened, ahead)
        self._cut(known, ahead)
        return _FRESH

    def _settle(self, state: _State, distance: int) -> _State:
        """Decide on an open cut as soon as it is certain whether the pre-token after it is matched."""
        if state.open is None:
            return state
        if self._automaton.unmatched[state.at]:
            return state._replace(open=None)
        if state.ended == MATCHED or self._automaton.certain[state.at]:
            self._cut(state.open, distance - 1)
            return state._replace(open=None)
        if len(state.open) > _FARTHEST:
            raise _Again
        return state

    def _cut(self, since: tuple[int, ...], ahead: int) -> None:
        """Mark the place before the characters `since`; the character after those is at distance `ahead`."""
        self._check(since, ahead)
        self.marks |= 1 << (ahead + len(since))

    def _check(self, since: tuple[int, ...], ahead: int) -> None:
        before = since if ahead >= 0 else since[:-1]
        if ahead + len(since) > _FARTHEST or not all(self._narrow[symbol] for symbol in before):
            raise _Again

    def finish(self, state: _State) -> None:
        """Read the end of the text."""
        table, end = self._automaton, self._automaton.n_classes
        self._follow(state.older, end)
        ended, known = state.ended, state.known
        if table.ended[state.at, end]:
            ended, known = int(table.ended[state.at, end]), ()
        if known:
            self.finish(self.read(self._end(ended, known, state.open, 0), known, 1))
        elif ended == MATCHED and state.open is not None:
            self._cut(state.open, 0)


def make_transducer(
    automaton: Automaton, narrow: npt.NDArray[np.bool_], *, joins_unmatched: bool, follows: bool
) -> Transducer:
    """The transducer of one split.

    Parameters
    ----------
    narrow : bool[n_classes], the classes whose characters are one byte long.
    joins_unmatched : whether unmatched characters that follow each other are one piece.
    follows : whether there is a split before it, whose cuts are symbols too.

    Raises
    ------
    TooLarge
    """
    n_classes = automaton.n_classes
    n_symbols = 2 * n_classes + 1 if follows else n_classes + 1
    is_narrow = narrow.tolist()
    begin = _State(at=DEAD)
    numbers = {begin: 0}
    rows: list[list[tuple[int, int]]] = []
    for state in (todo := [begin]):
        row = []
        for symbol in range(n_symbols):
            reading = _Reading(automaton, is_narrow, joins_unmatched)
            after = _step(reading, state, symbol, n_classes)
            if after is None:
                row.append((0, AGAIN))
                continue
            if after not in numbers:
                numbers[after] = len(todo)
                todo.append(after)
                if len(todo) > _MOST_STATES:
                    raise TooLarge
            row.append((numbers[after], reading.marks))
        rows.append(row)
    table = np.array(rows, np.int32)
    return minimized(Transducer(table[:, :, 0], table[:, :, 1].astype(np.uint8), n_classes))


def _step(reading: _Reading, state: _State, symbol: int, n_classes: int) -> _State | None:
    begins = state.at == DEAD
    try:
        if symbol != n_classes and not begins and symbol < n_classes:
            return reading.read(state, (symbol,), 0)
        if not begins:
            reading.finish(state)
        if symbol == n_classes:
            return _State(at=DEAD)
        reading.marks |= 1
        return reading.read(_FRESH, (symbol % (n_classes + 1),), 0)
    except _Again:
        return None


def minimized(transducer: Transducer) -> Transducer:
    """The same with as few states as possible (Moore): states that no text tells apart are one."""
    next_state, marks = transducer.next_state, transducer.marks
    which = np.zeros(len(marks), np.int64)
    which[0] = 1  # where a text begins stays apart: `chained` must know it
    n_kinds = 2
    while True:
        rows = np.concatenate([which[:, None], marks, which[next_state]], axis=1)
        _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
        if len(first) == n_kinds:
            break
        n_kinds = len(first)
    # State 0 stays the first.
    order = np.argsort(first, kind="stable")
    rank = np.argsort(order, kind="stable")
    return Transducer(rank[which][next_state[first[order]]].astype(np.int32), marks[first[order]], transducer.n_classes)


def chained(first: Transducer, second: Transducer) -> Transducer:
    """The transducer of two splits, one after the other; the first one `only_cuts_here`.

    Raises
    ------
    TooLarge
    """
    n_classes, n_symbols = first.n_classes, first.next_state.shape[1]
    numbers = {(0, 0): 0}
    rows: list[list[tuple[int, int]]] = []
    for at, then in (todo := [(0, 0)]):
        row = []
        for symbol in range(n_symbols):
            cut = at and first.marks[at, symbol] & 1
            seen = symbol + n_classes + 1 if cut and symbol < n_classes else symbol
            marks = int(second.marks[then, seen])
            after = (int(first.next_state[at, symbol]), int(second.next_state[then, seen]))
            if marks & AGAIN or symbol == n_classes:
                after = (0, 0)
            if after not in numbers:
                numbers[after] = len(todo)
                todo.append(after)
                if len(todo) > _MOST_STATES:
                    raise TooLarge
            row.append((numbers[after], marks))
        rows.append(row)
    table = np.array(rows, np.int32)
    return minimized(Transducer(table[:, :, 0], table[:, :, 1].astype(np.uint8), n_classes))
