"""The tables of a pattern that the kernels read: compiled once a process, or found impossible, with one warning."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import PatternWarning
from dask_bpe.kernels import marks
from dask_bpe.pretokenize.automaton import DEAD, Automaton, certain_cuts, compile_node, questions
from dask_bpe.pretokenize.by_regex import joins
from dask_bpe.pretokenize.classes import partition
from dask_bpe.pretokenize.patterns import Pattern, Split
from dask_bpe.pretokenize.syntax import Unsupported, parse
from dask_bpe.pretokenize.transducer import TooLarge, Transducer, chained, make_transducer

# The behaviours under which what becomes of a match does not depend on the pieces beside it.
_LOCAL = ("matches", "isolated", "removed")


class Tables(NamedTuple):
    """See `kernels.transduce`. `drops` is whether some text may be no part of any pre-token."""

    byte_classes: npt.NDArray[np.uint8]
    classes: npt.NDArray[np.uint8]
    n_classes: int
    table: npt.NDArray[np.uint32]
    cuts: npt.NDArray[np.uint8]
    automata: npt.NDArray[np.uint16]
    splits: npt.NDArray[np.int64]
    drops: bool


@lru_cache(maxsize=64)
def tables_of(pattern: Pattern) -> Tables | None:
    """The tables of a pattern of one split or more. None if it has none: a `PatternWarning` names what it uses that
    automata don't know, and `regex` has to cut the text."""
    try:
        return _compile(pattern.splits)
    except Unsupported as reason:
        warnings.warn(
            f"the split pattern runs on the regex package, some 50 times slower, because of {reason}: {pattern.spec!r}",
            PatternWarning,
            stacklevel=2,
        )
        return None


def _compile(splits: tuple[Split, ...]) -> Tables:
    nodes = [parse(split.regex) for split in splits]
    asked = tuple(dict.fromkeys(question for node in nodes for question in questions(node)))
    known = partition(asked)
    if known is None:
        raise Unsupported("more classes of characters than tables have room for")
    automata = [compile_node(node, asked, known.members) for node in nodes]
    cuts = _certain_cuts(automata, splits)
    transducer = _transducer(automata, splits, known.narrow)
    which, kept = _merged_classes(automata, transducer, cuts)
    classes = which[known.classes]
    return Tables(
        byte_classes=np.concatenate([classes[:128], np.zeros(128, np.uint8)]),
        classes=np.append(classes, np.zeros(8, np.uint8)),  # a vector reads eight bytes of it
        n_classes=len(kept),
        table=np.empty(0, np.uint32) if transducer is None else _table(transducer, kept),
        cuts=cuts[np.ix_(kept, kept)].astype(np.uint8).ravel(),
        automata=np.concatenate([_states(automaton, kept) for automaton in automata]),
        splits=_rules(automata, splits, len(kept)),
        drops=any(_may_drop(automaton, split) for automaton, split in zip(automata, splits, strict=True)),
    )


def _joins_unmatched(split: Split) -> bool:
    return split.behavior != "matches"


def _may_drop(automaton: Automaton, split: Split) -> bool:
    return split.behavior == "removed" or (split.behavior == "matches" and not automaton.is_total)


def _certain_cuts(automata: list[Automaton], splits: tuple[Split, ...]) -> npt.NDArray[np.bool_]:
    """Where a sequence may be cut: a split always cuts there, and to those before it a cut makes no difference."""
    n = automata[0].n_classes
    cuts, open_ = np.zeros((n, n), np.bool_), np.ones((n, n), np.bool_)
    for automaton, split in zip(automata, splits, strict=True):
        if split.behavior not in _LOCAL:
            break
        here, neutral = certain_cuts(automaton, joins_unmatched=_joins_unmatched(split))
        cuts |= open_ & here
        open_ &= neutral
    return cuts


def _transducer(
    automata: list[Automaton], splits: tuple[Split, ...], narrow: npt.NDArray[np.bool_]
) -> Transducer | None:
    """The transducer of all splits; None where pieces are dropped or joined, or it would be too large."""
    found: Transducer | None = None
    for automaton, split in zip(automata, splits, strict=True):
        if split.behavior not in _LOCAL or _may_drop(automaton, split):
            return None
        try:
            follows = found is not None
            made = make_transducer(automaton, narrow, joins_unmatched=_joins_unmatched(split), follows=follows)
            if found is None:
                found = made
            elif found.only_cuts_here:
                found = chained(found, made)
            else:
                return None
        except TooLarge:
            return None
    return found


def _merged_classes(
    automata: list[Automaton], transducer: Transducer | None, cuts: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Classes that the tables treat alike are one: uint8[n_classes], the new number of each, and one of each."""
    n = len(cuts)
    columns: list[npt.NDArray[Any]] = [cuts, cuts.T]
    for automaton in automata:
        columns += [automaton.next_state[:, :n], automaton.ended[:, :n]]
    if transducer is not None:
        columns += [transducer.next_state[:, :n], transducer.marks[:, :n]]
    _, kept, which = np.unique(
        np.concatenate([column.astype(np.int32) for column in columns]), axis=1, return_index=True, return_inverse=True
    )
    return which.ravel().astype(np.uint8), kept


def _table(transducer: Transducer, kept: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    n_states, width = len(transducer.marks), len(kept) + 2
    symbols = np.append(kept, transducer.n_classes)
    rows, marks = transducer.next_state[:, symbols] * width, transducer.marks[:, symbols]
    table = np.empty((n_states, width), np.uint32)
    table[:, :-1] = rows.astype(np.uint32) << 8 | marks
    table[:, -1] = (np.arange(n_states, dtype=np.uint32) * width) << 8  # inside a character nothing happens
    return table.ravel()


def _states(automaton: Automaton, kept: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
    symbols = np.append(kept, automaton.n_classes)
    after = automaton.next_state[:, symbols]
    after = np.where(after == DEAD, marks.DEAD, after)
    states: npt.NDArray[np.uint16] = (automaton.ended[:, symbols].astype(np.int32) << 14 | after).astype(np.uint16)
    return states.ravel()


def _rules(automata: list[Automaton], splits: tuple[Split, ...], n_classes: int) -> npt.NDArray[np.int64]:
    rules = np.zeros((len(splits), 5), np.int64)
    start = 0
    for rule, automaton, split in zip(rules, automata, splits, strict=True):
        joined = sum(joins(split, bool(k & 2), bool(k & 1)) << k for k in range(4))
        dropped = {"matches": 1, "removed": 2}.get(split.behavior, 0)
        mark = marks.DROPPED | (marks.REFUSES if split.behavior == "matches" else 0)
        rule[:] = start, split.invert, joined, dropped, mark
        start += len(automaton.ended) * (n_classes + 1)
    return rules
