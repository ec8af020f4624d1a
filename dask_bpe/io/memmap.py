"""Shards to map into memory: raw token ids, and where the documents lie.

    part-00000.bin    id  id  id  ...            little-endian uint16 or uint32, no header
    part-00000.idx    0  end  end  ...  tokens   little-endian int64[documents + 1], in tokens
    part-00000.docs.parquet                      where the documents come from, see `origins`

Document i is ``bin[idx[i]:idx[i + 1]]``. The dtype is written in the manifest. The ``.bin`` is what nanoGPT
reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.io import paths
from dask_bpe.io.atomic import AtomicFile, File
from dask_bpe.io.origins import OriginsFile
from dask_bpe.io.writer import ShardWriter, TokenIds

# Ids cast, hashed and written at a time: what is cast stays in the L2 cache, and needs no memory but the same 128 or
# 256 KB for the whole shard.
PIECE = 1 << 16


class MemmapWriter(ShardWriter):
    """Writes ``part-NNNNN.bin`` and ``part-NNNNN.idx``."""

    suffix = ".bin"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        stem = paths.join(self.folder, self.stem)
        self._cast = np.empty(PIECE, self.dtype.newbyteorder("<"))
        self._files: list[AtomicFile] = []
        try:
            for suffix in (".bin", ".idx"):
                self._files.append(AtomicFile(stem + suffix, checksum=True, durable=self.durable))
            self._docs = OriginsFile(stem + OriginsFile.suffix, durable=self.durable)
            self._files.append(self._docs.file)
            self._bin, self._idx = self._files[:2]
            self._idx.write(np.zeros(1, "<i8").data)
        except BaseException:
            self.abort()
            raise

    def _append(self, ids: TokenIds, document_ends: npt.NDArray[np.int64]) -> None:
        for start in range(0, len(ids), PIECE):
            piece = ids[start : start + PIECE]
            cast = self._cast[: len(piece)]
            np.copyto(cast, piece, casting="same_kind")
            self._bin.write(cast.data)
        if len(document_ends):
            self._idx.write((document_ends + self._tokens).astype("<i8").data)

    def _commit(self) -> tuple[File, ...]:
        # The main file last: whoever sees it can rely on the others. Those that have their names already when one fails
        # stay: they are whole, and may by now be files of a twin that wrote the same shard and is done.
        try:
            self._docs.write(self.origins.take(self.documents))
            for file in reversed(self._files):
                file.commit()
        except BaseException:
            self.abort()
            raise
        return tuple(file.record() for file in self._files)

    def abort(self) -> None:
        """Delete what was written; harmless after `close`."""
        for file in self._files:
            file.close()
