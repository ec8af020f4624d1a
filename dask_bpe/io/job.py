"""The folder of an encoding: what was asked for, what is done, who works there.

    job.json             what was asked for: tokenizer, options, input files, partitions; written first
    job.lock             held by the job that works here
    vocabulary.json      the tokenizer, where the workers find it
    part-00012.bin ...   shards of partition 12
    part-00012.json      the record of the partition, written when its shards are in place
    quarantine.jsonl     the documents that could not be read
    failed.jsonl         the partitions that failed for good in the last run, if any, see `failures`
    runs.jsonl           how the runs of the job went, see `runs`
    manifest.json        written last

A job that was interrupted is gone on with: a partition whose record and files are whole is done.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dask_bpe.errors import OutputError, ShardError
from dask_bpe.io import failures, paths, quarantine, records, runs
from dask_bpe.io import manifest as manifests
from dask_bpe.io.atomic import TEMPORARY_MARK, AtomicFile, atomic_write, sync
from dask_bpe.io.folders import make_folder, not_empty
from dask_bpe.io.inputs import Bad
from dask_bpe.io.lock import locked
from dask_bpe.io.manifest import Manifest, shard_from_json, shard_to_json
from dask_bpe.io.records import DamageError, take
from dask_bpe.io.shards import FORMATS
from dask_bpe.io.source import SourceFile
from dask_bpe.io.writer import Shard

NAME, LOCK, VOCABULARY = "job.json", "job.lock", "vocabulary.json"
_VERSION = 1
_OURS = re.compile(
    r"(part-\d{5,}(_\d{4,})?\.(bin|idx|docs\.parquet|parquet|json)"
    rf"|{re.escape(manifests.NAME)}|{re.escape(NAME)}|{re.escape(LOCK)}|{re.escape(VOCABULARY)}|{re.escape(quarantine.NAME)}"
    rf"|{re.escape(runs.NAME)}|{re.escape(failures.NAME)})"
    rf"({re.escape(TEMPORARY_MARK)}\w+)?"
)
# The checksum of job.json stands within so many bytes of its beginning.
_HEAD = 256

Piece = tuple[int, int, int]
"""Bytes of one of the files of a job: its number, start, stop."""


@dataclass(frozen=True)
class Job:
    """What an encoding was asked for. Two that are equal make the same bytes.

    Attributes
    ----------
    vocabulary : fingerprint.
    options : JSON values by name.
    source : what the documents come from, if not from files.
    files : the input files, as they were when the job was planned.
    partitions : for every task, the pieces of files that it encodes. Not looked at when jobs are compared: the first
        run decides, those that go on with it take its partitions.
    patience : how far behind a block's end a document start is looked for; as the partitions.
    """

    vocabulary: str
    options: Mapping[str, Any]
    source: str = ""
    files: Sequence[SourceFile] = ()
    partitions: Sequence[Sequence[Piece]] = field(default=(), compare=False)
    patience: int = field(default=0, compare=False)

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "vocabulary": self.vocabulary,
            "options": dict(self.options),
            "source": self.source,
            "files": [[file.path, file.size, file.version] for file in self.files],
            "patience": self.patience,
            "partitions": [[list(piece) for piece in pieces] for pieces in self.partitions],
        }

    @classmethod
    def from_content(cls, data: Mapping[str, Any]) -> Job:
        """What `content` made. Raises DamageError."""
        try:
            return cls(
                take(data, "vocabulary", str),
                take(data, "options", dict),
                take(data, "source", str),
                tuple(SourceFile(*item) for item in take(data, "files", list)),
                tuple(tuple((int(a), int(b), int(c)) for a, b, c in item) for item in take(data, "partitions", list)),
                take(data, "patience", int),
            )
        except (TypeError, ValueError) as error:
            raise DamageError(f"damaged: {error}") from error

    def difference(self, asked: Job) -> str:
        """What is different in the job that is asked for now; empty if nothing is."""
        if self.vocabulary != asked.vocabulary:
            return f"it was begun with the tokenizer {self.vocabulary[:16]}, not with {asked.vocabulary[:16]}"
        for name in sorted({*self.options, *asked.options}):
            before, now = self.options.get(name), asked.options.get(name)
            if before != now:
                return f"it was begun with {name} {before!r}, not with {now!r}"
        if self.source != asked.source:
            return f"it was begun with {self.source or 'files'}, not with {asked.source or 'files'}"
        before, now = {file.path: file for file in self.files}, {file.path: file for file in asked.files}
        for path in (path for path in before if path not in now):
            return f"{path} was part of its input and is not now"
        for path, file in now.items():
            if path not in before:
                return f"{path} was not part of its input"
            if file != before[path]:
                return f"{path} has changed since: {before[path].size} bytes then, {file.size} now, or another time"
        return "" if list(before) == list(now) else "its input files were given in another order"


@dataclass(frozen=True)
class Part:
    """The record of a partition that is done.

    Attributes
    ----------
    index : its number.
    shards : what was written; none if its text has no tokens.
    n_bytes, n_documents, n_invalid : the text: bytes, documents that start in it, invalid UTF-8 sequences mended.
    n_ends, n_begins : marks at the ends and the beginnings of documents.
    bad : what could not be read.
    """

    index: int
    shards: tuple[Shard, ...]
    n_bytes: int
    n_documents: int
    n_invalid: int
    n_ends: int
    n_begins: int
    bad: tuple[Bad, ...] = ()


class JobFolder:
    """A folder in which a job writes. The methods of workers are `done` and `finish_part`; they pickle it.

    Attributes
    ----------
    path : local path or URL.
    digest : of the job, which every record names.
    """

    def __init__(self, path: str, digest: str) -> None:
        self.path = path
        self.digest = digest

    def file(self, name: str) -> str:
        """The path of a file in it."""
        return paths.join(self.path, name)

    def done(self, index: int) -> Part | None:
        """The record of a partition if it was done before, and all of its files are as they were written."""
        try:
            part = self._read_part(index)
            files = [file for shard in part.shards for file in shard.files]
            return part if all(file.is_whole(self.path) for file in files) else None
        except (OSError, DamageError):
            return None  # not there, or not whole: it is done again

    def finish_part(self, part: Part) -> None:
        """Record that a partition is done. Raises OutputError."""
        content = {
            "job": self.digest,
            "index": part.index,
            "bytes": part.n_bytes,
            "documents": part.n_documents,
            "invalid": part.n_invalid,
            "ends": part.n_ends,
            "begins": part.n_begins,
            "bad": [[bad.source, bad.position, bad.line, bad.reason] for bad in part.bad],
            "shards": [shard_to_json(shard) for shard in part.shards],
        }
        name = part_name(part.index) + ".json"
        # Not flushed to the disk: without it, or with half of it, the partition is done again.
        records.write(self.file(name), "dask_bpe.part", _VERSION, content, durable=False)

    def _read_part(self, index: int) -> Part:
        data = records.read(self.file(part_name(index) + ".json"), "dask_bpe.part", _VERSION)
        if take(data, "job", str) != self.digest or take(data, "index", int) != index:
            raise DamageError("it belongs to another job")
        return Part(
            index,
            tuple(shard_from_json(item, f"shard {i}: ") for i, item in enumerate(take(data, "shards", list))),
            take(data, "bytes", int),
            take(data, "documents", int),
            take(data, "invalid", int),
            take(data, "ends", int),
            take(data, "begins", int),
            tuple(_bad_from_json(item) for item in take(data, "bad", list)),
        )

    def check_current(self) -> None:
        """Refuse to write when the folder has been given to another job: this task was forgotten and went on.

        Raises
        ------
        OutputError
        """
        try:
            with paths.open_to_read(self.file(NAME)) as file:
                head = file.read(_HEAD)
        except OSError as error:
            raise OutputError(f"cannot read {self.file(NAME)}: {paths.one_line(error)}") from error
        if self.digest.encode() not in head:
            raise OutputError(f"{self.path}: another job works in this folder now; nothing was written for the old one")

    def flush(self, part: Part) -> None:
        """Make a partition durable: its shards are flushed to the disk. Raises OutputError.

        Not where it is written: that held the threads for a quarter of the time and more. Until it has happened their
        checksums protect from what a power failure leaves.
        """
        if not paths.is_remote(self.path):
            sync(self.file(file.name) for shard in part.shards for file in shard.files)

    def finish(self, manifest: Manifest, bad: Iterable[Bad]) -> None:
        """Write the quarantine and, when every partition is flushed, the manifest. Raises OutputError."""
        if lines := quarantine.to_lines(bad):
            self._put(quarantine.NAME, lines)
        clear_temporary(self.path)
        self._put(manifests.NAME, manifest.to_json().encode())

    def _put(self, name: str, content: bytes) -> None:
        """Write a file unless it is there just so: a complete job changes nothing when it is asked for again."""
        with suppress(OSError), paths.open_to_read(self.file(name)) as file:
            if file.read() == content:
                return
        with atomic_write(self.file(name)) as file:
            file.write(content)

    def clear(self) -> None:
        """Delete what was written of partitions. Raises OutputError."""
        clear_output(self.path, keep=(NAME, LOCK, VOCABULARY, runs.NAME))


def part_name(index: int, shard: int = 0) -> str:
    """The name of a partition's shard without suffix; its first one has that of the partition."""
    return f"part-{index:05d}" + (f"_{shard:04d}" if shard else "")


def _bad_from_json(item: Any) -> Bad:
    try:
        return Bad(*item)
    except TypeError as error:
        raise DamageError(f"damaged: {item!r} among what cannot be read") from error


@contextmanager
def open_job(folder: str | os.PathLike[str], asked: Job, *, overwrite: bool) -> Iterator[tuple[JobFolder, Job, bool]]:
    """Begin a job in a folder, or go on with the same one that was interrupted there; the folder is locked.

    Parameters
    ----------
    folder : one that is empty, does not exist, or holds the same job.
    asked : what is wanted now.
    overwrite : delete what a job has left here, and begin anew.

    Yields
    ------
    The folder, the job with the partitions to be done, and whether it was begun before. A folder that was made for
    nothing, since an error came before any partition gave tokens, is cleared again.

    Raises
    ------
    OutputError
        The folder holds something else, or a job that differs; says what differs. Or another job works in it.
    """
    path = paths.normalise(folder)
    made = make_folder(path)
    with locked(paths.join(path, LOCK)):
        names = paths.list_names(path)
        if overwrite:
            clear_output(path, keep=(LOCK,))
            names = paths.list_names(path)
        old = _old_job(path) if NAME in names else None
        foreign = [name for name in names if not _may_stay(name, begun=old is not None)]
        if foreign:
            raise not_empty(path, foreign[0])
        if old is not None and (difference := old.difference(asked)):
            raise OutputError(
                f"{path}: holds another job: {difference}; ask for the same, choose another folder, or overwrite it"
            )
        clear_temporary(path)
        job = old or asked
        if old is None:
            AtomicFile(paths.join(path, NAME)).close()  # a proof that it can be written to
            records.write(paths.join(path, NAME), "dask_bpe.job", _VERSION, job.content())
        try:
            yield JobFolder(path, records.digest(job.content())), job, old is not None
        except BaseException:
            if not _holds_tokens(paths.list_names(path)):
                clear_output(path, made=made, keep=())
            raise


def _may_stay(name: str, *, begun: bool) -> bool:
    """Whether a file is no reason to refuse a folder. One that was killed while it began may leave a temporary file."""
    return name == LOCK or (_OURS.fullmatch(name) is not None and (begun or TEMPORARY_MARK in name))


def _holds_tokens(names: Sequence[str]) -> bool:
    """Whether a partition is done of which there is more than the record."""
    done = [name.removesuffix(".json") for name in names if name.startswith("part-") and name.endswith(".json")]
    return any(f"{stem}.{kind}" in names for stem in done for kind in FORMATS)


def read_job(path: str) -> Job:
    """The job of a folder. Raises ShardError when it is missing or damaged."""
    try:
        return Job.from_content(records.read(paths.join(path, NAME), "dask_bpe.job", _VERSION))
    except (OSError, DamageError) as error:
        raise ShardError(f"{path}: {NAME} cannot be read: {paths.one_line(error)}") from error


def _old_job(path: str) -> Job:
    try:
        return Job.from_content(records.read(paths.join(path, NAME), "dask_bpe.job", _VERSION))
    except (OSError, DamageError) as error:
        text = paths.one_line(error)
        raise OutputError(f"{path}: cannot go on with the job there: {NAME} {text}; overwrite it") from error


def clear_output(path: str, *, made: bool = False, keep: Sequence[str] = ()) -> None:
    """Delete our files from a folder, and nothing else; with `made` the folder too if it is empty then.

    Raises OutputError.
    """
    try:
        # The manifest first: what is left of a clearing that was interrupted must not look finished.
        names = [name for name in paths.list_names(path) if _OURS.fullmatch(name) and name not in keep]
        for name in sorted(names, key=lambda name: name != manifests.NAME):
            paths.remove(paths.join(path, name))
        if made and not paths.list_names(path):
            Path(path).rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"cannot clear {path}: {paths.one_line(error)}") from error


def clear_temporary(path: str) -> None:
    """Delete our temporary files from a folder in which nobody writes any more. Raises OutputError."""
    try:
        for name in paths.list_names(path):
            if TEMPORARY_MARK in name and _OURS.fullmatch(name):
                paths.remove(paths.join(path, name))
    except OSError as error:
        raise OutputError(f"cannot clear {path}: {paths.one_line(error)}") from error
