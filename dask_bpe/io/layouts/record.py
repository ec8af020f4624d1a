"""The record of an output: ``layout.json``, written last, whatever the layout.

A folder without it is not finished; while it is written, and after a process that died, it holds ``layout.unfinished``.

    {"kind": "dask_bpe.layout", "version": 1, "sha256": ..., "layout": "llmc", "dtype": "uint16",
     "vocabulary": fingerprint, "vocab_size": 50257, "documents": ..., "tokens": ..., "max_id": ...,
     "separator": {"token": "<|endoftext|>", "id": 50256, "place": "before", "lacking": 0},
     "options": {"shard_tokens": ..., "shuffle": ..., "val_tokens": ...},
     "files": [{"name": ..., "bytes": ..., "xxh3_128": ..., "tokens": ..., "documents": ...}, ...]}

`lacking` counts the documents that came without the separator, because their file ended first: where the place is
"kept" they still lack it, elsewhere they got it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import xxhash

from dask_bpe.errors import ShardError
from dask_bpe.io import paths
from dask_bpe.io.atomic import atomic_write
from dask_bpe.io.layouts.writer import LayoutFile
from dask_bpe.progress import JobState, Progress, watch

NAME = "layout.json"
UNFINISHED = "layout.unfinished"
KIND = "dask_bpe.layout"
VERSION = 1
_HASH_PIECE = 1 << 20


@dataclass(frozen=True)
class LayoutRecord:
    """What an output consists of.

    Attributes
    ----------
    layout, dtype : names of the layout and of the type of an id.
    vocabulary, vocab_size : fingerprint of the vocabulary; ids are smaller than its size.
    documents, tokens, max_id : what was written, and the largest id.
    separator : its token, id, place and how many documents lacked it; None for a corpus without one.
    options : what was asked for; JSON values.
    files : every other file, in the order in which they were finished.
    """

    layout: str
    dtype: str
    vocabulary: str
    vocab_size: int
    documents: int
    tokens: int
    max_id: int
    separator: Mapping[str, Any] | None
    options: Mapping[str, Any]
    files: tuple[LayoutFile, ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)

    def write(self, folder: str) -> None:
        """Put the record into the folder, complete or not at all. Raises OutputError."""
        content = self._content()
        head = {"kind": KIND, "version": VERSION, "sha256": _digest(content)}
        files = ",\n  ".join(json.dumps(file) for file in content.pop("files"))
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in {**head, **content}.items()]
        lines.append(f' "files": [\n  {files}\n ]')
        with atomic_write(paths.join(folder, NAME)) as file:
            file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> LayoutRecord:
        """The record of a folder. Raises ShardError when it is missing, damaged or of a newer version."""
        path = paths.join(paths.normalise(folder), NAME)
        try:
            with paths.open_to_read(path) as file:
                data = json.loads(file.read())
        except OSError as error:
            raise ShardError(
                f"cannot read {path}: {paths.one_line(error)}; not an output of reshape, or not finished"
            ) from error
        except ValueError as error:
            raise ShardError(f"{path}: damaged: not JSON: {paths.one_line(error)}; make the output again") from error
        if not isinstance(data, dict) or data.get("kind") != KIND:
            raise ShardError(f"{path}: not the record of a layout (its kind is not {KIND!r})")
        if data.get("version") != VERSION:
            raise ShardError(f"{path}: of version {data.get('version')!r}; this dask_bpe reads version {VERSION}")
        content = {key: value for key, value in data.items() if key not in ("kind", "version", "sha256")}
        if data.get("sha256") != _digest(content) or content.keys() != {f.name for f in fields(cls)}:
            raise ShardError(f"{path}: damaged: its checksum does not match its content; make the output again")
        return cls(**{**content, "files": tuple(LayoutFile(**entry) for entry in content["files"])})

    def _content(self) -> dict[str, Any]:
        return asdict(self)


def verify_layout(folder: str | os.PathLike[str], progress: Progress | None = None) -> LayoutRecord:
    """Read every file of an output again and compare it with its record, which is returned.

    Raises ShardError, which names the file. Progress: stage "verifying", in bytes.
    """
    path = paths.normalise(folder)
    record = LayoutRecord.read(path)
    with watch("verify", path, progress) as job:
        _verify_files(path, record, job)
    for name in ("tokens", "documents"):
        counted = sum(getattr(entry, name) for entry in record.files)
        if counted != getattr(record, name):
            raise ShardError(f"{path}: its files hold {counted} {name}, {getattr(record, name)} were written")
    return record


def _verify_files(path: str, record: LayoutRecord, job: JobState) -> None:
    """Read all files and compare them with the record. Raises ShardError."""
    job.start("verifying", record.bytes, "B")
    for entry in record.files:
        digest, size = xxhash.xxh3_128(), 0
        try:
            with paths.open_to_read(paths.join(path, entry.name)) as file:
                while piece := file.read(_HASH_PIECE):
                    digest.update(piece)
                    size += len(piece)
                    job.advance("verifying", len(piece))
        except OSError as error:
            raise ShardError(
                f"{path}: cannot read {entry.name}: {paths.one_line(error)}; make the output again"
            ) from error
        if size != entry.bytes:
            raise ShardError(
                f"{path}: {entry.name} has {size} bytes, {entry.bytes} were written; make the output again"
            )
        if digest.hexdigest() != entry.xxh3_128:
            raise ShardError(f"{path}: {entry.name} has changed since it was written (xxh3_128); make the output again")
    job.finish("verifying")


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
