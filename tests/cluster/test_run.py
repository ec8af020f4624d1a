"""What `run` does on a cluster when tasks hang, die, or have nowhere to run."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dask.bag as db
import pytest
from distributed import Client, Future, LocalCluster

import dask_bpe
from dask_bpe.cluster import compute, schedule
from dask_bpe.cluster import run as running
from dask_bpe.cluster.run import run as run_tasks
from dask_bpe.errors import ClusterError, IncompleteError
from dask_bpe.progress import Progress


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def own_client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, set_as_default=False) as client:
        yield client


def run(client: Client | None, items: Sequence[Any], task: Any) -> list[Any]:
    """The reports of a task for every item."""
    reports: list[Any] = []

    def attempted(items: Iterable[Any], attempt: int) -> list[Any]:
        return list(map(task, items))

    def make(numbers: Sequence[int], attempt: int) -> list[Any]:
        bag = db.from_sequence([items[number] for number in numbers], npartitions=len(numbers))
        return list(bag.map_partitions(attempted, attempt=attempt).to_delayed(optimize_graph=False))

    with schedule.job("testing", None, "B", Progress(), client):
        run_tasks(make, len(items), client, reports.append, lambda number, why: (items[number], why))
    return reports


def test_the_one_that_hangs_is_begun_again(own_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_SLOW_SECONDS", 1.0)
    monkeypatch.setattr(running, "_SECONDS_BETWEEN_LOOKS", 0.1)
    monkeypatch.setattr(schedule, "_SECONDS_FOR_LOSERS", 0.1)
    folder = str(tmp_path)

    def task(number: int) -> int:
        path = os.path.join(folder, str(number))  # noqa: PTH118
        if number == 0 and not os.path.exists(path):  # noqa: PTH110
            open(path, "w").close()  # noqa: PTH123
            time.sleep(60)
        time.sleep(0.3)
        return number

    began = time.monotonic()
    assert sorted(set(run(own_client, range(6), task))) == [0, 1, 2, 3, 4, 5]
    assert time.monotonic() - began < 40  # not a measure of speed: the first one sleeps for 60


def test_the_one_that_kills_its_workers_is_reported(own_client: Client) -> None:
    def task(number: int) -> int:
        if number == 3:
            os._exit(1)
        return number

    found = run(own_client, range(6), task)
    assert sorted(item for item in found if isinstance(item, int)) == [0, 1, 2, 4, 5]
    ((item, why),) = [item for item in found if not isinstance(item, int)]
    assert item == 3
    assert "died again and again" in why


def test_a_bounded_number_is_given_to_the_cluster(own_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    compute, waiting, given = own_client.compute, [0], []

    def watched(tasks: Sequence[Any], **options: Any) -> Any:
        futures = compute(tasks, **options)
        waiting[0] += len(futures)
        given.append(waiting[0])
        for future in futures:
            future.add_done_callback(lambda _: waiting.__setitem__(0, waiting[0] - 1))
        return futures

    monkeypatch.setattr(own_client, "compute", watched)
    monkeypatch.setattr(running, "_LEAST_IN_FLIGHT", 1)
    assert sorted(run(own_client, range(100), lambda number: number)) == list(range(100))
    assert len(given) > 10
    assert max(given) <= running._IN_FLIGHT * 2


def test_no_workers_is_an_error(cluster: LocalCluster, own_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "_SECONDS_WITHOUT_WORKERS", 1.0)
    monkeypatch.setattr(running, "_SECONDS_BETWEEN_LOOKS", 0.1)
    cluster.scale(0)
    while own_client.nthreads():
        time.sleep(0.1)
    with pytest.raises(ClusterError, match="no workers for 1 s"):
        run(own_client, range(3), lambda number: number)


def test_what_is_lost_with_its_worker_is_done_again(own_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker that has a report dies before it is asked for it."""
    monkeypatch.setattr(running, "_SECONDS_TO_GATHER", 0.5)
    result, killed = Future.result, []

    def lost_once(future: Any, timeout: float | None = None) -> Any:
        if not killed:
            killed.append(future.key)
            (holders,) = own_client.who_has([future]).values()
            own_client.run(lambda: os.kill(os.getpid(), signal.SIGKILL), workers=list(holders), on_error="ignore")
        return result(future, timeout=timeout)

    monkeypatch.setattr(Future, "result", lost_once)
    assert sorted({*run(own_client, range(6), lambda number: number)}) == list(range(6))
    assert killed


def test_what_a_task_raises_stops_the_job(own_client: Client) -> None:
    def task(number: int) -> int:
        if number == 2:
            raise ValueError("number two")
        time.sleep(0.01)
        return number

    for client in (None, own_client):
        with pytest.raises(ValueError, match="number two"):
            run(client, range(50), task)


def test_memory_per_thread(own_client: Client) -> None:
    assert schedule.memory_per_thread(own_client, 1 << 30) == 1 << 30
    limit = schedule.memory_per_thread(own_client, None)
    assert limit is not None
    assert limit > 1 << 20
    assert schedule.memory_per_thread(None, None) is None
    assert schedule.memory_per_thread(None, 1 << 30) == (1 << 30) // schedule.n_threads(None)


def test_a_bag_whose_partition_kills_its_workers_is_encoded_but_for_that(own_client: Client, tmp_path: Path) -> None:
    texts = [f"document {number}" for number in range(6)]
    tokenizer = dask_bpe.train(iter(texts), 260)
    deadly = tmp_path / "deadly"
    deadly.touch()

    def read(text: str) -> str:
        if text.endswith("3") and deadly.exists():
            os._exit(1)
        return text

    bag = db.from_sequence(texts, npartitions=6).map(read)

    def encode() -> dask_bpe.EncodeReport:
        return dask_bpe.encode_corpus(bag, tokenizer, tmp_path / "out", client=own_client)

    with pytest.raises(
        IncompleteError, match="1 of 6 partitions could not be encoded; the first, number 3: its worker"
    ):
        encode()
    (failed,) = map(json.loads, (tmp_path / "out" / "failed.jsonl").read_text().splitlines())
    assert failed["partition"] == 3
    assert "died again and again" in failed["reason"]
    deadly.unlink()
    assert encode().n_resumed == 5
    assert not (tmp_path / "out" / "failed.jsonl").exists()
    assert dask_bpe.verify_corpus(tmp_path / "out").n_documents == 6
    assert [tokenizer.decode(ids) for ids in dask_bpe.open_tokens(tmp_path / "out").documents] == texts
