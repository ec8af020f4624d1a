"""Documents of tables: a column of strings in Parquet or Arrow IPC files.

Parquet     a row group belongs to the byte range that its first page starts in. Workers read the footer, of the
            pages only those of the columns they need. What is damaged costs its row group from there on. The footer
            has no checksum, and for some altered bytes in it Arrow (26.0) ends the process instead of raising.
Arrow IPC   in both of its forms, with a footer (``.arrow``, Feather 2) and as a stream (as Hugging Face writes
            it); both are read as streams, compressed ones too. What is damaged costs the rest of the file.

Rows are numbered from the start of the file.

Measured on one core (a busy one; English, documents of 5 kB), in MB of text a second: Parquet in zstd 530 (with
ids 400), Arrow IPC 1,700.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dask_bpe.errors import CorruptError, InputError
from dask_bpe.io import paths
from dask_bpe.io.inputs.compression import Compression, open_stream
from dask_bpe.io.inputs.documents import Bad, Documents
from dask_bpe.io.inputs.stored import StoredFile
from dask_bpe.io.inputs.text_column import NoColumn, TextColumn, indices

# Pages are read through a buffer, or Arrow would hold all of a row group's column in compressed form.
_BUFFER = 1 << 20
# Rows at a time: a dictionary can make long texts of the few bytes that a row takes in the file.
_ROWS = 1024
_FOOTER_MAGIC = b"ARROW1"
_TAIL = 4 + len(_FOOTER_MAGIC)
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
# What Arrow raises about the content of a file: `StoredFile` has kept the failures of the storage apart.
# A name that is not UTF-8 is the UnicodeError.
_DAMAGE = (pa.ArrowException, OSError, EOFError, UnicodeError)


def read_parquet(
    path: str, start: int, stop: int, size: int, column: str, id_column: str | None, batch_bytes: int
) -> Iterator[Documents | Bad]:
    """Documents of the row groups that start in bytes [start, stop) of a Parquet file of `size` bytes.

    What is wrong with the file as a whole is said by the range that starts at 0. Raises InputError when the storage
    fails or the file has another size.
    """
    with StoredFile(path) as stored:
        found = stored.seek(0, 2)
        if found != size:
            raise InputError(f"{path}: file changed while being read: it is {found} bytes long, {size} were expected")
        try:
            file = pq.ParquetFile(pa.PythonFile(stored, mode="r"), buffer_size=_BUFFER, page_checksum_verification=True)
            texts = TextColumn(file.schema_arrow, path, column, id_column, batch_bytes)
        except (*_DAMAGE, NoColumn) as error:
            if start == 0 and (stop > 0 or not size):
                what = "" if isinstance(error, NoColumn) else "not a whole Parquet file: "
                yield Bad(path, None, None, what + paths.one_line(error))
            return
        first_row = 0
        for group, position in enumerate(_row_group_starts(file.metadata, size)):
            n_rows = file.metadata.row_group(group).num_rows
            if start <= position < stop:
                yield from _read_row_group(file, group, first_row, n_rows, texts, path)
            first_row += n_rows
        yield from texts.rest()


def _row_group_starts(metadata: pq.FileMetaData, size: int) -> list[int]:
    """The byte by which a row group belongs to a range: that of its first page, and never before earlier groups.

    So every group belongs to one range, and ranges in order have rows in order, wherever a writer put its pages.
    """
    starts = []
    for group in range(metadata.num_row_groups):
        about = metadata.row_group(group)
        columns = [about.column(i) for i in range(about.num_columns)]
        offsets = [column.data_page_offset for column in columns]
        # Some writers say 0 where there is no dictionary.
        offsets += [column.dictionary_page_offset for column in columns if column.dictionary_page_offset]
        starts.append(min(max(min(offsets, default=0), 0), size - 1))
    return [int(start) for start in np.maximum.accumulate(np.array(starts, np.int64))]


def _read_row_group(
    file: pq.ParquetFile, group: int, first_row: int, n_rows: int, texts: TextColumn, path: str
) -> Iterator[Documents | Bad]:
    row, end = first_row, first_row + n_rows
    batches = file.iter_batches(_ROWS, row_groups=[group], columns=texts.columns, use_threads=False)
    while row < end:
        batch = None
        try:
            batch = next(batches, None)
            reason = f"only {row - first_row} of its {n_rows} rows are there"
        except _DAMAGE as error:
            reason = paths.one_line(error)
        if batch is None:
            yield from texts.rest()
            yield Bad(path, row, None, f"rows {row} to {end - 1} (row group {group}) cannot be read: {reason}")
            return
        yield from texts.read(batch, row)
        row += batch.num_rows


def read_arrow(
    path: str, compression: Compression | None, column: str, id_column: str | None, batch_bytes: int
) -> Iterator[Documents | Bad]:
    """Documents of an Arrow IPC file. Raises InputError when the storage fails."""
    try:
        with _ArrowFile(path, compression) as file:
            schema = file.open(None).schema
        texts = TextColumn(schema, path, column, id_column, batch_bytes)
    except (CorruptError, *_DAMAGE, NoColumn) as error:
        what = "" if isinstance(error, NoColumn) else "not an Arrow IPC file: "
        yield Bad(path, None, None, what + paths.one_line(error).removeprefix(f"{path}: "))
        return
    fields = sorted({indices(pa.struct(list(schema)), name)[0] for name in texts.columns})
    row = 0
    with _ArrowFile(path, compression) as file:
        try:
            for batch in file.open(fields):
                yield from texts.read(batch, row)
                row += batch.num_rows
            file.check_end()
            damage = ""
        except (CorruptError, *_DAMAGE) as error:
            damage = paths.one_line(error).removeprefix(f"{path}: ")
    yield from texts.rest()
    if damage:
        yield Bad(path, row, None, f"row {row} and what follows cannot be read: {damage}")


class _ArrowFile:
    """An Arrow IPC file in any of its forms, for Arrow to read as a stream.

    A file with a footer is the same stream between a magic word and the footer. Arrow takes a stream that stops
    between two batches for a whole one, so the last bytes it has read are kept to look at.
    """

    def __init__(self, path: str, compression: Compression | None) -> None:
        self.closed = False
        self._file = open_stream(path, compression)
        self._ahead = b""
        self._tail = b""
        self._has_footer = False

    def open(self, fields: list[int] | None) -> pa.ipc.RecordBatchStreamReader:
        """A reader of the batches, of only some of their columns if told so."""
        start = self._file.read(8)
        self._has_footer = start.startswith(_FOOTER_MAGIC)
        self._ahead = b"" if self._has_footer else start
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        return pa.ipc.open_stream(pa.PythonFile(self, mode="r"), options=options)

    def read(self, n: int) -> bytes:
        """The next `n` bytes; fewer only at the end."""
        data = self._ahead[:n]
        self._ahead = self._ahead[n:]
        while len(data) < n and (more := self._file.read(n - len(data))):
            data += more
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        return data

    def check_end(self) -> None:
        """Raises EOFError unless the file ends as its form asks for."""
        tail = self._tail
        n_rest = 0
        while part := self.read(_BUFFER):
            n_rest += len(part)
        if not self._has_footer:
            if tail[-8:] != _END_OF_STREAM:
                raise EOFError("the mark of the stream's end is missing, so more may be missing")
            if n_rest:
                raise EOFError("something follows the end of the stream")
            return
        # The end of the file: a footer, its length in four bytes, the magic word.
        n_footer = int.from_bytes(self._tail[:4], "little")
        if not self._tail.endswith(_FOOTER_MAGIC) or not 0 <= n_rest - n_footer - _TAIL < 64:
            raise EOFError("the footer is missing or does not follow the rows")

    def close(self) -> None:
        """Close the file; harmless when it is closed."""
        self.closed = True
        self._file.close()

    def __enter__(self) -> _ArrowFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
