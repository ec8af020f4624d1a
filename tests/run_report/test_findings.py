"""Every rule about what would have been faster: it speaks with the right figures where it should."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, cast

import pytest

from dask_bpe.io.atomic import File
from dask_bpe.io.job import Job
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.source import SourceFile
from dask_bpe.io.writer import Shard
from dask_bpe.progress import JobState
from dask_bpe.progress.snapshot import Snapshot
from dask_bpe.run_report.evidence import Evidence
from dask_bpe.run_report.findings import findings, share_of

MB = 1_000_000
NOTHING = ["Nothing stands out: all threads were busy to the end, and no stage took what it should not."]


def a_run(kind: str = "encode", **changes: Any) -> Snapshot:
    """A run of 100 s on four threads that were always busy, which encoded 1 GB in 16 partitions."""
    run = cast("dict[str, Any]", copy.deepcopy(JobState(kind, "corpus").snapshot()))
    stage = {"encode": "encoding", "train": "counting"}[kind]
    run |= {
        "state": "finished",
        "seconds": 100.0,
        "threads": 4,
        "stages": [a_stage(stage, 95.0)],
        "spent": {"reading": 40.0, "encoding": 300.0, "writing": 38.0},
        "figures": {"bytes": 1000 * MB},
    }
    run["partitions"] |= {"total": 16, "done": 16}
    return cast("Snapshot", run | changes)


def a_stage(name: str, seconds: float) -> dict[str, Any]:
    return {"name": name, "unit": "B", "done": 1000 * MB, "total": 1000 * MB, "state": "finished", "began": 0.0,
            "seconds": seconds, "rate": None, "rate_now": None, "seconds_left": None}  # fmt: skip


def evidence(run: Snapshot, **more: Any) -> Evidence:
    return Evidence("tokens", [run], **more)


def test_a_good_run_has_no_findings() -> None:
    assert findings(evidence(a_run())) == NOTHING


def test_of_a_short_run_nothing_is_said() -> None:
    (sentence,) = findings(evidence(a_run(seconds=2.0)))
    assert "too short" in sentence and "2.0 s" in sentence


def test_one_compressed_file_is_one_task() -> None:
    files = [SourceFile("huge.gz", 700 * MB, "1"), SourceFile("small.txt", 300 * MB, "1")]
    partitions = [[(0, 0, 700 * MB)], *([(1, at * 20 * MB, (at + 1) * 20 * MB)] for at in range(15))]
    job = Job("v", {}, files=files, partitions=partitions)
    (sentence,) = findings(evidence(a_run(), job=job))
    assert "70% of the input (700.0 MB of huge.gz)" in sentence and "4 threads could each have had 25%" in sentence
    assert "125.0 MB or less" in sentence
    even = replace(job, partitions=[[(0, at * 70 * MB, (at + 1) * 70 * MB)] for at in range(10)])
    assert findings(evidence(a_run(), job=even)) == NOTHING


def test_few_partitions() -> None:
    run = a_run()
    run["partitions"]["total"] = 5
    (sentence,) = findings(evidence(run))
    assert "5 partitions for 4 threads" in sentence
    run["threads"] = 1
    run["spent"] = {"encoding": 94.0}
    assert findings(evidence(run)) == NOTHING


def test_idle_threads() -> None:
    run = a_run(spent={"reading": 10.0, "encoding": 170.0, "writing": 10.0})
    (sentence,) = findings(evidence(run))
    # 190 of 4 x 95 seconds.
    assert "50% of the time of the tasks (3 min 10 s of 6 min 20 s): 50% went by" in sentence


def test_a_partition_that_took_long() -> None:
    run = a_run()
    run["partitions"]["slowest"] = [{"partition": 7, "seconds": 60.0, "worker": ""}]
    (sentence,) = findings(evidence(run))
    assert "Partition 7 took 1 min 00 s of the 1 min 35 s" in sentence


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        ({"reading": 200.0, "encoding": 150.0, "writing": 20.0}, "Reading took 54% of the tasks' time, 5 MB of text"),
        ({"reading": 20.0, "encoding": 200.0, "writing": 150.0}, "Writing shards took 41% of the tasks' time"),
    ],
)
def test_what_tasks_were_doing(spent: dict[str, float], words: str) -> None:
    (sentence,) = findings(evidence(a_run(spent=spent)))
    assert sentence.startswith(words)


def test_shares_are_those_of_all_that_was_spent() -> None:
    found = evidence(a_run(spent={"reading": 1.0, "counting": 3.0}))
    assert share_of(found, "reading") == 0.25 and share_of(found, "writing") == 0.0
    assert share_of(evidence(a_run(spent={})), "reading") == 0.0


def test_merges_that_take_most_of_a_training() -> None:
    run = a_run("train", stages=[a_stage("counting", 20.0), a_stage("merging", 75.0)], spent={"counting": 78.0})
    run["figures"]["distinct"] = 1_234_567
    (sentence,) = findings(evidence(run))
    assert "75% of the time (1 min 15 s, 1,234,567 distinct pre-tokens)" in sentence


def test_adding_up_that_takes_long() -> None:
    run = a_run("train", stages=[a_stage("counting", 95.0)], spent={"counting": 228.0, "reducing": 152.0})
    (sentence,) = findings(evidence(run))
    assert sentence.startswith("Adding up the counts took 40% of the tasks' time")


def test_a_slow_flush_at_the_end() -> None:
    run = a_run(stages=[a_stage("encoding", 80.0), a_stage("writing", 15.0)], spent={"encoding": 318.0})
    (sentence,) = findings(evidence(run))
    assert "15% of the time (15.0 s) went by at the end" in sentence


def test_many_small_shards() -> None:
    def of(size: int) -> Manifest:
        file = File("part.bin", size, "0")
        shards = tuple(Shard(f"part-{i:05d}.bin", size // 2, 10, 99, (file,), (), False, False) for i in range(100))
        return Manifest("bin", "uint16", "f", 100, shards=shards)

    (sentence,) = findings(evidence(a_run(), manifest=of(MB)))
    assert "The 100 shards have 1.0 MB each" in sentence
    assert findings(evidence(a_run(), manifest=of(100 * MB))) == NOTHING


def test_runs_that_did_not_end() -> None:
    lost = a_run(state="failed", error="no space left", seconds=10.0)
    (sentence,) = findings(Evidence("tokens", [lost, a_run()]))
    assert "1 of 2 runs did not come to their end (the last one: no space left)" in sentence
    killed = a_run(state="running", seconds=0.0)
    (sentence,) = findings(Evidence("tokens", [killed, a_run()]))
    assert "it was killed" in sentence
