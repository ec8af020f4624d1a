"""Megatron-LM's indexed datasets: tokens, and an index with a sequence per document.

    part-00000_text_document.bin      id id id ...
    part-00000_text_document.idx
        "MMIDIDX\\0\\0"                 9 bytes
        uint64      version           1
        uint8       dtype of an id    8 uint16, 4 int32
        uint64      sequences         n: the documents
        uint64      documents         n + 1
        int32[n]    lengths           in tokens
        int64[n]    pointers          in bytes: where each begins in the .bin
        int64[n+1]  documents         0 1 2 ... n

Little-endian. Give Megatron the path without the suffix. Its own tool writes uint16 for vocabularies of fewer than
65,500 ids; its reader goes by the dtype in the file, so here every vocabulary that fits has it. Megatron has no uint32:
larger ids are int32.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.spill import PIECE
from dask_bpe.io.layouts.writer import LayoutWriter

_CODES = {"uint16": 8, "int32": 4}


class MegatronWriter(LayoutWriter):
    """Writes ``part-NNNNN_text_document.bin`` and ``.idx``; one pair unless shards are asked for."""

    dtypes = ("uint16", "int32")
    document_limit = 2**31 - 1
    names = r"part-\d{5,}_text_document\.(bin|idx)"

    def _begin(self, shard: int) -> None:
        self._bin = self._create(f"part-{shard:05d}_text_document.bin")
        self._lengths = self._spill()

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        self._bin.write(ids.data)
        self._lengths.write(documents.lengths.astype("<i4").data)

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        self._commit(self._bin, tokens, documents)
        file = self._create(f"part-{shard:05d}_text_document.idx")
        head = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, _CODES[self.job.dtype.name], documents, documents + 1)
        file.write(head)
        for piece in self._lengths.pieces():
            file.write(piece)
        begins = 0
        for piece in self._lengths.pieces():
            ends = begins + np.cumsum(np.frombuffer(piece, "<i4"), dtype="<i8") * self.job.dtype.itemsize
            file.write(np.concatenate([[begins], ends[:-1]], dtype="<i8").data)
            begins = int(ends[-1])
        for first in range(0, documents + 1, PIECE):
            file.write(np.arange(first, min(first + PIECE, documents + 1), dtype="<i8").data)
        self._discard(self._lengths)
        self._commit(file)
