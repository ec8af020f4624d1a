"""What a token shard is, and the part of writing one that no format changes.

A shard holds the tokens of one block of text, in order, and where its documents end. A document may go on
over several shards: then the shard it leaves has an `open_end`, the next one `continues` it, and readers join
the pieces.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError
from dask_bpe.io import paths
from dask_bpe.io.atomic import File
from dask_bpe.io.origins import Origins

TokenIds = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
DTYPES = ("uint16", "uint32")


@dataclass(frozen=True)
class Span:
    """Bytes `start` to `stop` of the text file or URL `path`."""

    path: str
    start: int
    stop: int


@dataclass(frozen=True)
class Shard:
    """The record of one finished shard.

    Attributes
    ----------
    name : str
        Name of its main file, e.g. ``part-00000.bin``.
    tokens : int
        Token ids in it; at least one.
    documents : int
        Rows of its index: documents, or pieces of them at its two ends.
    max_id : int
        Largest token id.
    files : tuple of File
        Every file of it, the main one first, with sizes and checksums.
    sources : tuple of Span
        The text it was made from, in order. A span from which two shards were made stands in both.
    continues : bool
        It was cut from its text in the middle of a document: its first row goes on from the shard before it,
        if that one has an `open_end`.
    open_end : bool
        Its last row was not ended by its text.
    """

    name: str
    tokens: int
    documents: int
    max_id: int
    files: tuple[File, ...]
    sources: tuple[Span, ...]
    continues: bool
    open_end: bool

    @property
    def bytes(self) -> int:
        """Size of its main file."""
        return self.files[0].bytes


class ShardWriter(ABC):
    """Writes one shard; a subclass per format. For one thread.

    ::

        with open_writer("bin", folder, 0, np.uint16) as writer:
            writer.write(ids, document_ends)
            shard = writer.close()

    Nothing is visible under its final name before `close`; leaving the block without it deletes what was
    written.
    """

    suffix: ClassVar[str]

    def __init__(
        self,
        folder: str | os.PathLike[str],
        stem: str,
        dtype: npt.DTypeLike,
        *,
        origins: Origins | None = None,
        sources: Iterable[Span] = (),
        continues: bool = False,
        fingerprint: str = "",
        durable: bool = True,
    ) -> None:
        self.folder = paths.normalise(folder)
        self.stem = stem
        self.origins = Origins() if origins is None else origins
        self.dtype = np.dtype(dtype)
        if self.dtype.name not in DTYPES:
            raise ParameterError(f"token shards hold uint16 or uint32, not {self.dtype.name}")
        self.fingerprint = fingerprint
        self.durable = durable
        self.sources = list(sources)
        self._continues = continues
        self._tokens = 0
        self._documents = 0
        self._last_end = 0
        self._max_id = 0

    @property
    def tokens(self) -> int:
        """Tokens written so far."""
        return self._tokens

    @property
    def documents(self) -> int:
        """Rows written so far: documents that have ended."""
        return self._documents

    def write(self, ids: TokenIds, document_ends: npt.NDArray[np.int64]) -> None:
        """Append tokens.

        Parameters
        ----------
        ids : uint16[n] | uint32[n]
            Token ids; the last document may go on in the next call.
        document_ends : int64[d]
            Where documents end, as positions in `ids`: not decreasing, each between 0 and n. A document that
            began in an earlier call ends at the first of them. Two equal ends make an empty document.

        Raises
        ------
        ParameterError
            An id does not fit the dtype of the shard, or the ends are out of order. Nothing of the call is
            written.
        OutputError
            The file system refuses.
        """
        self._check_ids(ids)
        self._check_ends(document_ends, len(ids))
        self._append(ids, document_ends)
        self._tokens += len(ids)
        self._documents += len(document_ends)
        if len(document_ends):
            self._last_end = self._tokens - len(ids) + int(document_ends[-1])

    def close(self) -> Shard | None:
        """End the last document if it has no end yet, put the files in place, and describe them.

        None, and no file, when the shard has no tokens. Raises OutputError.
        """
        if not self._tokens:
            self.abort()
            return None
        open_end = self._last_end < self._tokens
        if open_end:
            self._append(np.empty(0, np.uint32), np.zeros(1, np.int64))
            self._documents += 1
        files = self._commit()
        return Shard(
            name=self.stem + self.suffix,
            tokens=self._tokens,
            documents=self._documents,
            max_id=self._max_id,
            files=files,
            sources=tuple(self.sources),
            continues=self._continues,
            open_end=open_end,
        )

    @abstractmethod
    def abort(self) -> None:
        """Delete what was written; harmless after `close`."""

    @abstractmethod
    def _append(self, ids: TokenIds, document_ends: npt.NDArray[np.int64]) -> None:
        """Store checked ids and ends."""

    @abstractmethod
    def _commit(self) -> tuple[File, ...]:
        """Put the files in place, the main one last; their records, the main one first."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _check_ids(self, ids: TokenIds) -> None:
        if ids.dtype.kind != "u" or ids.ndim != 1:
            raise ParameterError(f"token ids must be a uint16 or uint32 vector, not {ids.ndim}-d {ids.dtype.name}")
        top = int(ids.max()) if len(ids) else 0
        if top > np.iinfo(self.dtype).max:
            raise ParameterError(f"token id {top} does not fit {self.dtype.name}; write uint32 shards")
        self._max_id = max(self._max_id, top)

    def _check_ends(self, ends: npt.NDArray[np.int64], count: int) -> None:
        if len(ends) and (ends[0] < 0 or ends[-1] > count or bool(np.any(ends[1:] < ends[:-1]))):
            raise ParameterError(f"document ends must not decrease and lie within the {count} ids of the call")
