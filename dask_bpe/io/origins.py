"""Where documents come from: their ids, sources and positions, in the order of the tokens.

    part-00000.docs.parquet
        doc_id    string     the document's own id, or ``<source>:<position>``
        source    string     the file, or what else gave the document
        position  int64      where it stands there: a byte of the (decompressed) text, a row, a number

A document of which a shard holds a later piece only has the position at which that piece begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dask_bpe.io.atomic import AtomicFile

COLUMNS = (("doc_id", pa.string()), ("source", pa.string()), ("position", pa.int64()))


@dataclass
class _Run:
    """Documents of one source, from `next` on not taken yet."""

    source: str
    positions: npt.NDArray[np.int64]
    ids: Sequence[str] | None
    next: int = 0


class Origins:
    """A queue of origins: they are added as documents are read, and taken as rows are written."""

    def __init__(self) -> None:
        self._runs: deque[_Run] = deque()

    def add(self, source: str, positions: npt.NDArray[np.int64], ids: Sequence[str] | None = None) -> None:
        """Documents of a source, in order. positions : int64[n]; ids : n strings, or None if they have none."""
        if len(positions):
            self._runs.append(_Run(_valid(source), positions, ids))

    def take(self, n: int) -> list[pa.Array]:
        """The columns doc_id, source and position of the next `n` documents; of what nothing is known: "", "", -1."""
        parts = [_columns("", np.full(0, -1, np.int64), None)]
        while n:
            if not self._runs:
                parts.append(_columns("", np.full(n, -1, np.int64), [""] * n))
                break
            run = self._runs[0]
            stop = min(run.next + n, len(run.positions))
            ids = None if run.ids is None else run.ids[run.next : stop]
            parts.append(_columns(run.source, run.positions[run.next : stop], ids))
            n -= stop - run.next
            run.next = stop
            if stop == len(run.positions):
                self._runs.popleft()
        return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]


class OriginsFile:
    """The file beside a shard that keeps the origins of its documents."""

    suffix = ".docs.parquet"

    def __init__(self, path: str, *, durable: bool) -> None:
        self.file = AtomicFile(path, checksum=True, durable=durable)

    def write(self, columns: list[pa.Array]) -> None:
        """Write all of it. Raises OutputError."""
        table = pa.table(columns, schema=pa.schema(COLUMNS))
        pq.write_table(table, self.file, compression="zstd", compression_level=1, use_dictionary=["source"])


def _columns(source: str, positions: npt.NDArray[np.int64], ids: Sequence[str] | None) -> list[pa.Array]:
    places = pa.array(positions)
    sources = pa.repeat(pa.scalar(source, pa.string()), len(positions))
    if ids is None:
        doc_ids = pc.binary_join_element_wise(sources, pc.cast(places, pa.string()), ":")
    else:
        doc_ids = pa.array(ids, pa.string())
    return [doc_ids, sources, places]


def _valid(name: str) -> str:
    """File names that are not UTF-8 have lone surrogates in Python, which a string column cannot hold."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
