"""Bytes of a token as people read them."""

from __future__ import annotations


def readable(token: bytes, limit: int = 40) -> str:
    """The text of a token, white space and control characters escaped but for single spaces inside; what is no text in
    hexadecimal, `[e5 b8]`. At most about `limit` characters."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        text = f"[{token[: limit // 3].hex(' ')}{'...' * (len(token) > limit // 3)}]"
    else:
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return text if len(text) <= limit else f"{text[:limit]}..."
