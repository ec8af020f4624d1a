"""Text to token shards: a bag of partitions, each encoded by a worker, then the manifest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import dask
import dask.bag as db
import numpy.typing as npt

from dask_bpe import machine
from dask_bpe.cluster import blocks, contents, schedule
from dask_bpe.cluster.contents import Errors, OnError
from dask_bpe.cluster.count import Source, as_bag, as_documents, as_paths, listed
from dask_bpe.cluster.encode_manifest import manifest_of, marks_of
from dask_bpe.cluster.encode_outcomes import Outcomes
from dask_bpe.cluster.encode_partition import (
    Done,
    Encoding,
    Failed,
    Partition,
    encode_partitions,
    encode_texts,
    keep_at_hand,
    write_part,
)
from dask_bpe.cluster.encode_plan import block_size, check_unchanged, partitions_of, pieces_of, reading_of
from dask_bpe.cluster.recorded import recorded
from dask_bpe.cluster.run import partitioned, run, tasks_of
from dask_bpe.errors import OutputError, ParameterError, VocabularyError, whole_number
from dask_bpe.io.failures import write_failures
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.job import VOCABULARY, Job, JobFolder, Part, open_job
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.shards import writer_class
from dask_bpe.monitor import automatic
from dask_bpe.progress import JobState, Progress, watch
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from distributed import Client

    from dask_bpe.pages import Document

# Tokens after which a shard ends: 128 MiB of uint16.
SHARD_TOKENS = 1 << 26


@dataclass(frozen=True)
class EncodeReport:
    """What `encode_corpus` wrote.

    Attributes
    ----------
    path : the folder.
    n_bytes, n_documents, n_invalid : the text: bytes, documents, invalid UTF-8 sequences mended.
    n_quarantined : documents, or rests of files, that could not be read; `quarantine.jsonl` lists them.
    n_tokens, max_id : tokens written, and the largest id among them.
    n_shards, dtype : shards, and the type of an id in them.
    seconds : from the listing of the source to the manifest.
    peak_memory : largest resident size of a process that took part, in bytes.
    n_resumed : partitions that an earlier run had done.
    """

    path: str
    n_bytes: int
    n_documents: int
    n_invalid: int
    n_quarantined: int
    n_tokens: int
    max_id: int
    n_shards: int
    dtype: str
    seconds: float
    peak_memory: int
    n_resumed: int = 0

    @classmethod
    def of(cls, path: str, manifest: Manifest, outcomes: Outcomes, seconds: float) -> EncodeReport:
        """The report of what is in a folder now."""
        return cls(
            path=path,
            n_bytes=manifest.text["bytes"],
            n_documents=manifest.text["documents"],
            n_invalid=manifest.text["invalid"],
            n_quarantined=manifest.text["quarantined"],
            n_tokens=manifest.tokens,
            max_id=manifest.max_id,
            n_shards=len(manifest.shards),
            dtype=manifest.dtype,
            seconds=seconds,
            peak_memory=max(machine.peak_memory(), outcomes.peak_memory),
            n_resumed=outcomes.n_resumed,
        )

    def report(self) -> Document:
        """How the job went, from the record in its folder, and what would have been faster.

        Raises
        ------
        ShardError
            The folder is not there any more, or damaged.
        """
        from dask_bpe import run_report

        return run_report.report(run_report.read_evidence(self.path))

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_encoding

        return of_encoding(self)


def encode_corpus(
    source: Source,
    tokenizer: Tokenizer,
    out: str | os.PathLike[str],
    format: str = "bin",  # noqa: A002
    *,
    dtype: npt.DTypeLike | None = None,
    separator: str | None = None,
    end_of_document: bool = True,
    begin_of_document: str | None = None,
    shard_tokens: int = SHARD_TOKENS,
    input_format: InputFormat | None = None,
    special_tokens_in_text: Literal["text", "encode"] = "text",
    errors: Errors = "replace",
    on_error: OnError = "quarantine",
    max_bad: int = 1000,
    block_bytes: int | None = None,
    memory_per_worker: int | None = None,
    overwrite: bool = False,
    client: Client | None = None,
    progress: Progress | None = None,
) -> EncodeReport:
    """Encode a corpus into shards of token ids, with document bounds, the documents' origins and a manifest.

    The shards hold, one after the other, the ids of the text: those that `Tokenizer.encode` gives for a whole document,
    whatever the blocks, and the separator's id after each. `open_tokens` reads them. With a tokenizer that has a
    normalizer, or when documents that are not UTF-8 are left out, text is cut at separators only: a task holds a whole
    document then. A tokenizer whose special tokens look at the text around them reads a file as a whole.

    A job that was interrupted is gone on with when it is asked for again: what is complete is not done again, and the
    result is, byte for byte, what it would have been.

    Parameters
    ----------
    source : a path, a folder, a glob, a URL, or a list of those: plain text, in which special tokens are special
        tokens and the separator stands between documents; JSONL, Parquet, Arrow, WARC, which hold documents; each of
        them plain or compressed. Or a `dask.bag.Bag` of str, a column of a Dask data frame, or any other iterable
        of str: a document each.
    tokenizer : what encodes.
    out : a folder that is empty, does not exist, or holds the same job.
    format : "bin" (uint16 or uint32 without a header, an index, the origins of the documents) or "parquet".
    dtype : "uint16" or "uint32"; by default uint16 when every id of the vocabulary fits.
    separator : the special token that ends a document; by default "<|endoftext|>" if the tokenizer has it, else its
        first special token, else none: then a text file is a document.
    end_of_document : put the separator's id after every document, also where a text file ends without it. False leaves
        it out, also where it stands between documents of a text file.
    begin_of_document : a special token whose id is put before every document.
    shard_tokens : a shard ends with the document that gives it so many tokens.
    input_format : which kind of files these are and where in them the text is; by default their names tell.
    special_tokens_in_text : what the text of a special token is in a document of any source but text files. "text":
        text, so that no document can forge the end of another one. "encode": the special token, as in
        `Tokenizer.encode`; a separator then ends a document wherever it stands. In text files it always does: there it
        is the format.
    errors : about invalid UTF-8: "replace" (by U+FFFD), "skip", or "strict": the document cannot be read.
    on_error : about documents that cannot be read: "quarantine" lists them in ``quarantine.jsonl`` and goes on, "raise"
        stops. Partitions whose storage fails for good are treated alike: the others are done first.
    max_bad : stop when more documents than this cannot be read.
    block_bytes : text per task; by default chosen by the size of the corpus.
    memory_per_worker : bytes that the block of a task may be a sixteenth of; by default the limit of the Dask worker.
    overwrite : delete what another job has left in `out`.
    client : the cluster to run on; by default the active one, else the threads of this process.
    progress : told of the job, with its stages "planning", "encoding" and "writing". By default a notebook shows it,
        and so does IPython in a terminal; elsewhere nothing is shown, as by `Progress()` everywhere.

    Raises
    ------
    InputError, OutputError, ParameterError, ClusterError
        What is complete stays in `out`; if nothing is, nothing stays.
    IncompleteError
        Some partitions failed for good; ``failed.jsonl`` lists them. The same call again does only them.
    """
    began = time.perf_counter()
    if not isinstance(tokenizer, Tokenizer):
        raise ParameterError(f"tokenizer is of type {type(tokenizer).__name__}: a Tokenizer was expected")
    vocabulary = tokenizer.vocabulary
    which = _separator_of(separator, vocabulary)
    how = input_format or InputFormat()
    options = {
        "format": format,
        "dtype": _checked_dtype(dtype, vocabulary),
        "separator": which,
        "end_of_document": bool(end_of_document),
        "begin_of_document": begin_of_document,
        "shard_tokens": whole_number("shard_tokens", shard_tokens),
        "input": vars(how),
        "special_tokens_in_text": special_tokens_in_text,
        "errors": errors,
        "on_error": on_error,
        "block_bytes": block_bytes,
    }
    _check(options, vocabulary)
    whole_number("max_bad", max_bad, 0)
    with watch("encode", os.fspath(out), progress or automatic()) as state:
        client = schedule.active_client(client)
        source = as_bag(source)
        paths = as_paths(source)
        files = [] if paths is None else listed(paths, state)
        size = block_size(sum(file.size for file in files), block_bytes, memory_per_worker, client)
        asked = Job(vocabulary.fingerprint(), options, _name(source, paths), files, pieces_of(files, size, how), size)
        reading_of(asked, vocabulary)  # refuses what no task could read by
        # Writing the vocabulary and flushing what is done took a third of the time of 150 MB when they came one by one.
        with (
            open_job(out, asked, overwrite=overwrite) as (folder, planned, begun),
            ThreadPoolExecutor(1) as beside,
            recorded(state, folder.path),
        ):
            flushed: list[Future[None]] = []
            collected = Outcomes(max_bad, lambda part: flushed.append(beside.submit(folder.flush, part)), state)
            written = beside.submit(_put_vocabulary, vocabulary, folder.file(VOCABULARY))
            if client is not None:
                written.result()  # the workers load it
            _encode(source, folder, planned, begun, vocabulary, client, collected, state)
            written.result()
            manifest = _write(folder, planned, collected.parts(), flushed, vocabulary, state)
    return EncodeReport.of(folder.path, manifest, collected, time.perf_counter() - began)


def _encode(
    source: Source,
    folder: JobFolder,
    planned: Job,
    begun: bool,
    vocabulary: Vocabulary,
    client: Client | None,
    collected: Outcomes,
    state: JobState,
) -> None:
    """Encode what is not done yet of files, of a bag, or of an iterable."""
    files = planned.files
    documents = None if files or isinstance(source, db.Bag) else as_documents(source)
    if begun and documents is not None:
        if folder.done(0) is not None:
            raise OutputError(f"{folder.path}: an iterable cannot be gone on with: overwrite what is there")
        folder.clear()  # of what an interrupted run has left nothing is complete
    keep_at_hand(vocabulary)
    total = sum(file.size for file in files) if files else None
    with schedule.job("encoding", total, "B", state, client) as name:
        encoding = _encoding(folder, planned, vocabulary, name)
        if documents is not None:
            _encode_documents(documents, encoding, collected)
        elif files:
            state.divide(len(planned.partitions))
            _encode_files(partitions_of(planned), encoding, client, collected)
        else:
            assert isinstance(source, db.Bag)
            state.divide(source.npartitions)
            _encode_bag(source, encoding, client, collected)
        write_failures(folder.path, collected.failures(planned))
        parts = collected.parts()
        if total is None:
            state.reach("encoding", sum(part.n_bytes for part in parts))


def _write(
    folder: JobFolder,
    planned: Job,
    parts: Sequence[Part],
    flushed: Sequence[Future[None]],
    vocabulary: Vocabulary,
    state: JobState,
) -> Manifest:
    """Wait until everything is durable; the manifest is the last file. Raises InputError, OutputError."""
    check_unchanged(planned.files)
    manifest = manifest_of(parts, planned.options, vocabulary)
    state.start("writing", len(flushed), "partitions")
    for flush in flushed:
        flush.result()
        state.advance("writing", 1)
    folder.finish(manifest, (bad for part in parts for bad in part.bad))
    state.finish("writing")
    state.settle({**manifest.text, "tokens": manifest.tokens, "shards": len(manifest.shards)})
    return manifest


def _check(options: Mapping[str, Any], vocabulary: Vocabulary) -> None:
    """Refuse what no task could work with. Raises ParameterError."""
    writer_class(options["format"])
    if options["special_tokens_in_text"] not in ("text", "encode"):
        raise ParameterError(
            f"special_tokens_in_text is {options['special_tokens_in_text']!r}: 'text' or 'encode' was expected"
        )
    if options["begin_of_document"] is not None:
        _special_id("begin_of_document", options["begin_of_document"], vocabulary)


def _encoding(folder: JobFolder, planned: Job, vocabulary: Vocabulary, job: str) -> Encoding:
    """What the tasks are told."""
    options = planned.options
    end, begin = marks_of(options, vocabulary)
    return Encoding(
        folder,
        reading_of(planned, vocabulary),
        vocabulary.fingerprint(),
        options["format"],
        options["dtype"],
        end,
        begin,
        options["shard_tokens"],
        job,
    )


def _checked_dtype(dtype: npt.DTypeLike | None, vocabulary: Vocabulary) -> str:
    wanted = vocabulary.checked_dtype(dtype)
    if wanted.name not in ("uint16", "uint32"):
        raise ParameterError(f"dtype {wanted.name} cannot be written: uint16 or uint32 was expected")
    return wanted.name


def _separator_of(separator: str | None, vocabulary: Vocabulary) -> str | None:
    """The special token that ends a document, if there is one."""
    if separator is not None:
        _special_id("separator", separator, vocabulary)
        return separator
    specials = list(vocabulary.special_tokens)
    return "<|endoftext|>" if "<|endoftext|>" in specials else next(iter(specials), None)


def _special_id(name: str, token: str, vocabulary: Vocabulary) -> int:
    if token not in vocabulary.special_tokens:
        raise ParameterError(f"{name} {token!r} is not a special token: those are {list(vocabulary.special_tokens)}")
    return vocabulary.special_tokens[token]


def _put_vocabulary(vocabulary: Vocabulary, path: str) -> None:
    """Write the vocabulary for the workers, unless an earlier run has. Raises OutputError."""
    try:
        if Vocabulary.load(path) == vocabulary:
            return
    except VocabularyError:
        pass  # not there, or the earlier run was interrupted before it was
    vocabulary.save(path)


def _name(source: Source, paths: Any) -> str:
    """What a job that does not read files is known by."""
    if paths is not None:
        return ""
    return f"the bag {source.name} of {source.npartitions} partitions" if isinstance(source, db.Bag) else "an iterable"


def _encode_files(partitions: list[Partition], encoding: Encoding, client: Client | None, collected: Outcomes) -> None:
    # Those that take longest begin first: none of them is left to the end.
    order = sorted(partitions, key=lambda partition: -blocks.n_bytes(partition.blocks))
    make = partitioned(order, encode_partitions, encoding=_shared(encoding))
    run(make, len(order), client, collected.add, lambda n, reason: Failed(order[n].index, reason))


def _encode_bag(bag: db.Bag, encoding: Encoding, client: Client | None, collected: Outcomes) -> None:
    indices = db.from_sequence(range(bag.npartitions), npartitions=bag.npartitions)

    def make(numbers: Sequence[int], attempt: int) -> list[Any]:
        encoded = bag.map_partitions(encode_texts, indices, encoding=_shared(encoding), attempt=attempt)
        tasks = tasks_of(dask.optimize(encoded)[0])
        return [tasks[number] for number in numbers]

    run(make, bag.npartitions, client, collected.add, Failed)


def _shared(encoding: Encoding) -> Any:
    """What all tasks are told, as one key of the graph: it travels to a worker once, not per task."""
    return dask.delayed(encoding, name=f"encoding-{encoding.folder.digest}-{encoding.job}", traverse=False)


def _encode_documents(documents: Iterator[str], encoding: Encoding, collected: Outcomes) -> None:
    """An iterable is read here, and encoded as it comes: a shard for as much text as a block has."""
    items = contents.texts_to_contents(documents, "documents", encoding.reading, contents.TEXTS_BYTES)
    collected.add(Done(write_part(0, items, encoding), 0.0, 0))
