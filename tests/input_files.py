"""Files of all input formats, and what is read of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from itertools import pairwise
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from dask_bpe.io.inputs import InputFormat, read_documents
from dask_bpe.io.inputs.documents import Bad, Documents

HARD_TEXTS = [
    "",
    "a",
    "é中😀",
    "\0\x01",
    '"\\/\b\f\n\r\t',
    "line\nline\r\n",
    "\u2028\ufeff",
    "x" * 300,
    "\\u0041",
    "\\" * 9,
]


def read(path, how: InputFormat | None = None, ranges=None, batch_bytes: int = 8 << 20) -> tuple[list, list[Bad]]:
    """Position, text and id of every document, and what is bad; ranges: bounds that tile the file."""
    size = Path(path).stat().st_size if "://" not in str(path) else fsspec.open(path).open().size
    documents: list[tuple[int, str, str | None]] = []
    bad: list[Bad] = []
    for start, stop in pairwise(ranges or [0, size]):
        for found in read_documents(str(path), start, stop, size, how or InputFormat(), batch_bytes):
            if isinstance(found, Bad):
                assert "\n" not in found.reason
                bad.append(found)
            else:
                documents += unpacked(found, batch_bytes)
    return documents, bad


def unpacked(found: Documents, batch_bytes: int) -> list[tuple[int, str, str | None]]:
    assert (found.values.dtype, found.offsets.dtype, found.positions.dtype) == (np.uint8, np.int64, np.int64)
    assert len(found.offsets) == len(found.positions) + 1 == len(found) + 1 > 1
    assert found.offsets[0] == 0
    assert found.offsets[-1] == len(found.values)
    assert found.ids is None or len(found.ids) == len(found)
    data = found.values.tobytes()
    texts = [data[start:stop].decode() for start, stop in pairwise(found.offsets.tolist())]
    return list(zip(found.positions.tolist(), texts, found.ids or [None] * len(found), strict=True))


def compress(data: bytes, kind: str) -> bytes:
    """The data in gzip, bz2, xz, zstd or lz4."""
    if kind == "gzip":
        return gzip.compress(data, mtime=0)
    if kind == "bz2":
        return bz2.compress(data)
    if kind == "xz":
        return lzma.compress(data)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, kind) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def write_arrow(path, table: pa.Table, form: str, rows: int = 1000) -> None:
    """A table as parquet, arrow (with a footer) or stream, so many rows in a group or batch."""
    if form == "parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        new = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
        with new(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)


def record(body: bytes, kind: str = "conversion", mime: str = "text/plain", extra: bytes = b"", end=b"\r\n") -> bytes:
    """A WARC record; `extra` are more headers."""
    lines = [
        b"WARC/1.0",
        b"WARC-Type: " + kind.encode(),
        b"WARC-Record-ID: <urn:uuid:%d>" % len(body),
        b"Content-Type: " + mime.encode(),
        b"Content-Length: %d" % len(body),
    ]
    return end.join(lines) + end + extra + end + body + end + end


def texts_of(documents) -> list[str]:
    """The texts of what `read` gives."""
    return [text for _, text, _ in documents]


def tilings(size: int) -> st.SearchStrategy[list[int]]:
    """Bounds of ranges that tile a file."""
    cuts = st.lists(st.integers(0, size), max_size=6)
    return cuts.map(lambda inner: [0, *sorted(inner), size])


def parquet_of(texts: list[str], rows: int) -> tuple[bytes, pq.FileMetaData]:
    """A Parquet file of texts, so many rows in a group, with checksums, and its footer."""
    file = io.BytesIO()
    pq.write_table(pa.table({"text": texts}), file, row_group_size=rows, write_page_checksum=True)
    return file.getvalue(), pq.read_metadata(file)
