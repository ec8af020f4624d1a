"""Counts of parts of a corpus on disk: Parquet files, and a record that names those of one result and their checksums.

part-00012-003.parquet     pre-tokens of partition 12 that belong to bucket 3, where each occurs first in the corpus
part-00012.json            written when all files of the partition are there; lists what of it could not be read
tree-003-1-00004.parquet   several of those, added up (and its .json)
bucket-003.parquet         all counts of bucket 3 (and its .json)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import OutputError
from dask_bpe.io import columns, paths, records
from dask_bpe.io.atomic import File
from dask_bpe.io.inputs import Bad
from dask_bpe.pretokenize.patterns import pattern_from_json, pattern_to_json

KIND = "dask_bpe.counts.result"
FORMAT = "dask_bpe.counts.part"
VERSION = 2


@dataclass(frozen=True)
class CountFile:
    """A file of counts: what was written, and how many strings of how many bytes together are in it."""

    written: File
    n_strings: int
    n_bytes: int


@dataclass(frozen=True)
class Result:
    """What a task left: a file per bucket, or the one file of its bucket."""

    name: str
    files: tuple[CountFile, ...]

    def file_of(self, bucket: int) -> CountFile:
        """The file with the pre-tokens of a bucket."""
        return self.files[bucket] if len(self.files) > 1 else self.files[0]


def write_counts(folder: str, name: str, counts: PretokenCounts) -> CountFile:
    """Write counts as they are, `first` as positions in the corpus. Raises OutputError.

    Not flushed to the disk: after a power failure the checksum tells.
    """
    about = {
        "format": FORMAT,
        "version": VERSION,
        "pattern": pattern_to_json(counts.pattern),
        "special_tokens": list(counts.special_tokens),
        "totals": list(counts.totals()),
    }
    data: dict[str, columns.Column] = {"pretoken": counts.strings, "count": counts.counts, "first": counts.first}
    size, checksum = columns.write(paths.join(folder, name), data, about, durable=False)
    return CountFile(File(name, size, checksum), len(counts), len(counts.strings.values))


def read_counts(folder: str, file: CountFile) -> PretokenCounts:
    """Read what `write_counts` wrote.

    Raises
    ------
    VocabularyError
        When the file is missing, or is not, byte for byte, what was written.
    """
    path = paths.join(folder, file.written.name)
    checksum = file.written.xxh3_128
    data, about = columns.read(path, FORMAT, VERSION, ("pretoken", "count", "first"), xxh3_128=checksum)
    return PretokenCounts(
        data["pretoken"],
        data["count"],
        data["first"],
        pattern_from_json(about["pattern"]),
        tuple(about["special_tokens"]),
        *about["totals"],
    )


def finish(folder: str, name: str, belongs: str, files: Sequence[CountFile], bad: Iterable[Bad] = ()) -> Result:
    """Say that a result is complete.

    `belongs` is what it was made of, `bad` the documents of it that could not be read. Raises OutputError.
    """
    rows = [[*astuple(file.written), file.n_strings, file.n_bytes] for file in files]
    content = {"belongs": belongs, "files": rows, "bad": [astuple(item) for item in bad]}
    records.write(paths.join(folder, f"{name}.json"), KIND, VERSION, content, durable=False)
    return Result(name, tuple(files))


def finished(folder: str, name: str, belongs: str) -> Result | None:
    """The result of an earlier run, if it is of the same and its files are intact; else None.

    Raises
    ------
    OutputError
        When the folder cannot be read.
    """
    try:
        content = records.find(paths.join(folder, f"{name}.json"), KIND, VERSION)
        if content is None or content["belongs"] != belongs:
            return None
        files = [CountFile(File(*row[:3]), *row[3:]) for row in content["files"]]
        if all(file.written.is_whole(folder) for file in files):
            return Result(name, tuple(files))
    except OSError as error:
        raise OutputError(f"cannot read {name} in {folder}: {paths.one_line(error)}") from error
    return None


def left_out(folder: str, names: Iterable[str]) -> Iterator[Bad]:
    """The documents that could not be read of results that are there. Raises OutputError."""
    for name in names:
        try:
            content = records.find(paths.join(folder, f"{name}.json"), KIND, VERSION)
        except OSError as error:
            raise OutputError(f"cannot read {name} in {folder}: {paths.one_line(error)}") from error
        if content is not None:
            yield from (Bad(*item) for item in content["bad"])
