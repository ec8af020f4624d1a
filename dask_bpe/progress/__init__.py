"""What a job does, seen while it runs and afterwards: one model for every surface.

listener    `Progress`, what is told of a job; the views (terminal, log, JSON, notebook, page) are listeners
job_state   `JobState`, which collects what a job says, and tells its listeners
snapshot    `Snapshot`, all figures of a job at one moment, as plain JSON: what every surface shows
curves      series that stay short however long the job is
partitions  what has become of the parts of a job
"""

from __future__ import annotations

from dask_bpe.progress.job_state import JobState, ending, watch
from dask_bpe.progress.listener import Progress
from dask_bpe.progress.snapshot import Snapshot

__all__ = ["JobState", "Progress", "Snapshot", "ending", "watch"]
