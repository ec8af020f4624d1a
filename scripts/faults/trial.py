"""A job that is broken, gone on with until it is complete, and compared with one that never was broken."""

from __future__ import annotations

import json
import os
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask_bpe
from dask_bpe.cluster import blocks
from dask_bpe.errors import BpeError
from dask_bpe.io import failures, runs
from dask_bpe.io.source import list_files
from faults.corpus import END, Corpus
from faults.job import Ended, Failure, Job

BLOCK_BYTES = 48 << 10
_TRIES = 8
_TEMPORARY = ".tmp-"
# An encoding of which partitions have failed: to be asked for again.
INCOMPLETE = 4


class Trial(ABC):
    """One job and what is done to it.

    Attributes
    ----------
    corpus, source : what it reads, and the path or URL that it reads it from.
    reference : what it has to make.
    folder : for all that belongs to this trial.
    draw : chance.
    injected : faults so far.
    longest : seconds that something took at most, by what it is.
    where : where it runs; arguments of `dask-bpe`.
    at_the_end : what is undone when it has been compared.
    """

    def __init__(self, corpus: Corpus, reference: Path, folder: Path, draw: random.Random) -> None:
        folder.mkdir(parents=True)
        self.corpus, self.reference, self.folder, self.draw = corpus, reference, folder, draw
        self.source = str(corpus.folder)
        self.injected = 0
        self.longest: dict[str, float] = {}
        self.where: Sequence[str] = ("--cluster", "2")
        self.at_the_end = ExitStack()
        self._n_jobs = 0

    @abstractmethod
    def arguments(self) -> list[str]:
        """Those of `dask-bpe`."""

    @abstractmethod
    def done(self) -> int:
        """Partitions that are done."""

    @property
    @abstractmethod
    def partitions(self) -> int:
        """Partitions in all."""

    @property
    def steps(self) -> int:
        """What `done` comes to when all is."""
        return self.partitions

    @abstractmethod
    def check(self) -> int:
        """Compare what was made; the documents in it. Raises Failure."""

    @abstractmethod
    def writing(self) -> bool:
        """Whether a file is being written now."""

    @contextmanager
    def start(self, *more: str, environment: Mapping[str, str] | None = None) -> Iterator[Job]:
        """The job, begun or gone on with."""
        self._n_jobs += 1
        log = self.folder / f"job-{self._n_jobs}.err"
        with Job([*self.arguments(), *self.where, *more], log, environment) as job:
            yield job

    def took(self, what: str, seconds: float) -> None:
        """Keep how long something took, if it is the longest."""
        self.longest[what] = max(seconds, self.longest.get(what, 0.0))

    def complete(self, ended: Ended | None = None, *more: str, environment: Mapping[str, str] | None = None) -> None:
        """Ask for the job until it is complete. `ended` : how it ended already. Raises Failure."""
        for _ in range(_TRIES):
            if ended is not None and ended.code == 0:
                return
            if ended is not None and ended.code != INCOMPLETE:
                raise Failure(f"the job ended in another way than it should: {ended}")
            with self.start(*more, environment=environment) as job:
                ended = job.wait()
        if ended is None or ended.code:
            raise Failure(f"the job is not complete after {_TRIES} runs: {ended}")

    def refused(
        self, expected: Sequence[str], *more: str, code: int = 2, environment: Mapping[str, str] | None = None
    ) -> None:
        """Ask for the job, which must say these things in one line and end with this code. Raises Failure."""
        with self.start(*more, environment=environment) as job:
            assert_refused(job.wait(), expected, code)


def assert_refused(ended: Ended, expected: Sequence[str], code: int) -> None:
    """A job said these things in one line and ended with this code, or Failure."""
    said = [line for line in ended.lines if line.startswith("Error: ")]
    if ended.code != code or len(ended.lines) != 1 or not all(part in "".join(said) for part in expected):
        raise Failure(f"exit code {code} and one line with {expected} were expected, not {ended}")


class Encoding(Trial):
    """`dask-bpe encode`."""

    def __init__(self, corpus: Corpus, reference: Path, folder: Path, draw: random.Random, form: str = "bin") -> None:
        super().__init__(corpus, reference, folder, draw)
        self.form = form
        self.out = folder / "tokens"

    def expect_of(self, source: str) -> None:
        """Encode something else from now on, and compare with what that gives without faults."""
        self.source = source
        self.reference = self.folder / f"reference-{self._n_jobs}"
        encode(source, self.corpus, self.reference, self.form)

    def arguments(self) -> list[str]:
        """See `Trial`."""
        return [
            "encode", self.source, "--tokenizer", str(self.corpus.vocabulary), "--out", str(self.out), "--quiet",
            "--block-size", str(BLOCK_BYTES), "--format", self.form,
        ]  # fmt: skip

    def done(self) -> int:
        """See `Trial`."""
        return sum(_is_record(name) for name in _names(self.out))

    @property
    def partitions(self) -> int:
        """See `Trial`."""
        return sum(_is_record(name) for name in _names(self.reference))

    def writing(self) -> bool:
        """See `Trial`."""
        return any(_TEMPORARY in name and name.startswith("part-") for name in _names(self.out))

    def begun(self) -> bool:
        """Whether the job has written what it was asked for."""
        return (self.out / "job.json").exists()

    def check(self) -> int:
        """See `Trial`."""
        assert_same_files(self.reference, self.out)
        try:
            report = dask_bpe.verify_corpus(self.out, roundtrip=True)
        except BpeError as error:
            raise Failure(f"verify: {error}") from error
        documents = decoded(self.out)
        _assert_same_documents(self.corpus.documents, documents)
        if report.n_documents != len(documents):
            raise Failure(f"verify counts {report.n_documents} documents, there are {len(documents)}")
        return len(documents)


class Training(Trial):
    """`dask-bpe train --work-dir`."""

    @property
    def work(self) -> Path:
        """What it keeps."""
        return self.folder / "work"

    @property
    def out(self) -> Path:
        """The vocabulary."""
        return self.folder / "vocabulary.json"

    def arguments(self) -> list[str]:
        """See `Trial`."""
        return [
            "train", self.source, "--vocab-size", "3000", "--special-token", END, "--out", str(self.out),
            "--work-dir", str(self.work), "--block-size", str(BLOCK_BYTES), "--json", "--force",
        ]  # fmt: skip

    def done(self) -> int:
        """See `Trial`. The merges are one more."""
        counted = sum(_is_record(name) for name in _names(self.work / "counts"))
        return counted + (self.work / "counts.json").exists()

    @property
    def partitions(self) -> int:
        """See `Trial`."""
        files = list_files(self.corpus.folder)
        return len(blocks.gather(blocks.divide(files, BLOCK_BYTES), BLOCK_BYTES))

    @property
    def steps(self) -> int:
        """See `Trial`."""
        return self.partitions + 1

    def writing(self) -> bool:
        """See `Trial`."""
        return any(_TEMPORARY in name for name in _names(self.work / "counts"))

    def check(self) -> int:
        """See `Trial`."""
        if self.out.read_bytes() != self.reference.read_bytes():
            raise Failure(f"{self.out} is another vocabulary than {self.reference}")
        left = [path for path in self.folder.rglob("*") if _TEMPORARY in path.name or path.name == failures.NAME]
        if left:
            raise Failure(f"files are left that should not be: {left}")
        (said,) = [path for path in [self.folder / f"job-{self._n_jobs}.out"] if path.stat().st_size]
        return int(json.loads(said.read_text())["documents"])


def encode(source: str, corpus: Corpus, out: Path, form: str) -> None:
    """An encoding in this process that nothing happens to."""
    tokenizer = dask_bpe.Tokenizer.load(corpus.vocabulary)
    dask_bpe.encode_corpus(source, tokenizer, out, form, block_bytes=BLOCK_BYTES)


def assert_same_files(expected: Path, found: Path) -> None:
    """Two folders hold the same names and bytes, but for how the runs went, or Failure."""
    before, now = ([name for name in _names(folder) if name != runs.NAME] for folder in (expected, found))
    if before != now:
        raise Failure(f"{found}: missing {sorted({*before} - {*now})}, left over {sorted({*now} - {*before})}")
    for name in before:
        if (expected / name).read_bytes() != (found / name).read_bytes():
            raise Failure(f"{found / name} has other bytes than {expected / name}")


def decoded(out: Path) -> list[str]:
    """The documents of an encoded corpus, without the mark at their ends."""
    tokenizer = dask_bpe.Tokenizer.load(out / "vocabulary.json")
    return [tokenizer.decode(ids).removesuffix(END) for ids in dask_bpe.open_tokens(out).documents]


def _assert_same_documents(expected: Sequence[str], found: Sequence[str]) -> None:
    before, now = Counter(expected), Counter(found)
    lost, new = before - now, now - before
    if lost or new:
        first = next(iter([*lost, *new]))[:60]
        raise Failure(f"{lost.total()} documents are lost, {new.total()} are doubled or other ones; one is {first!r}")


def _is_record(name: str) -> bool:
    return name.startswith("part-") and name.endswith(".json")


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  (ten times a second and more)
    except FileNotFoundError:
        return []
