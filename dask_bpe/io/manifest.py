"""The record of an encoded corpus: ``manifest.json``, written last.

A folder without it is not finished. It says which vocabulary made the tokens, how they are stored, and for
every shard its size, its checksum and the text it came from; a checksum over its own content finds a damaged
one.

    {"kind": "dask_bpe.tokens", "version": 2, "sha256": ..., "format": "bin", "dtype": "uint16",
     "vocabulary": fingerprint, "vocab_size": 50257, "options": {...},
     "shards": [{"name": "part-00000.bin", "tokens": ..., ..., "sources": [[path, start, stop], ...]}, ...]}
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from dask_bpe.errors import OutputError, ShardError
from dask_bpe.io import paths
from dask_bpe.io.atomic import TEMPORARY_MARK, AtomicFile, atomic_write
from dask_bpe.io.shards import FORMATS, Shard, Span
from dask_bpe.io.writer import DTYPES

NAME = "manifest.json"
KIND = "dask_bpe.tokens"
VERSION = 2

_OURS = re.compile(rf"(part-\d{{5,}}\.(bin|idx|parquet)|{re.escape(NAME)})({re.escape(TEMPORARY_MARK)}\w+)?")


@dataclass(frozen=True)
class Manifest:
    """What an encoded corpus consists of.

    Attributes
    ----------
    format : str
        "bin" or "parquet".
    dtype : str
        "uint16" or "uint32".
    vocabulary : str
        Fingerprint of the vocabulary.
    vocab_size : int
        Ids are smaller than this.
    options : mapping
        What else the encoding was asked for; JSON values.
    shards : tuple of Shard
        In the order of the text.
    """

    format: str
    dtype: str
    vocabulary: str
    vocab_size: int
    options: Mapping[str, Any] = field(default_factory=dict)
    shards: tuple[Shard, ...] = ()
    version: int = VERSION

    @property
    def tokens(self) -> int:
        """Tokens of all shards."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def documents(self) -> int:
        """Documents; one that goes on over several shards counts once."""
        return sum(shard.documents for shard in self.shards) - sum(self.joins)

    @property
    def bytes(self) -> int:
        """Size of the main files of all shards."""
        return sum(shard.bytes for shard in self.shards)

    @property
    def max_id(self) -> int:
        """Largest token id; -1 when there are no tokens."""
        return max((shard.max_id for shard in self.shards), default=-1)

    @property
    def joins(self) -> tuple[bool, ...]:
        """Per shard: whether its first row belongs to the last document of the shard before it."""
        before = (False, *(shard.open_end for shard in self.shards))
        return tuple(shard.continues and end for shard, end in zip(self.shards, before, strict=False))

    def to_json(self) -> str:
        """The text of the file: one shard a line, the same for the same content."""
        content = self._content()
        head = {"kind": KIND, "version": self.version, "sha256": _digest(content)}
        shards = ",\n  ".join(json.dumps(shard) for shard in content.pop("shards"))
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in {**head, **content}.items()]
        lines.append(f' "shards": [\n  {shards}\n ]' if shards else ' "shards": []')
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def write(self, folder: str | os.PathLike[str]) -> str:
        """Put the manifest into the folder, complete or not at all; its path. Raises OutputError."""
        path = paths.join(paths.normalise(folder), NAME)
        with atomic_write(path) as file:
            file.write(self.to_json().encode())
        return path

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Manifest:
        """The manifest of a folder. Raises ShardError when it is missing, damaged or of a newer version."""
        path = paths.join(paths.normalise(folder), NAME)
        try:
            with paths.open_to_read(path) as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ShardError(
                f"{paths.normalise(folder)}: no {NAME}: not a folder of token shards, or not finished"
            ) from error
        except OSError as error:
            raise ShardError(f"cannot read {path}: {paths.one_line(error)}") from error
        try:
            return _parse(json.loads(text))
        except UnicodeDecodeError as error:
            raise ShardError(f"{path}: damaged manifest: not UTF-8 at byte {error.start}") from error
        except json.JSONDecodeError as error:
            raise ShardError(f"{path}: damaged manifest: not JSON: {error}") from error
        except _DamageError as error:
            raise ShardError(f"{path}: {error}") from error

    def _content(self) -> dict[str, Any]:
        shards = [
            asdict(shard) | {"sources": [[s.path, s.start, s.stop] for s in shard.sources]} for shard in self.shards
        ]
        return {
            "format": self.format,
            "dtype": self.dtype,
            "vocabulary": self.vocabulary,
            "vocab_size": self.vocab_size,
            "options": dict(self.options),
            "shards": shards,
        }


def prepare_output(folder: str | os.PathLike[str]) -> tuple[str, bool]:
    """Make an empty folder to encode into, and prove that it can be written to.

    Returns its normalised path, and whether it was made here. Raises OutputError when it holds something
    already, is not a folder, or refuses.
    """
    path = paths.normalise(folder)
    try:
        made = not paths.is_remote(path) and not Path(path).exists()
        if paths.is_remote(path):
            fs, inner = paths.filesystem(path)
            fs.makedirs(inner, exist_ok=True)
        else:
            Path(path).mkdir(parents=True, exist_ok=True)
        names = paths.list_names(path)
    except FileExistsError as error:
        raise OutputError(f"{path}: a file; the output must be a folder") from error
    except OSError as error:
        raise OutputError(f"cannot make the output folder {path}: {paths.one_line(error)}") from error
    if names:
        raise OutputError(f"{path}: the output folder is not empty (it holds {names[0]!r}); choose another or empty it")
    AtomicFile(paths.join(path, NAME)).close()
    return path, made


def clear_output(folder: str | os.PathLike[str], *, made: bool = False) -> None:
    """Delete our shards, manifest and temporary files from a folder, and nothing else. Raises OutputError.

    With `made`, what `prepare_output` said of it, the folder goes too if nothing else is in it.
    """
    path = paths.normalise(folder)
    try:
        # The manifest first: what is left of a clearing that was interrupted must not look finished.
        names = [name for name in paths.list_names(path) if _OURS.fullmatch(name)]
        for name in sorted(names, key=lambda name: name != NAME):
            paths.remove(paths.join(path, name))
        if made and not paths.list_names(path):
            Path(path).rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"cannot clear {path}: {paths.one_line(error)}") from error


def clear_temporary(folder: str | os.PathLike[str]) -> None:
    """Delete our temporary files from a folder in which nobody writes any more. Raises OutputError."""
    path = paths.normalise(folder)
    try:
        for name in paths.list_names(path):
            if TEMPORARY_MARK in name and _OURS.fullmatch(name):
                paths.remove(paths.join(path, name))
    except OSError as error:
        raise OutputError(f"cannot clear {path}: {paths.one_line(error)}") from error


class _DamageError(Exception):
    """What is wrong with a manifest."""


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _parse(data: Any) -> Manifest:
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise _DamageError(f"not a manifest of token shards (its kind is not {KIND!r})")
    version = _take(data, "version", int)
    if version != VERSION:
        raise _DamageError(f"manifest version {version}; this dask_bpe reads version {VERSION}")
    content = {key: value for key, value in data.items() if key not in ("kind", "version", "sha256")}
    manifest = Manifest(
        format=_take(data, "format", str),
        dtype=_take(data, "dtype", str),
        vocabulary=_take(data, "vocabulary", str),
        vocab_size=_take(data, "vocab_size", int),
        options=_take(data, "options", dict),
        shards=tuple(_parse_shard(item, f"shard {i}: ") for i, item in enumerate(_take(data, "shards", list))),
    )
    if _take(data, "sha256", str) != _digest(content):
        raise _DamageError("damaged manifest: its checksum does not match its content")
    _check(manifest)
    return manifest


def _parse_shard(data: Any, where: str) -> Shard:
    if not isinstance(data, dict):
        raise _DamageError(f"damaged manifest: {where}not an object")
    kinds = {"int": int, "str": str, "bool": bool, "str | None": str | None, "tuple[Span, ...]": list}
    values = {f.name: _take(data, f.name, kinds[str(f.type)], where) for f in fields(Shard)}
    spans = []
    for span in values["sources"]:
        if not isinstance(span, list) or [type(part) for part in span] != [str, int, int]:
            raise _DamageError(f"damaged manifest: {where}a source is not [path, start, stop]")
        spans.append(Span(*span))
    return Shard(**(values | {"sources": tuple(spans)}))


def _take(data: dict[str, Any], key: str, kind: Any, where: str = "") -> Any:
    if key not in data:
        raise _DamageError(f"damaged manifest: {where}{key!r} is missing")
    value = data[key]
    if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < 0)):
        raise _DamageError(f"damaged manifest: {where}{key!r} is {value!r}")
    return value


def _check(manifest: Manifest) -> None:
    """What a reader relies on beyond the types."""
    if manifest.format not in FORMATS or manifest.dtype not in DTYPES:
        raise _DamageError(f"unknown format {manifest.format!r} or dtype {manifest.dtype!r}")
    dtype = np.dtype(manifest.dtype)
    names = set()
    for shard in manifest.shards:
        if not (match := _OURS.fullmatch(shard.name)) or match[2] != manifest.format or match[3]:
            raise _DamageError(f"{shard.name!r} is not the name of a {manifest.format} shard")
        if shard.name in names:
            raise _DamageError(f"shard {shard.name} is listed twice")
        names.add(shard.name)
        if not shard.tokens or not shard.documents:
            raise _DamageError(f"shard {shard.name} is empty")
        if shard.max_id > np.iinfo(dtype).max or shard.max_id >= manifest.vocab_size:
            raise _DamageError(
                f"shard {shard.name} holds id {shard.max_id}, of {manifest.vocab_size} in {manifest.dtype}"
            )
        if manifest.format == "bin" and (shard.bytes != shard.tokens * dtype.itemsize or not shard.index_xxh3_128):
            raise _DamageError(f"shard {shard.name}: {shard.bytes} bytes do not make {shard.tokens} {manifest.dtype}")
