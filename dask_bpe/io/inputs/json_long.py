"""A very long line of JSON, in memory of about twice its size.

Parsed at once, a text of 1 GB with one emoji in it is a Python string of 4 GB, beside the line and the UTF-8
made of it. So the long strings of a line are taken out first, the short rest is parsed as usual, and of the
text every piece is unescaped on its own into its place. What is accepted, and what is refused, is the same.
"""

from __future__ import annotations

import re
import secrets

import numpy as np

from dask_bpe.io import utf8
from dask_bpe.io.inputs import json_line
from dask_bpe.io.inputs.documents import Bytes
from dask_bpe.io.inputs.json_line import Unreadable

LONG_LINE = 32 << 20
"""Bytes from which a line is read in this way."""
_LONG_STRING = 1 << 20
_PIECE = 8 << 20
# In JSON quotation marks occur at the ends of strings and escaped inside them, so strings are found without
# parsing. The possessive repeats keep the regular expression from remembering places to go back to.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)', re.DOTALL)
_HIGH_HALF = re.compile(rb"\\u[dD][89abAB]")


def text_and_id(
    line: bytes, field: str, id_field: str | None, *, long_string: int = _LONG_STRING, piece: int = _PIECE
) -> tuple[Bytes, str | None]:
    """As `json_line.text_and_id`, the text as uint8[n].

    `long_string` is from how many bytes a string is taken out, `piece` how many are unescaped at a time (at
    least 16); neither changes the result.
    """
    at = utf8.invalid_at(np.frombuffer(line, np.uint8))
    if at >= 0:
        raise Unreadable(f"malformed JSON: byte {at} of the line is not UTF-8 (0x{line[at]:02x})")
    skeleton, strings = _take_out(line, long_string)
    record = json_line.parse(skeleton)
    text = json_line.text_in(record, field)
    key = None if id_field is None else json_line.id_in(record, id_field, skeleton)
    found: Bytes | None = None
    # All of them are read, as parsing would: an escape that is none makes the line malformed wherever it is.
    for mark, (start, stop) in strings.items():
        if mark == text:
            found = _unescape(line, start, stop, piece, field)
        else:
            _unescape(line, start, stop, piece, None)
    if key in strings:
        raise Unreadable(f"the field {id_field!r} is a string of more than {long_string} bytes, which is no id")
    return np.frombuffer(json_line.encoded(text, field), np.uint8) if found is None else found, key


def _take_out(line: bytes, long_string: int) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """The line with a mark in place of every long string, and where the strings are, without their quotes."""
    # Nobody can have put it into the text.
    secret = secrets.token_hex(16)
    parts: list[bytes | memoryview] = []
    strings: dict[str, tuple[int, int]] = {}
    view = memoryview(line)
    done = 0
    for match in _STRING.finditer(line):
        start, stop = match.span()
        if not match[1]:
            raise Unreadable("malformed JSON: a string has no end")
        if stop - start > long_string:
            mark = f"{secret}-{len(strings)}"
            strings[mark] = (start + 1, stop - 1)
            parts += (view[done:start], b'"' + mark.encode() + b'"')
            done = stop
    parts.append(view[done:])
    return b"".join(parts), strings


def _unescape(line: bytes, start: int, stop: int, piece: int, field: str | None) -> Bytes | None:
    """What the inside of a string stands for, as UTF-8; only checked if it is in no `field` that is wanted."""
    # Unescaped text is never longer, and pages that are never touched cost nothing.
    values = np.empty(stop - start if field is not None else 0, np.uint8)
    filled = 0
    while start < stop:
        end = _piece_end(line, start, min(start + piece, stop), stop)
        text = json_line.parse(b'"' + line[start:end] + b'"')
        start = end
        if field is not None:
            part = np.frombuffer(json_line.encoded(text, field), np.uint8)
            values[filled : filled + len(part)] = part
            filled += len(part)
    return values[:filled] if field is not None else None


def _piece_end(line: bytes, start: int, end: int, stop: int) -> int:
    """The last place up to `end` that is inside no character, escape or pair of escapes of the string."""
    if end == stop:
        return stop
    while line[end] & 0xC0 == 0x80:
        end -= 1
    at = line.rfind(b"\\", max(start, end - 6), end)
    if at >= 0 and not _escapes(line, start, at):
        at -= 1  # the second one of an escaped backslash
    length = 6 if at >= 0 and line[at + 1 : at + 2] == b"u" else 2
    if at >= 0 and at + length > end:
        end = at
    high = end - 6
    if high >= start and _HIGH_HALF.match(line, high) and _escapes(line, start, high):
        end = high
    return end


def _escapes(line: bytes, start: int, at: int) -> bool:
    """Whether the backslash at `at` begins an escape: an even number of backslashes stands before it."""
    before = at
    while before > start and line[before - 1] == 0x5C:
        before -= 1
    return (at - before) % 2 == 0
