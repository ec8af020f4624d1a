"""Whether an encoded corpus is whole, and whether it decodes to the text that it was made of."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import dask

from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.contents import END, Content, Reading
from dask_bpe.cluster.count import Paths
from dask_bpe.cluster.encode_partition import Partition
from dask_bpe.cluster.encode_plan import partitions_of, reading_of
from dask_bpe.cluster.run import partitioned, run
from dask_bpe.decoding import TokenTable
from dask_bpe.errors import ParameterError, ShardError
from dask_bpe.io import records
from dask_bpe.io.inputs import Bad
from dask_bpe.io.job import VOCABULARY, Job, read_job
from dask_bpe.io.paths import join
from dask_bpe.io.reader import TokenCorpus, open_tokens
from dask_bpe.io.source import list_files
from dask_bpe.monitor import automatic
from dask_bpe.progress import JobState, Progress, watch
from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from distributed import Client

# Tokens that are decoded at a time.
_PIECE = 1 << 20


@dataclass(frozen=True)
class VerifyReport:
    """What `verify_corpus` has found to be right.

    Attributes
    ----------
    path : the folder.
    n_tokens, n_documents, n_shards : what it holds.
    n_bytes : bytes of text that the tokens were compared with; 0 without `roundtrip`.
    n_invalid : places in it that were not UTF-8 when it was encoded, and were mended: the tokens give the mended text.
    n_quarantined : documents of the source that could not be read: they are not in the tokens.
    seconds : that it took.
    """

    path: str
    n_tokens: int
    n_documents: int
    n_shards: int
    n_bytes: int
    n_invalid: int
    n_quarantined: int
    seconds: float

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_verification

        return of_verification(self)


@dataclass(frozen=True)
class _Check:
    """What all tasks need to know."""

    folder: str
    manifest: str
    reading: Reading
    end: bytes
    begin: bytes
    job: str


def verify_corpus(
    path: str | os.PathLike[str],
    *,
    roundtrip: Paths | bool = False,
    client: Client | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Read all shards again and compare them with the manifest, and the text that they decode to with its source.

    Parameters
    ----------
    path : the folder of an encoded corpus.
    roundtrip : decode all tokens and compare them with the text, byte for byte: True takes the files from where they
        were when they were encoded; else they are named as for `encode_corpus`, in the same order. Plain text is
        compared as it stands in the file, documents of other formats as they are read, without those quarantined.
    client : the cluster to run the comparison on; by default the active one, else the threads of this process.
    progress : told of the stages "verifying" and "decoding", in bytes of shards and of text.

    Raises
    ------
    ShardError
        Something is different; says where.
    ParameterError
        There is no text to compare with: it came from a bag or an iterable, or a normalizer has changed it.
    InputError, ClusterError
        The text cannot be read.
    """
    began = time.perf_counter()
    corpus = open_tokens(path)
    manifest = corpus.manifest
    n_bytes = 0
    with watch("verify", corpus.path, progress or automatic()) as view:
        corpus.verify(view)
        if roundtrip is not False:
            n_bytes = _compare(corpus, None if roundtrip is True else roundtrip, schedule.active_client(client), view)
        view.settle({"tokens": corpus.n_tokens, "documents": corpus.n_documents, "shards": len(corpus.shards)})
    return VerifyReport(
        path=corpus.path,
        n_tokens=corpus.n_tokens,
        n_documents=corpus.n_documents,
        n_shards=len(corpus.shards),
        n_bytes=n_bytes,
        n_invalid=manifest.text["invalid"],
        n_quarantined=manifest.text["quarantined"],
        seconds=time.perf_counter() - began,
    )


def _compare(corpus: TokenCorpus, source: Paths | None, client: Client | None, view: JobState) -> int:
    """Compare all partitions; the bytes of text."""
    job = read_job(corpus.path)
    if job.source:
        raise ParameterError(
            f"{corpus.path}: was made of {job.source}, which cannot be read again: compare it yourself"
        )
    job = job if source is None else _moved(job, source)
    vocabulary = Vocabulary.load(join(corpus.path, VOCABULARY))
    if vocabulary.normalizer:
        raise ParameterError(f"{corpus.path}: its tokenizer normalizes text, which cannot be undone")
    texts = {name: str(mark["text"]).encode() for name, mark in corpus.manifest.marks.items()}
    total = sum(stop - start for pieces in job.partitions for _, start, stop in pieces)
    reports: dict[int, tuple[int, str]] = {}
    with schedule.job("decoding", total, "B", view, client) as name:
        check = _Check(
            corpus.path,
            records.digest({"manifest": corpus.manifest.to_json()}),
            replace(reading_of(job, vocabulary), on_error="quarantine"),
            texts.get("end", b""),
            texts.get("begin", b""),
            name,
        )

        def collect(report: tuple[int, int, str]) -> None:
            index, n_bytes, difference = report
            if difference:
                raise ShardError(f"{corpus.path}: {difference}")
            reports[index] = n_bytes, difference

        partitions = partitions_of(job)
        make = partitioned(partitions, _compare_partitions, check=_shared(check))
        run(make, len(partitions), client, collect, lambda n, reason: (partitions[n].index, 0, reason))
    return sum(n_bytes for n_bytes, _ in reports.values())


def _moved(job: Job, source: Paths) -> Job:
    """The job with files that lie elsewhere now, or were written again."""
    files = list_files(source)
    sizes = [file.size for file in job.files]
    if sizes != [file.size for file in files]:
        raise ParameterError(
            f"the source has {len(files)} files of {sum(file.size for file in files)} bytes, the corpus was made of"
            f" {len(sizes)} of {sum(sizes)} bytes: give the same files in the same order"
        )
    return replace(job, files=files)


def _shared(check: _Check) -> Any:
    """One key of the graph, see `encode`."""
    return dask.delayed(check, name=f"check-{records.digest({'folder': check.folder})}-{check.job}", traverse=False)


def _compare_partitions(partitions: Iterable[Partition], check: _Check, attempt: int) -> list[tuple[int, int, str]]:
    """A partition of the bag. The number of the attempt tells Dask that a task is to be done anew."""
    with schedule.task(check.job):
        return [_compare_partition(partition, check) for partition in partitions]


def _compare_partition(partition: Partition, check: _Check) -> tuple[int, int, str]:
    """Number, bytes of text and difference of a partition."""
    corpus, table = _opened(check.folder, check.manifest)
    name = re.compile(rf"part-0*{partition.index}(_\d+)?\.\w+")
    mine = [index for index, shard in enumerate(corpus.shards) if name.fullmatch(shard.name)]
    decoded = _Stream(_decoded(corpus, mine, table))
    n_bytes = 0
    for block in partition.blocks:
        for content in blocks.read(block, check.reading):
            if isinstance(content, Bad):
                continue
            for piece in _expected(content, check):
                found = decoded.take(len(piece))
                if found != piece:
                    at = next((i for i, (a, b) in enumerate(zip(found, piece, strict=False)) if a != b), len(found))
                    return partition.index, 0, _difference(content, partition, found, piece, at)
            n_bytes += content.stop - content.start
        schedule.report(check.job, block.stop - block.start)
    rest = decoded.take(40)
    if rest:
        return partition.index, 0, f"partition {partition.index} decodes to more than its text: {rest!r} follows"
    return partition.index, n_bytes, ""


def _difference(content: Content, partition: Partition, found: bytes, piece: bytes, at: int) -> str:
    return (
        f"partition {partition.index} decodes to another text than {content.source} holds between {content.start} and"
        f" {content.stop}: {found[at : at + 40]!r} instead of {piece[at : at + 40]!r}"
    )


@lru_cache(maxsize=2)
def _opened(folder: str, manifest: str) -> tuple[TokenCorpus, TokenTable]:
    """The corpus that has this manifest and the table that decodes it, once for each process."""
    vocabulary = Vocabulary.load(join(folder, VOCABULARY))
    return open_tokens(folder, fingerprint=vocabulary.fingerprint()), TokenTable(vocabulary.tokens)


def _decoded(corpus: TokenCorpus, shards: Sequence[int], table: TokenTable) -> Iterator[bytes]:
    """The bytes of the tokens of some shards."""
    for index in shards:
        ids = corpus.shard_tokens(index)
        for start in range(0, len(ids), _PIECE):
            yield table.decode(ids[start : start + _PIECE])


def _expected(content: Content, check: _Check) -> Iterator[bytes]:
    """What the tokens of a content decode to, piece by piece: its text, special tokens, the marks of documents."""
    text, begin = content.text, check.begin
    separators = check.reading.separators
    begins = not content.continues
    rows = len(content.positions) - (not begins)
    for start, end, special in zip(*content.segments.tolist(), content.special.tolist(), strict=True):
        piece = text[start:end].tobytes()
        if begins and rows > 0:
            piece = begin + piece
            rows -= 1
        begins = special == END or special in separators
        if begins:
            piece += check.end
        elif special >= 0:
            piece += check.reading.special_tokens[special].encode()
        yield piece


class _Stream:
    """Bytes that come in pieces, taken in others."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = memoryview(b"")

    def take(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end."""
        parts: list[bytes] = []
        while size:
            if not len(self._buffer):
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._buffer = memoryview(piece)
                continue
            part = self._buffer[:size]
            self._buffer = self._buffer[len(part) :]
            size -= len(part)
            parts.append(bytes(part))
        return b"".join(parts)
