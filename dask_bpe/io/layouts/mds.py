"""MDS of MosaicML's streaming (LLM Foundry): a sample per document, of one column.

    shard.00000.mds
        uint32          n: samples
        uint32[n+1]     where each begins, and the end; bytes from the start of the file
        JSON            the configuration of the shard
        sample: uint32 bytes of what follows | uint8 1 << 2 | c | tokens in uint8, uint16 or uint32 (c = 0, 1, 2) | ids
    index.json          configuration, size, checksum and samples of each shard; written last

The column is ``tokens: ndarray:uint16`` (or ``uint32``). A shard stays below 4 GiB. Its checksum is what
``StreamingDataset(validate_hash="xxh3_128")`` compares. A document of no tokens is an array of shape (0,), which the
reader takes, although its own writer refuses to make one.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.spill import ends_of
from dask_bpe.io.layouts.writer import LayoutWriter

_HASH = "xxh3_128"
# An offset and a size word, the byte with the shape's form, the shape in its longest form.
_PER_SAMPLE = 4 + 4 + 1 + 4
_HEAD = 4096  # the count, the last offset and the configuration are shorter


class MdsWriter(LayoutWriter):
    """Writes ``shard.NNNNN.mds`` and ``index.json``."""

    shard_tokens = 32_000_000  # 64 MB in uint16
    shard_limit = 2**32 - 1 - _HEAD
    names = r"shard\.\d{5,}\.mds|index\.json"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._config: dict[str, Any] = {
            "column_encodings": [f"ndarray:{self.job.dtype.name}"],
            "column_names": ["tokens"],
            "column_sizes": [None],
            "compression": None,
            "format": "mds",
            "hashes": [_HASH],
            "size_limit": None,
            "version": 2,
        }
        self._entries: list[dict[str, Any]] = []

    def _sizes(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return lengths * self.job.dtype.itemsize + _PER_SAMPLE

    def _begin(self, shard: int) -> None:
        self._samples, self._sample_sizes = self._spill(), self._spill()

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        lengths = documents.lengths
        form = np.digitize(lengths, [1 << 8, 1 << 16])
        sizes = 1 + (1 << form) + lengths * self.job.dtype.itemsize
        data, itemsize = ids.view(np.uint8).data, self.job.dtype.itemsize
        bounds = (documents.offsets * itemsize).tolist()
        parts: list[Any] = []
        for i, (size, code, length) in enumerate(zip(sizes.tolist(), form.tolist(), lengths.tolist(), strict=True)):
            head = size.to_bytes(4, "little") + bytes([1 << 2 | code]) + length.to_bytes(1 << code, "little")
            parts += (head, data[bounds[i] : bounds[i + 1]])
        self._samples.write(b"".join(parts))
        self._sample_sizes.write((sizes + 4).astype("<u4").data)

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        file = self._create(f"shard.{shard:05d}.mds")
        config = json.dumps(self._config, sort_keys=True).encode()
        begin = 4 + 4 * (documents + 1) + len(config)
        file.write(np.array([documents, begin], "<u4").data)
        for ends in ends_of(self._sample_sizes, begin):
            file.write(ends.data)
        file.write(config)
        for piece in self._samples.pieces():
            file.write(piece)
        self._discard(self._samples)
        self._discard(self._sample_sizes)
        done = self._commit(file, tokens, documents)
        raw = {"basename": done.name, "bytes": done.bytes, "hashes": {_HASH: done.xxh3_128}}
        self._entries.append({**self._config, "raw_data": raw, "samples": documents, "zip_data": None})

    def _finish(self) -> None:
        index = self._create("index.json")
        index.write(json.dumps({"shards": self._entries, "version": 2}, sort_keys=True).encode())
        self._commit(index)
