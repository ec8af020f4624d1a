"""A column of texts in Arrow's memory, as documents: no Python string is made of any of them.

Strings and binary of all of Arrow's layouts (with offsets of 32 or 64 bits, views, dictionaries) are texts;
structs are walked into by a dotted path.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dask_bpe.io import utf8
from dask_bpe.io.inputs.documents import Bad, Batch, Documents, Int64s


class NoColumn(Exception):
    """A table lacks a column, or has one of the wrong type; says which."""


class TextColumn:
    """Takes the texts, and ids if there is an `id_column`, of record batches of one schema.

    Raises
    ------
    NoColumn
    """

    def __init__(self, schema: pa.Schema, source: str, column: str, id_column: str | None, batch_bytes: int) -> None:
        self.columns = [column] if id_column is None else [column, id_column]
        self._source = source
        self._batch_bytes = batch_bytes
        self._batch = Batch(batch_bytes, id_column is not None)
        kind = type_of(schema, column)
        if not (_is_text(kind) or pa.types.is_null(kind)):
            raise NoColumn(f"the column {column!r} is of type {kind}: strings were expected")
        if id_column is not None:
            kind = type_of(schema, id_column)
            if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
                raise NoColumn(
                    f"the column {id_column!r} is of type {kind}: strings or whole numbers were expected as ids"
                )

    def read(self, table: pa.RecordBatch, first_row: int) -> Iterator[Documents | Bad]:
        """Documents of some rows; perhaps not all of them yet. `first_row` is the number of the first.

        Raises pyarrow.ArrowInvalid when the table is not sound.
        """
        columns = [_plain(_column(table, name)) for name in self.columns]
        ends = np.cumsum(_lengths(columns[0]))
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, before + self._batch_bytes, "right")), start + 1)
            if not self._batch.fits(int(ends[stop - 1]) - before):
                yield from self.rest()
            rows = np.arange(first_row + start, first_row + stop)
            yield from self._add([column[start:stop] for column in columns], rows)
            start = stop

    def rest(self) -> Iterator[Documents]:
        """The documents that are still here."""
        if documents := self._batch.take():
            yield documents

    def _add(self, columns: list[pa.Array], rows: Int64s) -> Iterator[Bad]:
        good = np.ones(len(rows), np.bool_)
        for column, name in zip(columns, self.columns, strict=True):
            for wrong, what in ((_nulls(column), "null"), (_not_utf8(column), "not UTF-8")):
                for row in rows[wrong & good].tolist():
                    yield Bad(self._source, row, None, f"the column {name!r} is {what} in this row")
                good &= ~wrong
        if not good.all():
            keep = pa.array(np.flatnonzero(good))
            columns = [column.take(keep) for column in columns]
            rows = rows[good]
        if len(rows):
            values, offsets = _dense(columns[0])
            self._batch.add(values, np.diff(offsets), rows, _as_strings(columns[1]) if len(columns) > 1 else None)


def type_of(schema: pa.Schema, path: str) -> pa.DataType:
    """The type of a column, by its dotted path. Raises NoColumn."""
    kind: pa.DataType = pa.struct(list(schema))
    for index in indices(kind, path):
        kind = kind.field(index).type
    return kind


def indices(kind: pa.DataType, path: str) -> list[int]:
    """The way to a column: its field in the schema (as a struct), the field in that, ...

    At every step the longest literal name wins. Raises NoColumn.
    """
    way = _descend(kind, path)
    if way is None:
        names = ", ".join(repr(field.name) for field in list(kind)[:20])
        raise NoColumn(f"no column, or more than one, is named {path!r}; there are: {names or 'none'}")
    return way


def _descend(kind: pa.DataType, path: str) -> list[int] | None:
    if not pa.types.is_struct(kind):
        return None
    if (index := kind.get_field_index(path)) >= 0:
        return [index]
    end = path.rfind(".")
    while end >= 0:
        if (index := kind.get_field_index(path[:end])) >= 0:
            way = _descend(kind.field(index).type, path[end + 1 :])
            if way is not None:
                return [index, *way]
        end = path.rfind(".", 0, end)
    return None


def _column(table: pa.RecordBatch, path: str) -> pa.Array:
    """A column, null where a struct around it is."""
    first, *inner = indices(pa.struct(list(table.schema)), path)
    column = table.column(first)
    return pc.struct_field(column, inner) if inner else column


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _plain(column: pa.Array) -> pa.Array:
    """Texts as binary, large_binary or a dictionary of these, checked to be sound; integers and nulls as they are.

    As binary, because of strings Arrow checks the UTF-8 too, and of all of them at once.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pa.DictionaryArray.from_arrays(column.indices, _plain(column.dictionary))
    elif pa.types.is_string(kind):
        column = column.view(pa.binary())
    elif pa.types.is_large_string(kind):
        column = column.view(pa.large_binary())
    elif pa.types.is_string_view(kind):
        column = column.view(pa.binary_view())
    column.validate(full=True)
    if pa.types.is_binary(column.type) or pa.types.is_binary_view(column.type):
        # Arrow picks nothing from views; and what is picked of a column of 2 GB takes offsets of 64 bits.
        column = column.cast(pa.large_binary())
    return column


def _lengths(texts: pa.Array) -> Int64s:
    """Bytes of every text; 0 for null."""
    if pa.types.is_null(texts.type):
        return np.zeros(len(texts), np.int64)
    if pa.types.is_dictionary(texts.type):
        # Looked up: a long text that all rows share must not be laid out to be measured.
        lengths = pa.array(_lengths(texts.dictionary)).take(texts.indices)
    else:
        lengths = pc.binary_length(texts)
    return np.asarray(lengths.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _dense(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Texts as values (uint8) and offsets (int64) from 0; of texts that stand in no dictionary without a copy."""
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if pa.types.is_null(texts.type):
        return np.empty(0, np.uint8), np.zeros(len(texts) + 1, np.int64)
    _, offset_buffer, value_buffer = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    values = np.frombuffer(value_buffer if value_buffer is not None else b"", np.uint8)
    return values[offsets[0] : offsets[-1]], offsets - offsets[0]


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _not_utf8(column: pa.Array) -> npt.NDArray[np.bool_]:
    wrong = np.zeros(len(column), np.bool_)
    if not pa.types.is_integer(column.type):
        wrong[utf8.invalid_texts(*_dense(column))] = True
    return wrong


def _as_strings(ids: pa.Array) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in ids.to_pylist()]
