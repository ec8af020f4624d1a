"""llm.c: shards with a header, each document begun by the end-of-text token.

    tokens_train_000000.bin
        int32[256]      [0] magic   [1] version   [2] number of tokens, below 2^31   [3...] 0
        EOT id id ... EOT id id ...

    ids       magic      version    read by
    uint16    20240520   1          train_gpt2
    uint32    20240801   7          train_llama3

Little-endian. The size must be 1024 + tokens x size of an id. The loader also refuses a shard shorter than what its
processes take at a time, which only a short last shard would be: here the last one is never shorter than the others.
With validation tokens shard 0 is ``tokens_val_000000.bin``, and training begins with number 1, as in llm.c's scripts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.writer import LayoutWriter

_VERSIONS = {"uint16": (20240520, 1), "uint32": (20240801, 7)}


class LlmcWriter(LayoutWriter):
    """Writes ``tokens_train_NNNNNN.bin`` and ``tokens_val_000000.bin``."""

    shard_tokens = 100_000_000
    validation = True
    separator = "before"
    shard_limit = 2**31 - 1
    names = r"tokens_(train|val)_\d{6,}\.bin"

    def _begin(self, shard: int) -> None:
        self._tokens = self._spill()

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        self._tokens.write(ids.data)

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        split = "val" if self.job.val_tokens and shard == 0 else "train"
        file = self._create(f"tokens_{split}_{shard:06d}.bin")
        header = np.zeros(256, "<i4")
        header[:3] = (*_VERSIONS[self.job.dtype.name], tokens)
        file.write(header.data)
        for piece in self._tokens.pieces():
            file.write(piece)
        self._discard(self._tokens)
        self._commit(file, tokens, documents)
