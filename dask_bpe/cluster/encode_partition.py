"""What a worker does in an encoding: it turns one partition into shards and a record of them.

A task is a function of the partition and of what the job's folder says. It may run twice, on two workers at the same
time even: both write the same bytes, under names of their own until they are complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from dask_bpe import machine
from dask_bpe.cluster import blocks, contents, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.contents import Content, Reading, ends_document_at
from dask_bpe.cluster.laps import Laps
from dask_bpe.encoder import NOTHING, SLICE_BYTES, Encoder, slices
from dask_bpe.errors import InputError
from dask_bpe.io.inputs import Bad
from dask_bpe.io.job import VOCABULARY, JobFolder, Part, part_name
from dask_bpe.io.series import ShardSeries
from dask_bpe.io.shards import Origins, ShardWriter, Span, open_writer
from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]
Item = Content | Bad

# Vocabularies that this process has at hand, by fingerprint; the driver puts its own here.
_AT_HAND: dict[str, Vocabulary] = {}


@dataclass(frozen=True)
class Partition:
    """The pieces of the input that one task encodes."""

    index: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Encoding:
    """What all tasks of an encoding are told; a few kilobytes.

    Attributes
    ----------
    folder : where to write, and where the vocabulary is.
    reading : how the input is read.
    fingerprint : of the vocabulary.
    format, dtype : of the shards.
    end, begin : ids of the marks at the end and the beginning of every document, or None.
    shard_tokens : tokens after which a shard ends.
    job : the name under which tasks report.
    """

    folder: JobFolder
    reading: Reading
    fingerprint: str
    format: str
    dtype: str
    end: int | None
    begin: int | None
    shard_tokens: int
    job: str


@dataclass(frozen=True)
class Done:
    """What a task reports: the record of its partition, and what it cost."""

    part: Part
    seconds: float
    peak_memory: int
    resumed: bool = False
    worker: str = ""


@dataclass(frozen=True)
class Failed:
    """A partition that could not be encoded, and why. The others go on."""

    index: int
    reason: str


def keep_at_hand(vocabulary: Vocabulary) -> None:
    """Tasks in this process take this vocabulary and its encoder's warm caches, instead of loading it again."""
    _AT_HAND.clear()
    _AT_HAND[vocabulary.fingerprint()] = vocabulary


def encode_partitions(partitions: Iterable[Partition], encoding: Encoding, attempt: int) -> list[Done | Failed]:
    """A partition of the bag: files. The number of the attempt tells Dask that a task is to be done anew."""
    return [_encode_partition(partition, encoding) for partition in partitions]


def encode_texts(texts: Iterable[str], numbers: Iterable[int], encoding: Encoding, attempt: int) -> list[Done | Failed]:
    """A partition of a bag of the user's own: texts, a document each."""
    (number,) = numbers
    began = time.perf_counter()
    with schedule.task(encoding.job):
        if (part := encoding.folder.done(number)) is not None:
            schedule.report(encoding.job, part.n_bytes)
            return [Done(part, 0.0, machine.peak_memory(), resumed=True)]
        documents = texts if isinstance(texts, list) else list(texts)
        items = contents.texts_to_contents(documents, f"partition {number}", encoding.reading, contents.TEXTS_BYTES)
        part = write_part(number, items, encoding)
    return [Done(part, time.perf_counter() - began, machine.peak_memory(), worker=schedule.worker_name())]


def _encode_partition(partition: Partition, encoding: Encoding) -> Done | Failed:
    began = time.perf_counter()
    n_bytes = blocks.n_bytes(partition.blocks)
    with schedule.task(encoding.job):
        if (part := encoding.folder.done(partition.index)) is not None:
            schedule.report(encoding.job, n_bytes)
            return Done(part, 0.0, machine.peak_memory(), resumed=True)
        reported = schedule.Reported(encoding.job, n_bytes)
        try:
            part = write_part(partition.index, _read(partition, encoding.reading), encoding, reported.add)
        except InputError as error:
            # Storage that failed for good: the other partitions may do better.
            if not isinstance(error.__cause__, OSError) or encoding.reading.on_error == "raise":
                raise
            return Failed(partition.index, str(error))
        reported.rest()
    return Done(part, time.perf_counter() - began, machine.peak_memory(), worker=schedule.worker_name())


def _read(partition: Partition, reading: Reading) -> Iterator[Item]:
    for block in partition.blocks:
        yield from blocks.read(block, reading)


def write_part(
    index: int, items: Iterable[Item], encoding: Encoding, report: Callable[..., None] | None = None
) -> Part:
    """Encode what was read as partition `index`, and record it as done. `report` is told of bytes of text.

    Raises InputError, OutputError.
    """
    report, laps = report or partial(schedule.report, encoding.job), Laps(encoding.job)
    vocabulary = _vocabulary(encoding)
    totals = np.zeros(5, np.int64)
    bad: list[Bad] = []

    def open_next(number: int, origins: Origins, continues: bool) -> ShardWriter:
        """The writer of shard `number` of the partition."""
        return open_writer(
            encoding.format,
            encoding.folder.path,
            part_name(index, number),
            encoding.dtype,
            origins=origins,
            continues=continues,
            fingerprint=encoding.fingerprint,
            durable=False,
        )

    series: ShardSeries | None = None
    try:
        for item in items:
            laps.end("reading")
            if isinstance(item, Bad):
                bad.append(item)
                continue
            if series is None:
                series = ShardSeries(
                    open_next,
                    encoding.shard_tokens,
                    continues=item.continues,
                    check=encoding.folder.check_current,
                )
            totals += write_content(series, item, vocabulary, encoding, report, laps.end)
        shards = series.close() if series is not None else ()
    finally:
        if series is not None:
            series.abort()
    n_bytes, n_documents, n_invalid, n_ends, n_begins = totals.tolist()
    encoding.folder.check_current()
    part = Part(index, shards, n_bytes, n_documents, n_invalid, n_ends, n_begins, tuple(bad))
    encoding.folder.finish_part(part)
    laps.end("writing")
    return part


def _vocabulary(encoding: Encoding) -> Vocabulary:
    at_hand = _AT_HAND.get(encoding.fingerprint)
    return at_hand or _loaded(encoding.folder.file(VOCABULARY), encoding.fingerprint)


@lru_cache(maxsize=2)
def _loaded(path: str, fingerprint: str) -> Vocabulary:
    """The vocabulary of a job; the fingerprint is there to tell it from an earlier one of the same place."""
    return Vocabulary.load(path)


def write_content(
    series: ShardSeries,
    content: Content,
    vocabulary: Vocabulary,
    encoding: Encoding,
    report: Callable[..., None],
    end: Callable[[str], None],
) -> Int64s:
    """Encode a content slice by slice; what it adds to the totals of its part, int64[5].

    `report` is told of what is done, `end` when an activity ends, see `Laps`.
    """
    # A document that the content before has begun is a row of its already, and has an origin.
    known = int(content.continues and series.begun)
    series.begin(Span(content.source, content.start, content.stop))
    own = None if content.ids is None else content.ids[known:]
    series.origins.add(content.source, content.positions[known:], own)
    encoder = Encoder.of(vocabulary)
    ends_at, begins_at = _bounds(content, encoding)
    after = _ids_after(content.special, vocabulary, encoding)
    out = np.empty(2 * SLICE_BYTES, np.uint32)
    for first, last in slices(*content.segments):
        segments = content.segments[:, first:last]
        ids, offsets = encoder.encode_segments(content.text, segments[0], segments[1], after[first:last], out)
        ending = ends_at[slice(*np.searchsorted(ends_at, (first, last)))]
        ends = offsets[ending + 1 - first]
        if encoding.begin is not None:
            beginning = begins_at[slice(*np.searchsorted(begins_at, (first, last)))]
            ids = np.insert(ids, offsets[beginning - first], encoding.begin)
            ends = ends + np.searchsorted(beginning, ending, "right")
        end("encoding")
        series.write(ids, ends)
        end("writing")
        n_bytes = int(segments[1, -1] - segments[0, 0])
        report(n_bytes, bytes=n_bytes, tokens=len(ids))
    n_ends = 0 if encoding.end is None else int(np.count_nonzero(after == encoding.end))
    n_begins = 0 if encoding.begin is None else len(begins_at)
    n_bytes = content.stop - content.start
    return np.array((n_bytes, content.n_documents, content.n_invalid, n_ends, n_begins))


def _bounds(content: Content, encoding: Encoding) -> tuple[Int64s, Int64s]:
    """The segments with which documents end, and those with which they begin."""
    ends = np.flatnonzero(ends_document_at(content.special, encoding.reading.separators))
    # Behind the last separator there may be nothing.
    firsts = np.concatenate((np.zeros(1, np.int64), ends + 1))[: len(content.positions)]
    return ends, firsts[1:] if content.continues else firsts


def _ids_after(special: Int64s, vocabulary: Vocabulary, encoding: Encoding) -> npt.NDArray[np.uint32]:
    """What is put after each segment: special tokens as they stand in the text; marks where documents end, or not."""
    end = NOTHING if encoding.end is None else encoding.end
    # The last two are what the indices END and OPEN find.
    ids = np.array([*vocabulary.special_tokens.values(), NOTHING, end], np.uint32)
    ids[list(encoding.reading.separators)] = end
    after: npt.NDArray[np.uint32] = ids[special]
    return after
