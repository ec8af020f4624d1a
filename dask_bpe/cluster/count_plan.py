"""What a counting job counts and how it is divided: written before the first task, the same for every later run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import xxhash

from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.contents import Reading
from dask_bpe.errors import OutputError
from dask_bpe.io import paths, records
from dask_bpe.io.source import SourceFile
from dask_bpe.io.work_folder import WorkFolder
from dask_bpe.pretokenize import get_pattern
from dask_bpe.pretokenize.patterns import pattern_to_json

NAME = "plan.json"
KIND = "dask_bpe.counting"
VERSION = 2
_WAY_OUT = "give the same, another folder, or overwrite=True (--overwrite) to start again"


@dataclass(frozen=True)
class CountJob:
    """What is to be counted, and by which rules: what two runs must have in common.

    Attributes
    ----------
    files : path, size and version of every file, in order.
    pattern : as JSON.
    special_tokens, errors, on_error, input, max_bytes : see `count_pretokens`.
    """

    files: tuple[tuple[str, int, str], ...]
    pattern: Any
    special_tokens: tuple[str, ...]
    errors: str
    on_error: str
    input: dict[str, Any]
    max_bytes: int | None

    @classmethod
    def of(cls, files: Sequence[SourceFile], reading: Reading, max_bytes: int | None) -> CountJob:
        """The job that these arguments ask for."""
        versions = tuple((file.path, file.size, file.version) for file in files)
        pattern = pattern_to_json(get_pattern(reading.pattern).spec)
        return cls(
            versions, pattern, reading.special_tokens, reading.errors, reading.on_error, vars(reading.how), max_bytes
        )

    def to_json(self) -> dict[str, Any]:
        """The job as JSON values."""
        return {
            "files": [list(file) for file in self.files],
            "pattern": self.pattern,
            "special_tokens": list(self.special_tokens),
            "errors": self.errors,
            "on_error": self.on_error,
            "input": self.input,
            "max_bytes": self.max_bytes,
        }

    def difference(self, begun: dict[str, Any]) -> str | None:
        """How this job differs from one that was begun, given as JSON; None if it doesn't."""
        mine = self.to_json()
        if mine["files"] != begun["files"]:
            return _difference_of_files(mine["files"], begun["files"])
        for name in ("pattern", "special_tokens", "errors", "on_error", "input", "max_bytes"):
            if mine[name] != begun[name]:
                return f"with {name} {begun[name]!r}, not {mine[name]!r}"
        return None


def _difference_of_files(mine: list[Any], begun: list[Any]) -> str:
    before = {path: (size, version) for path, size, version in begun}
    for path, size, version in mine:
        if path not in before:
            return f"without the file {path}"
        old_size, old_version = before.pop(path)
        if size != old_size:
            return f"when {path} had {old_size:,} bytes, not {size:,}"
        if version != old_version:
            return f"before {path} was changed"
    if before:
        return f"with the file {next(iter(before))} too"
    return "with the same files in another order"


@dataclass(frozen=True)
class CountPlan:
    """A job and how it is divided.

    Attributes
    ----------
    job : what is counted.
    block_bytes : text of a partition.
    n_buckets : shares into which the pre-tokens are dealt.
    partitions : the blocks that each task counts.
    """

    job: dict[str, Any]
    block_bytes: int
    n_buckets: int
    partitions: tuple[tuple[Block, ...], ...]

    @cached_property
    def digest(self) -> str:
        """What results of this plan are known by."""
        return xxhash.xxh3_128(json.dumps(self._content(), sort_keys=True).encode()).hexdigest()

    def _content(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "block_bytes": self.block_bytes,
            "n_buckets": self.n_buckets,
            "partitions": [[list(astuple(block)) for block in blocks] for blocks in self.partitions],
        }

    def write(self, folder: WorkFolder) -> None:
        """Put the plan into its folder. Raises OutputError."""
        records.write(folder / NAME, KIND, VERSION, self._content())

    @classmethod
    def read(cls, folder: WorkFolder, job: CountJob, block_bytes: int | None) -> CountPlan | None:
        """The plan of a folder in which nothing was begun or this job was; None for the former.

        Raises
        ------
        OutputError
            The plan is damaged, or another job was begun in the folder.
        """
        try:
            content = records.find(folder / NAME, KIND, VERSION)
        except OSError as error:
            raise OutputError(f"cannot read {folder / NAME}: {paths.one_line(error)}") from error
        if content is None:
            if folder.has_counts():
                raise OutputError(
                    f"{folder.path}: {NAME} is missing or damaged, and there are counts: {_WAY_OUT.split(', ', 1)[1]}"
                )
            return None
        difference = job.difference(content["job"])
        if difference is None and block_bytes not in (None, content["block_bytes"]):
            difference = f"with block_bytes {content['block_bytes']}, not {block_bytes}"
        if difference is not None:
            raise OutputError(f"{folder.path}: the work in this folder was begun {difference}: {_WAY_OUT}")
        partitions = tuple(tuple(Block(*row) for row in rows) for rows in content["partitions"])
        return cls(content["job"], content["block_bytes"], content["n_buckets"], partitions)
