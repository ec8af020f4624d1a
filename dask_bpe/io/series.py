"""The shards of one partition, one after the other: a new one begins behind the document that fills one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dask_bpe.io.origins import Origins
from dask_bpe.io.writer import Shard, ShardWriter, Span, TokenIds


class ShardSeries:
    """Writes tokens into as many shards as they fill. For one thread.

    Parameters
    ----------
    open_next : opens the shard of this number, whose documents have these origins, and of which the first document
        continues one of the partition before, or doesn't.
    limit : tokens after which a shard ends with the document that is being written: no document is cut, and one that
        is longer is an oversized shard.
    continues : the first document was begun in the partition before.
    check : called before every shard takes its place; what it raises keeps it from doing so.
    """

    def __init__(
        self,
        open_next: Callable[[int, Origins, bool], ShardWriter],
        limit: int,
        *,
        continues: bool,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_next = open_next
        self._limit = limit
        self._continues = continues
        self._check = check
        self._writer: ShardWriter | None = None
        self._span: Span | None = None
        self._shards: list[Shard] = []
        self._number = 0
        self.origins = Origins()

    @property
    def begun(self) -> bool:
        """Whether there was anything to write yet."""
        return self._span is not None

    def begin(self, span: Span) -> None:
        """What is written next comes from here."""
        self._span = span
        if self._writer is not None:
            self._writer.sources.append(span)

    def write(self, ids: TokenIds, document_ends: npt.NDArray[np.int64]) -> None:
        """Append tokens, see `ShardWriter.write`. Raises ParameterError, OutputError."""
        while True:
            writer = self._current()
            full = int(np.searchsorted(document_ends, self._limit - writer.tokens))
            if full >= len(document_ends):
                writer.write(ids, document_ends)
                return
            end = int(document_ends[full])
            # Documents without tokens stay with the one before them.
            full = int(np.searchsorted(document_ends, end, "right"))
            writer.write(ids[:end], document_ends[:full])
            self._close()
            ids, document_ends = ids[end:], document_ends[full:] - end
            if not len(ids):
                return

    def close(self) -> tuple[Shard, ...]:
        """End the last shard; the records of all. Raises OutputError."""
        if self._writer is not None:
            self._close()
        return tuple(self._shards)

    def _current(self) -> ShardWriter:
        if self._writer is None:
            self._writer = self._open_next(self._number, self.origins, self._continues)
            if self._span is not None:
                self._writer.sources.append(self._span)
            self._continues = False
        return self._writer

    def _close(self) -> None:
        assert self._writer is not None
        self._check()
        shard = self._writer.close()
        if shard is not None:
            self._shards.append(shard)
            self._number += 1
        self._writer = None

    def abort(self) -> None:
        """Delete what was written of a shard that is not complete; harmless after `close`."""
        if self._writer is not None:
            self._writer.abort()
