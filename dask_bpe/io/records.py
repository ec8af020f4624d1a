"""JSON files that say what they are and whether they are whole.

    {"kind": "dask_bpe.tokens", "version": 3, "sha256": ..., "format": "bin", ...,
     "shards": [
      {...},
      {...}
     ]}

The checksum is of everything behind it. Of lists an item stands on a line, for people and for `grep`.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Mapping
from typing import Any

from dask_bpe.io import paths
from dask_bpe.io.atomic import atomic_write


class DamageError(Exception):
    """What is wrong with a record."""


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the content, in hex; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def to_text(kind: str, version: int, content: Mapping[str, Any]) -> str:
    """The text of a record; the same for the same content, whose values are JSON's."""
    head = {"kind": kind, "version": version, "sha256": digest(content)}
    lines = [f" {json.dumps(key)}: {_shown(value)}" for key, value in (head | dict(content)).items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _shown(value: Any) -> str:
    """JSON; of a list an item a line."""
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"


def write(path: str, kind: str, version: int, content: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write a record, complete or not at all; `durable` flushes it to the disk. Raises OutputError."""
    with atomic_write(path, durable=durable) as file:
        file.write(to_text(kind, version, content).encode())


def read(path: str, kind: str, version: int) -> dict[str, Any]:
    """The content of a record.

    Raises
    ------
    OSError
        It cannot be read; FileNotFoundError when it is not there.
    DamageError
        It is not JSON, of another kind or version, or its checksum does not match.
    """
    with paths.open_to_read(path) as file:
        text = file.read()
    try:
        data = json.loads(text)
    except UnicodeDecodeError as error:
        raise DamageError(f"damaged: not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise DamageError(f"damaged: not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise DamageError(f"its kind is not {kind!r}")
    if take(data, "version", int) != version:
        raise DamageError(f"it has version {data['version']}; this dask_bpe reads version {version}")
    content = {key: value for key, value in data.items() if key not in ("kind", "version", "sha256")}
    if take(data, "sha256", str) != digest(content):
        raise DamageError("damaged: its checksum does not match its content")
    return content


def find(path: str, kind: str, version: int) -> dict[str, Any] | None:
    """The content of a record; None when there is none, or it is not whole or something else.

    Raises OSError when it cannot be read.
    """
    try:
        return read(path, kind, version)
    except (FileNotFoundError, DamageError):
        return None


def take(data: Mapping[str, Any], key: str, kind: type | types.UnionType, where: str = "") -> Any:
    """A value of this type; whole numbers must not be negative. Raises DamageError."""
    if key not in data:
        raise DamageError(f"damaged: {where}{key!r} is missing")
    value: Any = data[key]
    is_number = type(value) is int and value >= 0
    if not isinstance(value, kind) or (kind is int and not is_number):
        raise DamageError(f"damaged: {where}{key!r} is {value!r}")
    return value
