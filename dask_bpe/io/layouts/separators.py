"""The token between documents: at the end of each as it was encoded, or moved to its front."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from dask_bpe.io.batches import TokenBatch

Placing = Literal["kept", "after", "before"]
"""Where a layout has the separator. "kept": as encoded, where a document whose file just ended has none. "after":
each document ends with it. "before": each begins with it, and none ends with it; the last token of the corpus moves
to its front, so to say."""


def ended(batch: TokenBatch, separator: int) -> npt.NDArray[np.bool_]:
    """Which documents end with the separator."""
    found = np.zeros(len(batch), bool)
    full = batch.lengths > 0
    found[full] = batch.ids[batch.offsets[1:][full] - 1] == separator
    return found


def place(batch: TokenBatch, separator: int, placing: Placing) -> tuple[TokenBatch, int]:
    """The documents with exactly one separator each at the place, and how many of them had none."""
    has = ended(batch, separator)
    lacking = int(len(has) - has.sum())
    if placing == "kept" or (placing == "after" and not lacking):
        return batch, lacking
    offsets = np.zeros(len(batch) + 1, np.int64)
    np.cumsum(batch.lengths + ~has, out=offsets[1:])
    ids = np.empty(int(offsets[-1]), batch.ids.dtype)
    at = offsets[:-1] if placing == "before" else offsets[1:] - 1
    separated = np.zeros(len(ids), bool)
    separated[at] = True
    ids[separated] = separator
    kept = np.ones(len(batch.ids), bool)
    kept[batch.offsets[1:][has] - 1] = False
    ids[~separated] = batch.ids[kept]
    return replace(batch, ids=ids, offsets=offsets), lacking
