"""Token shards, one writer per format."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy.typing as npt

from dask_bpe.errors import ParameterError
from dask_bpe.io.atomic import File
from dask_bpe.io.memmap import MemmapWriter
from dask_bpe.io.origins import Origins
from dask_bpe.io.parquet import ParquetWriter
from dask_bpe.io.writer import Shard, ShardWriter, Span, TokenIds

__all__ = ["FORMATS", "File", "Origins", "Shard", "ShardWriter", "Span", "TokenIds", "open_writer"]

FORMATS: dict[str, type[ShardWriter]] = {"bin": MemmapWriter, "parquet": ParquetWriter}


def open_writer(
    format: str,  # noqa: A002
    folder: str | os.PathLike[str],
    stem: str,
    dtype: npt.DTypeLike,
    *,
    origins: Origins | None = None,
    sources: Iterable[Span] = (),
    continues: bool = False,
    fingerprint: str = "",
    durable: bool = True,
) -> ShardWriter:
    """Begin a shard in an existing folder.

    Parameters
    ----------
    format : "bin" | "parquet"
    folder
        Local path or URL.
    stem
        Its name without suffix, such as ``part-00000``.
    dtype : uint16 | uint32
        Of the ids on disk; larger ids are refused when they are written.
    origins
        Where its documents come from: a queue, from which every row takes the next. They may be added until the row is
        written, which is at `close` at the latest.
    sources
        The text the shard is made from.
    continues
        The text starts in the middle of a document.
    fingerprint
        Of the vocabulary, for formats that keep it in each file.
    durable
        Flush the files to the disk before they get their names.

    Raises
    ------
    ParameterError
        Unknown format or dtype.
    OutputError
        The folder cannot be written to.
    """
    return writer_class(format)(
        folder,
        stem,
        dtype,
        origins=origins,
        sources=sources,
        continues=continues,
        fingerprint=fingerprint,
        durable=durable,
    )


def writer_class(name: str) -> type[ShardWriter]:
    """The writer of a format. Raises ParameterError for an unknown one."""
    if name not in FORMATS:
        raise ParameterError(f"unknown format {name!r}; choose one of {', '.join(map(repr, FORMATS))}")
    return FORMATS[name]
