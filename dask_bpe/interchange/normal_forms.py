"""Whether a normalizer may make or unmake a given text.

Hugging Face looks for added tokens that are "normalized" in text that went through the normalizer; here they are
looked for before. Both find the same if no step of the normalizer can bring such a token about, change it, or
join its ends with what stands beside it.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Literal, TypeAlias, cast

_Form: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]


def meets(normalizer: tuple[tuple[str, ...], ...], text: str) -> str:
    """What a normalizer may do to `text` or what makes it, as the end of a sentence; "" if nothing."""
    for name, *texts in normalizer:
        if name == "prepend":
            return "puts text before it"
        if name == "replace" and (not texts[1] or any(set(part) & set(text) for part in texts)):
            return f"replaces {texts[0]!r} by {texts[1]!r}"
        if name == "lowercase" and any(map(_has_case, text)):
            return "makes upper case lower"
        if name in ("nfc", "nfd", "nfkc", "nfkd") and not _inert(cast("_Form", name.upper()), text):
            return f"({name.upper()}) may change it, make it of other characters or join its ends with others"
    return ""


def _has_case(character: str) -> bool:
    # The dot is what the capital dotted I leaves.
    return character.lower() != character or character.upper() != character or character == "\u0307"


def _inert(form: _Form, text: str) -> bool:
    made, first, second = _moving(form)
    return (
        not made & set(text)
        and unicodedata.normalize("NFKD" if "K" in form else "NFD", text) == text
        and not any(map(unicodedata.combining, text))
        and text[0] not in second
        and text[-1] not in first
    )


@cache
def _moving(form: _Form) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Characters that a normal form makes of others, and those that it joins with the next and the one before."""
    jamo = {chr(code) for code in range(0x1100, 0x1200)}
    made, first, second = set(jamo), set(jamo), set(jamo)
    for code in range(0x80, 0x110000):
        character = chr(code)
        parts = unicodedata.decomposition(character).split()
        if not parts:
            continue
        normal = unicodedata.normalize(form, character)
        if normal != character:
            made.update(normal)
        elif form in ("NFC", "NFKC") and len(parts) == 2 and not parts[0].startswith("<"):
            first.add(chr(int(parts[0], 16)))
            second.add(chr(int(parts[1], 16)))
    return frozenset(made), frozenset(first), frozenset(second)
