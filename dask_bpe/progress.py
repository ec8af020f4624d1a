"""What a long job says while it runs. Views of it (terminal, notebook, page) subclass `Progress`."""

from __future__ import annotations


class Progress:
    """Receives the progress of a job; this one ignores it.

    Methods may be called from any thread of the process that started the job.
    """

    def start(self, stage: str, total: int | None, unit: str) -> None:
        """A stage begins; `total` is in `unit` ("B", "merges"), None when it is not known."""

    def advance(self, stage: str, amount: int) -> None:
        """`amount` more units of the stage are done."""

    def say(self, fact: str) -> None:
        """Something worth a line, such as the memory that a stage will take."""

    def finish(self, stage: str) -> None:
        """The stage has ended, also when it did less than its total."""
