"""Encoded corpora: documents and training windows of a folder of token shards.

Nothing is read before it is asked for. Local ``.bin`` shards are mapped into memory, and what lies inside one
shard is a view of the map; Parquet and remote shards are decoded whole, the last two of them kept.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from dask_bpe.errors import InputError, ParameterError, ShardError
from dask_bpe.io import manifest as manifests
from dask_bpe.io import parquet, paths
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.source import read_range
from dask_bpe.io.writer import Shard, TokenIds
from dask_bpe.progress import Progress

# A map costs a few pages and one of the 65,530 maps that Linux allows a process; a decoded shard costs its
# size.
_MAPS_KEPT = 1024
_DECODED_KEPT = 2
_HASH_PIECE = 1 << 20


def open_tokens(path: str | os.PathLike[str]) -> TokenCorpus:
    """The encoded corpus in a folder (local path or URL), or of a ``manifest.json``.

    Raises
    ------
    ShardError
        The manifest is missing or damaged, or a shard is missing or has another size than listed.
    """
    folder = paths.normalise(path)
    if folder.replace(os.sep, "/").endswith("/" + manifests.NAME):
        folder = folder[: -len(manifests.NAME) - 1]
    return TokenCorpus(folder, Manifest.read(folder))


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
        self.documents: Sequence[TokenIds] = _Documents(self._files)

    def __reduce__(self) -> tuple[Any, ...]:
        return TokenCorpus, (self.path, self.manifest)

    def __repr__(self) -> str:
        return (
            f"TokenCorpus({self.path!r}, {self.n_tokens} tokens of {self.dtype.name}, "
            f"{self.n_documents} documents, {len(self.shards)} shards)"
        )

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

    def windows(self, length: int, stride: int | None = None) -> Sequence[TokenIds]:
        """Windows of exactly `length` tokens, every `stride` tokens (`length` when None); a rest is left out.

        For inputs and their targets, one token on, take ``windows(n + 1, n)``. Raises ParameterError.
        """
        stride = length if stride is None else stride
        if length < 1 or stride < 1:
            raise ParameterError(f"length and stride of windows must be positive, not {length} and {stride}")
        return _Windows(self, length, stride)

    def verify(self, progress: Progress | None = None) -> None:
        """Read every file again and compare its checksum with the manifest.

        Raises ShardError, which names the shard. Progress: stage "verifying", in bytes.
        """
        progress = progress or Progress()
        progress.start("verifying", self.manifest.bytes, "B")
        for shard in self.shards:
            self._files.verify(shard, lambda count: progress.advance("verifying", count))
        progress.finish("verifying")


class _ShardFiles:
    """The files of the shards, opened when they are needed."""

    def __init__(self, folder: str, manifest: Manifest) -> None:
        self.manifest = manifest
        self._folder = folder
        self._dtype = np.dtype(manifest.dtype).newbyteorder("<")
        self._mapped = manifest.format == "bin" and not paths.is_remote(folder)
        self._kept: OrderedDict[int, tuple[TokenIds, npt.NDArray[np.int64]]] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, index: int) -> tuple[TokenIds, npt.NDArray[np.int64]]:
        """Tokens and document offsets (int64[documents + 1]) of a shard. Raises ShardError."""
        with self._lock:
            if index not in self._kept:
                self._kept[index] = self._open(self.manifest.shards[index])
                while len(self._kept) > (_MAPS_KEPT if self._mapped else _DECODED_KEPT):
                    self._kept.popitem(last=False)
            self._kept.move_to_end(index)
            return self._kept[index]

    def check_sizes(self) -> None:
        """Every file is there and as long as the manifest says, or ShardError."""
        for shard in self.manifest.shards:
            for name, size, _ in self._expected(shard):
                try:
                    found = paths.size_of(paths.join(self._folder, name))
                except OSError as error:
                    raise self._error(shard, f"cannot read {name}: {paths.one_line(error)}") from error
                if size is not None and found != size:
                    raise self._error(shard, f"{name} has {found} bytes, {size} were written")

    def verify(self, shard: Shard, advance: Callable[[int], None]) -> None:
        """The files of a shard have the checksums of the manifest, or ShardError."""
        for name, _, expected in self._expected(shard):
            digest = xxhash.xxh3_128()
            try:
                with paths.open_to_read(paths.join(self._folder, name)) as file:
                    while piece := file.read(_HASH_PIECE):
                        digest.update(piece)
                        if name == shard.name:
                            advance(len(piece))
            except OSError as error:
                raise self._error(shard, f"cannot read {name}: {paths.one_line(error)}") from error
            if digest.hexdigest() != expected:
                raise self._error(shard, f"the content of {name} has changed since it was written (xxh3_128)")

    def _expected(self, shard: Shard) -> list[tuple[str, int, str]]:
        """Name, size and checksum of each file of a shard."""
        files = [(shard.name, shard.bytes, shard.xxh3_128)]
        if shard.index_xxh3_128 is not None:
            files.append((shard.index_name, 8 * (shard.documents + 1), shard.index_xxh3_128))
        return files

    def _open(self, shard: Shard) -> tuple[TokenIds, npt.NDArray[np.int64]]:
        path = paths.join(self._folder, shard.name)
        index = paths.join(self._folder, shard.index_name)
        try:
            if self._mapped:
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

    def _item(self, index: int) -> TokenIds:
        shard = int(np.searchsorted(self._firsts, index, "right")) - 1
        row = index - int(self._firsts[shard]) + self._joins[shard]
        parts = [self._row(shard, row)]
        while row == self._shards[shard].documents - 1 and shard + 1 < len(self._shards) and self._joins[shard + 1]:
            shard, row = shard + 1, 0
            parts.append(self._row(shard, row))
        return _join(parts, np.dtype(self._files.manifest.dtype))

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
