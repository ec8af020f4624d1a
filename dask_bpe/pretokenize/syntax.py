"""The part of `regex`'s language that automata can do, parsed.

What matches one code point is not interpreted here: it is kept as a question, an expression that `regex` itself is
asked about every code point (`classes`), case folding and Unicode versions included. So sets are only skipped over,
and only groups, alternatives, quantifiers and assertions are understood. What else there is raises `Unsupported`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import regex


class Unsupported(Exception):
    """A construct that is left to `regex`; the message names it."""


@dataclass(frozen=True)
class Chars:
    """One code point for which `question`, matched against it alone, is true."""

    question: str


@dataclass(frozen=True)
class Ahead:
    """Nothing, if the next code point is one (or, `negative`, is none) of `chars`; None stands for the end of text."""

    chars: Chars | None
    negative: bool = False


@dataclass(frozen=True)
class Concat:
    """Items one after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """The first alternative with which the whole matches."""

    alternatives: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """`item` from `least` to `most` times (None: without limit); `mode` is "greedy", "lazy" or "possessive"."""

    item: Node
    least: int
    most: int | None
    mode: str


Node: TypeAlias = Chars | Ahead | Concat | Choice | Repeat

_QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d*)(,?)(\d*)\})([?+]?)")
_GLOBAL_FLAGS = re.compile(r"(?:\(\?(?:V0|V1|[is]+)\))*")
_SCOPED_FLAGS = re.compile(r"\?([is]*)(?:-([is]+))?:")
_NAME = re.compile(r"\?P?<[^\W\d]\w*>")
_POSIX = re.compile(r"\[:\^?\w+:\]")
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|\w)|[sSdDwWh]|[afnrtv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^\w])"
)
_IGNORES_CASE = re.compile(r"\(\?V\d\)\(\?i")
# A code point of each case.
_CASED = "aA\u01c5"
_MANY = 1000


def parse(pattern: str) -> Node:
    """The syntax of a pattern that `regex` compiles. Raises Unsupported, naming the construct."""
    return _Parser(pattern).parse()


def nullable(node: Node) -> bool:
    """Whether a node may match the empty string (assertions taken as true)."""
    match node:
        case Chars():
            return False
        case Ahead():
            return True
        case Concat(items):
            return all(map(nullable, items))
        case Choice(alternatives):
            return any(map(nullable, alternatives))
        case Repeat(item, least):
            return least == 0 or nullable(item)


def beginnings(node: Node) -> Iterator[Chars]:
    """The code points with which a match may begin."""
    match node:
        case Chars():
            yield node
        case Concat(items):
            for item in items:
                yield from beginnings(item)
                if not nullable(item):
                    break
        case Choice(alternatives):
            for alternative in alternatives:
                yield from beginnings(alternative)
        case Repeat(item):
            yield from beginnings(item)


def may_be_empty(pattern: str) -> bool:
    """Whether a pattern may match the empty string; of what is not parsed, whether it does so in an empty text."""
    try:
        return nullable(parse(pattern))
    except Unsupported:
        return regex.fullmatch(pattern, "") is not None


def _loses_by_folding(question: str) -> bool:
    """Whether fewer code points match when case is ignored."""
    folded = regex.compile(question, regex.IGNORECASE)
    return any(regex.fullmatch(question, character) and not folded.fullmatch(character) for character in _CASED)


class _Parser:
    """Recursive descent. `_ignore_case` and `_dot_all` are the flags at the place that is being read."""

    def __init__(self, pattern: str) -> None:
        self._text, self._at = pattern, 0
        self._ignore_case = self._dot_all = self._nested_sets = False

    def parse(self) -> Node:
        """The whole pattern."""
        found = _GLOBAL_FLAGS.match(self._text)
        flags = found[0] if found else ""
        self._at = len(flags)
        self._nested_sets = "V1" in flags
        self._ignore_case, self._dot_all = "i" in flags, "s" in flags
        node = self._choice()
        if self._at < len(self._text):
            raise self._unsupported("an unmatched parenthesis")
        self._check_beginnings(node)
        return node

    def _check_beginnings(self, node: Node) -> None:
        """Leave to `regex` what it looks for in a way of its own.

        Where a match may begin with something that ignores case, it looks for all beginnings as if they did; of a class
        such as ``[^\\p{Ll}]`` fewer code points are left then, and what begins with the others is passed over.
        """
        questions = {chars.question for chars in beginnings(node)}
        plain = [question for question in questions if not _IGNORES_CASE.match(question)]
        if len(plain) < len(questions) and any(map(_loses_by_folding, plain)):
            raise self._unsupported("a class without cased characters, where another beginning ignores case,")

    def _unsupported(self, what: str) -> Unsupported:
        return Unsupported(f"{what} at character {self._at}")

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _choice(self) -> Node:
        alternatives = [self._concat()]
        while self._peek("|"):
            self._at += 1
            alternatives.append(self._concat())
        return alternatives[0] if len(alternatives) == 1 else Choice(tuple(alternatives))

    def _concat(self) -> Node:
        items: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            items.append(self._quantified(self._item(items)))
        return items[0] if len(items) == 1 else Concat(tuple(items))

    def _quantified(self, item: Node) -> Node:
        found = _QUANTIFIER.match(self._text, self._at)
        if not found:
            if self._peek("{"):
                raise self._unsupported("a brace that is no quantifier")
            return item
        sign, least, comma, most, suffix = found.groups()
        if sign:
            bounds: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        elif not (least or comma):
            raise self._unsupported("a brace that is no quantifier")
        else:
            bounds = int(least or 0), (int(most) if most else None) if comma else int(least)
        if max(bounds[0], bounds[1] or 0) > _MANY:
            raise self._unsupported(f"a repeat of more than {_MANY}")
        if nullable(item) and found[0] != "?":
            raise self._unsupported("a repeat of what may be empty")
        self._at = found.end()
        return Repeat(item, *bounds, {"": "greedy", "?": "lazy", "+": "possessive"}[suffix])

    def _item(self, before: list[Node]) -> Node:
        character = self._text[self._at]
        if character == "(":
            return self._group()
        if character == "[":
            return self._one(self._set_end())
        if character == "\\":
            return self._escape()
        if character == "$":
            return self._line_end(before)
        if character == "^":
            raise self._unsupported("the anchor ^")
        if character in "*+?{":
            raise self._unsupported(f"the quantifier {character} with nothing before it")
        if character == ".":
            return self._one(self._at + 1)
        self._at += 1
        return self._chars(re.escape(character))

    def _one(self, end: int) -> Chars:
        question = self._text[self._at : end]
        self._at = end
        return self._chars(question)

    def _chars(self, question: str) -> Chars:
        if self._nested_sets and self._ignore_case:
            raise self._unsupported("case folding of version 1, in which one character may equal several,")
        flags = "i" * self._ignore_case + "s" * self._dot_all
        return Chars(f"(?V{int(self._nested_sets)})(?{flags}:{question})")

    def _escape(self) -> Node:
        if self._text[self._at : self._at + 2] in (r"\z", r"\Z"):
            self._at += 2
            return Ahead(None)
        found = _ESCAPE.match(self._text, self._at)
        if not found:
            raise self._unsupported(f"the escape {self._text[self._at : self._at + 2]}")
        return self._one(found.end())

    def _line_end(self, before: list[Node]) -> Ahead:
        """`$` also matches before a newline that ends the text: not after a run of what includes newlines, which
        would have taken that newline as well."""
        self._at += 1
        match before[-1:]:
            case [Repeat(Chars(question), _, None, "greedy" | "possessive")] if regex.fullmatch(question, "\n"):
                return Ahead(None)
        raise self._unsupported("the anchor $ after anything but a run of white space")

    def _set_end(self) -> int:
        """The end of the set that begins here. Sets nest under (?V1) only."""
        at, depth = self._at, 0
        while at < len(self._text):
            posix = _POSIX.match(self._text, at)
            if depth and posix:
                at = posix.end()
            elif self._text[at] == "[" and (self._nested_sets or not depth):
                depth += 1
                at += 2 if self._text.startswith("[^", at) else 1
                at += self._text.startswith("]", at)  # the first one stands for itself
            elif self._text[at] == "]":
                depth -= 1
                at += 1
                if not depth:
                    return at
            else:
                at += 2 if self._text[at] == "\\" else 1
        raise self._unsupported("a set without an end")

    def _group(self) -> Node:
        begin = self._at
        self._at += 1
        if self._peek("?=") or self._peek("?!"):
            return self._look_ahead()
        outer = self._ignore_case, self._dot_all
        name, flags = _NAME.match(self._text, self._at), _SCOPED_FLAGS.match(self._text, self._at)
        if name:
            self._at = name.end()
        elif flags:
            self._at = flags.end()
            on, off = flags[1], flags[2] or ""
            self._ignore_case = (self._ignore_case or "i" in on) and "i" not in off
            self._dot_all = (self._dot_all or "s" in on) and "s" not in off
        elif self._peek("?"):
            self._at = begin
            raise self._unsupported(f"the group {self._text[begin : begin + 4]}")
        node = self._choice()
        self._close()
        self._ignore_case, self._dot_all = outer
        return node

    def _look_ahead(self) -> Ahead:
        negative = self._peek("?!")
        self._at += 2
        inner = self._choice()
        if not isinstance(inner, Chars):
            raise self._unsupported("a look-ahead at anything but one code point")
        self._close()
        return Ahead(inner, negative)

    def _close(self) -> None:
        if not self._peek(")"):
            raise self._unsupported("a group without an end")
        self._at += 1
