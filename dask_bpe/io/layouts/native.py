"""Our own shards again: ``.bin`` to Parquet and back, other sizes, other orders.

    part-00000.bin, .idx, .docs.parquet ...  see `memmap`
    part-00000.parquet, ...                  see `parquet`
    manifest.json                            written last; `open_tokens` reads the folder

Every shard holds whole documents. The shards name no spans of text, because theirs are cut elsewhere. In a folder of
Parquet shards the table of the documents is ``_documents.parquet``, a name that readers of whole folders pass over.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, ClassVar

import numpy.typing as npt

from dask_bpe.io import manifest as manifests
from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.writer import LayoutFile, LayoutWriter
from dask_bpe.io.shards import Shard, open_writer


class NativeWriter(LayoutWriter):
    """Writes ``part-NNNNN`` and ``manifest.json``; a subclass per format."""

    format: ClassVar[str]
    shard_tokens = 64_000_000
    names = r"part-\d{5,}\.(bin|idx|docs\.parquet|parquet)|manifest\.json"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._shards: list[Shard] = []

    def _begin(self, shard: int) -> None:
        job = self.job
        self._writer = open_writer(
            self.format, job.folder, f"part-{shard:05d}", job.dtype, fingerprint=job.vocabulary, durable=job.durable
        )

    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        start = 0
        for source, same in groupby(documents.sources):
            stop = start + len(list(same))
            run = documents.rows(start, stop)
            self._writer.origins.add(source, run.positions, run.doc_ids)
            self._writer.write(run.ids, run.offsets[1:])
            start = stop

    def _end(self, shard: int, tokens: int, documents: int) -> None:
        done = self._writer.close()
        assert done is not None, "a shard is begun for tokens"
        self._shards.append(done)
        main, *others = done.files
        self.files.append(LayoutFile(main.name, main.bytes, main.xxh3_128, tokens, documents))
        self.files += [LayoutFile(file.name, file.bytes, file.xxh3_128) for file in others]

    def _finish(self) -> None:
        job = self.job
        manifest = manifests.Manifest(
            self.format,
            job.dtype.name,
            job.vocabulary,
            job.vocab_size,
            dict(job.options),
            tuple(self._shards),
            job.text,
            job.marks,
        )
        file = self._create(manifests.NAME)
        file.write(manifest.to_json().encode())
        self._commit(file)

    def abort(self) -> None:
        """See `LayoutWriter.abort`."""
        if (writer := getattr(self, "_writer", None)) is not None:
            writer.abort()
        super().abort()


class BinWriter(NativeWriter):
    """Writes ``part-NNNNN.bin`` and ``part-NNNNN.idx``."""

    format = "bin"


class ParquetWriter(NativeWriter):
    """Writes ``part-NNNNN.parquet``."""

    format = "parquet"
    sidecar = "_documents.parquet"
