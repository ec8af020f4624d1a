"""Shards for tables: one row per document.

    part-00000.parquet
        doc_id    string                   the document's own id, or ``<source>:<position>``
        source    string                   the file the document comes from
        position  int64                    where it stands there, see `origins`
        tokens    list<uint16 | uint32>
        n_tokens  int64

Schema metadata: ``dask_bpe.version``, ``dask_bpe.vocabulary`` (fingerprint), ``dask_bpe.dtype``.

Row groups hold whole documents, as many as stay within ROW_GROUP_TOKENS and ROW_GROUP_DOCUMENTS; a longer
document has a group of its own. Where the calls of `write` cut the tokens changes no byte of the file.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dask_bpe.errors import OutputError
from dask_bpe.io import paths
from dask_bpe.io.atomic import AtomicFile, File
from dask_bpe.io.origins import COLUMNS
from dask_bpe.io.writer import ShardWriter, TokenIds

ROW_GROUP_TOKENS = 4_000_000
ROW_GROUP_DOCUMENTS = 250_000
LIST_LIMIT = 2**31 - 1
"""A list column counts its children in int32."""

# The bytes of the ids in separate streams, then zstd 1: on 4 M ids of English 76 M tokens/s written, 90 read, 1.50
# bytes a token. What lost: dictionary pages (42, 93, 1.65), which DuckDB before 2026 needs; lz4 (47; 2.43);
# DELTA_BINARY_PACKED without compression (60; 2.14). No compression at all writes 106, in 4 bytes a token.
_ENCODING: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["source", "n_tokens"],
    "column_encoding": {"tokens.list.element": "BYTE_STREAM_SPLIT"},
    "write_statistics": ["doc_id", "source", "position", "n_tokens"],
}


class ParquetWriter(ShardWriter):
    """Writes ``part-NNNNN.parquet``; holds one row group in memory."""

    suffix = ".parquet"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._schema = shard_schema(self.dtype, self.fingerprint)
        self._file = AtomicFile(paths.join(self.folder, self.stem + self.suffix), checksum=True, durable=self.durable)
        try:
            self._table = pq.ParquetWriter(self._file, self._schema, **_ENCODING)
        except BaseException:
            self._file.close()
            raise
        # The row group to come: tokens (those after the last end belong to a document not ended yet), and row
        # ends in them.
        self._ids = np.empty(ROW_GROUP_TOKENS, self.dtype)
        self._buffered = 0
        self._ends: list[npt.NDArray[np.int64]] = []
        self._n_rows = 0

    def _append(self, ids: TokenIds, document_ends: npt.NDArray[np.int64]) -> None:
        start = done = 0
        while done < len(document_ends):
            room = ROW_GROUP_TOKENS - self._buffered
            fit = int(np.searchsorted(document_ends[done:], start + room, "right"))
            fit = min(fit, ROW_GROUP_DOCUMENTS - self._n_rows)
            if not fit and self._n_rows:
                self._flush()
                continue
            fit = max(fit, 1)
            ends = document_ends[done : done + fit]
            self._ends.append(ends - start + self._buffered)
            self._n_rows += fit
            self._keep(ids[start : int(ends[-1])])
            start = int(ends[-1])
            done += fit
        self._keep(ids[start:])
        if self._buffered > ROW_GROUP_TOKENS and self._n_rows:
            self._flush()

    def _keep(self, ids: TokenIds) -> None:
        n = self._buffered + len(ids)
        if n > LIST_LIMIT:
            raise OutputError(
                f"{self._file.path}: a document of more than {LIST_LIMIT} tokens does not fit "
                "a Parquet list; use the format 'bin'"
            )
        if n > len(self._ids):
            larger = np.empty(2 * n, self.dtype)
            larger[: self._buffered] = self._ids[: self._buffered]
            self._ids = larger
        self._ids[self._buffered : n] = ids
        self._buffered = n

    def _flush(self) -> None:
        """Write the documents that have ended as one row group; keep the tokens after them."""
        offsets = np.concatenate([np.zeros(1, np.int64), *self._ends])
        end = int(offsets[-1])
        columns = [
            *self.origins.take(self._n_rows),
            pa.ListArray.from_arrays(
                pa.array(offsets.astype(np.int32)),
                pa.array(self._ids[:end]),
                type=self._schema.field("tokens").type,
            ),
            pa.array(np.diff(offsets)),
        ]
        self._table.write_table(pa.table(columns, schema=self._schema), row_group_size=self._n_rows)
        self._buffered -= end
        self._ids[: self._buffered] = self._ids[end : end + self._buffered]
        self._ends, self._n_rows = [], 0

    def _commit(self) -> tuple[File, ...]:
        try:
            if self._n_rows:
                self._flush()
            self._table.close()
        except BaseException:
            self.abort()
            raise
        self._file.commit()
        return (self._file.record(),)

    def abort(self) -> None:
        """Delete what was written; harmless after `close`."""
        # Arrow's writer ends its file when it is deleted; it must do so before the file is gone. Why the file
        # cannot be written, if so, the caller knows already.
        with contextlib.suppress(OutputError, pa.ArrowException):
            self._table.close()
        self._table.is_open = False
        self._file.close()


def shard_schema(dtype: npt.DTypeLike, fingerprint: str) -> pa.Schema:
    """The schema of a shard, with its metadata."""
    name = np.dtype(dtype).name
    return pa.schema(
        [
            *COLUMNS,
            ("tokens", pa.list_(pa.field("element", pa.from_numpy_dtype(np.dtype(dtype))))),
            ("n_tokens", pa.int64()),
        ],
        {"dask_bpe.version": "2", "dask_bpe.vocabulary": fingerprint, "dask_bpe.dtype": name},
    )


def read_shard(file: Any, tokens: int, dtype: npt.DTypeLike) -> tuple[TokenIds, npt.NDArray[np.int64]]:
    """All tokens of a shard, and the offsets of its documents (int64[documents + 1]).

    `file` is a path or an open file. One row group at a time is decoded beside the result. Raises pyarrow's
    errors for a damaged file, and ValueError when it does not hold `tokens` tokens.
    """
    ids = np.empty(tokens, dtype)
    lengths = [np.zeros(1, np.int64)]
    done = 0
    with pq.ParquetFile(file) as table:
        for group in range(table.num_row_groups):
            for column in table.read_row_group(group, columns=["tokens"], use_threads=False).column(0).chunks:
                values = column.flatten().to_numpy()
                ids[done : done + len(values)] = values
                lengths.append(column.value_lengths().to_numpy().astype(np.int64))
                done += len(values)
    if done != tokens:
        raise ValueError(f"it holds {done} tokens")
    return ids, np.cumsum(np.concatenate(lengths))
