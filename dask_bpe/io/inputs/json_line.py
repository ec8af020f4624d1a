"""One line of JSON: the text and the id of a document in it, or what is wrong with it.

orjson reads it. What orjson refuses the standard library gets to see, which takes ``NaN``, infinite numbers and
halves of surrogate pairs: such things in a document's metadata are no reason to lose the document.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from dask_bpe.io import paths

_NAMES = {dict: "an object", list: "an array", bool: "a boolean", int: "a number", float: "a number"}


class Unreadable(Exception):
    """A document that cannot be read; says why, without the place."""


def text_and_id(line: bytes, field: str, id_field: str | None) -> tuple[bytes, str | None]:
    """The text (UTF-8) in `field`, and the id in `id_field` if that is not None.

    Raises
    ------
    Unreadable
        For malformed JSON, invalid UTF-8, and fields that are missing or of the wrong type.
    """
    record = parse(line)
    text = encoded(text_in(record, field), field)
    return text, None if id_field is None else id_in(record, id_field, line)


def parse(line: bytes) -> Any:
    """The value that a line of JSON holds. Raises Unreadable."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_leniently(line)


def text_in(record: Any, field: str) -> str:
    """The string in a field, by its dotted path. Raises Unreadable."""
    value = _find(record, field)
    if not isinstance(value, str):
        raise Unreadable(f"the field {field!r} is {_name(value)}: a string was expected")
    return value


def encoded(text: str, field: str) -> bytes:
    """A text as UTF-8. Raises Unreadable when it is none."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        found = f"\\u{ord(text[error.start]):04x}"
        raise Unreadable(f"the field {field!r} holds half a surrogate pair ({found}), which is no character") from None


def _parse_leniently(line: bytes) -> Any:
    try:
        # Not given as bytes: `json.loads` takes those for UTF-16 as well, and lets surrogates in UTF-8 pass.
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        at = f"byte {error.start} of the line is not UTF-8 (0x{line[error.start]:02x})"
        raise Unreadable(f"malformed JSON: {at}") from None
    except RecursionError:
        raise Unreadable("malformed JSON: brackets are nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"malformed JSON: {paths.one_line(error)}") from None


def id_in(record: Any, id_field: str, line: bytes) -> str:
    """The id in a field, as a string; `line` is what the record was read from. Raises Unreadable."""
    value = _find(record, id_field)
    if isinstance(value, float) and value.is_integer():
        # orjson makes a float of a whole number beyond 64 bits; whether this was one only the digits tell.
        value = _find(_parse_leniently(line), id_field)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unreadable(f"the field {id_field!r} is {_name(value)}: a string or a whole number was expected as id")
    text = str(value)
    encoded(text, id_field)
    return text


def _find(record: Any, path: str) -> Any:
    """What a dotted path leads to; at every step the longest literal key wins."""
    if not isinstance(record, dict):
        raise Unreadable(f"the line is {_name(record)}: an object was expected")
    found, value = _descend(record, path)
    if not found:
        raise Unreadable(f"the field {path!r} is missing")
    return value


def _descend(record: Any, path: str) -> tuple[bool, Any]:
    if not isinstance(record, dict):
        return False, None
    if path in record:
        return True, record[path]
    end = path.rfind(".")
    while end >= 0:
        if path[:end] in record:
            found, value = _descend(record[path[:end]], path[end + 1 :])
            if found:
                return True, value
        end = path.rfind(".", 0, end)
    return False, None


def _name(value: Any) -> str:
    return "null" if value is None else _NAMES.get(type(value), "a string")
