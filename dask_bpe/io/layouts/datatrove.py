"""datatrove: raw ids, and the ends of the documents.

    part-00000.ds               id id id ...     little-endian uint16 or uint32
    part-00000.ds.index         end end ...      little-endian uint64, in tokens, one per document; no count, no 0
    part-00000.ds.metadata      tokenizer|bytes of an id
                                tokens
                                tokens for people, as "12.3 MT"

The tokenizer is named by the fingerprint of its vocabulary. A document of no tokens is the same end twice: readers of
the ids do not see it, but `DatatroveFileDataset(return_positions=True)` counts past it, for the rest of its window.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.writer import LayoutWriter


class DatatroveWriter(LayoutWriter):
    """Writes ``part-NNNNN.ds`` with ``.ds.index`` and ``.ds.metadata``."""

    shard_tokens = 500_000_000
    names = r"part-\d{5,}\.ds(\.index|\.metadata)?"

    def _begin(self, shard: int) -> None:
        self._ds = self._create(f"part-{shard:05d}.ds")
        self._index = self._create(f"part-{shard:05d}.ds.index")
        self._start = 0

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        self._ds.write(ids.data)
        self._index.write((documents.offsets[1:] + self._start).astype("<u8").data)
        self._start += len(ids)

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        self._commit(self._ds, tokens, documents)
        self._commit(self._index)
        metadata = self._create(f"part-{shard:05d}.ds.metadata")
        tokenizer = f"dask_bpe:{self.job.vocabulary}"
        metadata.write(f"{tokenizer}|{self.job.dtype.itemsize}\n{tokens}\n{_for_people(tokens)}".encode())
        self._commit(metadata)


def _for_people(count: int) -> str:
    """Three digits and a unit: `5.00 T`, `12.3 MT`."""
    scaled, prefixes = float(count), iter("kMGTPE")
    prefix = ""
    while scaled >= 999.5:
        scaled /= 1000
        prefix = next(prefixes)
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f} {prefix}T"
