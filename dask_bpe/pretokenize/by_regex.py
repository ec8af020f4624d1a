"""Cutting text with the `regex` package itself: the truth, and what runs where no automaton can be made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import regex

from dask_bpe.pretokenize.patterns import Split


class Piece(NamedTuple):
    """Characters ``start..stop`` of a text. `dropped`: no pre-token; `refused`: because nothing matched it."""

    start: int
    stop: int
    dropped: bool = False
    refused: bool = False


@lru_cache(maxsize=64)
def _compiled(expression: str) -> regex.Pattern[str]:
    return regex.compile(expression)


def pieces(text: str, splits: tuple[Split, ...]) -> Iterator[Piece]:
    """The pieces of `text` under a sequence of splits, in order; they tile it."""
    found: Iterator[Piece] = iter([Piece(0, len(text))] if text else [])
    for split in splits:
        found = _cut(text, found, split)
    return found


def _cut(text: str, wholes: Iterator[Piece], split: Split) -> Iterator[Piece]:
    for whole in wholes:
        if whole.dropped:
            yield whole
            continue
        part = text[whole.start : whole.stop]
        for start, stop, matched in joined(_segments(part, split.regex), split):
            refused = split.behavior == "matches" and not matched
            dropped = refused or (split.behavior == "removed" and matched)
            yield Piece(whole.start + start, whole.start + stop, dropped, refused)


def _segments(text: str, expression: str) -> Iterator[tuple[int, int, bool]]:
    """Matches that are not empty, and the text between them."""
    seen = 0
    for match in _compiled(expression).finditer(text):
        start, stop = match.span()
        if start == stop:
            continue
        if start > seen:
            yield seen, start, False
        yield start, stop, True
        seen = stop
    if seen < len(text):
        yield seen, len(text), False


def joins(split: Split, before: bool, after: bool) -> bool:
    """Whether a piece is joined to the piece before it, by whether they match (`Split.invert` included)."""
    return {
        "merged_with_previous": after and not before,
        "merged_with_next": before and not after,
        "contiguous": before == after,
    }.get(split.behavior, False)


def joined(segments: Iterator[tuple[int, int, bool]], split: Split) -> Iterator[tuple[int, int, bool]]:
    """Segments with those joined that the behavior joins."""
    start = stop = 0
    before = False
    for begin, end, matched in segments:
        after = matched != split.invert
        if stop and not joins(split, before, after):
            yield start, stop, before
            start = begin
        elif not stop:
            start = begin
        stop, before = end, after
    if stop:
        yield start, stop, before
