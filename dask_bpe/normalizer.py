"""What is done to text before it is split: the steps of a `Vocabulary`'s `normalizer`, one after the other.

    ("nfc",) ("nfd",) ("nfkc",) ("nfkd",)   the normal forms of Unicode
    ("lowercase",)                          every code point by itself: a sigma at the end of a word is an ordinary one
    ("replace", old, new)                   every occurrence, from the left
    ("prepend", text)                       before text that is not empty
    ("prefix_space",)                       a space before text that is not empty and does not begin with one

A section of text, from one special token to the next, is normalized by itself. Bytes that are not UTF-8 stay.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Literal, cast

from dask_bpe.errors import ParameterError

Steps = tuple[tuple[str, ...], ...]
# The names of the steps and how many texts each takes.
STEPS = {"nfc": 0, "nfd": 0, "nfkc": 0, "nfkd": 0, "lowercase": 0, "prepend": 1, "replace": 2, "prefix_space": 0}
_FORMS = ("nfc", "nfd", "nfkc", "nfkd")


def checked_steps(steps: Iterable[Iterable[str]]) -> Steps:
    """The steps of a normalizer as tuples.

    Raises
    ------
    ParameterError
        For a step that does not exist or has other arguments than it takes.
    """
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise ParameterError(f'normalizer is {steps!r}: a sequence of steps such as [("nfc",)] was expected')
    return tuple(map(_checked_step, steps))


def _checked_step(step: Iterable[str]) -> tuple[str, ...]:
    if isinstance(step, str) or not isinstance(step, Iterable):
        raise ParameterError(f"step {step!r} of a normalizer is not a tuple: write ({step!r},)")
    name, *texts = step = tuple(step) or ("",)
    if name not in STEPS:
        raise ParameterError(f"unknown step {name!r} of a normalizer: known are {', '.join(STEPS)}")
    if len(texts) != STEPS[name] or not all(isinstance(text, str) for text in texts):
        raise ParameterError(f"step {step!r} of a normalizer: {name} takes {STEPS[name]} texts")
    if name == "replace" and not texts[0]:
        raise ParameterError(f"step {step!r} of a normalizer: there is no text to replace")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise ParameterError(f"step {step!r} of a normalizer holds a lone surrogate: no UTF-8") from None
    return step


class Normalizer:
    """The steps of a vocabulary, ready for text."""

    def __init__(self, steps: Iterable[Iterable[str]]) -> None:
        """Raises ParameterError as `checked_steps` does."""
        self.steps = checked_steps(steps)
        # Whether text of ASCII alone comes out as it went in.
        self.keeps_ascii = all(name in _FORMS for name, *_ in self.steps)

    def __call__(self, text: bytes) -> bytes:
        """One section of text, normalized."""
        if self.keeps_ascii and text.isascii():
            return text
        characters = text.decode("utf-8", "surrogateescape")
        for name, *texts in self.steps:
            characters = _apply(name, texts, characters)
        return characters.encode("utf-8", "surrogateescape")


def _apply(name: str, texts: list[str], characters: str) -> str:
    if name in _FORMS:
        return unicodedata.normalize(cast("Literal['NFC', 'NFD', 'NFKC', 'NFKD']", name.upper()), characters)
    if name == "lowercase":
        # Of all characters only the capital sigma becomes another one by what stands around it.
        return characters.replace("Σ", "σ").lower()
    if name == "replace":
        return characters.replace(texts[0], texts[1])
    prefix = texts[0] if name == "prepend" else " "
    if not characters or (name == "prefix_space" and characters.startswith(" ")):
        return characters
    return prefix + characters
