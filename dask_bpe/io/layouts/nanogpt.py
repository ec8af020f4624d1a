"""nanoGPT: all documents in one file, as its ``train.py`` maps it into memory.

    train.bin      id id ... EOT id id ... EOT      little-endian uint16, no header
    val.bin        the same, where validation tokens are asked for

Nothing but the separator tells where a document ends, so every document gets one.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.writer import LayoutWriter


class NanogptWriter(LayoutWriter):
    """Writes ``train.bin`` and ``val.bin``."""

    dtypes = ("uint16",)
    divisible = False
    validation = True
    separator = "after"
    names = r"(train|val)\.bin"

    def _begin(self, shard: int) -> None:
        self._bin = self._create("val.bin" if self.job.val_tokens and shard == 0 else "train.bin")

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        self._bin.write(ids.data)

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        self._commit(self._bin, tokens, documents)
