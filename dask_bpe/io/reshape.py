"""An encoded corpus in the layout of another trainer: the same ids, rewritten without encoding again."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import InputError, OutputError, ParameterError, whole_number
from dask_bpe.io import paths
from dask_bpe.io.atomic import TEMPORARY_MARK, atomic_write
from dask_bpe.io.batches import TokenBatch
from dask_bpe.io.folders import empty_folder
from dask_bpe.io.layouts import LAYOUTS, LayoutWriter, record
from dask_bpe.io.layouts import shuffle as shuffling
from dask_bpe.io.layouts.record import LayoutRecord
from dask_bpe.io.layouts.writer import Job
from dask_bpe.io.reader import TokenCorpus, open_tokens
from dask_bpe.progress import JobState, Progress, watch

BATCH_TOKENS = 1 << 20

_OURS = re.compile(
    rf"({'|'.join(layout.names for layout in LAYOUTS.values())}|_?documents\.parquet|layout\.json)"
    rf"({re.escape(TEMPORARY_MARK)}\w+)?"
)


@dataclass(frozen=True)
class ReshapeReport:
    """What `reshape` wrote.

    Attributes
    ----------
    path, layout, dtype : the folder, the name of the layout, the type of an id.
    n_documents, n_tokens, max_id : what was written; n_tokens counts separators that were added.
    n_lacking : documents that came without the separator. Layouts that mark the documents by it gave them one.
    n_shards, n_bytes : shards, and the size of all files.
    seconds : from the opening of the corpus to the record.
    """

    path: str
    layout: str
    dtype: str
    n_documents: int
    n_tokens: int
    max_id: int
    n_lacking: int
    n_shards: int
    n_bytes: int
    seconds: float

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_reshaping

        return of_reshaping(self)


def reshape(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    to: str,
    *,
    dtype: npt.DTypeLike | None = None,
    shard_tokens: int | None = None,
    val_tokens: int | None = None,
    shuffle: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ReshapeReport:
    """Write an encoded corpus in another layout.

    Documents stay whole and in their order, unless they are shuffled; their ids, sources and places are in a table
    beside them (``documents.parquet``). The record ``layout.json`` comes last: `verify_layout` checks an output by it.

    Parameters
    ----------
    path : an encoded corpus, as for `open_tokens`.
    out : a folder that is empty or does not exist.
    to : "bin", "parquet" (our own shards), "nanogpt", "llmc", "megatron", "dolma", "datatrove", "mds" or "litdata".
    dtype : of an id; by default the smallest of the layout that holds the vocabulary.
    shard_tokens : a shard ends with the document that brings it to so many, and the last one is not smaller than that
        either; by default what suits the layout. Not for "nanogpt", which is one file; "megatron" is one unless asked.
    val_tokens : put the first documents, until they reach so many tokens, into a shard for validation ("nanogpt",
        "llmc").
    shuffle : a seed, 0 or larger: documents in an order drawn by it, which is the same for any shards and machine.
    overwrite : clear a folder that holds what `reshape` wrote before.
    progress : told of the tokens written, as stage "reshaping".

    Raises
    ------
    ShardError
        The corpus is damaged.
    InputError
        It holds no tokens.
    ParameterError
        The layout cannot hold it: ids too large, no separator where the layout needs one; or an argument is wrong.
    OutputError
        The folder is not empty, or refuses. Nothing is left in it after any of these.
    """
    began = time.perf_counter()
    layout = _layout(to)
    corpus = open_tokens(path)
    if not corpus.n_tokens:
        raise InputError(f"{corpus.path}: holds no tokens: there is nothing to write")
    separator = _separator(corpus, to, layout)
    seed = None if shuffle is None else whole_number("shuffle", shuffle, 0)
    kind = _dtype(corpus, to, layout, dtype)
    full, validation = _sizes(corpus, to, layout, shard_tokens, val_tokens)
    folder, made = _prepare(corpus, out, overwrite)
    job = _job(corpus, folder, kind, full, validation, separator)
    try:
        with watch("reshape", folder, progress) as view:
            writer = _write(corpus, layout, job, seed, view)
        done = _record(to, job, seed, writer)
        done.write(folder)
        paths.remove(paths.join(folder, record.UNFINISHED))
    except BaseException:
        _clear(folder, made=made)
        raise
    return ReshapeReport(
        path=folder,
        layout=to,
        dtype=kind.name,
        n_documents=writer.documents,
        n_tokens=writer.tokens,
        max_id=writer.max_id,
        n_lacking=writer.lacking,
        n_shards=writer.shards,
        n_bytes=done.bytes,
        seconds=time.perf_counter() - began,
    )


def _job(
    corpus: TokenCorpus, folder: str, dtype: np.dtype[Any], full: int | None, validation: int, separator: int | None
) -> Job:
    manifest = corpus.manifest
    return Job(
        folder,
        dtype,
        corpus.n_tokens,
        full,
        validation,
        separator,
        manifest.vocabulary,
        manifest.vocab_size,
        manifest.options,
        manifest.text,
        manifest.marks,
    )


def _record(name: str, job: Job, seed: int | None, writer: LayoutWriter) -> LayoutRecord:
    """The record of what was written."""
    token = {
        "token": job.marks.get("end", {}).get("text"),
        "id": job.separator,
        "place": writer.separator,
        "lacking": writer.lacking,
    }
    return LayoutRecord(
        layout=name,
        dtype=job.dtype.name,
        vocabulary=job.vocabulary,
        vocab_size=job.vocab_size,
        documents=writer.documents,
        tokens=writer.tokens,
        max_id=writer.max_id,
        separator=None if job.separator is None else token,
        options={"shard_tokens": job.shard_tokens, "shuffle": seed, "val_tokens": job.val_tokens or None},
        files=tuple(writer.files),
    )


def _write(corpus: TokenCorpus, layout: type[LayoutWriter], job: Job, seed: int | None, view: JobState) -> LayoutWriter:
    view.start("reshaping", corpus.n_tokens, "tokens")
    writer = layout(job)
    try:
        with contextlib.closing(_documents(corpus, job.folder, seed)) as batches:
            for batch in batches:
                writer.write(batch)
                view.advance("reshaping", len(batch.ids))
                view.add({"tokens": len(batch.ids)})
        writer.close()
    except BaseException:
        writer.abort()
        raise
    if writer.documents != corpus.n_documents:
        raise OutputError(
            f"{job.folder}: {writer.documents} documents were written, {corpus.n_documents} are in the corpus"
        )
    view.finish("reshaping")
    view.settle({"tokens": writer.tokens, "documents": writer.documents, "shards": writer.shards})
    return writer


def _documents(corpus: TokenCorpus, folder: str, seed: int | None) -> Generator[TokenBatch, None, None]:
    batches = corpus.batches(BATCH_TOKENS)
    if seed is None:
        yield from batches
    else:
        yield from shuffling.shuffled(batches, seed, corpus, folder, BATCH_TOKENS)


def _layout(name: str) -> type[LayoutWriter]:
    if name not in LAYOUTS:
        raise ParameterError(f"unknown layout {name!r}; choose one of {', '.join(map(repr, LAYOUTS))}")
    return LAYOUTS[name]


def _separator(corpus: TokenCorpus, name: str, layout: type[LayoutWriter]) -> int | None:
    separator = corpus.manifest.marks.get("end", {}).get("id")
    if separator is None and layout.separator != "kept":
        raise ParameterError(
            f"{corpus.path} was encoded without a separator, and {name} marks its documents by nothing else; "
            "encode it with one, or choose another layout"
        )
    return None if separator is None else int(separator)


def _dtype(corpus: TokenCorpus, name: str, layout: type[LayoutWriter], wanted: npt.DTypeLike | None) -> np.dtype[Any]:
    """What was asked for, else the smallest that holds the vocabulary, else the largest if it holds the ids."""
    if wanted is not None:
        chosen = np.dtype(wanted).name
        if chosen not in layout.dtypes:
            raise ParameterError(f"dtype {chosen} does not exist in {name}; choose one of {', '.join(layout.dtypes)}")
    else:
        top = corpus.manifest.vocab_size - 1
        fitting = [kind for kind in layout.dtypes if np.iinfo(kind).max >= top]
        chosen = fitting[0] if fitting else layout.dtypes[-1]
    if corpus.manifest.max_id > np.iinfo(chosen).max:
        raise ParameterError(
            f"{corpus.path} holds token id {corpus.manifest.max_id}, which does not fit {chosen} of {name}; "
            "choose another dtype or layout"
        )
    return np.dtype(chosen)


def _sizes(
    corpus: TokenCorpus, name: str, layout: type[LayoutWriter], shard_tokens: int | None, val_tokens: int | None
) -> tuple[int | None, int]:
    """Tokens that fill a shard, and those of the shard for validation (0 for none)."""
    full = layout.shard_tokens
    if shard_tokens is not None:
        if not layout.divisible:
            raise ParameterError(f"shard_tokens is {shard_tokens}, but {name} is one file; leave it out")
        full = whole_number("shard_tokens", shard_tokens)
        if full > layout.shard_limit // 2:
            raise ParameterError(
                f"shard_tokens is {full}: shards of {name} are filled with {layout.shard_limit // 2} at most"
            )
    if val_tokens is None:
        return full, 0
    if not layout.validation:
        raise ParameterError(f"val_tokens is {val_tokens}, but {name} has no place for it; leave it out")
    validation = whole_number("val_tokens", val_tokens)
    if validation >= corpus.n_tokens:
        raise ParameterError(
            f"val_tokens is {validation}: the corpus has {corpus.n_tokens}, and some must be left; give less"
        )
    return full, validation


def _prepare(corpus: TokenCorpus, out: str | os.PathLike[str], overwrite: bool) -> tuple[str, bool]:
    """The output folder, empty but for the mark that it is not finished, and whether it was made here."""
    folder = paths.normalise(out)
    if os.path.realpath(folder) == os.path.realpath(corpus.path):
        raise OutputError(f"{folder}: is the corpus itself; choose another folder")
    if overwrite:
        _clear_previous(folder)
    folder, made = empty_folder(folder)
    _mark_unfinished(folder)
    return folder, made


def _clear_previous(folder: str) -> None:
    """Delete what `reshape` wrote to the folder. Raises OutputError when it did not, and holds something."""
    try:
        names = paths.list_names(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"cannot clear {folder}: {paths.one_line(error)}") from error
    if not names:
        return
    if record.NAME not in names and record.UNFINISHED not in names:
        raise OutputError(
            f"{folder}: not written by reshape (no {record.NAME}): it is not cleared; choose another folder"
        )
    _mark_unfinished(folder)
    _clear(folder, made=False)


def _mark_unfinished(folder: str) -> None:
    with atomic_write(paths.join(folder, record.UNFINISHED), durable=False):
        pass


def _clear(folder: str, *, made: bool) -> None:
    """Delete our files, and the folder with `made` if nothing else is in it. Raises OutputError."""
    try:
        names = paths.list_names(folder)
        # The record first: what is left of a clearing that was interrupted must not look finished.
        for name in sorted(filter(_OURS.fullmatch, names), key=lambda name: name != record.NAME):
            paths.remove(paths.join(folder, name))
        for name in names:
            if name.startswith(shuffling.FOLDER + TEMPORARY_MARK):
                shutil.rmtree(paths.join(folder, name), ignore_errors=True)
        paths.remove(paths.join(folder, record.UNFINISHED))
        if made and not paths.list_names(folder):
            Path(folder).rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"cannot clear {folder}: {paths.one_line(error)}") from error
