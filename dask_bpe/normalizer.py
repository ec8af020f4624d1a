"""What is done to text before it is split: the steps of a `Vocabulary`'s `normalizer`, one after the other.

    ("nfc",) ("nfd",) ("nfkc",) ("nfkd",)   the normal forms of Unicode 9, those of Hugging Face's tokenizers
    ("lowercase",)                          every code point by itself: a sigma at the end of a word is an ordinary one
    ("replace", old, new)                   every occurrence, from the left
    ("prepend", text)                       before text that is not empty
    ("prefix_space",)                       a space before text that is not empty and does not begin with one

A section of text, from one special token to the next, is normalized by itself. Bytes that are not UTF-8 stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Literal, cast

from dask_bpe.errors import ParameterError

Steps = tuple[tuple[str, ...], ...]
# The names of the steps and how many texts each takes.
STEPS = {"nfc": 0, "nfd": 0, "nfkc": 0, "nfkd": 0, "lowercase": 0, "prepend": 1, "replace": 2, "prefix_space": 0}
_FORMS = ("nfc", "nfd", "nfkc", "nfkd")

# What normal forms change is the same in all releases of Unicode but for code points that a release adds. These
# came after Unicode 9, combine or decompose in some release, and stay as they are: ids must not depend on the
# release that this Python knows. (Marks and their like up to Unicode 17, in hexadecimal.)
_NEWER = """
558 58b-58c 5c8-5c9 7fd 897-89f 8ca-8d3 9fe b53-b54 c3c cf3 d3b-d3c eba ece 1715 1abf-1af0 1df6-1dfa 209d-209f 32ff
a7f1-a7f4 a82c ab69 105c0-105f3 10781-107bf 10d24-10d27 10d69-10d6d 10eab-10eac 10ecb-10eff 10f46-10f50 10f82-10f85
11070 11241 1133b 11380-113e2 1145e 11839-1183a 11900-11946 119e0 11a34 11a47 11a99 11b60-11b67 11d42 11d44-11d45
11d97 11df0 11f00-11f5a 13440-13455 16100-1612f 16d40-16d79 16ff0-16ff1 1b123-1b126 1ccd6-1ccf9 1d127-1d128
1d250-1d281 1d6a6 1df95-1dfff 1e030-1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e6f5 1f16c 1fbf0-1fbf9
"""


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
        return _normal_form(cast("Literal['NFC', 'NFD', 'NFKC', 'NFKD']", name.upper()), characters)
    if name == "lowercase":
        # Of all characters only the capital sigma becomes another one by what stands around it.
        return characters.replace("Σ", "σ").lower()
    if name == "replace":
        return characters.replace(texts[0], texts[1])
    prefix = texts[0] if name == "prepend" else " "
    if not characters or (name == "prefix_space" and characters.startswith(" ")):
        return characters
    return prefix + characters


def _normal_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], characters: str) -> str:
    result = unicodedata.normalize(form, characters)
    # What is in a normal form is so in its parts: then newer code points make no difference.
    if result == characters or not _newer().search(characters):
        return result
    parts = _newer().split(characters)
    return "".join(part if k % 2 else unicodedata.normalize(form, part) for k, part in enumerate(parts))


@cache
def _newer() -> re.Pattern[str]:
    ranges = ("-".join(chr(int(end, 16)) for end in item.split("-")) for item in _NEWER.split())
    return re.compile(f"([{''.join(ranges)}])")
