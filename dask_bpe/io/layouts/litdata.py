"""LitData's chunks, for its ``TokensLoader``: an item per document.

    chunk-0-0.bin
        uint32          n: items
        uint32[n+1]     where each begins, and the end; bytes from the start of the file
        id id id ...
    index.json          the chunks and their configuration; written last

Ids are uint16 (torch code 20, which LitData reads since it knows the dtype) or, for larger vocabularies, int32 (code
16): there is no uint32. A chunk stays below 4 GiB. The loader cuts blocks out of a chunk, whatever its documents.
``updated_at``, a time in its own files, tells caches whether they are out of date: here a checksum of all files does.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.spill import ends_of
from dask_bpe.io.layouts.writer import LayoutWriter

_CODES = {"uint16": 20, "int32": 16}
_PER_ITEM = 4
_HEAD = 8


class LitdataWriter(LayoutWriter):
    """Writes ``chunk-0-N.bin`` and ``index.json``."""

    dtypes = ("uint16", "int32")
    shard_tokens = 32_000_000  # 64 MB in uint16, as `optimize` makes them by default
    shard_limit = 2**32 - 1 - _HEAD
    names = r"chunk-0-\d+\.bin|index\.json"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._chunks: list[dict[str, Any]] = []

    def _sizes(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return lengths * self.job.dtype.itemsize + _PER_ITEM

    def _begin(self, shard: int) -> None:
        self._items, self._item_sizes = self._spill(), self._spill()

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        self._items.write(ids.data)
        self._item_sizes.write((documents.lengths * self.job.dtype.itemsize).astype("<u4").data)

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        file = self._create(f"chunk-0-{shard}.bin")
        begin = 4 + 4 * (documents + 1)
        file.write(np.array([documents, begin], "<u4").data)
        for ends in ends_of(self._item_sizes, begin):
            file.write(ends.data)
        for piece in self._items.pieces():
            file.write(piece)
        self._discard(self._items)
        self._discard(self._item_sizes)
        done = self._commit(file, tokens, documents)
        self._chunks.append({"chunk_bytes": done.bytes, "chunk_size": documents, "dim": tokens, "filename": done.name})

    def _finish(self) -> None:
        config = {
            "chunk_bytes": (self.job.shard_tokens or self.job.tokens) * self.job.dtype.itemsize,
            "chunk_size": None,
            "compression": None,
            "data_format": [f"no_header_tensor:{_CODES[self.job.dtype.name]}"],
            "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
            "encryption": None,
            "item_loader": "TokensLoader",
        }
        digest = xxhash.xxh3_128("".join(file.xxh3_128 for file in self.files).encode()).hexdigest()
        index = self._create("index.json")
        content = {"chunks": self._chunks, "config": config, "updated_at": digest}
        index.write(json.dumps(content, sort_keys=True).encode())
        self._commit(index)
