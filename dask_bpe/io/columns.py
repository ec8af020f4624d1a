"""A Parquet file of one column of byte strings and columns of integers, with what they are in the metadata.

schema      a binary column for every `Ragged`, an int64 column for every array
metadata    "dask_bpe": a JSON object, ``{"format": ..., "version": ..., ...}``
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from dask_bpe.errors import VocabularyError
from dask_bpe.io import paths
from dask_bpe.io.atomic import AtomicFile
from dask_bpe.io.patience import patiently
from dask_bpe.ragged import Ragged

Column = Ragged | npt.NDArray[np.int64]
_KEY = b"dask_bpe"
# Rows of a row group: below 2 GiB of bytes in any case that is not a corpus of whole documents.
_ROWS = 1 << 20


def write(
    path: str | PathLike[str], columns: Mapping[str, Column], about: Mapping[str, Any], *, durable: bool = True
) -> tuple[int, str]:
    """Write columns of equal length; the file is there as a whole or not at all. Its bytes, and their xxh3_128.

    `durable` flushes it to the disk. Raises OutputError.
    """
    arrays = [_to_arrow(column) for column in columns.values()]
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(columns, arrays, strict=True)]
    schema = pa.schema(fields, metadata={_KEY: json.dumps(dict(about)).encode()})
    file = AtomicFile(path, checksum=True, durable=durable)
    try:
        pq.write_table(
            pa.Table.from_arrays(arrays, schema=schema),
            file,
            row_group_size=_ROWS,
            compression="zstd",
            write_page_checksum=True,
        )
    except BaseException:
        file.close()
        raise
    written = file.record()
    file.commit()
    return written.bytes, written.xxh3_128


def read(
    path: str | PathLike[str], expected: str, version: int, names: Sequence[str], *, xxh3_128: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns (`Ragged` or int64) and metadata of a file whose format is `expected`, up to this version.

    Raises
    ------
    VocabularyError
        When the file is missing, no Parquet, damaged, of another format or a newer version, or its checksum is not
        the one given.
    """
    try:
        if xxh3_128 is None:
            with paths.open_to_read(paths.normalise(path)) as file:
                table = pq.read_table(pa.PythonFile(file, mode="r"), page_checksum_verification=True)
        else:
            table = pq.read_table(_checked(paths.normalise(path), xxh3_128), page_checksum_verification=True)
        about = json.loads((table.schema.metadata or {}).get(_KEY, b"{}"))
        if about.get("format") != expected:
            raise VocabularyError(f"{path}: is Parquet, but not of the format {expected!r}")
        if not 1 <= about["version"] <= version:
            raise VocabularyError(f"{path}: is of version {about['version']}; this dask_bpe reads up to {version}")
        if any(table.column(name).null_count for name in names):
            raise ValueError("a value is missing")
        return {name: _from_arrow(table.column(name)) for name in names}, about
    except (OSError, pa.ArrowException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise VocabularyError(f"{path}: cannot be read as {expected!r}: {paths.one_line(error)}") from error


def format_of(path: str | PathLike[str]) -> str | None:
    """The format that a file says it is of; None for one that was not written here, is no Parquet or cannot be read."""
    try:
        with paths.open_to_read(paths.normalise(path)) as file:
            about = json.loads((pq.read_schema(pa.PythonFile(file, mode="r")).metadata or {}).get(_KEY, b"{}"))
    except (OSError, pa.ArrowException, ValueError):
        return None
    return about.get("format") if isinstance(about, dict) else None


def _checked(path: str, checksum: str) -> pa.BufferReader:
    def whole() -> bytes:
        with paths.open_to_read(path) as file:
            return bytes(file.read())

    data = patiently(whole)
    if xxhash.xxh3_128_hexdigest(data) != checksum:
        raise ValueError("its checksum is not that of what was written")
    return pa.BufferReader(data)


def _to_arrow(column: Column) -> pa.Array:
    if isinstance(column, Ragged):
        buffers = [None, pa.py_buffer(np.ascontiguousarray(column.offsets)), pa.py_buffer(column.values)]
        return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    return pa.array(column, pa.int64())


def _from_arrow(column: pa.ChunkedArray) -> Column:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_integer(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)
    array = array.cast(pa.large_binary())
    _, offset_buffer, value_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    values = np.frombuffer(value_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    return Ragged(values, offsets - offsets[0])
