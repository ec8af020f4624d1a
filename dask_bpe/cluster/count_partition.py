"""What a worker does in a counting: it makes counts of one partition, and says how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dask_bpe.cluster import blocks, contents, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.contents import END, Content, Reading, describe
from dask_bpe.cluster.laps import Laps
from dask_bpe.count_table import CountTable
from dask_bpe.counts import PretokenCounts
from dask_bpe.encoder import slices
from dask_bpe.io.inputs import Bad
from dask_bpe.pretokenize import Scanner, get_pattern

Int64s = npt.NDArray[np.int64]

# Block k of files, partition k of a bag, stands at k << _PLACE in the order of first occurrence: how much text it holds
# nobody knows beforehand, and positions in files of documents are not those of text.
_PLACE = 40
# So many documents that cannot be read a task names.
_NAMED = 5
# Text after which a task says how far it is: some hundredths of a second.
_SLICE_BYTES = 8 << 20


def count_partitions(parts: Iterable[tuple[int, Sequence[Block]]], reading: Reading, job: str) -> list[PretokenCounts]:
    """A partition of the bag: the number of a partition, and its blocks."""
    counted: list[PretokenCounts] = []
    for number, part in parts:
        with schedule.task(job, number):
            counted.append(count_partition(part, [], reading, job))
    return counted


def count_partition(part: Sequence[Block], bad: list[Bad], reading: Reading, job: str) -> PretokenCounts:
    """The counts of the blocks that a task reads; the documents that cannot be read are added to `bad`."""
    counting = _Counting(reading, job, part[0].index << _PLACE, blocks.n_bytes(part))
    for block in part:
        reported = schedule.Reported(job, block.stop - block.start)
        for content in blocks.read(block, reading):
            if isinstance(content, Bad):
                bad.append(content)
                counting.leave_out(content)
            else:
                counting.add(content, reported.add)
        reported.rest()
    return counting.freeze()


def count_texts_of(texts: Iterable[str], numbers: Iterable[int], reading: Reading, job: str) -> list[PretokenCounts]:
    """A partition of a bag of the user's own: texts, a document each."""
    (number,) = numbers
    with schedule.task(job, number):
        return [count_texts(texts, reading, job, number << _PLACE)]


def count_texts(texts: Iterable[str], reading: Reading, job: str, origin: int) -> PretokenCounts:
    """The counts of texts, a document each; the first one stands at `origin` in the corpus."""
    counting = _Counting(reading, job, origin)
    for content in contents.texts_to_contents(texts, "documents", reading, contents.TEXTS_BYTES):
        if isinstance(content, Bad):
            counting.leave_out(content)
        else:
            counting.add(content, lambda amount: schedule.report(job, amount))
    return counting.freeze()


class _Counting:
    """The counts of a partition while they are made: of about `size` bytes, whose text begins at `origin`."""

    def __init__(self, reading: Reading, job: str, origin: int, size: int = 0) -> None:
        self._reading, self._job, self._origin = reading, job, origin
        self._laps = Laps(job)
        self._table, self._scanner = CountTable.for_text(size), Scanner(get_pattern(reading.pattern))
        self._n_bytes = self._n_documents = self._n_invalid = self._n_quarantined = 0

    def add(self, content: Content, report: Callable[[int], None]) -> None:
        """Count a content, which stands behind those before it; `report` is told of bytes of text."""
        self._laps.end("reading")
        n_bytes, n_documents = content.stop - content.start, _n_documents(content)
        (starts, ends), done = content.segments, 0
        for first, last in slices(starts, ends, _SLICE_BYTES):
            segments = np.ascontiguousarray(content.segments[:, first:last])
            self._table.add_segments(content.text, segments, self._scanner, self._origin)
            # What was mended, or stands behind the last segment, comes with it.
            now = n_bytes if last == len(ends) else min(n_bytes, int(ends[last - 1]))
            report(now - done)
            done = now
            schedule.grown(self._job, self._n_bytes + done, len(self._table))
        report(n_bytes - done)
        schedule.report(self._job, bytes=n_bytes, documents=n_documents, invalid=content.n_invalid)
        self._n_bytes += n_bytes
        self._origin += len(content.text)
        self._n_documents += n_documents
        self._n_invalid += content.n_invalid
        self._laps.end("counting")

    def leave_out(self, bad: Bad) -> None:
        """Count a document that cannot be read. Counts hold no list of those: the first of every task are named."""
        self._n_quarantined += 1
        schedule.report(self._job, quarantined=1)
        if self._n_quarantined <= _NAMED:
            more = " (and perhaps more there)" if self._n_quarantined == _NAMED else ""
            schedule.quarantine(self._job, bad.source, bad.position, bad.reason)
            schedule.say(self._job, f"cannot be read: {describe(bad)}{more}")

    def freeze(self) -> PretokenCounts:
        """The counts of all that was added."""
        counts = PretokenCounts.from_table(
            self._table,
            pattern=self._reading.pattern,
            special_tokens=self._reading.special_tokens,
            n_bytes=self._n_bytes,
            n_documents=self._n_documents,
            n_invalid=self._n_invalid,
            n_unmatched=self._table.n_unmatched,
            n_quarantined=self._n_quarantined,
        )
        self._laps.end("counting")
        schedule.report(self._job, pretokens=counts.total)
        return counts


def _n_documents(content: Content) -> int:
    """Documents that begin in a content. In a text file every special token ends one, in a document none does."""
    return content.n_documents if content.in_place else int(np.count_nonzero(content.special == END))
