"""What a layout is, and the part of writing one that no layout changes: separators, shards, checks, tidying up.

A shard is closed by the document that fills it, and only if the tokens left fill another one: so each shard holds
at least `shard_tokens` tokens, the last one up to twice as many, and no document is cut. Only the format's own limit
on a shard ends one earlier.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import OutputError, ParameterError
from dask_bpe.io import paths
from dask_bpe.io.atomic import AtomicFile
from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.layouts.documents import DocumentsWriter
from dask_bpe.io.layouts.separators import Placing, place
from dask_bpe.io.layouts.spill import Spill

NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Job:
    """What a writer has to know before the first document.

    Attributes
    ----------
    folder : the output; exists.
    dtype : of the ids on disk; one of the layout's.
    tokens : of the corpus, as it was encoded.
    shard_tokens : a shard is full with so many; None for one shard.
    val_tokens : tokens of the shard for validation, which comes first; 0 for none.
    separator : id of the token that ends a document, if there is one.
    vocabulary, vocab_size : fingerprint and number of ids of the vocabulary.
    options : what the encoding was asked for.
    text, marks : of the corpus, see `Manifest`.
    durable : flush the files to the disk before they get their names.
    """

    folder: str
    dtype: np.dtype[Any]
    tokens: int
    shard_tokens: int | None
    val_tokens: int
    separator: int | None
    vocabulary: str
    vocab_size: int
    options: Mapping[str, Any]
    text: Mapping[str, int]
    marks: Mapping[str, Mapping[str, Any]]
    durable: bool = False


@dataclass(frozen=True)
class LayoutFile:
    """A finished file: name, size, checksum (xxh3_128 in hex), and the tokens and documents it holds.

    Both are 0 in files that describe others.
    """

    name: str
    bytes: int
    xxh3_128: str
    tokens: int = 0
    documents: int = 0


class LayoutWriter(ABC):
    """Writes documents in one layout; a subclass per layout. For one thread.

    ::

        writer = Writer(job)
        try:
            for batch in corpus.batches():
                writer.write(batch)
            writer.close()
        except BaseException:
            writer.abort()
            raise

    Each file appears complete under its name; what describes the others appears last. `abort` takes away what
    has a name already.

    Attributes
    ----------
    files : list of LayoutFile
        In the order in which they were finished.
    documents, tokens, max_id, shards : int
        What was written so far.
    lacking : int
        Documents that came without the separator.
    """

    dtypes: ClassVar[tuple[str, ...]] = ("uint16", "uint32")
    shard_tokens: ClassVar[int | None] = None
    """What fills a shard unless the job says otherwise; None: one shard."""
    divisible: ClassVar[bool] = True
    """May have more than one shard."""
    validation: ClassVar[bool] = False
    """Has a name for a shard that is not trained on."""
    separator: ClassVar[Placing] = "kept"
    shard_limit: ClassVar[int] = NO_LIMIT
    """What a shard can hold at most, in the unit of `_sizes`."""
    document_limit: ClassVar[int] = NO_LIMIT
    names: ClassVar[str]
    """Regular expression of the names of its files."""
    sidecar: ClassVar[str] = "documents.parquet"

    def __init__(self, job: Job) -> None:
        self.job = job
        self.files: list[LayoutFile] = []
        self.documents = self.tokens = self.shards = self.lacking = 0
        self.max_id = -1
        self._left = job.tokens
        self._pending: list[AtomicFile | Spill] = []
        self._in_shard: int | None = None  # tokens of the shard that is open
        self._in_documents = 0  # its documents
        self._size = 0  # and its size, counted against the limit
        self._table: DocumentsWriter | None = None
        self._table_file = self._create(self.sidecar)
        self._table = DocumentsWriter(self._table_file)

    def write(self, batch: TokenBatch) -> None:
        """Append documents.

        Raises
        ------
        ParameterError
            An id does not fit the dtype.
        OutputError
            A document does not fit the format, or the file system refuses.
        """
        placed = batch
        if self.job.separator is not None:
            placed, lacking = place(batch, self.job.separator, self.separator)
            self.lacking += lacking
        self._check_ids(placed.ids)
        sizes = np.zeros(len(batch) + 1, np.int64)
        np.cumsum(self._sizes(placed.lengths), out=sizes[1:])
        self._check_documents(placed, sizes)
        start = 0
        while start < len(batch):
            if self._in_shard is None:
                self._begin(self.shards)
                self._in_shard = self._in_documents = self._size = 0
            stop = self._reach(placed.offsets, sizes, start)
            if stop > start:
                self._take(placed.rows(start, stop))
                self._size += int(sizes[stop] - sizes[start])
                self._left -= int(batch.offsets[stop] - batch.offsets[start])
            if stop == start or self._is_full():
                self._end_shard()
            start = stop

    def close(self) -> None:
        """Finish the last shard and the files that describe the others. Raises OutputError, ParameterError."""
        if self.job.val_tokens and self.shards == 0:
            raise ParameterError(
                f"val_tokens is {self.job.val_tokens}: the documents that reach it are all there are; give less"
            )
        if self._in_shard is not None:
            self._end_shard()
        assert self._table is not None
        self._table.close()
        self._commit(self._table_file)
        self._finish()

    def abort(self) -> None:
        """Delete what was written, also what has its name."""
        if self._table is not None:
            self._table.abort()
        for file in self._pending:
            file.close()
        for done in reversed(self.files):
            paths.remove(paths.join(self.job.folder, done.name))
        self.files.clear()

    @abstractmethod
    def _begin(self, shard: int) -> None:
        """Start a shard."""

    @abstractmethod
    def _add(self, documents: TokenBatch, ids: npt.NDArray[Any]) -> None:
        """Append documents to the shard; `ids` are theirs, cast to the little-endian dtype of the job."""

    @abstractmethod
    def _end(self, shard: int, tokens: int, documents: int) -> None:
        """Put the files of the shard in place."""

    def _finish(self) -> None:
        """Write what describes all shards, if the format has such a file."""
        return

    def _sizes(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """What documents of these numbers of tokens take of the limits; tokens if not overridden."""
        return lengths

    def _create(self, name: str) -> AtomicFile:
        path = paths.join(self.job.folder, name)
        file = AtomicFile(path, checksum=True, durable=self.job.durable)
        self._pending.append(file)
        return file

    def _spill(self) -> Spill:
        spill = Spill(self.job.folder)
        self._pending.append(spill)
        return spill

    def _commit(self, file: AtomicFile, tokens: int = 0, documents: int = 0) -> LayoutFile:
        name = file.path.replace(os.sep, "/").rsplit("/", 1)[-1]
        # Recorded first: should the folder not be flushed after the file has its name, `abort` still finds it.
        self.files.append(LayoutFile(name, file.size, file.record().xxh3_128, tokens, documents))
        file.commit()
        self._pending.remove(file)
        return self.files[-1]

    def _discard(self, spill: Spill) -> None:
        spill.close()
        self._pending.remove(spill)

    def _goal(self) -> int | None:
        """Tokens that fill the shard that is open."""
        return self.job.val_tokens if self.shards == 0 and self.job.val_tokens else self.job.shard_tokens

    def _is_full(self) -> bool:
        goal = self._goal()
        if goal is None or self._in_shard is None or self._in_shard < goal:
            return False
        validation = self.shards == 0 and self.job.val_tokens > 0
        return self._left >= (1 if validation else goal)

    def _reach(self, offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], start: int) -> int:
        """Up to which document the shard goes on: the one that fills it, or the last that fits it."""
        assert self._in_shard is not None
        stop = int(np.searchsorted(sizes, sizes[start] + self.shard_limit - self._size, "right")) - 1
        goal = self._goal()
        if goal is not None and self._in_shard < goal:
            stop = min(stop, int(np.searchsorted(offsets, offsets[start] + goal - self._in_shard, "left")))
        return min(stop, len(offsets) - 1)

    def _take(self, documents: TokenBatch) -> None:
        assert self._in_shard is not None and self._table is not None
        self._add(documents, documents.ids.astype(self.job.dtype.newbyteorder("<"), copy=False))
        self._table.add(documents, self.shards, self._in_shard)
        self._in_shard += len(documents.ids)
        self._in_documents += len(documents)
        self.tokens += len(documents.ids)
        self.documents += len(documents)

    def _end_shard(self) -> None:
        assert self._in_shard is not None
        self._end(self.shards, self._in_shard, self._in_documents)
        self.shards += 1
        self._in_shard = None

    def _check_ids(self, ids: npt.NDArray[Any]) -> None:
        top = int(ids.max()) if len(ids) else -1
        if top > np.iinfo(self.job.dtype).max:
            raise ParameterError(f"token id {top} does not fit {self.job.dtype.name}; nothing is cut to fit")
        if top >= self.job.vocab_size:
            raise ParameterError(f"token id {top} is not one of the {self.job.vocab_size} ids of the vocabulary")
        self.max_id = max(self.max_id, top)

    def _check_documents(self, batch: TokenBatch, sizes: npt.NDArray[np.int64]) -> None:
        limit = min(self.shard_limit, self.document_limit)
        if len(batch) and int(np.diff(sizes).max()) > limit:
            large = int(np.diff(sizes).argmax())
            raise OutputError(
                f"{self.job.folder}: document {batch.doc_ids[large]} of {batch.lengths[large]} tokens is too long "
                "for the format; choose 'dolma', 'datatrove' or 'bin'"
            )
