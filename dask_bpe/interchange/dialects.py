"""Split patterns of other libraries in the words of the `regex` package, and back.

Hugging Face runs Oniguruma, tiktoken runs Rust's ``regex`` and ``fancy-regex``. What all of them understand
alike passes as it is, a few constructs are put in other words, and the rest is refused: a pattern that means
something else would give other ids in silence.

    regex    Oniguruma   Rust
    \\Z       \\z          \\z, $      the end of the text
    ^, \\A    \\A          ^, \\A      its start; in Oniguruma ^ and $ are those of every line
    \\w, \\b   refused     \\w, \\b    Oniguruma counts U+00B2 to the words and U+200D not
    {1,3}+   refused     {1,3}+     possessive; in Oniguruma a repetition of the repetition

All of them take classes such as ``\\p{L}`` from the Unicode version that they come with: characters that a
library does not know yet are of no class to it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from dask_bpe.errors import VocabularyError
from dask_bpe.pretokenize import PATTERNS, PatternSpec, Split, get_pattern

Dialect = Literal["regex", "oniguruma", "rust"]

_LIBRARIES = {
    "regex": "the regex package",
    "oniguruma": "Hugging Face's engine, Oniguruma,",
    "rust": "tiktoken's engine, fancy-regex,",
}

# For libraries that cannot do without: all of a text is one pre-token.
WHOLE_TEXT = r"[\s\S]+"
# The same cuts in other words: the name of the pattern and how libraries write it.
_GPT2_OF_HUGGINGFACE = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_GPT2_OF_OPENAI = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_GPT2_OF_TIKTOKEN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K = PATTERNS["cl100k"][0].regex
# Nothing follows the digits, so that they are never given back: possessive or not, they are the same.
_CL100K_OF_ONIGURUMA = _CL100K.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}")
_SYNONYMS = {
    _GPT2_OF_HUGGINGFACE: "gpt2",
    _GPT2_OF_OPENAI: "gpt2",
    _GPT2_OF_TIKTOKEN: "gpt2",
    _CL100K_OF_ONIGURUMA: "cl100k",
}

_TOKEN = re.compile(
    r"""
      (?P<escape>\\(?:[pP]\{\w+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.))
    | (?P<set>\[\^?(?:\\.|[^\]\\])+\])
    | (?P<group>\((?:\?(?:<?[=!]|[a-zA-Z-]*[:)]|>|.?))?)
    | (?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(r"\\(?:[pP]\{\w+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|.", re.DOTALL)
_CATEGORY = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?")
_SCRIPTS = {"Arabic", "Cyrillic", "Greek", "Han", "Hangul", "Hebrew", "Hiragana", "Katakana", "Latin", "Thai"}
_GROUPS = {"(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}
# What Oniguruma finds under (?i) in one character: ss in ß, st in ﬆ, and so on.
_FOLDED_TOGETHER = re.compile("ss|st|ff|fi|fl", re.IGNORECASE)


def read_pattern(expression: str, dialect: Dialect) -> str:
    """The expression of a library as `regex` understands it.

    Raises
    ------
    VocabularyError
        When it may mean something else there, naming the construct.
    """
    if expression in _known() and not (dialect == "oniguruma" and expression == _CL100K):
        return expression
    return _translated(expression, dialect, "regex")


def write_pattern(expression: str, dialect: Dialect) -> str:
    """The expression as a library understands it. Raises VocabularyError as `read_pattern` does."""
    if dialect == "oniguruma" and expression == _CL100K:
        return _CL100K_OF_ONIGURUMA
    if dialect == "regex" or expression in _known():
        return expression
    return _translated(expression, "regex", dialect)


def canonical(splits: tuple[Split, ...]) -> PatternSpec:
    """The spec of a sequence of splits, by its name if it has one.

    A named pattern of one split matches every text from its start to its end, so that whether the text between
    matches is kept makes no difference.
    """
    splits = tuple(Split(_synonym(split.regex), split.behavior, split.invert) for split in splits)
    if len(splits) == 1 and splits[0].behavior == "isolated" and not splits[0].invert:
        named = get_pattern(splits[0].regex)
        if named.name != "regex":
            return named.spec
    return get_pattern(splits).spec


def plain_regex(expression: str) -> PatternSpec:
    """The spec of an expression whose matches are the pre-tokens, by its name if it has one."""
    if expression == WHOLE_TEXT:
        return None
    if expression.startswith("(?:") and expression[3:-1] in _known():
        expression = expression[3:-1]
    return get_pattern(_synonym(expression)).spec


def _synonym(expression: str) -> str:
    name = _SYNONYMS.get(expression)
    return PATTERNS[name][0].regex if name else expression


@cache
def _known() -> frozenset[str]:
    """Expressions of which tests have shown that every library finds the same matches."""
    own = {split.regex for splits in PATTERNS.values() for split in splits}
    return frozenset(own | set(_SYNONYMS))


def _translated(expression: str, source: Dialect, target: Dialect) -> str:
    words: list[str] = []
    case_blind = [False]
    if expression.startswith("(?i)"):
        words.append("(?i)")
        case_blind = [True]
        expression = expression[4:]
    literal, kind = "", ""
    for match in _TOKEN.finditer(expression):
        before, kind, word = kind, str(match.lastgroup), match[0]
        try:
            words.append(_word(kind, word, before, source, target))
            if case_blind[-1]:
                literal = _checked_letters(kind, word, literal, {source, target})
        except _DifferentError as error:
            raise VocabularyError(
                f"the pattern {_shown(expression)} has {error}, which {_LIBRARIES[_other(source, target)]} "
                "may take for something else than the regex package does; put it in other words"
            ) from None
        if kind == "group":
            case_blind.append(case_blind[-1] or word == "(?i:")
        elif word == ")" and len(case_blind) > 1:
            case_blind.pop()
    return "".join(words)


class _DifferentError(Exception):
    """A construct that does not mean the same everywhere; the message shows it."""


def _other(source: Dialect, target: Dialect) -> Dialect:
    return target if source == "regex" else source


def _word(kind: str, word: str, before: str, source: Dialect, target: Dialect) -> str:
    """One piece of an expression in the other dialect."""
    if kind == "escape":
        return _escape(word, source, target)
    if kind == "set":
        _check_set(word, source, target)
    elif kind == "group" and word not in _GROUPS:
        raise _DifferentError(f"{word!r}")
    elif kind == "repeat":
        possessive_count, lazy_count = word.startswith("{") and word[-1] == "+", re.fullmatch(r"\{\d+\}\?", word)
        if before == "repeat" or ((possessive_count or lazy_count) and "oniguruma" in (source, target)):
            raise _DifferentError(f"the repetition {word!r}")
    elif word == "[":
        raise _DifferentError("a set in a set, or one that does not end")
    elif word == "^" and "oniguruma" in (source, target):
        raise _DifferentError("'^'")
    elif word == "$":
        if source != "rust":
            raise _DifferentError("'$'")
        return r"\Z"
    return word


def _escape(word: str, source: Dialect, target: Dialect) -> str:
    end = {"regex": r"\Z", "oniguruma": r"\z", "rust": r"\z"}
    if word == end[source]:
        return end[target]
    if word == r"\A" or (word in (r"\w", r"\W", r"\b", r"\B") and "oniguruma" not in (source, target)):
        return word
    _check_member(word)
    return word


def _check_member(word: str) -> None:
    """Raise for an escape that is not a character or one of the classes that all libraries agree on."""
    if word[1] in "pP" and word[2:3] == "{":
        if word[3:-1] not in _SCRIPTS and not _CATEGORY.fullmatch(word[3:-1]):
            raise _DifferentError(f"the class {word}")
    elif word[1].isalnum() and word[1] not in "sSdDrnt" and len(word) == 2:
        raise _DifferentError(word)
    elif not word[1].isascii():
        raise _DifferentError(repr(word))


def _check_set(word: str, source: Dialect, target: Dialect) -> None:
    inside = word[2:-1] if word.startswith("[^") else word[1:-1]
    members = _MEMBER.findall(inside)
    for member in members:
        if member == "[":
            raise _DifferentError("a set in a set")
        if member in (r"\w", r"\W"):
            if "oniguruma" in (source, target):
                raise _DifferentError(member)
        elif member.startswith("\\"):
            _check_member(member)
    for operator in ("&&", "--", "~~", "||"):
        if any(members[at : at + 2] == list(operator) for at in range(len(members))):
            raise _DifferentError(f"{operator!r} in a set")


def _checked_letters(kind: str, word: str, literal: str, dialects: set[Dialect]) -> str:
    """The letters before this place under (?i), if they may still go on."""
    if kind == "set" or (kind == "escape" and word[1] in "pPxu"):
        if not word.isascii() or "\\" in word:
            raise _DifferentError(f"{word!r} under (?i)")
        return ""
    if kind != "other" or word in "|.":
        return ""
    literal += word
    if not word.isascii() or ("oniguruma" in dialects and _FOLDED_TOGETHER.search(literal)):
        raise _DifferentError(f"{literal!r} under (?i)")
    return literal


def _shown(expression: str) -> str:
    return repr(expression) if len(expression) <= 60 else f"{expression[:60]!r}..."
