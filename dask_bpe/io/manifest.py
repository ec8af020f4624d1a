"""The record of an encoded corpus: ``manifest.json``, written last.

A folder without it is not finished. It says which vocabulary made the tokens, how they are stored, what text they were
made of, and for every shard its files with sizes and checksums.

    {"kind": "dask_bpe.tokens", "version": 3, "sha256": ..., "format": "bin", "dtype": "uint16",
     "vocabulary": fingerprint, "vocab_size": 50257, "options": {...},
     "text": {"bytes": ..., "documents": ..., "invalid": ..., "quarantined": ...},
     "marks": {"end": {"text": "<|endoftext|>", "id": 50256, "count": ...}},
     "shards": [{"name": "part-00000.bin", "tokens": ..., "files": [...], "sources": [...], ...}, ...]}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dask_bpe.errors import ShardError
from dask_bpe.io import paths, records
from dask_bpe.io.atomic import File
from dask_bpe.io.records import DamageError, take
from dask_bpe.io.shards import FORMATS, Shard, Span
from dask_bpe.io.writer import DTYPES

NAME = "manifest.json"
KIND = "dask_bpe.tokens"
VERSION = 3

SHARD_NAME = re.compile(r"part-\d{5,}(_\d{4,})?\.(bin|parquet)")
_TEXT = ("bytes", "documents", "invalid", "quarantined")


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
    text : mapping
        Of the text that was read: "bytes", "documents", "invalid" (UTF-8 sequences mended), "quarantined" (documents
        that could not be read).
    marks : mapping
        The special tokens put at the "end" or the "begin" of documents: {"text": str, "id": int, "count": int}, how
        many of them are in the shards.
    """

    format: str
    dtype: str
    vocabulary: str
    vocab_size: int
    options: Mapping[str, Any] = field(default_factory=dict)
    shards: tuple[Shard, ...] = ()
    text: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(_TEXT, 0))
    marks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        shards = len(self.shards)
        return f"Manifest({self.tokens:,} tokens of {self.dtype}, {self.documents:,} documents, {shards:,} shards)"

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_manifest

        return of_manifest(self)

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
        return records.to_text(KIND, VERSION, self._content())

    def write(self, folder: str | os.PathLike[str]) -> str:
        """Put the manifest into the folder, complete or not at all; its path. Raises OutputError."""
        path = paths.join(paths.normalise(folder), NAME)
        records.write(path, KIND, VERSION, self._content())
        return path

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Manifest:
        """The manifest of a folder. Raises ShardError when it is missing, damaged or of another version."""
        path = paths.join(paths.normalise(folder), NAME)
        try:
            return _parse(records.read(path, KIND, VERSION))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ShardError(
                f"{paths.normalise(folder)}: no {NAME}: not a folder of token shards, or not finished"
            ) from error
        except OSError as error:
            raise ShardError(f"cannot read {path}: {paths.one_line(error)}") from error
        except DamageError as error:
            raise ShardError(f"{path}: not a manifest that can be read: {error}") from error

    def _content(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "dtype": self.dtype,
            "vocabulary": self.vocabulary,
            "vocab_size": self.vocab_size,
            "options": dict(self.options),
            "text": dict(self.text),
            "marks": {name: dict(mark) for name, mark in self.marks.items()},
            "shards": [shard_to_json(shard) for shard in self.shards],
        }


def shard_to_json(shard: Shard) -> dict[str, Any]:
    """A shard as JSON values."""
    return vars(shard) | {
        "files": [[file.name, file.bytes, file.xxh3_128] for file in shard.files],
        "sources": [[span.path, span.start, span.stop] for span in shard.sources],
    }


def shard_from_json(data: Any, where: str) -> Shard:
    """What `shard_to_json` made. Raises DamageError, which says where."""
    if not isinstance(data, dict):
        raise DamageError(f"damaged: {where}not an object")
    kinds = {"int": int, "str": str, "bool": bool, "tuple[Span, ...]": list, "tuple[File, ...]": list}
    values = {f.name: take(data, f.name, kinds[str(f.type)], where) for f in fields(Shard)}
    for name, kinds_of_item, make in (("sources", [str, int, int], Span), ("files", [str, int, str], File)):
        for item in values[name]:
            if not isinstance(item, list) or [type(part) for part in item] != kinds_of_item:
                raise DamageError(f"damaged: {where}{item!r} among its {name}")
        values[name] = tuple(make(*item) for item in values[name])
    return Shard(**values)


def _parse(data: dict[str, Any]) -> Manifest:
    manifest = Manifest(
        format=take(data, "format", str),
        dtype=take(data, "dtype", str),
        vocabulary=take(data, "vocabulary", str),
        vocab_size=take(data, "vocab_size", int),
        options=take(data, "options", dict),
        shards=tuple(shard_from_json(item, f"shard {i}: ") for i, item in enumerate(take(data, "shards", list))),
        text={key: take(take(data, "text", dict), key, int, "text: ") for key in _TEXT},
        marks={name: _parse_mark(name, mark) for name, mark in take(data, "marks", dict).items()},
    )
    _check(manifest)
    return manifest


def _parse_mark(name: str, mark: Any) -> dict[str, Any]:
    if not isinstance(mark, dict):
        raise DamageError(f"damaged: mark {name!r} is {mark!r}")
    return {
        key: take(mark, key, kind, f"mark {name!r}: ") for key, kind in (("text", str), ("id", int), ("count", int))
    }


def _check(manifest: Manifest) -> None:
    """What a reader relies on beyond the types."""
    if manifest.format not in FORMATS or manifest.dtype not in DTYPES:
        raise DamageError(f"unknown format {manifest.format!r} or dtype {manifest.dtype!r}")
    dtype = np.dtype(manifest.dtype)
    names = set()
    for shard in manifest.shards:
        if not (match := SHARD_NAME.fullmatch(shard.name)) or match[2] != manifest.format:
            raise DamageError(f"{shard.name!r} is not the name of a {manifest.format} shard")
        if shard.name in names:
            raise DamageError(f"shard {shard.name} is listed twice")
        names.add(shard.name)
        stem = shard.name.partition(".")[0]
        suffixes = (".bin", ".idx", ".docs.parquet") if manifest.format == "bin" else (".parquet",)
        if [file.name for file in shard.files] != [stem + suffix for suffix in suffixes]:
            raise DamageError(f"shard {shard.name} does not have the files {', '.join(suffixes)}")
        if not shard.tokens or not shard.documents:
            raise DamageError(f"shard {shard.name} is empty")
        if shard.max_id > np.iinfo(dtype).max or shard.max_id >= manifest.vocab_size:
            raise DamageError(
                f"shard {shard.name} holds id {shard.max_id}, of {manifest.vocab_size} in {manifest.dtype}"
            )
        if manifest.format == "bin" and shard.bytes != shard.tokens * dtype.itemsize:
            raise DamageError(f"shard {shard.name}: {shard.bytes} bytes do not make {shard.tokens} {manifest.dtype}")
