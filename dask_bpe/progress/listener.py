"""What is told of a job while it runs. Views of it (terminal, notebook, page) subclass `Progress`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dask_bpe.progress.job_state import JobState


class Progress:
    """Receives the progress of a job; this one ignores it.

    Methods may be called from any thread of the process that started the job. What they raise stops the job.
    """

    def begin(self, job: JobState) -> None:
        """A job begins: `job.snapshot()` gives all its figures at any time, also after its end."""

    def start(self, stage: str, total: int | None, unit: str) -> None:
        """A stage begins; `total` is in `unit` ("B", "merges"), None when it is not known."""

    def advance(self, stage: str, amount: int) -> None:
        """`amount` more units of the stage are done."""

    def say(self, fact: str) -> None:
        """Something worth a line, such as the memory that a stage will take."""

    def finish(self, stage: str) -> None:
        """The stage has ended, also when it did less than its total."""

    def end(self) -> None:
        """The job has ended; its last snapshot says how."""
