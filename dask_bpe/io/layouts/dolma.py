"""dolma and OLMo: raw ids, and a table of the documents.

    part-0-00000.npy         id id id ...      little-endian, raw: no header, whatever the suffix says
    part-0-00000.csv.gz      start,end,id,src,loc      a line per document, no heading

`start` and `end` are tokens of the .npy, half-open. The dtype is the smallest of uint8, uint16 and uint32 that holds
every id of the vocabulary: what its readers take for granted. `loc` is our position, -1 when not known (dolma's own
is the line in the source, from 1). Readers go through the table line by line: a line end within an id or a source is
written as a space; the exact ones are in ``documents.parquet``.
"""

from __future__ import annotations

import csv
import io
import zlib
from typing import Any

import numpy.typing as npt

from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.documents import strings
from dask_bpe.io.layouts.writer import LayoutWriter


class DolmaWriter(LayoutWriter):
    """Writes ``part-0-NNNNN.npy`` and ``part-0-NNNNN.csv.gz``."""

    dtypes = ("uint8", "uint16", "uint32")
    shard_tokens = 500_000_000  # of 1 GB in uint16: OLMo-core packs best in large files
    names = r"part-0-\d{5,}\.(npy|csv\.gz)"

    def _begin(self, shard: int) -> None:
        self._npy = self._create(f"part-0-{shard:05d}.npy")
        self._csv = self._create(f"part-0-{shard:05d}.csv.gz")
        # gzip by zlib itself: no name and no time in its head, so that the same rows are the same bytes.
        self._gzip = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        self._start = 0

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        self._npy.write(ids.data)
        text = io.StringIO()
        bounds = (documents.offsets + self._start).tolist()
        names = [" ".join(name.splitlines()) for name in strings(documents.doc_ids).to_pylist()]
        sources = [" ".join(name.splitlines()) for name in strings(documents.sources).to_pylist()]
        rows = zip(bounds[:-1], bounds[1:], names, sources, documents.positions.tolist(), strict=True)
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._csv.write(self._gzip.compress(text.getvalue().encode()))
        self._start = bounds[-1]

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        self._csv.write(self._gzip.flush())
        self._commit(self._npy, tokens, documents)
        self._commit(self._csv)
