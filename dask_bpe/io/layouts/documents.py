"""Where each document of an output comes from, and where it lies: a Parquet file beside the layout.

documents.parquet      a row per document, in the order of the output
    doc_id    string   identifier
    source    string   file it comes from, "" when not known
    position  int64    where it begins there (byte or row), -1 when not known
    shard     int32    number of the output shard, from 0
    start     int64    its first token, counted from the first one of the shard
    n_tokens  int64    as they lie in the output, with separators that were moved or added
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dask_bpe.errors import OutputError
from dask_bpe.io.atomic import AtomicFile
from dask_bpe.io.batches import TokenBatch

ROW_GROUP = 1 << 18

_SCHEMA = pa.schema(
    [
        ("doc_id", pa.string()),
        ("source", pa.string()),
        ("position", pa.int64()),
        ("shard", pa.int32()),
        ("start", pa.int64()),
        ("n_tokens", pa.int64()),
    ]
)


class DocumentsWriter:
    """Writes the rows to a file; holds one row group in memory."""

    def __init__(self, file: AtomicFile) -> None:
        self._table = pq.ParquetWriter(file, _SCHEMA, compression="zstd", use_dictionary=["source"])
        self._parts: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: TokenBatch, shard: int, start: int) -> None:
        """Documents of a shard, the first at its token `start`. Raises OutputError."""
        columns = [
            strings(batch.doc_ids),
            strings(batch.sources),
            pa.array(batch.positions, pa.int64()),
            pa.array(np.full(len(batch), shard, np.int32)),
            pa.array(batch.offsets[:-1] + start),
            pa.array(batch.lengths),
        ]
        self._parts.append(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
        self._rows += len(batch)
        if self._rows >= ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write the end of the Parquet file; the file itself is the caller's to commit. Raises OutputError."""
        self._flush()
        self._table.close()

    def abort(self) -> None:
        """Give up. Arrow's writer ends its file when it is deleted, and must do so before the file is gone."""
        with contextlib.suppress(OutputError, pa.ArrowException, ValueError):
            self._table.close()
        self._table.is_open = False

    def _flush(self) -> None:
        if self._rows:
            self._table.write_table(pa.Table.from_batches(self._parts), row_group_size=self._rows)
            self._parts, self._rows = [], 0


def strings(values: list[str]) -> Any:
    """A string column. File names that are not UTF-8 have lone surrogates in Python, which it cannot hold."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array([v.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for v in values], pa.string())
