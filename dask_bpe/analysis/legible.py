"""Tokens written so that one sees what is in them."""

from __future__ import annotations

import re
import unicodedata

# What is white has a sign of its own.
_SIGNS = {" ": "·", "\n": "↵", "\t": "→", "\r": "←"}
# Categories of characters that are not seen: controls, formats, separators, surrogates, private and unassigned ones.
_UNSEEN = ("C", "Z")
_REPEATED = re.compile(r"(\[[^]]+\]|.{1,3}?)\1{8,}")


def legible(token: bytes) -> str:
    """The text of a token: parts of a character as their bytes in hexadecimal, white space as signs, characters that
    are not seen as their code points.

    >>> legible(b" a\\n"), legible(bytes.fromhex("e5b8")), legible("e\\u200d".encode())
    ('·a↵', '[e5 b8]', 'e[U+200D]')
    """
    shown = ""
    for text, data in _pieces(token):
        if data:
            shown += f"[{data.hex(' ')}]"
        elif unicodedata.category(text[0])[0] == "M":
            shown += "◌" + "".join(map(_sign, text))  # a mark needs something to stand on
        else:
            shown += "".join(map(_sign, text))
    return shown


def _pieces(token: bytes) -> list[tuple[str, bytes]]:
    """Text and bytes that are none, in turn."""
    pieces: list[tuple[str, bytes]] = []
    while token:
        try:
            return [*pieces, (token.decode(), b"")]
        except UnicodeDecodeError as error:
            start, end = error.start, error.end
        if start:
            pieces.append((token[:start].decode(), b""))
        before = pieces.pop()[1] if pieces and pieces[-1][1] else b""
        pieces.append(("", before + token[start:end]))
        token = token[end:]
    return pieces


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if unicodedata.category(character)[0] in _UNSEEN:
        return f"[U+{ord(character):04X}]"
    return character


def brief(token: bytes) -> str:
    """The same in less room: what stands there more than eight times in a row is written once, with its number.

    >>> brief(b"\\n" + b" " * 49)
    '↵·×49'
    """
    return _REPEATED.sub(lambda run: f"{run[1]}×{len(run[0]) // len(run[1])}", legible(token))
