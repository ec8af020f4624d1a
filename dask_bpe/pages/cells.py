"""How values stand in tables, whatever the table is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

# What XML has no place for, and what turns the direction of the text around it or hides: shown by its number.
_HIDDEN = {
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
    0xFEFF,
    0xFFFE,
    0xFFFF,
}
_SHOWN = {code: f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}" for code in _HIDDEN}


def visible(text: str) -> str:
    """The text with control characters, lone surrogates and invisible characters as escapes: `\\x00`, `\\u202e`."""
    return text.translate(_SHOWN)


def are_numbers(values: Iterable[Any]) -> bool:
    """Whether the values of a column are counted or measured, as far as they are there, and so stand to the right."""
    there = [value for value in values if value is not None]
    return bool(there) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in there)


def format_cell(value: Any) -> str:
    """A value as people read it: `1,234,567`, `0.0123`, `yes`, `–` for None; strings as they are, made `visible`."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _format_float(value)
    return visible(str(value))


def _format_float(value: float) -> str:
    """Three significant digits, never in powers of ten unless it is smaller than 0.0001."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if abs(value) < 1e-4:
        return f"{value:.2e}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def literal(token: bytes, limit: int = 40) -> str:
    """A token as a Python string literal, or as one of bytes when it is not text, cut at `limit`."""
    try:
        text = repr(token.decode())
    except UnicodeDecodeError:
        text = repr(token)
    return text if len(text) <= limit else f"{text[:limit]}..."


def format_bytes(amount: float) -> str:
    """`12.3 MB`, in powers of 1000, as what one pays for is measured."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= scale:
            return f"{amount / scale:,.1f} {unit}"
    return f"{amount:,.0f} B"


def format_seconds(seconds: float) -> str:
    """`4.2 s`, `3 min 07 s`, `5 h 12 min`, `2 d 03 h`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, part, name, small in ((86400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // part:02d} {small}"
    raise AssertionError("unreachable: a minute is more than the shortest of these")
