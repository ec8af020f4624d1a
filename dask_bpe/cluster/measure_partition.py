"""What a worker does when corpora are measured: it reads a partition once, and gives back a few numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dask_bpe.analysis.measure import WORDS, Meter, Part
from dask_bpe.cluster import blocks, contents, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.contents import Content, Errors, Reading, describe, ends_document_at
from dask_bpe.cluster.planning.sample_pieces import Piece, beginning, read_piece
from dask_bpe.errors import InputError
from dask_bpe.io.inputs import Bad, InputFormat
from dask_bpe.tokenizer import Tokenizer

# Groups that the field of a document may name.
_MOST_GROUPS = 10_000
# Things that could not be read, so many of which are named.
_NAMED = 3


@dataclass(frozen=True)
class Wanted:
    """What is measured, and how text is read.

    Attributes
    ----------
    tokenizers : what encodes.
    contexts : lengths in tokens that documents are compared with.
    reading : how files are read; its format says where documents name their group, where they do.
    """

    tokenizers: tuple[Tokenizer, ...]
    contexts: tuple[int, ...]
    reading: Reading

    @classmethod
    def of(
        cls,
        tokenizers: Iterable[Tokenizer],
        contexts: Sequence[int],
        separator: str | None,
        errors: Errors,
        how: InputFormat,
    ) -> Wanted:
        """With text that is cut only where all tokenizers, and the words of all, allow it."""
        models = tuple(tokenizers)
        first, *others = dict.fromkeys([*(model.vocabulary.cut_pattern for model in models), WORDS])
        specials = () if separator is None else (separator,)
        reading = Reading(
            first,
            specials,
            frozenset(range(len(specials))),
            errors,
            0,
            on_error="quarantine",
            how=how,
            others=tuple(others),
        )
        return cls(models, tuple(contexts), reading)

    def meter(self) -> Meter:
        """A meter that has measured nothing."""
        return Meter(self.tokenizers, self.contexts)


@dataclass(frozen=True)
class Unread:
    """What could not be read: how many documents or rests of files, and the first of them in words."""

    number: int = 0
    first: tuple[str, ...] = ()

    def __add__(self, other: Unread) -> Unread:
        return Unread(self.number + other.number, (self.first + other.first)[:_NAMED])

    def __str__(self) -> str:
        more = self.number - len(self.first)
        return "; ".join(self.first) + (f"; and {more:,} more" if more else "")


@dataclass(frozen=True)
class Task:
    """A partition of a corpus: blocks, or a piece of a sample. `group` is None where documents name their own."""

    index: int
    group: str | None
    blocks: tuple[Block, ...]
    piece: Piece | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of files."""
        return self.piece.n_bytes if self.piece else sum(block.stop - block.start for block in self.blocks)


@dataclass(frozen=True)
class Report:
    """What a task has measured, by group, and what it could not read; or why it failed."""

    index: int
    parts: dict[str, Part]
    unread: Unread = Unread()
    failure: str = ""


def measure_tasks(tasks: Iterable[Task], shared: tuple[Wanted, str], attempt: int) -> list[Report]:
    """A partition of the bag. The number of the attempt tells Dask that a task is to be done anew."""
    wanted, job = shared
    with schedule.task(job):
        return [_measure_task(task, wanted, job) for task in tasks]


def measure_documents(texts: Iterable[str], wanted: Wanted) -> list[tuple[Part, Unread]]:
    """A partition of a bag of the user's own, or an iterable: texts, a document each."""
    meter, unread = wanted.meter(), Unread()
    for item in contents.texts_to_contents(texts, "documents", wanted.reading, contents.TEXTS_BYTES):
        if isinstance(item, Bad):
            unread += Unread(1, (describe(item),))
        else:
            _add(meter, item, wanted.reading)
    return [(meter.part(), unread)]


def check_groups(number: int, how: InputFormat) -> None:
    """Refuse a field that is taken for the group of documents and is none. Raises InputError."""
    if number > _MOST_GROUPS:
        raise InputError(
            f"{how.id_field} names more than {_MOST_GROUPS:,} groups of documents: name the field with the language"
        )


def _measure_task(task: Task, wanted: Wanted, job: str) -> Report:
    meters: dict[str, Meter] = {}
    unread = Unread()
    for item in _items(task, wanted.reading):
        if isinstance(item, Bad):
            unread += Unread(1, (describe(item),))
            continue
        for group, content in _by_id(item) if task.group is None else [(task.group, item)]:
            if group not in meters:
                meters[group] = wanted.meter()
                check_groups(len(meters), wanted.reading.how)
            _add(meters[group], content, wanted.reading)
    schedule.report(job, task.n_bytes)
    # The end of the head of a compressed file is no damage.
    cut_short = task.piece is not None and task.piece.head > 0
    return Report(task.index, {g: meter.part() for g, meter in meters.items()}, Unread() if cut_short else unread)


def _items(task: Task, reading: Reading) -> Iterator[Content | Bad]:
    if task.piece is None:
        for block in task.blocks:
            yield from blocks.read(block, reading)
        return
    with beginning(task.piece, reading.how) as piece:
        yield from read_piece(piece, reading)


def _add(meter: Meter, content: Content, reading: Reading) -> None:
    ends = ends_document_at(content.special, reading.separators)
    meter.add(content.text, content.segments, ends, continues=content.continues)


def _by_id(content: Content) -> Iterator[tuple[str, Content]]:
    """The documents of a content by their ids, each group as a content of its own."""
    if content.ids is None:
        raise InputError(
            f"{content.source}: plain text does not say the language of its documents: give a folder of files"
        )
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(content.ids):
        rows.setdefault(name, []).append(row)
    for name, several in rows.items():
        pieces = [content.text[start:end] for start, end in content.segments[:, several].T.tolist()]
        bounds = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
        segments = np.stack((bounds[:-1], bounds[1:]))
        yield name, replace(content, text=np.concatenate(pieces), segments=segments, special=content.special[several])
