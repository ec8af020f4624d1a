"""Documents from files of all formats: JSON Lines, Parquet, Arrow IPC, WARC; compressed or not.

What a file is, its name says, unless one is told: ``news.jsonl.gz`` is JSON Lines in gzip. Plain text is no
structured format: it is read by ranges of bytes (`source.read_range`, `compression.open_stream`) and taken apart
at its separators elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.io.inputs import compression
from dask_bpe.io.inputs.compression import Compression
from dask_bpe.io.inputs.documents import Bad, Documents

__all__ = ["KINDS", "Bad", "Documents", "InputFormat", "read_documents"]

KINDS = ("text", "jsonl", "parquet", "arrow", "warc")
_KIND_OF_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".warc": "warc",
    ".wet": "warc",
}


@dataclass(frozen=True)
class InputFormat:
    """How files are to be taken.

    Attributes
    ----------
    kind : one of `KINDS`, or "auto": by the suffix of a file's name below that of its compression, else text. A
        ``.json`` file holds one object a line as well.
    field : of JSON Lines, the field with the text. ``a.b`` is the field b of the object a, unless a field has that
        very name.
    column : of tables, the column with the text, ``a.b`` inside of structs; None: named as `field`.
    id_field : the field or column with a document's own id, a string or whole number; of WARC, the name of a header,
        such as ``WARC-Record-ID``. None: no ids. A document that lacks it is bad.

    Raises
    ------
    ParameterError
        For a kind that is not known, and a name that is empty or no str.
    """

    kind: str = "auto"
    field: str = "text"
    column: str | None = None
    id_field: str | None = None

    def __post_init__(self) -> None:
        if self.kind != "auto" and self.kind not in KINDS:
            raise ParameterError(
                f"the kind of input is {self.kind!r}: 'auto' or one of {', '.join(KINDS)} was expected"
            )
        for name in ("field", "column", "id_field"):
            value = getattr(self, name)
            if value is None and name != "field":
                continue
            if not isinstance(value, str) or not value:
                raise ParameterError(f"{name} is {value!r}: a name was expected, such as 'text' or 'meta.text'")

    def kind_of(self, path: str) -> str:
        """What a file is taken for: one of `KINDS`."""
        if self.kind != "auto":
            return self.kind
        name = compression.without_compression(path).lower()
        return next((kind for suffix, kind in _KIND_OF_SUFFIX.items() if name.endswith(suffix)), "text")

    @staticmethod
    def compression_of(path: str) -> Compression | None:
        """What a file is compressed with, by the suffix of its name."""
        return compression.compression_of(path)

    def splittable(self, path: str) -> bool:
        """Whether parts of a file can be read by themselves; others are read as a whole."""
        return self.compression_of(path) is None and self.kind_of(path) in ("text", "jsonl", "parquet")


def read_documents(
    path: str, start: int, stop: int, size: int, how: InputFormat, batch_bytes: int = 8 << 20
) -> Iterator[Documents | Bad]:
    """The documents that belong to bytes [start, stop) of a file.

    To a range belong the lines of JSON Lines that start in it, and the row groups of Parquet whose first page does.
    So ranges that tile a file give every document once, in order, and what is bad once. Files of other kinds and
    compressed ones are read as a whole.

    Parameters
    ----------
    path
        Absolute local path, or URL.
    start, stop, size
        Bytes on disk; `size` is that of the whole file.
    batch_bytes
        About so much text comes at a time (of JSON Lines: so many bytes of lines); a larger document comes alone.

    Returns
    -------
    Documents as batches in the order of the file. A `Bad` document comes when it is met, with the good ones before it
    perhaps still on their way; a `Bad` rest of a file or row group comes after all that is good before it.

    Raises
    ------
    InputError
        The storage failed (an OSError is the ``__cause__``), or the file changed while being read.
    ParameterError
        The file is of kind text, or a range of it was asked for that cannot be read by itself.
    """
    whole_number("batch_bytes", batch_bytes)
    if not 0 <= start <= stop <= size:
        raise ParameterError(
            f"{path}: a range must satisfy 0 <= start <= stop <= size, not [{start}, {stop}) of {size}"
        )
    kind = how.kind_of(path)
    if kind == "text":
        raise ParameterError(f"{path}: plain text has no documents of a format; name its kind if it is none")
    if not how.splittable(path) and (start, stop) != (0, size):
        raise ParameterError(f"{path}: can only be read as a whole, not in bytes [{start}, {stop})")
    return _reader(path, start, stop, size, kind, how, batch_bytes)


def _reader(
    path: str, start: int, stop: int, size: int, kind: str, how: InputFormat, batch_bytes: int
) -> Iterator[Documents | Bad]:
    # Each format is imported when it is met: half of them most jobs never need.
    packed = how.compression_of(path)
    column = how.column or how.field
    if kind == "jsonl":
        from dask_bpe.io.inputs.jsonl import read_jsonl

        return read_jsonl(path, start, stop, size, packed, how.field, how.id_field, batch_bytes)
    if kind == "warc":
        from dask_bpe.io.inputs.warc import read_warc

        return read_warc(path, packed, how.id_field, batch_bytes)
    from dask_bpe.io.inputs.tables import read_arrow, read_parquet

    if kind == "arrow":
        return read_arrow(path, packed, column, how.id_field, batch_bytes)
    if packed is not None:
        reason = f"Parquet inside {packed} cannot be read, only from its end; decompress the file first"
        return iter([Bad(path, None, None, reason)])
    return read_parquet(path, start, stop, size, column, how.id_field, batch_bytes)
