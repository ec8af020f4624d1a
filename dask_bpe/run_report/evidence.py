"""What is known of a job's runs: their last snapshots, the plan, the manifest, what could not be read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from dask_bpe.errors import ShardError
from dask_bpe.io import job as jobs
from dask_bpe.io import manifest as manifests
from dask_bpe.io import paths, quarantine, runs
from dask_bpe.io.job import Job, read_job
from dask_bpe.io.manifest import Manifest
from dask_bpe.progress.snapshot import VERSION, Quarantined, Snapshot, Stage

# Lines of quarantine.jsonl that a report lists.
_LISTED = 50
# What a compressed file, or one of a format that cannot be divided, is read by.
ONE_TASK = "one task"


@dataclass(frozen=True)
class Evidence:
    """What a report is made of.

    Attributes
    ----------
    path : the folder of the job; "" when it kept nothing on disk.
    runs : the last snapshot of each run, in the order in which they began; one at least.
    n_torn : lines of the record that a killed process has left.
    manifest, job : what an encoding has written, and what it was asked for; None of another job, or when not finished.
    quarantined : what could not be read, the first of them.
    n_quarantined : how many there are in all.
    """

    path: str
    runs: Sequence[Snapshot]
    n_torn: int = 0
    manifest: Manifest | None = None
    job: Job | None = None
    quarantined: Sequence[Quarantined] = ()
    n_quarantined: int = 0

    @cached_property
    def run(self) -> Snapshot:
        """The run that took longest: a later one may have found everything done."""
        return max(self.runs, key=lambda run: run["seconds"])

    @cached_property
    def outcome(self) -> Snapshot:
        """The run whose figures are those of the whole: the last that came to its end, or else `run`."""
        return next((run for run in reversed(self.runs) if run["state"] == "finished"), self.run)

    @property
    def seconds(self) -> float:
        """Of all runs together."""
        return sum(run["seconds"] for run in self.runs)

    @property
    def stages(self) -> list[Stage]:
        """Those of `run`, in the order in which they began."""
        return self.run["stages"]

    def stage(self, name: str) -> Stage | None:
        """A stage of `run`; None if it had none of that name."""
        return next((stage for stage in self.stages if stage["name"] == name), None)

    def seconds_of(self, name: str) -> float:
        """What a stage of `run` took; 0 if there was none."""
        stage = self.stage(name)
        return stage["seconds"] if stage is not None else 0.0

    @cached_property
    def partition_bytes(self) -> list[int]:
        """Bytes of the input that each partition of an encoding reads; empty when nobody knows."""
        if self.job is None:
            return []
        return [sum(stop - start for _, start, stop in pieces) for pieces in self.job.partitions]

    def largest_partition(self) -> tuple[int, str]:
        """Bytes of the largest partition and the file that it begins in. There must be one."""
        assert self.job is not None
        index = max(range(len(self.partition_bytes)), key=self.partition_bytes.__getitem__)
        return self.partition_bytes[index], self.job.files[self.job.partitions[index][0][0]].path


def read_evidence(folder: str | os.PathLike[str]) -> Evidence:
    """What the folder of an encoding, or the work folder of a training, tells of its runs.

    Raises
    ------
    ShardError
        There is no such folder, no job's record is in it, or a file is damaged.
    """
    path = paths.normalise(folder)
    try:
        names = paths.list_names(path)
    except OSError as error:
        raise ShardError(f"{path}: no job can be read there: {paths.one_line(error)}") from error
    record = runs.read_runs(path)
    if not record.runs:
        what = "no run is recorded" if {jobs.NAME, manifests.NAME, "plan.json"} & set(names) else "it holds no job"
        raise ShardError(
            f"{path}: {what}: a report needs {runs.NAME}, which `encode`, and `train` with --work-dir, write"
        )
    other = next((run for run in record.runs if run.get("version") != VERSION), None)
    if other is not None:
        raise ShardError(
            f"{path}: {runs.NAME} has a run of version {other.get('version')!r}; this dask_bpe reads version {VERSION}"
        )
    listed, n_quarantined = _quarantine(path) if quarantine.NAME in names else ([], 0)
    return Evidence(
        path,
        [cast("Snapshot", run) for run in record.runs],
        record.n_torn,
        Manifest.read(path) if manifests.NAME in names else None,
        read_job(path) if jobs.NAME in names else None,
        listed,
        n_quarantined,
    )


def _quarantine(path: str) -> tuple[list[Quarantined], int]:
    """The first documents of ``quarantine.jsonl``, and how many there are."""
    listed: list[Quarantined] = []
    n = 0
    try:
        with paths.open_to_read(paths.join(path, quarantine.NAME)) as file:
            for n, line in enumerate(file, 1):
                if n <= _LISTED:
                    listed.append(_quarantined(json.loads(line)))
    except (OSError, ValueError, KeyError) as error:
        raise ShardError(f"{path}: {quarantine.NAME} cannot be read: {paths.one_line(error)}") from error
    return listed, n


def _quarantined(row: Mapping[str, Any]) -> Quarantined:
    return {"source": row["source"], "position": row["position"], "reason": row["reason"]}
