"""Whole documents of an encoded corpus, some at a time, whatever its shards.

The batches depend on the documents alone: the same corpus in other shards gives the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.io.writer import TokenIds

# A batch of empty documents has no tokens, but it has their names.
BATCH_DOCUMENTS = 1 << 16

Load = Callable[[int], tuple[TokenIds, npt.NDArray[np.int64]]]
Provenance = Callable[[int, int, int], tuple[list[str], list[str], npt.NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Documents that follow one another.

    Attributes
    ----------
    ids : uint16[n] | uint32[n]
        Their token ids, end to end.
    offsets : int64[d + 1]
        Document ``i`` is ``ids[offsets[i]:offsets[i + 1]]``; ``offsets[0] == 0``.
    doc_ids, sources : list of str, d each
        Identifier of each document, and the file it comes from ("" when it is not known).
    positions : int64[d]
        Where each lies in its source: the byte or row it begins at; -1 when it is not known.
    """

    ids: TokenIds
    offsets: npt.NDArray[np.int64]
    doc_ids: list[str]
    sources: list[str]
    positions: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each document."""
        lengths: npt.NDArray[np.int64] = np.diff(self.offsets)
        return lengths

    def rows(self, start: int, stop: int) -> TokenBatch:
        """Documents `start` to `stop`; their ids are a view."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        return TokenBatch(
            self.ids[first:last],
            self.offsets[start : stop + 1] - first,
            self.doc_ids[start:stop],
            self.sources[start:stop],
            self.positions[start:stop],
        )


def join_batches(batches: Sequence[TokenBatch], dtype: npt.DTypeLike) -> TokenBatch:
    """One batch of the documents of all; the batch itself when it is the only one."""
    if len(batches) == 1:
        return batches[0]
    ids = np.concatenate([np.empty(0, dtype), *(batch.ids for batch in batches)], dtype=dtype)
    lengths = np.concatenate([np.zeros(1, np.int64), *(batch.lengths for batch in batches)])
    return TokenBatch(
        ids,
        np.cumsum(lengths),
        [name for batch in batches for name in batch.doc_ids],
        [name for batch in batches for name in batch.sources],
        np.concatenate([np.empty(0, np.int64), *(batch.positions for batch in batches)]),
    )


def in_batches(pieces: Iterator[TokenBatch], max_tokens: int, dtype: npt.DTypeLike) -> Iterator[TokenBatch]:
    """The documents of the pieces in batches of at most `max_tokens` tokens and BATCH_DOCUMENTS documents.

    A document of more tokens is a batch of its own. Each batch but the last holds as many documents as it can.
    """
    parts: list[TokenBatch] = []
    tokens = documents = 0
    for piece in pieces:
        start = 0
        while start < len(piece):
            room = piece.offsets[start] + max_tokens - tokens
            fit = int(np.searchsorted(piece.offsets[start + 1 :], room, "right"))
            fit = min(fit, BATCH_DOCUMENTS - documents)
            if not fit and parts:
                yield join_batches(parts, dtype)
                parts, tokens, documents = [], 0, 0
                continue
            stop = start + max(fit, 1)
            parts.append(piece.rows(start, stop))
            tokens += len(parts[-1].ids)
            documents += stop - start
            start = stop
    if parts:
        yield join_batches(parts, dtype)


def whole_documents(
    shards: Sequence[int], joins: Sequence[bool], load: Load, provenance: Provenance, dtype: npt.DTypeLike
) -> Iterator[TokenBatch]:
    """Every document of the corpus, joined over shards, in pieces that end where its shards end.

    Parameters
    ----------
    shards : rows of the index of each shard.
    joins : whether its first row belongs to the last document of the shard before it.
    load : ids and offsets of a shard.
    provenance : of the rows `start` to `stop` of a shard.
    """
    open_parts: list[TokenIds] = []  # of the document that goes on in the next shard
    begins = (0, 0)  # the shard and row where it began
    for shard, rows in enumerate(shards):
        ids, offsets = load(shard)
        goes_on = shard + 1 < len(shards) and joins[shard + 1]
        start = 0
        if joins[shard]:
            open_parts.append(ids[: int(offsets[1])])
            start = 1
            if goes_on and rows == 1:
                continue
            yield _piece(_joined(open_parts, dtype), None, provenance(*begins, begins[1] + 1))
        stop = rows - goes_on
        for first in range(start, stop, BATCH_DOCUMENTS):
            last = min(first + BATCH_DOCUMENTS, stop)
            bounds = np.asarray(offsets[first : last + 1])
            yield _piece(ids[int(bounds[0]) : int(bounds[-1])], bounds - bounds[0], provenance(shard, first, last))
        open_parts = [ids[int(offsets[stop]) :]] if goes_on else []
        begins = (shard, stop)


def _joined(parts: list[TokenIds], dtype: npt.DTypeLike) -> TokenIds:
    joined: TokenIds = np.concatenate(parts, dtype=dtype)
    return joined


def _piece(
    ids: TokenIds,
    offsets: npt.NDArray[np.int64] | None,
    provenance: tuple[list[str], list[str], npt.NDArray[Any]],
) -> TokenBatch:
    bounds = np.array([0, len(ids)], np.int64) if offsets is None else offsets
    return TokenBatch(ids, bounds, *provenance)
