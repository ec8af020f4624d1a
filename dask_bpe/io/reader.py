"""Encoded corpora: documents and training windows of a folder of token shards.

Nothing is read before it is asked for. Local ``.bin`` shards are mapped into memory, and what lies inside one
shard is a view of the map; Parquet and remote shards are decoded whole, the last two of them kept.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dask_bpe.errors import InputError, ParameterError, ShardError, whole_number
from dask_bpe.io import manifest as manifests
from dask_bpe.io import parquet, paths
from dask_bpe.io.atomic import checksum
from dask_bpe.io.batches import TokenBatch, in_batches, whole_documents
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.source import read_range
from dask_bpe.io.writer import Shard, TokenIds
from dask_bpe.progress import Progress, watch

# A map costs a few pages and one of the 65,530 maps that Linux allows a process; a decoded shard costs its
# size.
_MAPS_KEPT = 1024
_DECODED_KEPT = 2
_LENGTHS_SHOWN = 1000
_PIECE = 1 << 20


def open_tokens(path: str | os.PathLike[str], *, fingerprint: str | None = None) -> TokenCorpus:
    """The encoded corpus in a folder (local path or URL), or of a ``manifest.json``.

    Parameters
    ----------
    fingerprint : that of the vocabulary which the reader has (`Vocabulary.fingerprint`): tokens of another one are
        refused, since they would be junk.

    Raises
    ------
    ShardError
        The manifest is missing or damaged, or a shard is missing or has another size than listed; or it was encoded
        with another vocabulary.
    """
    folder = paths.normalise(path)
    if folder.replace(os.sep, "/").endswith("/" + manifests.NAME):
        folder = folder[: -len(manifests.NAME) - 1]
    manifest = Manifest.read(folder)
    if fingerprint is not None and fingerprint != manifest.vocabulary:
        raise ShardError(
            f"{folder}: was encoded with the vocabulary {manifest.vocabulary[:16]}, not with {fingerprint[:16]}: its"
            " ids mean something else; open it with its own, or encode the text again"
        )
    return TokenCorpus(folder, manifest)


class TokenCorpus:
    """Tokens of all shards as one stream, in the order of the text. Its length is the number of tokens.

    Safe to share between threads; pickles as its folder and manifest.

    Attributes
    ----------
    path : str
    manifest : Manifest
    documents : sequence of arrays
        Token ids of each document. A document that goes on over several shards is joined (copied); any other
        is a read-only view.
    """

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._files = _ShardFiles(path, manifest)
        self._files.check_sizes()
        self._starts = np.cumsum([0, *(shard.tokens for shard in manifest.shards)])
        self._documents = _Documents(self._files)
        self.documents: Sequence[TokenIds] = self._documents

    def __reduce__(self) -> tuple[Any, ...]:
        return TokenCorpus, (self.path, self.manifest)

    def __repr__(self) -> str:
        return (
            f"TokenCorpus({self.path!r}, {self.n_tokens} tokens of {self.dtype.name}, "
            f"{self.n_documents} documents, {len(self.shards)} shards)"
        )

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_corpus
        from dask_bpe.pages.plot import thin

        # Where shards are not mapped, lengths would cost the reading of them.
        places = thin(self.n_documents, _LENGTHS_SHOWN) if self._files.mapped else []
        lengths = np.array([self._documents.length(at) for at in places], np.int64)
        return of_corpus(self, lengths, len(lengths) < self.n_documents)

    def __len__(self) -> int:
        return self.n_tokens

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint16 or uint32."""
        return np.dtype(self.manifest.dtype)

    @property
    def n_tokens(self) -> int:
        """Tokens in the corpus."""
        return int(self._starts[-1])

    @property
    def n_documents(self) -> int:
        """Documents in the corpus."""
        return len(self.documents)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The records of the shards, in order."""
        return self.manifest.shards

    def tokens(self, start: int, stop: int) -> TokenIds:
        """Tokens `start` to `stop` of the stream: a read-only view inside one shard, else a copy.

        Raises ParameterError unless ``0 <= start <= stop <= len(self)``.
        """
        if not 0 <= start <= stop <= self.n_tokens:
            raise ParameterError(f"tokens [{start}, {stop}) are not within the corpus of {self.n_tokens}")
        parts = []
        shard = int(np.searchsorted(self._starts, start, "right")) - 1
        while start < stop:
            first = int(self._starts[shard])
            end = min(stop, int(self._starts[shard + 1]))
            parts.append(self._files.load(shard)[0][start - first : end - first])
            start = end
            shard += 1
        return _join(parts, self.dtype)

    def shard_tokens(self, index: int) -> TokenIds:
        """All tokens of one shard, read-only."""
        return self._files.load(index)[0]

    def windows(self, length: int, stride: int | None = None) -> Sequence[TokenIds]:
        """Windows of exactly `length` tokens, every `stride` tokens (`length` when None); a rest is left out.

        For inputs and their targets, one token on, take ``windows(n + 1, n)``. Raises ParameterError.
        """
        stride = length if stride is None else stride
        if length < 1 or stride < 1:
            raise ParameterError(f"length and stride of windows must be positive, not {length} and {stride}")
        return _Windows(self, length, stride)

    def batches(self, max_tokens: int = 1 << 20) -> Iterator[TokenBatch]:
        """Every document in order, whole, in batches of at most `max_tokens` tokens; a longer one comes alone.

        In memory are a batch and, if it cannot be mapped, a shard. Raises ParameterError, and ShardError on the way.
        """
        size = whole_number("max_tokens", max_tokens)
        rows = [shard.documents for shard in self.shards]
        pieces = whole_documents(rows, self.manifest.joins, self._files.load, self._provenance, self.dtype)
        return in_batches(pieces, size, self.dtype)

    def verify(self, progress: Progress | None = None) -> None:
        """Read every file again and compare it with the manifest.

        Checksums, tokens, largest ids, document bounds, origins, and the marks at ends and beginnings of documents.
        Raises ShardError, which names the shard. Progress: stage "verifying", in bytes.
        """
        marks = {name: int(mark["id"]) for name, mark in self.manifest.marks.items()}
        counted = dict.fromkeys(marks, 0)
        with watch("verify", self.path, progress) as job:
            job.start("verifying", sum(file.bytes for shard in self.shards for file in shard.files), "B")
            for index, shard in enumerate(self.shards):
                self._files.verify(shard, lambda count: job.advance("verifying", count))
                ids = self._files.verify_content(index)
                for name, mark in marks.items():
                    counted[name] += int(np.count_nonzero(ids == mark))
                job.add({"tokens": len(ids), "shards": 1})
            job.finish("verifying")
        for name, about in self.manifest.marks.items():
            if counted[name] != about["count"]:
                raise ShardError(
                    f"{self.path}: the shards hold {counted[name]} times id {about['id']}, {about['text']!r} at the"
                    f" {name} of documents; {about['count']} were written"
                )

    def _provenance(self, shard: int, start: int, stop: int) -> tuple[list[str], list[str], npt.NDArray[np.int64]]:
        """Ids, sources and positions of the documents in the rows `start` to `stop` of a shard."""
        ids, sources, positions = self._files.origins(shard)
        return ids[start:stop], sources[start:stop], positions[start:stop]


class _ShardFiles:
    """The files of the shards, opened when they are needed."""

    def __init__(self, folder: str, manifest: Manifest) -> None:
        self.manifest = manifest
        self._folder = folder
        self._dtype = np.dtype(manifest.dtype).newbyteorder("<")
        self.mapped = manifest.format == "bin" and not paths.is_remote(folder)
        self._kept: OrderedDict[int, tuple[TokenIds, npt.NDArray[np.int64]]] = OrderedDict()
        self._origins: tuple[int, tuple[list[str], list[str], npt.NDArray[np.int64]]] | None = None
        self._lock = threading.Lock()

    def load(self, index: int) -> tuple[TokenIds, npt.NDArray[np.int64]]:
        """Tokens and document offsets (int64[documents + 1]) of a shard. Raises ShardError."""
        with self._lock:
            if index not in self._kept:
                self._kept[index] = self._open(self.manifest.shards[index])
                while len(self._kept) > (_MAPS_KEPT if self.mapped else _DECODED_KEPT):
                    self._kept.popitem(last=False)
            self._kept.move_to_end(index)
            return self._kept[index]

    def check_sizes(self) -> None:
        """Every file is there and as long as the manifest says, or ShardError."""
        for shard in self.manifest.shards:
            for file in shard.files:
                try:
                    found = paths.size_of(paths.join(self._folder, file.name))
                except OSError as error:
                    raise self._error(shard, f"cannot read {file.name}: {paths.one_line(error)}") from error
                if found != file.bytes:
                    raise self._error(shard, f"{file.name} has {found} bytes, {file.bytes} were written")

    def verify(self, shard: Shard, advance: Callable[[int], None]) -> None:
        """The files of a shard have the checksums of the manifest, or ShardError."""
        for file in shard.files:
            try:
                found = checksum(paths.join(self._folder, file.name), advance)
            except OSError as error:
                raise self._error(shard, f"cannot read {file.name}: {paths.one_line(error)}") from error
            if found != file.xxh3_128:
                raise self._error(shard, f"the content of {file.name} has changed since it was written (xxh3_128)")

    def origins(self, index: int) -> tuple[list[str], list[str], npt.NDArray[np.int64]]:
        """Ids, sources and positions of the documents of a shard. Those of the last one are kept. Raises ShardError."""
        with self._lock:
            if self._origins is None or self._origins[0] != index:
                shard = self.manifest.shards[index]
                try:
                    with paths.open_to_read(paths.join(self._folder, _origins_name(shard))) as file:
                        table = pq.read_table(pa.PythonFile(file, mode="r"), columns=["doc_id", "source", "position"])
                    columns = [column.combine_chunks() for column in table.columns]
                    found = columns[0].to_pylist(), columns[1].to_pylist(), columns[2].to_numpy()
                except (OSError, KeyError, pa.ArrowException) as error:
                    raise self._error(shard, f"its origins cannot be read: {paths.one_line(error)}") from error
                self._origins = index, found
            return self._origins[1]

    def verify_content(self, index: int) -> TokenIds:
        """The ids of a shard, if its largest id, its document bounds and origins are right; else ShardError."""
        shard = self.manifest.shards[index]
        ids, offsets = self.load(index)
        top = max((int(ids[at : at + _PIECE].max()) for at in range(0, len(ids), _PIECE)), default=-1)
        if top != shard.max_id:
            raise self._error(shard, f"its largest id is {top}, not {shard.max_id}")
        if np.any(offsets[1:] < offsets[:-1]):
            raise self._error(shard, "its document offsets decrease")
        name = _origins_name(shard)
        try:
            with paths.open_to_read(paths.join(self._folder, name)) as file:
                rows = pq.ParquetFile(file).metadata.num_rows
        except (OSError, pa.ArrowException) as error:
            raise self._error(shard, f"{name} cannot be read: {paths.one_line(error)}") from error
        if rows != shard.documents:
            raise self._error(shard, f"{name} tells of {rows} documents, there are {shard.documents}")
        return ids

    def _open(self, shard: Shard) -> tuple[TokenIds, npt.NDArray[np.int64]]:
        path = paths.join(self._folder, shard.name)
        index = paths.join(self._folder, shard.name.removesuffix(".bin") + ".idx")
        try:
            if self.mapped:
                ids = np.memmap(path, self._dtype, "r", shape=(shard.tokens,)).view(np.ndarray)
                offsets = np.memmap(index, "<i8", "r", shape=(shard.documents + 1,)).view(np.ndarray)
            elif self.manifest.format == "bin":
                ids = read_range(path, 0, shard.bytes).view(self._dtype)
                offsets = read_range(index, 0, 8 * (shard.documents + 1)).view("<i8")
            else:
                with paths.open_to_read(path) as file:
                    ids, offsets = parquet.read_shard(file, shard.tokens, self._dtype)
        except (OSError, ValueError, InputError, pa.ArrowException) as error:
            raise self._error(shard, f"cannot be read: {paths.one_line(error)}") from error
        if len(offsets) != shard.documents + 1 or offsets[0] != 0 or offsets[-1] != shard.tokens:
            raise self._error(shard, f"its document offsets do not fit {shard.tokens} tokens")
        ids.flags.writeable = offsets.flags.writeable = False
        return ids, offsets

    def _error(self, shard: Shard, what: str) -> ShardError:
        return ShardError(f"{self._folder}: damaged shard {shard.name}: {what}; encode the corpus again")


def _origins_name(shard: Shard) -> str:
    """The file with the origins of a shard's documents: the main one, or one beside it."""
    return next(file.name for file in shard.files if file.name.endswith(".parquet"))


class _LazySequence(Sequence[TokenIds]):
    """Index arithmetic of a sequence whose items are made on demand; a slice is a list."""

    def _item(self, index: int) -> TokenIds:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> TokenIds: ...
    @overload
    def __getitem__(self, index: slice) -> list[TokenIds]: ...
    def __getitem__(self, index: int | slice) -> TokenIds | list[TokenIds]:
        if isinstance(index, slice):
            return [self._item(i) for i in range(*index.indices(len(self)))]
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number} is out of range for {len(self)} items")
        return self._item(number % len(self))


class _Documents(_LazySequence):
    def __init__(self, files: _ShardFiles) -> None:
        self._files = files
        self._shards = files.manifest.shards
        self._joins = files.manifest.joins
        begun = [shard.documents - join for shard, join in zip(self._shards, self._joins, strict=True)]
        # The first document that begins in each shard. A shard that only continues one begins none: its
        # number is that of the next shard too, and the search from the right passes it over.
        self._firsts = np.cumsum([0, *begun])

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def length(self, index: int) -> int:
        """Tokens of a document, without reading them where shards are mapped."""
        return sum(map(len, self._parts(index)))

    def _item(self, index: int) -> TokenIds:
        return _join(list(self._parts(index)), np.dtype(self._files.manifest.dtype))

    def _parts(self, index: int) -> Iterator[TokenIds]:
        """What each shard has of a document."""
        shard = int(np.searchsorted(self._firsts, index, "right")) - 1
        row = index - int(self._firsts[shard]) + self._joins[shard]
        yield self._row(shard, row)
        while row == self._shards[shard].documents - 1 and shard + 1 < len(self._shards) and self._joins[shard + 1]:
            shard, row = shard + 1, 0
            yield self._row(shard, row)

    def _row(self, shard: int, row: int) -> TokenIds:
        ids, offsets = self._files.load(shard)
        return ids[int(offsets[row]) : int(offsets[row + 1])]


class _Windows(_LazySequence):
    def __init__(self, corpus: TokenCorpus, length: int, stride: int) -> None:
        self._corpus = corpus
        self._length = length
        self._stride = stride

    def __len__(self) -> int:
        return max(0, (len(self._corpus) - self._length) // self._stride + 1)

    def _item(self, index: int) -> TokenIds:
        start = index * self._stride
        return self._corpus.tokens(start, start + self._length)


def _join(parts: list[TokenIds], dtype: np.dtype[Any]) -> TokenIds:
    if not parts:
        return np.empty(0, dtype)
    if len(parts) == 1:
        return parts[0]
    joined: TokenIds = np.concatenate(parts, dtype=dtype)
    return joined
