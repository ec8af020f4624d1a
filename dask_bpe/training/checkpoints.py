"""States of the merge loop on disk, so that a training that was interrupted goes on where it was.

Each one is a folder of arrays (`io.arrays`) named after its number of merges. The one before is deleted when the next
one is complete: wherever the process dies, a complete one is left.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dask_bpe.errors import OutputError
from dask_bpe.io import arrays, paths
from dask_bpe.io.folders import make_folder
from dask_bpe.io.work_folder import WorkFolder, clear_states, state_path, states
from dask_bpe.training.merger import Merger, State

KIND = "dask_bpe.merging"
# Writing takes at most so large a part of the time, however long a state takes to write.
_SHARE = 0.1


@dataclass(frozen=True)
class Progressed:
    """A state that was read: its arrays, and how many of its merges are proved, see `margins`."""

    arrays: State
    n_proved: int
    proving: bool


class MergeCheckpoints:
    """Where one training keeps its states.

    Parameters
    ----------
    folder : the work folder.
    belongs : JSON values that name the counts and the rules; a state of others is not used.
    seconds : from one state to the next, at least.
    """

    def __init__(self, folder: WorkFolder, belongs: Mapping[str, Any], seconds: float) -> None:
        self._folder, self._belongs, self._seconds = folder.merging, dict(belongs), seconds
        self._next = time.monotonic() + seconds

    def load(self, most: int) -> Progressed | None:
        """The latest state of this training that is whole and has at most so many merges; None when there is none.

        Raises
        ------
        OutputError
            When the files cannot be read.
        """
        try:
            for number in states(self._folder):
                path = state_path(self._folder, number)
                about = arrays.about(path, KIND)
                if number > most or about is None or about["belongs"] != self._belongs:
                    continue
                if (found := arrays.load(path, KIND)) is not None:
                    return Progressed(found[0], about["n_proved"], about["proving"])
        except OSError as error:
            raise OutputError(f"cannot read {self._folder}: {paths.one_line(error)}") from error
        return None

    def due(self) -> bool:
        """Whether it is time for the next state."""
        return time.monotonic() >= self._next

    def save(self, merger: Merger, n_proved: int, proving: bool) -> None:
        """Write the state, then delete all others. Raises OutputError."""
        began = time.monotonic()
        path = state_path(self._folder, merger.n_merges)
        make_folder(path)
        about = {"belongs": self._belongs, "n_proved": n_proved, "proving": proving}
        arrays.save(path, KIND, merger.state(), about)
        clear_states(self._folder, but=merger.n_merges)
        now = time.monotonic()
        self._next = now + max(self._seconds, (now - began) / _SHARE)

    def remove(self) -> None:
        """Delete all states: the training is complete. Raises OutputError."""
        clear_states(self._folder)
