"""From a split's regular expression to tables of states: what a backtracking engine finds, without backtracking.

A backtracking engine tries alternatives in their order and takes the first with which the whole matches. The same
match comes from running all alternatives side by side, as an ordered list of places in the pattern (threads): each
character moves every thread or ends it, a thread that has matched ends all those after it, and the match is the last
that happened when no thread is left (R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009; the
lists are the states of a deterministic automaton as in RE2). An assertion about the next character is decided when
that character is read: so a match is known one character after its end.

Where a pattern matches nothing, `regex` goes on at the next character. Here that is a last alternative of the
pattern: any one character, which is then said to be unmatched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dask_bpe.pretokenize.syntax import Ahead, Chars, Choice, Concat, Node, Repeat, Unsupported

# What has ended at a place: nothing, a match, an unmatched character.
NOTHING, MATCHED, UNMATCHED = 0, 1, 2
DEAD = -1
_MOST_STATES = 500


def questions(node: Node) -> Iterator[str]:
    """The questions about code points in a pattern."""
    match node:
        case Chars(question) | Ahead(Chars(question)):
            yield question
        case Concat(items) | Choice(items):
            for item in items:
                yield from questions(item)
        case Repeat(item):
            yield from questions(item)


@dataclass(frozen=True)
class Automaton:
    """The states of one split. State 0 is where a pre-token begins.

    Attributes
    ----------
    next_state : int32[n_states, n_classes + 1], the state after a character of a class, DEAD for none. The last
        column is the end of the text.
    ended : uint8[n_states, n_classes + 1], what has ended before that character: NOTHING, MATCHED or UNMATCHED, unless
        a later match comes; NOTHING also where one is certain to come.
    unmatched : bool[n_states], no thread is left but that of an unmatched character.
    certain : bool[n_states], whatever comes, there will be a match.
    """

    next_state: npt.NDArray[np.int32]
    ended: npt.NDArray[np.uint8]
    unmatched: npt.NDArray[np.bool_]
    certain: npt.NDArray[np.bool_]

    @property
    def n_classes(self) -> int:
        """How many classes of code points there are."""
        return len(self.next_state[0]) - 1

    @property
    def is_total(self) -> bool:
        """Whether no character of any text is unmatched."""
        return not (self.ended == UNMATCHED).any()


def compile_node(node: Node, asked: Sequence[str], members: npt.NDArray[np.bool_]) -> Automaton:
    """The automaton of a pattern. members : bool[n_asked, n_classes], the answers to the questions.

    Raises
    ------
    Unsupported
        When it has a possessive group that is not its end, or too many states.
    """
    threads = _Threads(asked, members)
    matched = threads.add(("match", MATCHED))
    start = threads.begin_with([threads.build(node, matched, tail=True), threads.any_character()])
    numbers: dict[tuple[int, ...], int] = {(start,): 0}
    rows: list[list[tuple[int, int]]] = []
    n_symbols = members.shape[1] + 1
    todo: list[tuple[int, ...]] = [(start,)]
    for state in todo:
        row = []
        for symbol in range(n_symbols):
            ended, after = threads.move(state, symbol)
            if after and after not in numbers:
                numbers[after] = len(todo)
                todo.append(after)
                if len(todo) > _MOST_STATES:
                    raise Unsupported(f"a pattern of more than {_MOST_STATES} states")
            row.append((numbers[after] if after else DEAD, ended))
        rows.append(row)
    table = np.array(rows, np.int32)
    lonely = np.array([threads.is_unmatched(state) for state in todo])
    next_state: npt.NDArray[np.int32] = table[:, :, 0]
    ended_before: npt.NDArray[np.uint8] = table[:, :, 1].astype(np.uint8)
    certain = _certain(next_state, ended_before)
    ended_before[(next_state != DEAD) & certain[next_state]] = NOTHING
    return Automaton(next_state, ended_before, lonely, certain)


def _certain(next_state: npt.NDArray[np.int32], ended: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """The states that reach a match on every way: the greatest fixed point."""
    certain = np.ones(len(next_state), np.bool_)
    while True:
        still = ((ended == MATCHED) | ((next_state != DEAD) & certain[next_state])).all(axis=1)
        if (still == certain).all():
            return certain
        certain = still


def certain_cuts(automaton: Automaton, *, joins_unmatched: bool) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The pairs of classes between which a text may always be cut, and those where a cut makes no difference.

    Whatever the text, some pre-token holds the character before the place; the automaton is then in one of the
    states that this character leads to. If from none of these a match is left with the character after it, the
    pre-token ends here. A cut text ends here; so what has ended must be the same at the end of a text.

    Returns
    -------
    cuts : bool[n_classes, n_classes], by the class before and the class after.
    neutral : the same for pairs of unmatched characters, which stay unmatched if the text is cut between them: then
        a split that follows may cut there.
    """
    next_state, ended, n = automaton.next_state, automaton.ended, automaton.n_classes
    hopeful = np.zeros(len(next_state), np.bool_)
    while True:
        more = ((ended != NOTHING) | ((next_state != DEAD) & hopeful[next_state])).any(axis=1)
        if (more == hopeful).all():
            break
        hopeful = more
    after = next_state[:, :n]
    over = (after == DEAD) | ~hopeful[after]
    same = ended[:, :n] == ended[:, n:]
    begun = after[0]
    joined = (ended[:, :n] == UNMATCHED) & joins_unmatched & ~automaton.certain[begun]
    lonely = automaton.unmatched[:, None] & automaton.unmatched[begun] & (ended[:, :n] == UNMATCHED)
    cuts, neutral = np.ones((n, n), np.bool_), np.ones((n, n), np.bool_)
    for before in range(n):
        reached = np.unique(next_state[:, before])
        reached = reached[reached != DEAD]
        cuts[before] = (over & same & ~joined)[reached].all(axis=0)
        neutral[before] = (over & same & lonely)[reached].all(axis=0)
    return cuts, neutral


class _Threads:
    """The places of a pattern, each one of

    ("chars", question, place after)           one code point
    ("choice", places)                         go on at all of them, the first ones first
    ("ahead", question or -1, negative, place) go on if the next code point is in question; -1: the end
    ("match", what)                            the end of the pattern
    """

    def __init__(self, asked: Sequence[str], members: npt.NDArray[np.bool_]) -> None:
        self._index = {question: index for index, question in enumerate(asked)}
        self._members = members.tolist()
        self._end = members.shape[1]
        self._places: list[tuple[str, ...] | tuple[object, ...]] = []
        self._start = -1
        self._unmatched = self.add(("match", UNMATCHED))

    def add(self, place: tuple[object, ...]) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def add_choice(self, places: Sequence[int]) -> int:
        return self.add(("choice", tuple(places)))

    def begin_with(self, places: Sequence[int]) -> int:
        self._start = self.add_choice(places)
        return self._start

    def any_character(self) -> int:
        return self.add(("any", self._unmatched))

    def is_unmatched(self, state: tuple[int, ...]) -> bool:
        return state == (self._unmatched,)

    def build(self, node: Node, after: int, *, tail: bool = False) -> int:
        """The place where `node` begins, if the pattern goes on at `after`; `tail`: if nothing follows."""
        match node:
            case Chars(question):
                return self.add(("chars", self._index[question], after))
            case Ahead(chars, negative):
                return self.add(("ahead", -1 if chars is None else self._index[chars.question], negative, after))
            case Choice(alternatives):
                return self.add_choice([self.build(item, after, tail=tail) for item in alternatives])
            case Concat(items):
                for item in reversed(items):
                    after = self.build(item, after, tail=tail)
                    tail = False
                return after
            case Repeat():
                return self._repeat(node, after, tail)

    def _repeat(self, node: Repeat, after: int, tail: bool) -> int:
        leave = after
        if node.mode == "possessive":
            if isinstance(node.item, Chars):
                # It stops short of its limit only where the next character is not one of its own.
                leave = self.add(("ahead", self._index[node.item.question], True, after))
            elif not tail:
                raise Unsupported("a possessive group with something after it")
        if node.most is None:
            begin = self.add(())
            again = self.build(node.item, begin)
            self._places[begin] = ("choice", (leave, again) if node.mode == "lazy" else (again, leave))
        else:
            begin = after
            for _ in range(node.most - node.least):
                again = self.build(node.item, begin)
                begin = self.add_choice((leave, again) if node.mode == "lazy" else (again, leave))
        for _ in range(node.least):
            begin = self.build(node.item, begin)
        return begin

    def move(self, state: tuple[int, ...], symbol: int) -> tuple[int, tuple[int, ...]]:
        """What has ended before a character of class `symbol` (the last one: the end), and the threads after it."""
        after: dict[int, None] = {}
        seen: set[int] = set()
        begins = state == (self._start,)  # an empty match is none
        stack = list(reversed(state))
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            match self._places[number]:
                case ("chars", int(question), int(target)):
                    if symbol != self._end and self._members[question][symbol]:
                        after.setdefault(target)
                case ("any", int(target)):
                    if symbol != self._end:
                        after.setdefault(target)
                case ("choice", tuple(targets)):
                    stack.extend(reversed(targets))
                case ("ahead", int(question), bool(negative), int(target)):
                    inside = symbol == self._end if question < 0 else self._is_in(question, symbol)
                    if inside != negative:
                        stack.append(target)
                case ("match", int(what)) if not begins:
                    return what, tuple(after)
        return NOTHING, tuple(after)

    def _is_in(self, question: int, symbol: int) -> bool:
        return symbol != self._end and bool(self._members[question][symbol])
