"""Jobs on a cluster are seen on its scheduler, with the figures of their results; few messages, whatever fails."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster, Scheduler

import dask_bpe
from dask_bpe.cluster.schedule import connect
from dask_bpe.monitor import prometheus, publisher
from dask_bpe.monitor.plugin import NAME, JobPlugin
from dask_bpe.progress import JobState, Progress, Snapshot, watch

END = "<|endoftext|>"


class Keep(Progress):
    """Keeps the job and what it says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, job: JobState) -> None:
        self.job = job

    def say(self, fact: str) -> None:
        self.said.append(fact)


def seen(client: Client) -> dict[str, Snapshot]:
    """The jobs that the scheduler knows."""

    def jobs(dask_scheduler: Any) -> dict[str, Any]:
        return {job: known.snapshot for job, known in dask_scheduler.plugins["dask-bpe"].jobs.items()}

    return client.run_on_scheduler(jobs)


def fetch(client: Client, page: str) -> str:
    """A page of the dashboard."""
    address = client.dashboard_link.rsplit("/", 1)[0]
    with urllib.request.urlopen(f"{address}/{page}") as answer:
        return answer.read().decode()


@pytest.fixture
def text(tmp_path: Path, alice: str) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(alice.replace("\n\n", END), encoding="utf-8")
    return path


@pytest.fixture
def tokenizer(text: Path) -> dask_bpe.Tokenizer:
    return dask_bpe.train(text, 300, special_tokens=[END])


def test_the_scheduler_has_the_figures_of_the_manifest(
    client: Client, text: Path, tokenizer: dask_bpe.Tokenizer, tmp_path: Path
) -> None:
    keep = Keep()
    dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", block_bytes=5000, client=client, progress=keep)
    manifest = dask_bpe.open_tokens(tmp_path / "out").manifest
    found = seen(client)[keep.job.id]
    assert found["state"] == "finished"
    assert found["figures"] == {**manifest.text, "tokens": manifest.tokens, "shards": len(manifest.shards)}
    assert found["partitions"]["done"] == found["partitions"]["total"] == len(manifest.shards)
    encoding = next(stage for stage in found["stages"] if stage["name"] == "encoding")
    assert encoding["done"] == encoding["total"] == text.stat().st_size
    assert found["figures"] == keep.job.snapshot()["figures"]
    # Done again, it is all there.
    dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", block_bytes=5000, client=client, progress=keep)
    again = seen(client)[keep.job.id]
    assert again["figures"] == found["figures"]
    assert again["partitions"]["resumed"] == found["partitions"]["done"]


def test_a_training_is_seen_to_its_end(client: Client, text: Path, tokenizer: dask_bpe.Tokenizer) -> None:
    keep = Keep()
    trained = dask_bpe.train(text, 300, special_tokens=[END], block_bytes=5000, client=client, progress=keep)
    assert trained.vocabulary == tokenizer.vocabulary
    report, found = trained.training, seen(client)[keep.job.id]
    assert report is not None
    assert [stage["name"] for stage in found["stages"]] == ["planning", "counting", "reducing", "merging"]
    assert all(stage["state"] == "finished" for stage in found["stages"])
    assert all(stage["done"] == stage["total"] for stage in found["stages"][1:])
    assert found["figures"]["pretokens"] == report.n_pretokens
    assert found["figures"]["distinct"] == report.n_distinct == found["curves"]["growth"]["distinct"][-1]
    assert found["figures"]["merges"] == report.n_merges == len(report.log)
    assert found["curves"]["merges"]["count"][0] == report.log.count[0]
    assert found["partitions"]["done"] == found["partitions"]["total"] > 5


def test_training_from_counts_is_seen_too(client: Client, text: Path) -> None:
    keep = Keep()
    dask_bpe.train(dask_bpe.count_pretokens(text), 280, client=client, progress=keep)
    assert seen(client)[keep.job.id]["figures"]["merges"] == 24


def test_workers_send_no_messages_of_their_own(
    client: Client, text: Path, tokenizer: dask_bpe.Tokenizer, tmp_path: Path
) -> None:
    keep = Keep()
    dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", block_bytes=2000, client=client, progress=keep)

    def events(dask_scheduler: Any) -> dict[str, int]:
        return {topic: len(events) for topic, events in dask_scheduler.get_events().items()}

    assert [topic for topic in client.run_on_scheduler(events) if keep.job.id in topic] == []

    def carried(dask_worker: Any) -> int:
        return len(json.dumps(dask_worker.metrics["dask_bpe"](dask_worker)))

    assert all(size < 8000 for size in client.run(carried).values())


def test_what_cannot_be_read_is_seen(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text('{"text": "one two"}\n{"text": 3}\n{"text": "three"}\n')
    keep = Keep()
    dask_bpe.count_pretokens(path, client=client, progress=keep)
    (bad,) = seen(client)[keep.job.id]["quarantined"]
    assert (bad["source"], bad["position"]) == (str(path), 20)
    assert any("cannot be read" in line for line in keep.said)


def test_a_failed_job_says_why(client: Client, text: Path) -> None:
    keep = Keep()
    with pytest.raises(dask_bpe.BpeError):
        dask_bpe.count_pretokens(text.with_name("missing.txt"), client=client, progress=keep)
    snapshot = keep.job.snapshot()
    assert snapshot["state"] == "failed"
    assert snapshot["error"] is not None
    assert "missing.txt" in snapshot["error"]


def test_a_stage_that_failed_says_so(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text('{"text": 3}\n' * 3)
    keep = Keep()
    with pytest.raises(dask_bpe.BpeError):
        dask_bpe.count_pretokens(path, on_error="raise", client=client, progress=keep)
    found = seen(client)[keep.job.id]
    states = {stage["name"]: stage["state"] for stage in found["stages"]}
    assert states == {"planning": "finished", "counting": "failed", "reducing": "failed"}
    assert found["state"] == "failed"


def test_several_jobs_are_kept_and_their_number_is_bounded(client: Client, text: Path) -> None:
    keep = Keep()
    for _ in range(25):
        dask_bpe.train(dask_bpe.PretokenCounts.from_mapping({"ab": 2}), 257, client=client, progress=keep)
    assert len(seen(client)) == 20
    assert keep.job.id in seen(client)


def test_a_scheduler_without_the_package_stops_no_job(
    client: Client, text: Path, tokenizer: dask_bpe.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def register(plugin: Any, name: str) -> None:
        raise ModuleNotFoundError("No module named 'dask_bpe'\nTraceback")

    monkeypatch.setattr(client, "register_plugin", register)
    keep = Keep()
    counts = dask_bpe.count_pretokens(text, special_tokens=[END], block_bytes=5000, client=client, progress=keep)
    assert counts == dask_bpe.count_pretokens(text, special_tokens=[END])
    line = "no page on the dashboard: the scheduler cannot load dask_bpe.monitor (No module named 'dask_bpe')"
    assert keep.said == [line]
    snapshot = keep.job.snapshot()
    assert snapshot["figures"]["pretokens"] == counts.total
    assert snapshot["n_workers"] == 2  # asked for without the plugin


def test_a_scheduler_that_does_not_answer_stops_no_job(
    client: Client, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any) -> Any:
        raise OSError("the connection is lost")

    monkeypatch.setattr(publisher, "_exchange_with", lambda *_: lost)
    keep = Keep()
    counts = dask_bpe.count_pretokens(text, client=client, progress=keep)
    assert counts.n_bytes == text.stat().st_size
    assert keep.said == ["the scheduler is told no more of this job: the connection is lost"]


def test_a_client_that_is_closed_tells_nobody_of_the_job(client: Client) -> None:
    keep = Keep()
    with Client(client.scheduler.address, set_as_default=False) as own, watch("counting", "text", keep) as job:
        shown = publisher.publisher_of(job, own)
        shown.show(job.snapshot())
        assert job.id in seen(client)
        own.close()
        shown.show(job.snapshot())
        assert keep.said == ["the scheduler is told no more of this job: the client is closed"]


def metric(text: str, name: str, **labels: str) -> float:
    """The value of a metric in what Prometheus reads."""
    for line in text.splitlines():
        found = re.fullmatch(rf"{name}\{{(.*)\}} (\S+)", line)
        if found and all(f'{key}="{value}"' in found[1] for key, value in labels.items()):
            return float(found[2])
    raise AssertionError(f"{name} {labels} is not there")


def test_prometheus(client: Client, text: Path, tokenizer: dask_bpe.Tokenizer, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    keep = Keep()
    report = dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", block_bytes=5000, client=client, progress=keep)
    job, found = keep.job.id, fetch(client, "metrics")
    assert metric(found, "dask_bpe_job_tokens", job=job) == report.n_tokens
    assert metric(found, "dask_bpe_job_documents", job=job) == report.n_documents
    assert metric(found, "dask_bpe_job_state", job=job, kind="encode", state="finished") == 1
    assert metric(found, "dask_bpe_stage_done", job=job, stage="encoding", unit="B") == report.n_bytes
    assert metric(found, "dask_bpe_job_partitions", job=job, fate="done") == report.n_shards
    total = 0.0
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        host, port = address.split("//")[1].split(":")[0], worker["services"]["dashboard"]
        with urllib.request.urlopen(f"http://{host}:{port}/metrics") as answer:
            total += metric(answer.read().decode(), "dask_bpe_worker_tokens", job=job, stage="encoding")
    # Without the separators that end documents of no text.
    assert 0 < total <= report.n_tokens


def test_the_schedulers_of_a_process_are_all_exported() -> None:
    jobs = [JobState("encode", name) for name in ("one", "other")]
    first, second = (lambda job=job: [job.snapshot()] for job in jobs)
    collector = prometheus.SchedulerCollector()
    for shown in ([first], [first, second], [second], []):
        collector.schedulers = shown
        found = {sample.labels["job"] for family in collector.collect() for sample in family.samples}
        assert found == {scheduler()[0]["id"] for scheduler in shown}


def test_a_closed_scheduler_is_exported_no_more() -> None:
    plugins = JobPlugin(), JobPlugin()
    for plugin in plugins:
        prometheus.export_scheduler(plugin.snapshots)
    asyncio.run(plugins[0].close())
    assert plugins[1].snapshots in prometheus._SCHEDULERS.schedulers
    assert plugins[0].snapshots not in prometheus._SCHEDULERS.schedulers
    asyncio.run(plugins[1].close())


def test_the_page_is_linked_from_the_dashboard(client: Client, text: Path) -> None:
    pytest.importorskip("bokeh")
    dask_bpe.count_pretokens(text, client=client)
    assert 'href="dask-bpe"' in fetch(client, "status")
    page = fetch(client, "dask-bpe")
    assert "prefers-color-scheme" in page
    assert publisher.page_link(client) == client.dashboard_link.replace("/status", "/dask-bpe")


def addresses(dask_scheduler: Any) -> list[str]:
    """Where the dashboard listens."""
    return [socket.getsockname()[0] for socket in dask_scheduler.http_server._sockets.values()]


def test_the_dashboard_of_an_own_cluster_listens_to_this_machine_only() -> None:
    with connect(workers=1) as client:
        assert client is not None
        assert client.run_on_scheduler(addresses) == ["127.0.0.1"]


def test_a_scheduler_may_have_the_page_from_its_start() -> None:
    async def started() -> tuple[bool, int]:
        async with Scheduler(
            port=0, dashboard_address="127.0.0.1:0", preload=["dask_bpe.monitor.preload"]
        ) as scheduler:
            return NAME in scheduler.plugins, len(scheduler.plugins[NAME].jobs)

    assert asyncio.run(started()) == (True, 0)


class Kill(Keep):
    """Kills a process as soon as something of the encoding is heard of."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid

    def advance(self, stage: str, amount: int) -> None:
        if stage == "encoding" and self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.pid = 0


@pytest.mark.slow
def test_figures_are_exact_when_a_worker_has_died(text: Path, tokenizer: dask_bpe.Tokenizer, tmp_path: Path) -> None:
    def hold() -> int:
        import time

        from dask_bpe.cluster import blocks

        read = blocks.read

        def slowly(*arguments: Any) -> Any:
            time.sleep(0.2)
            return read(*arguments)

        blocks.read = slowly
        return os.getpid()

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        pid, _ = client.run(hold).values()
        keep = Kill(pid)
        dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", block_bytes=2000, client=client, progress=keep)
        found = seen(client)[keep.job.id]
    assert keep.pid == 0
    manifest = dask_bpe.open_tokens(tmp_path / "out").manifest
    assert found["figures"] == {**manifest.text, "tokens": manifest.tokens, "shards": len(manifest.shards)}
    encoding = next(stage for stage in found["stages"] if stage["name"] == "encoding")
    assert encoding["done"] == encoding["total"] == text.stat().st_size
