"""What counting does with partitions that kill their workers, cannot be read, or hang: the others are counted."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import dask
import dask.bag as db
import pytest
from distributed import Client, LocalCluster
from faults import __main__ as chaos
from faults import storage, trouble
from faults.trial import BLOCK_BYTES, Training

import dask_bpe
from dask_bpe import PretokenCounts
from dask_bpe.cluster import blocks, compute, reduce_durably
from dask_bpe.cluster import count as counting
from dask_bpe.cluster import run as running
from dask_bpe.errors import ClusterError, IncompleteError, InputError
from dask_bpe.io.source import list_files
from dask_bpe.progress import JobState, Progress, Snapshot

END = "<|endoftext|>"
RULES: dict[str, Any] = {"special_tokens": [END], "block_bytes": 2000}


@pytest.fixture(scope="module")
def own_client() -> Iterator[Client]:
    """Of a cluster that gives a task up when the second worker died of it."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def text(tmp_path: Path, corpus: list[str]) -> Path:
    """Two files, five partitions of which the last is short."""
    folder = tmp_path / "text"
    folder.mkdir()
    for name, lines in (("a", corpus[:70]), ("b", corpus[70:])):
        (folder / f"{name}.txt").write_text(END.join(lines), encoding="utf-8", newline="")
    return folder


class Keep(Progress):
    """Keeps the job."""

    def begin(self, job: JobState) -> None:
        self.job = job

    def snapshot(self) -> Snapshot:
        return self.job.snapshot()


Count = Callable[..., PretokenCounts]


def watched(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None]) -> None:
    """Call something with the number of a partition's first block before it is counted, wherever that is."""
    count = counting.count_partition

    def first(part: Sequence[blocks.Block], bad: list[Any], **told: Any) -> PretokenCounts:
        before(part[0].index)
        return count(part, bad, **told)

    monkeypatch.setattr(counting, "count_partition", first)


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of all files."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.iterdir()}


def assert_tidy(work: Path) -> None:
    names = [path.name for path in work.rglob("*")]
    assert not [name for name in names if ".tmp-" in name or name.startswith("tree-") or name == "failed.jsonl"]


def test_a_training_whose_partition_kills_its_workers(tmp_path: Path) -> None:
    """By the command, in processes of its own."""
    place = chaos.Round(tmp_path, 250_000, seed=0)
    trial = Training(place.corpus, place.reference(Training), tmp_path / "trial", random.Random(0))
    work = trial.work
    environment = storage.troubled(trial, deadly="text-3.txt")
    with trial.start(environment=environment | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}) as job:
        ended = job.wait()
    files = [replace(file, path=f"trouble://{file.path}") for file in list_files(place.corpus.folder)]
    partitions = blocks.gather(blocks.divide(files, BLOCK_BYTES), BLOCK_BYTES)
    deadly = {number for number, part in enumerate(partitions) if any("text-3" in block.path for block in part)}
    assert 0 < len(deadly) < len(partitions)
    storage.assert_incomplete(trial, ended.lines, ended.code, "died again and again", failed=len(deadly))
    said = ended.lines[-1]
    assert f"{len(deadly)} of {len(partitions)} partitions could not be counted: number {min(deadly)}, " in said
    assert blocks.name_of(partitions[min(deadly)]) in said
    assert str(work / "failed.jsonl") in said
    failed = {item["partition"]: item for item in map(json.loads, (work / "failed.jsonl").read_text().splitlines())}
    assert failed.keys() == deadly
    for number, item in failed.items():
        assert item["pieces"] == [[block.path, block.start, block.stop] for block in partitions[number]]
        assert "died again and again" in item["reason"]
    before = state_of(work / "counts")
    assert {int(name[5:10]) for name in before} == {*range(len(partitions))} - deadly

    trial.complete(environment=trouble.installed(trial.folder))
    after = state_of(work / "counts")
    assert {name: after[name] for name in before} == before
    assert {int(name[5:10]) for name in after.keys() - before.keys() if name.startswith("part-")} == deadly
    assert trial.check() == len(place.corpus.documents)
    assert_tidy(work)
    dask_bpe.count_pretokens(place.corpus.folder, special_tokens=[END], work_dir=tmp_path / "undisturbed")
    assert (work / "counts.parquet").read_bytes() == (tmp_path / "undisturbed" / "counts.parquet").read_bytes()


def test_what_failed_is_seen_and_done_by_the_next_call(
    own_client: Client, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly, work, keep = tmp_path / "deadly", tmp_path / "work", Keep()
    deadly.touch()

    def die(number: int) -> None:
        if number == 2 and deadly.exists():
            os._exit(1)

    watched(monkeypatch, die)

    def count() -> PretokenCounts:
        return dask_bpe.count_pretokens(text, **RULES, work_dir=work, client=own_client, progress=keep)

    with pytest.raises(IncompleteError, match=r"1 of \d+ partitions could not be counted: number 2, .*The rest is"):
        count()
    found = keep.snapshot()["partitions"]
    # One that was done on a worker that died before it could tell is there already when it is begun anew.
    ended = [[done + resumed, failed, waiting] for done, failed, resumed, waiting in found["cells"]]
    assert ended == [[int(n != 2), int(n == 2), 0] for n in range(found["total"])]
    assert found["failed"] == 1
    assert {row["worker"] for row in found["slowest"]} <= {"0", "1", *map(str, own_client.nthreads())}
    assert found["slowest"]
    assert (work / "failed.jsonl").exists()
    deadly.unlink()
    assert count() == dask_bpe.count_pretokens(text, **RULES)
    found = keep.snapshot()["partitions"]
    assert found["cells"] == [[int(n == 2), 0, int(n != 2), 0] for n in range(found["total"])]
    assert_tidy(work)


def test_without_a_work_folder_the_partition_is_named(
    own_client: Client, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "count_partitions", lambda parts, reading, job: os._exit(1))
    with pytest.raises(
        IncompleteError, match=r"text/[ab]\.txt, bytes \d.* could not be counted: .*--work-dir"
    ) as caught:
        dask_bpe.count_pretokens(text, **RULES, client=own_client)
    assert "\n" not in str(caught.value)
    bag = db.from_sequence(range(3), npartitions=3).map(lambda number: os._exit(1))
    with pytest.raises(IncompleteError, match=r"partition \d of the bag could not be counted"):
        dask_bpe.count_pretokens(bag, client=own_client)


@pytest.mark.parametrize("on_error", ["quarantine", "raise"])
def test_storage_that_fails_for_good(
    on_error: Any, text: Path, corpus: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"

    def count() -> PretokenCounts:
        return dask_bpe.count_pretokens(text, **RULES, work_dir=work, on_error=on_error)

    def fail(number: int) -> None:
        if number in (0, 2):
            raise InputError("cannot read it: Input/output error") from OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        watched(patch, fail)
        if on_error == "raise":
            with pytest.raises(InputError, match="cannot read it"):
                count()
        else:
            with pytest.raises(IncompleteError, match=r"2 of \d+ partitions .* number 0, .*cannot read it.*number 2, "):
                count()
            assert len((work / "failed.jsonl").read_text().splitlines()) == 2
    assert count() == dask_bpe.count_pretokens(text, **RULES)
    assert_tidy(work)


def test_of_many_that_failed_a_few_are_named(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(number: int) -> None:
        raise InputError("cannot read it") from OSError(5, "Input/output error")

    watched(monkeypatch, fail)
    with pytest.raises(
        IncompleteError, match=r"(\d+) of \1 partitions .*number 2, .*; and \d+ more \(listed in "
    ) as caught:
        dask_bpe.count_pretokens(text, special_tokens=[END], block_bytes=500, work_dir=tmp_path / "work")
    assert "number 3" not in str(caught.value)


def test_the_other_sources_are_counted_too(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {"a": text / "a.txt", "b": text / "b.txt"}

    def fail(part: Sequence[blocks.Block], bad: list[Any], **told: Any) -> PretokenCounts:
        if "a.txt" in part[0].path and part[0].index == 0:
            raise InputError("cannot read it") from OSError(5, "Input/output error")
        return count(part, bad, **told)

    count = counting.count_partition
    with monkeypatch.context() as patch:
        patch.setattr(counting, "count_partition", fail)
        with pytest.raises(IncompleteError, match=r"source-000/failed\.jsonl"):
            dask_bpe.train(sources, 300, **RULES, work_dir=tmp_path / "work")
    assert (tmp_path / "work" / "source-001" / "counts.parquet").exists()
    again = dask_bpe.train(sources, 300, **RULES, work_dir=tmp_path / "work")
    assert again.vocabulary == dask_bpe.train(sources, 300, **RULES).vocabulary


def test_the_one_that_hangs_is_begun_again(
    own_client: Client, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_SLOW_SECONDS", 0.5)
    monkeypatch.setattr(running, "_SLOW_TIMES", 0.0)  # workers that have just been started are slow at first
    monkeypatch.setattr(running, "_SECONDS_BETWEEN_LOOKS", 0.1)
    own_client.wait_for_workers(2, timeout=60)  # those of tests before may be dead
    folder, work = tmp_path / "attempts", tmp_path / "work"
    folder.mkdir()

    def hang(number: int) -> None:
        if number == 0:
            begun = len(list(folder.iterdir()))
            (folder / str(begun)).touch()
            give_up = time.monotonic() + 60
            while begun == 0 and not (folder / "1").exists() and time.monotonic() < give_up:
                time.sleep(0.05)
            time.sleep(2 if begun == 0 else 0)  # the first ends last

    watched(monkeypatch, hang)
    # Sums of pairs follow: what hangs is at work while the others are added up, and must not end them.
    options: dict[str, Any] = RULES | {"split_every": 2}
    counts = dask_bpe.count_pretokens(text, **options, work_dir=work, client=own_client)
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1"]
    assert counts == dask_bpe.count_pretokens(text, **RULES)
    assert_tidy(work)


def test_twins_write_the_same_names(text: Path, tmp_path: Path) -> None:
    """Attempts of one task that reach every step at the same time."""
    (part,) = blocks.gather(blocks.divide(list_files(text / "a.txt"), 1 << 20), 1 << 20)
    work = tmp_path / "work"
    dask_bpe.count_pretokens(text / "a.txt", special_tokens=[END], work_dir=work)  # for its plan
    n, barrier = 8, Barrier(8)

    def count(part: Any, bad: Any) -> PretokenCounts:
        counts = dask_bpe.count_pretokens(text / "a.txt", special_tokens=[END])
        barrier.wait()
        return counts

    folder = work / "twins"
    folder.mkdir()
    shared = reduce_durably.Counting(count, True, str(work), str(folder), "plan", 3, "counting", "reducing")
    with ThreadPoolExecutor(n) as pool:
        reports = list(pool.map(partial(reduce_durably._count_part, part=part, shared=shared), [7] * n))
    (result,) = {report.result for report in reports if isinstance(report, reduce_durably.Done)}
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"part-00007-00{bucket}.parquet" for bucket in range(3)),
        "part-00007.json",
    ]
    assert reduce_durably.finished(str(folder), "part-00007", "plan") == result
    item = reduce_durably.Sum("bucket-000", "plan", (result.files[0],) * 2)
    with ThreadPoolExecutor(n) as pool:
        (total,) = set(pool.map(lambda _: reduce_durably._add_up(item, shared), range(n)))
    assert reduce_durably.finished(str(folder), "bucket-000", "plan") == total
    assert not [path for path in folder.iterdir() if ".tmp-" in path.name]


def test_no_workers_is_an_error(monkeypatch: pytest.MonkeyPatch, text: Path) -> None:
    monkeypatch.setattr(compute, "_SECONDS_WITHOUT_WORKERS", 0.5)
    monkeypatch.setattr(compute, "_SECONDS_BETWEEN_LOOKS", 0.1)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"has had no workers for \d s"),
    ):
        compute.compute(dask.delayed(sum)([1, 2]), client)
