"""What the tasks of an encoding have come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dask_bpe.cluster.contents import describe
from dask_bpe.cluster.encode_partition import Done, Failed
from dask_bpe.errors import IncompleteError, InputError
from dask_bpe.io.failures import Failure
from dask_bpe.io.job import Job, Part
from dask_bpe.progress import JobState


class Outcomes:
    """Collects what tasks report, and tells the job's progress of it.

    Parameters
    ----------
    max_bad : more documents than this that cannot be read stop the job.
    flush : is given each partition that is done, to make it durable.
    state : is told what became of each partition.
    """

    def __init__(self, max_bad: int, flush: Callable[[Part], Any], state: JobState) -> None:
        self._state = state
        self._max_bad = max_bad
        self._flush = flush
        self._done: dict[int, Part] = {}
        self._failed: dict[int, Failed] = {}
        self._n_bad = 0
        self.peak_memory = 0
        self.n_resumed = 0

    def add(self, outcome: Done | Failed) -> None:
        """Take a report; one for a partition that is done already changes nothing. Raises InputError."""
        if isinstance(outcome, Failed):
            self._failed[outcome.index] = outcome
            self._state.partition(outcome.index, "failed")
            return
        part = outcome.part
        if part.index in self._done:
            return
        self._done[part.index] = part
        self._failed.pop(part.index, None)
        self._flush(part)
        self._tell(part, outcome)
        self.peak_memory = max(self.peak_memory, outcome.peak_memory)
        self.n_resumed += outcome.resumed
        self._n_bad += len(part.bad)
        if self._n_bad > self._max_bad:
            raise InputError(
                f"{self._n_bad} documents cannot be read, more than max_bad={self._max_bad}; the last one:"
                f" {describe(part.bad[-1])}. Mend them, or allow more; what is done stays done"
            )

    def _tell(self, part: Part, outcome: Done) -> None:
        """Show what came of a partition; bytes and tokens the tasks tell themselves while they work."""
        self._state.partition(part.index, "resumed" if outcome.resumed else "done", outcome.seconds, outcome.worker)
        figures = {
            "documents": part.n_documents,
            "invalid": part.n_invalid,
            "quarantined": len(part.bad),
            "shards": len(part.shards),
        }
        if outcome.resumed:
            figures |= {"bytes": part.n_bytes, "tokens": sum(shard.tokens for shard in part.shards)}
        self._state.add(figures)
        for bad in part.bad:
            self._state.quarantine(bad.source, bad.position, bad.reason)

    def failures(self, job: Job) -> list[Failure]:
        """The partitions that have failed, and the pieces of files that they are of."""
        return [
            Failure(
                index,
                self._failed[index].reason,
                [
                    (job.files[number].path, start, stop)
                    for number, start, stop in (job.partitions[index] if job.partitions else ())
                ],
            )
            for index in sorted(self._failed)
        ]

    def parts(self) -> list[Part]:
        """The records of all partitions in order. Raises IncompleteError when some have failed."""
        if self._failed:
            first = self._failed[min(self._failed)]
            raise IncompleteError(
                f"{len(self._failed)} of {len(self._failed) + len(self._done)} partitions could not be encoded; the"
                f" first, number {first.index}: {first.reason}. The rest is done: the same call again does only these"
            )
        return [self._done[index] for index in sorted(self._done)]
