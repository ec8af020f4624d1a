"""Split patterns by name, each with its source and an example that is easy to get wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass

import regex

from dask_bpe.errors import PatternError

# GPT-2's encoder.py (OpenAI, 2019), as tiktoken writes it: contractions without alternatives by case.
# "I'LL'll  go\n" -> "I" "'" "LL" "'ll" " " " go" "\n"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

PATTERNS = {"gpt2": GPT2}
_BARE_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Pattern:
    """A split pattern.

    Attributes
    ----------
    name : the name of a known pattern, "none", or "regex" for any other.
    regex : the regular expression for the `regex` package; None when text is not split.
    """

    name: str
    regex: str | None

    @property
    def spec(self) -> str | None:
        """What `get_pattern` makes this pattern of: what files record."""
        return None if self.regex is None else self.regex if self.name == "regex" else self.name


def get_pattern(pattern: str | None) -> Pattern:
    """The pattern of a name, a regular expression, or None ("none"): whole documents.

    Raises
    ------
    PatternError
        When the name is not known, or the expression is not one that `regex` compiles.
    """
    if pattern is None or pattern == "none":
        return Pattern("none", None)
    if pattern in PATTERNS:
        return Pattern(pattern, PATTERNS[pattern])
    for name, expression in PATTERNS.items():
        if pattern == expression:
            return Pattern(name, expression)
    if not isinstance(pattern, str) or not pattern or _BARE_NAME.fullmatch(pattern):
        known = ", ".join([*PATTERNS, "none"])
        raise PatternError(f"unknown pattern {pattern!r}: known are {known}, or give a regular expression")
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise PatternError(f"pattern {pattern!r} is not a regular expression: {error}") from error
    return Pattern("regex", pattern)
