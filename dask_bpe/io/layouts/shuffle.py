"""Documents in an order drawn by a seed, with few of them in memory.

The order is that of a 64-bit key per document, made of its number in the corpus and the seed alone. So it is the same
on any machine, for any shards and any memory; and because different numbers have different keys, it loses and doubles
nothing. Documents are dealt to temporary files by the first bits of their keys, and each file is sorted in memory; one
that turned out too large is dealt again, by the bits that follow.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dask_bpe.errors import OutputError
from dask_bpe.io import paths
from dask_bpe.io.atomic import TEMPORARY_MARK
from dask_bpe.io.batches import TokenBatch, in_batches
from dask_bpe.io.layouts.documents import strings
from dask_bpe.io.reader import TokenCorpus

# What a temporary file should hold: it is read into memory, and copied there once in its new order.
BUCKET_TOKENS = 1 << 24
BUCKET_DOCUMENTS = 1 << 19
# Files that are open at a time: far fewer than a process may have.
MOST_BITS = 7
KEY_BITS = 64
FOLDER = "shuffle"


@dataclass(frozen=True)
class _Size:
    """Tokens and documents, and how many are too many for one bucket."""

    tokens: int
    documents: int

    def bits(self) -> int:
        """Two to the power of them are as many buckets as it takes, within what may be open at a time."""
        buckets = max(-(-self.tokens // BUCKET_TOKENS), -(-self.documents // BUCKET_DOCUMENTS), 1)
        return min((buckets - 1).bit_length(), MOST_BITS)


def keys(numbers: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """The keys of documents with these numbers: uint64, all different (a bijection; SplitMix64's mixing)."""
    start = _mix(np.array([seed], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return _mix(_mix(numbers + np.uint64(1)) ^ start)


def shuffled(
    batches: Iterable[TokenBatch], seed: int, corpus: TokenCorpus, folder: str, max_tokens: int
) -> Iterator[TokenBatch]:
    """The documents of the batches in the order of `seed`, in batches of at most `max_tokens`.

    Parameters
    ----------
    batches : all documents of the corpus, in their order.
    folder : the output; temporary files lie there if it is local.

    Raises
    ------
    OutputError
        There is no room for the temporary files.
    """
    place = None if paths.is_remote(folder) else folder
    try:
        with tempfile.TemporaryDirectory(prefix=FOLDER + TEMPORARY_MARK, dir=place) as scratch:
            size = _Size(corpus.n_tokens, corpus.n_documents)
            rows = _in_order(_keyed(batches, seed), size, 0, Path(scratch))
            yield from in_batches(map(_to_batch, rows), max_tokens, corpus.dtype)
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"cannot shuffle in {folder}: {paths.one_line(error)}") from error


def _keyed(batches: Iterable[TokenBatch], seed: int) -> Iterator[pa.RecordBatch]:
    number = 0
    for batch in batches:
        numbers = np.arange(number, number + len(batch), dtype=np.uint64)
        number += len(batch)
        columns = {
            "key": pa.array(keys(numbers, seed)),
            "tokens": pa.LargeListArray.from_arrays(pa.array(batch.offsets), pa.array(batch.ids)),
            "doc_id": strings(batch.doc_ids),
            "source": strings(batch.sources),
            "position": pa.array(batch.positions, pa.int64()),
        }
        yield pa.RecordBatch.from_pydict(columns)


def _in_order(rows: Iterable[pa.RecordBatch], size: _Size, used: int, folder: Path) -> Iterator[pa.RecordBatch]:
    """The rows sorted by key, of which the first `used` bits are the same in all."""
    bits = min(size.bits(), KEY_BITS - used)
    if not bits or size.documents <= 1:
        yield from _sorted(list(rows))
        return
    buckets = [_Bucket(folder / f"{used}-{index}") for index in range(1 << bits)]
    with contextlib.ExitStack() as stack:
        for bucket in buckets:
            stack.callback(bucket.close)
        for batch in rows:
            _deal(batch, buckets, used, bits)
    for bucket in buckets:
        if bucket.documents:
            yield from _in_order(bucket.rows(), _Size(bucket.tokens, bucket.documents), used + bits, folder)
        bucket.delete()


def _deal(batch: pa.RecordBatch, buckets: list[_Bucket], used: int, bits: int) -> None:
    key = batch.column("key").to_numpy()
    target = (key << np.uint64(used)) >> np.uint64(KEY_BITS - bits)
    order = np.argsort(target, kind="stable")
    bounds = np.searchsorted(target[order], np.arange(len(buckets) + 1, dtype=np.uint64))
    ordered = batch.take(pa.array(order))
    for index in np.flatnonzero(np.diff(bounds)):
        buckets[index].add(ordered.slice(int(bounds[index]), int(bounds[index + 1] - bounds[index])))


def _sorted(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if batches:
        table = pa.Table.from_batches(batches).combine_chunks()
        order = np.argsort(table.column("key").to_numpy(), kind="stable")
        yield from table.take(pa.array(order)).combine_chunks().to_batches()


class _Bucket:
    """Rows in an Arrow stream; the file is made when there is a first one."""

    def __init__(self, path: Path) -> None:
        self.tokens = self.documents = 0
        self._path = path
        self._file: Any = None
        self._stream: Any = None

    def add(self, rows: pa.RecordBatch) -> None:
        if self._stream is None:
            self._file = self._path.open("wb")
            self._stream = pa.ipc.new_stream(self._file, rows.schema)
        self._stream.write_batch(rows)
        self.documents += len(rows)
        self.tokens += len(rows.column("tokens").flatten())

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._file.close()

    def rows(self) -> Iterator[pa.RecordBatch]:
        with self._path.open("rb") as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def delete(self) -> None:
        self._path.unlink(missing_ok=True)


def _to_batch(rows: pa.RecordBatch) -> TokenBatch:
    tokens = rows.column("tokens")
    offsets = tokens.offsets.to_numpy()
    return TokenBatch(
        tokens.flatten().to_numpy(),
        offsets - offsets[0],
        rows.column("doc_id").to_pylist(),
        rows.column("source").to_pylist(),
        rows.column("position").to_numpy(),
    )


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
