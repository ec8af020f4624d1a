"""A job that was interrupted, wherever, ends as if it never had been."""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.bag
import pytest
from asserts import assert_encoded, trained_on
from distributed import Client

import dask_bpe
from dask_bpe import EncodeReport, Tokenizer
from dask_bpe.cluster import blocks, encode, encode_partition
from dask_bpe.errors import IncompleteError, InputError, OutputError
from dask_bpe.io import job as jobs
from dask_bpe.io import patience, runs
from dask_bpe.io import source as sources
from dask_bpe.io.job import JobFolder
from dask_bpe.progress import Progress

END = "<|endoftext|>"
N_FILES = 6


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "WAITS", (0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def texts(corpus: list[str]) -> list[str]:
    """Six files of some 900 bytes, several documents in each."""
    return [END.join(corpus[start : start + 12]) + END for start in range(0, 12 * N_FILES, 12)]


@pytest.fixture(scope="module")
def tokenizer(texts: list[str]) -> Tokenizer:
    return trained_on([text[:500] for text in texts], [END], 60)


@pytest.fixture
def folder(tmp_path: Path, texts: list[str]) -> Path:
    (tmp_path / "text").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "text" / f"{number}.txt").write_text(text, encoding="utf-8", newline="")
    return tmp_path


class Interruption(Exception):
    """What stops a job."""


def interrupt(*_: Any) -> None:
    raise Interruption


def output(out: Path) -> list[Path]:
    """The files of a job, but for the record of its runs."""
    return [path for path in sorted(out.iterdir()) if path.name != runs.NAME]


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in output(out)}


def stats(out: Path) -> dict[str, tuple[int, int]]:
    """What changes when a file is written again."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in output(out)}


def facts(report: EncodeReport) -> EncodeReport:
    """A report without what differs from run to run."""
    return replace(report, path="", seconds=0.0, peak_memory=0, n_resumed=0)


def stop_after(monkeypatch: pytest.MonkeyPatch, k: int, *, where: str = "before") -> None:
    """Let k partitions be done, and then those that are next fail in their workers: before they write, half way, or
    when all but the record is there."""
    calls, failing, done = iter(range(1 << 30)), list[int](), list[int]()
    change = threading.Condition()
    write, finish = encode_partition.write_part, JobFolder.finish_part

    def half(items: Iterator[Any]) -> Iterator[Any]:
        yield next(items)
        raise Interruption

    def write_part(index: int, items: Any, *rest: Any) -> Any:
        with change:
            if next(calls) >= k:
                failing.append(index)
                assert change.wait_for(lambda: len(done) == k, 60)
        if index in failing and where == "before":
            raise Interruption
        return write(index, half(iter(items)) if index in failing and where == "half way" else items, *rest)

    def finish_part(self: Any, part: Any) -> None:
        if part.index in failing:
            raise Interruption
        finish(self, part)
        with change:
            done.append(part.index)
            change.notify_all()

    monkeypatch.setattr(encode_partition, "write_part", write_part)
    monkeypatch.setattr(JobFolder, "finish_part", finish_part)


@pytest.mark.parametrize("where", ["before", "half way", "before its record"])
@pytest.mark.parametrize("k", [1, 3, N_FILES - 1])
@pytest.mark.parametrize("fmt", ["bin", "parquet"])
def test_interrupted_and_gone_on_with(fmt: str, k: int, where: str, folder: Path, tokenizer: Tokenizer) -> None:
    def encode_to(out: str) -> EncodeReport:
        return dask_bpe.encode_corpus(
            folder / "text", tokenizer, folder / out, fmt, block_bytes=1000, shard_tokens=50, begin_of_document=END
        )

    expected = encode_to("at once")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interruption):
        stop_after(patch, k, where=where)
        encode_to("twice")
    n_done = len(list((folder / "twice").glob("part-*.json")))
    assert n_done == k
    assert not (folder / "twice" / "manifest.json").exists()
    assert not (folder / "twice" / "job.lock").exists()
    done = stats(folder / "twice")
    report = encode_to("twice")
    assert report.n_resumed == n_done
    assert facts(report) == facts(expected)
    assert contents(folder / "twice") == contents(folder / "at once")
    # What was done is not touched again.
    records = [json.loads(path.read_bytes()) for path in (folder / "twice").glob("part-*.json") if path.name in done]
    whole = {file[0] for record in records for shard in record["shards"] for file in shard["files"]}
    after = stats(folder / "twice")
    assert whole
    assert all(after[name] == done[name] for name in whole)


def test_interrupted_many_times_with_other_threads(
    folder: Path, tokenizer: Tokenizer, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `block_bytes` threads decide about the partitions: those of the first run are kept."""
    monkeypatch.setattr(blocks, "_LEAST", 1)

    def encode_to(out: str, threads: int) -> EncodeReport:
        with dask.config.set(num_workers=threads):
            return dask_bpe.encode_corpus(folder / "text", tokenizer, folder / out)

    encode_to("other", 1)
    expected = encode_to("at once", 2)
    parts = len(list((folder / "at once").glob("part-*.json")))
    assert parts != len(list((folder / "other").glob("part-*.json")))
    for threads in (2, 1, 3):
        with monkeypatch.context() as patch, pytest.raises(Interruption):
            stop_after(patch, 1)
            encode_to("often", threads)
    report = encode_to("often", 4)
    assert report.n_resumed == 3
    assert parts > 3
    assert facts(report) == facts(expected)
    assert contents(folder / "often") == contents(folder / "at once")
    assert_encoded(folder / "often", texts, tokenizer, END)


def test_a_failure_before_any_partition_is_done_leaves_nothing(
    folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, 0, where="before its record")
    with pytest.raises(Interruption):
        dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)
    assert not (folder / "out").exists()


def test_a_complete_job_is_left_as_it_is(folder: Path, tokenizer: Tokenizer) -> None:
    (folder / "text" / "bad.txt").write_bytes(b"bad \xff")
    for fmt in ("bin", "parquet"):
        out = folder / fmt

        def again(out: Path = out, fmt: str = fmt) -> EncodeReport:
            return dask_bpe.encode_corpus(folder / "text", tokenizer, out, fmt, errors="strict", block_bytes=1000)

        first = again()
        assert first.n_resumed == 0
        before = stats(out)
        report = again()
        assert stats(out) == before
        assert facts(report) == facts(first)
        assert report.n_resumed == len(list(out.glob("part-*.json")))
        assert report.n_quarantined == 1


@pytest.mark.parametrize("name", ["part-00002.bin", "part-00002.idx", "part-00002.docs.parquet", "part-00002.json"])
@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_what_was_damaged_is_done_again(damage: str, name: str, folder: Path, tokenizer: Tokenizer) -> None:
    def again() -> EncodeReport:
        return dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)

    again()
    expected = contents(folder / "out")
    path = folder / "out" / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(bytes([expected[name][0] ^ 1]) + expected[name][1:])
    assert again().n_resumed == len(list((folder / "out").glob("part-*.json"))) - 1
    assert contents(folder / "out") == expected


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_the_vocabulary_is_put_back(damage: str, folder: Path, tokenizer: Tokenizer, client: Client) -> None:
    """The driver may be killed before it is written, and a worker cannot do without it."""

    def encode_to(out: str) -> EncodeReport:
        return dask_bpe.encode_corpus(folder / "text", tokenizer, folder / out, block_bytes=1000, client=client)

    encode_to("at once")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interruption):
        stop_collecting(patch, 1)
        encode_to("out")
    path = folder / "out" / "vocabulary.json"
    path.unlink() if damage == "missing" else path.write_bytes(b"{}")
    encode_to("out")
    assert contents(folder / "out") == contents(folder / "at once")


def test_the_source_changes_between_runs(folder: Path, tokenizer: Tokenizer, texts: list[str]) -> None:
    def again(**options: Any) -> EncodeReport:
        return dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000, **options)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interruption):
        stop_after(patch, 2)
        again()
    before = stats(folder / "out")
    (folder / "text" / "3.txt").write_text(texts[3].upper())
    with pytest.raises(OutputError, match=r"3\.txt has changed since"):
        again()
    (folder / "text" / "3.txt").unlink()
    with pytest.raises(OutputError, match=r"3\.txt was part of its input and is not now"):
        again()
    assert stats(folder / "out") == before
    again(overwrite=True)
    assert_encoded(folder / "out", [*texts[:3], *texts[4:]], tokenizer, END)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shard_tokens": 7}, "begun with shard_tokens 67108864, not with 7"),
        ({"block_bytes": 999}, "begun with block_bytes 1000, not with 999"),
        ({"end_of_document": False}, "begun with end_of_document True, not with False"),
        ({"begin_of_document": END}, "begun with begin_of_document None, not with '<|endoftext|>'"),
        ({"errors": "skip"}, "begun with errors 'replace', not with 'skip'"),
        ({"on_error": "raise"}, "begun with on_error 'quarantine', not with 'raise'"),
        ({"dtype": "uint32"}, "begun with dtype 'uint16', not with 'uint32'"),
        ({"format": "parquet"}, "begun with format 'bin', not with 'parquet'"),
        ({"special_tokens_in_text": "encode"}, "begun with special_tokens_in_text 'text', not with 'encode'"),
    ],
    ids=str,
)
def test_other_options_are_refused(options: dict[str, Any], words: str, folder: Path, tokenizer: Tokenizer) -> None:
    usual: dict[str, Any] = {"block_bytes": 1000}
    dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", **usual)
    before = stats(folder / "out")
    with pytest.raises(OutputError, match=words):
        dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", **usual | options)
    assert stats(folder / "out") == before
    assert dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", max_bad=0, **usual).n_resumed > 0


def test_another_tokenizer_is_refused(folder: Path, tokenizer: Tokenizer, texts: list[str]) -> None:
    dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out")
    other = trained_on(texts, [END], 3)
    with pytest.raises(OutputError, match="begun with the tokenizer") as caught:
        dask_bpe.encode_corpus(folder / "text", other, folder / "out")
    for vocabulary in (tokenizer.vocabulary, other.vocabulary):
        assert vocabulary.fingerprint()[:16] in str(caught.value)


def test_the_source_changes_while_the_job_runs(
    folder: Path, tokenizer: Tokenizer, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the plan was made, before the last file is read."""
    write = encode_partition.write_part

    def write_part(index: int, *rest: Any) -> Any:
        part = write(index, *rest)
        (folder / "text" / "5.txt").write_text(texts[5].upper(), encoding="utf-8", newline="")
        return part

    monkeypatch.setattr(encode_partition, "write_part", write_part)
    (folder / "text" / "5.txt").write_bytes(texts[5].encode()[:900])  # the smallest one is read last
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(InputError, match=r"5\.txt: changed since the job was planned") as caught,
    ):
        dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)
    assert "\n" not in str(caught.value)
    assert not (folder / "out" / "manifest.json").exists()


def test_shards_are_durable_before_the_manifest_is_there(
    folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of an earlier run too, which may have ended before they were."""
    synced: list[str] = []

    def sync(files: Iterator[str]) -> None:
        assert not (folder / "out" / "manifest.json").exists()
        synced.extend(Path(file).name for file in files)

    monkeypatch.setattr(jobs, "sync", sync)
    with monkeypatch.context() as patch, pytest.raises(Interruption):
        patch.setattr(JobFolder, "finish", interrupt)
        dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)
    shards = sorted(path.name for path in (folder / "out").glob("part-*") if path.suffix != ".json")
    assert sorted(synced) == shards
    synced.clear()
    dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)
    assert sorted(synced) == shards


def test_what_cannot_be_made_durable_has_no_manifest(
    folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(files: Iterator[str]) -> None:
        raise OutputError("no space left")

    monkeypatch.setattr(jobs, "sync", sync)
    with pytest.raises(OutputError, match="no space left"):
        dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)
    assert not (folder / "out" / "manifest.json").exists()


class Recorder(Progress):
    """Adds up what it is told of the stage "encoding"."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self._lock = threading.Lock()

    def start(self, stage: str, total: int | None, unit: str) -> None:
        if stage == "encoding":
            self.total = total

    def advance(self, stage: str, amount: int) -> None:
        with self._lock:
            if stage == "encoding":
                self.done += amount


def fail_reading(
    monkeypatch: pytest.MonkeyPatch, name: str, fails: Callable[[int], bool], error: OSError | None = None
) -> list[int]:
    """Let some readings of a file fail, by their number; gives the numbers of those that have."""
    read, lock = sources._read_local, threading.Lock()
    count, failed = iter(range(1 << 30)), list[int]()

    def flaky(path: str, start: int, data: Any) -> int:
        if Path(path).name == name:
            with lock:
                number = next(count)
            if fails(number):
                failed.append(number)
                raise error or OSError(errno.EIO, "Input/output error")
        return read(path, start, data)

    monkeypatch.setattr(sources, "_read_local", flaky)
    return failed


def test_storage_that_fails_now_and_then(
    folder: Path, tokenizer: Tokenizer, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = fail_reading(monkeypatch, "3.txt", lambda number: number < 3)
    told = Recorder()
    dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000, progress=told)
    assert len(failed) == 3
    assert_encoded(folder / "out", texts, tokenizer, END)
    assert told.done == told.total == sum(len(text.encode()) for text in texts)


def test_storage_is_waited_for(folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    monkeypatch.setattr(patience, "WAITS", (0.5, 2.0, 8.0))
    monkeypatch.setattr(patience.time, "sleep", waited.append)
    fail_reading(monkeypatch, "3.txt", lambda number: number < 2)
    dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)
    assert waited == [0.5, 2.0]


def test_storage_that_fails_for_good(
    folder: Path, tokenizer: Tokenizer, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(out: str = "out", **options: Any) -> EncodeReport:
        return dask_bpe.encode_corpus(folder / "text", tokenizer, folder / out, block_bytes=1000, **options)

    expected = again("at once")
    parts = sorted((folder / "at once").glob("part-*.json"))
    of_3 = [number for number, part in enumerate(parts) if b"3.txt" in part.read_bytes()]
    with monkeypatch.context() as patch:
        fail_reading(patch, "3.txt", lambda _: True)
        with pytest.raises(IncompleteError) as caught:
            again()
        with pytest.raises(InputError, match=r"cannot read .*3\.txt: Input/output error"):
            again("raised", on_error="raise")
    message = str(caught.value)
    assert "\n" not in message
    assert f"{len(of_3)} of {len(parts)} partitions could not be encoded" in message
    assert f"the first, number {of_3[0]}: cannot read {folder}/text/3.txt: Input/output error" in message
    assert IncompleteError.exit_code not in (0, 1, 2)
    failed = [json.loads(line) for line in (folder / "out" / "failed.jsonl").read_text().splitlines()]
    assert [item["partition"] for item in failed] == of_3
    assert {piece[0] for item in failed for piece in item["pieces"]} >= {f"{folder}/text/3.txt"}
    # The rest is done, and only that.
    left = [part.name for part in parts if not (folder / "out" / part.name).exists()]
    assert left == [parts[number].name for number in of_3]
    before = stats(folder / "out")
    report = again()
    assert report.n_resumed == len(parts) - len(of_3)
    assert facts(report) == facts(expected)
    after = stats(folder / "out")
    assert all(after[name] == before[name] for name in before if name != "failed.jsonl")
    assert contents(folder / "out") == contents(folder / "at once")
    assert_encoded(folder / "out", texts, tokenizer, END)


def test_a_bag_goes_on_an_iterable_does_not(
    tmp_path: Path, tokenizer: Tokenizer, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bag = dask.bag.from_sequence(texts, npartitions=3)
    dask_bpe.encode_corpus(bag, tokenizer, tmp_path / "at once")
    with monkeypatch.context() as patch, pytest.raises(Interruption):
        stop_after(patch, 1)
        dask_bpe.encode_corpus(bag, tokenizer, tmp_path / "out")
    report = dask_bpe.encode_corpus(dask.bag.from_sequence(texts, npartitions=3), tokenizer, tmp_path / "out")
    assert report.n_resumed == 1
    assert contents(tmp_path / "out") == contents(tmp_path / "at once")
    with pytest.raises(OutputError, match=r"begun with the bag .* of 3 partitions, not with the bag .* of 2"):
        dask_bpe.encode_corpus(dask.bag.from_sequence(texts, npartitions=2), tokenizer, tmp_path / "out")
    dask_bpe.encode_corpus(iter(texts), tokenizer, tmp_path / "iterable")
    before = stats(tmp_path / "iterable")
    with pytest.raises(OutputError, match="an iterable cannot be gone on with"):
        dask_bpe.encode_corpus(iter(texts), tokenizer, tmp_path / "iterable")
    assert stats(tmp_path / "iterable") == before
    assert dask_bpe.encode_corpus(iter(texts), tokenizer, tmp_path / "iterable", overwrite=True).n_documents == 6


def test_an_iterable_that_was_killed_begins_anew(tmp_path: Path, tokenizer: Tokenizer, texts: list[str]) -> None:
    def encode_to(out: str, texts: list[str]) -> EncodeReport:
        return dask_bpe.encode_corpus(iter(texts), tokenizer, tmp_path / out, shard_tokens=50)

    encode_to("at once", texts[:2])
    encode_to("out", texts)  # and this one has more shards
    for name in ("part-00000.json", "manifest.json"):
        (tmp_path / "out" / name).unlink()
    encode_to("out", texts[:2])
    assert contents(tmp_path / "out") == contents(tmp_path / "at once")


def test_two_jobs_in_one_folder(folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused, whatever it asks for, and the first doesn't notice."""
    refusals = []
    write = encode_partition.write_part

    def write_part(*arguments: Any) -> Any:
        for options in ({}, {"overwrite": True}):
            with pytest.raises(OutputError, match="another job works in this folder") as caught:
                dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", **options)
            refusals.append(str(caught.value))
        return write(*arguments)

    monkeypatch.setattr(encode_partition, "write_part", write_part)
    dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out")
    assert refusals
    dask_bpe.open_tokens(folder / "out").verify()


def test_a_task_that_was_forgotten_writes_nothing(
    folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has been given to another job while it was away."""
    read, other = encode_partition._read, json.dumps({"job": "another"})

    def taken(partition: Any, reading: Any) -> Iterator[Any]:
        yield from read(partition, reading)
        (folder / "out" / "job.json").write_text(other)

    monkeypatch.setattr(encode_partition, "_read", taken)
    (folder / "out").mkdir()
    monkeypatch.setattr("dask_bpe.io.job.clear_output", lambda *_, **__: None)
    with pytest.raises(OutputError, match="another job works in this folder now; nothing was written"):
        dask_bpe.encode_corpus(folder / "text", tokenizer, folder / "out", block_bytes=1000)
    assert not [path.name for path in (folder / "out").iterdir() if path.name.startswith("part-")]
    assert (folder / "out" / "job.json").read_text() == other


def stop_collecting(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Stop the driver when it has been told of k partitions."""
    calls = iter(range(1 << 30))
    add = encode.Outcomes.add

    def stop(self: Any, outcome: Any) -> None:
        add(self, outcome)
        if next(calls) + 1 >= k:
            raise Interruption

    monkeypatch.setattr(encode.Outcomes, "add", stop)


@pytest.mark.parametrize("fmt", ["bin", "parquet"])
def test_on_a_cluster(
    fmt: str, folder: Path, tokenizer: Tokenizer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted on a cluster, gone on with in threads, interrupted, gone on with on the cluster."""

    def encode_to(out: str, **options: Any) -> EncodeReport:
        return dask_bpe.encode_corpus(folder / "text", tokenizer, folder / out, fmt, block_bytes=400, **options)

    expected = encode_to("at once")
    with monkeypatch.context() as patch, pytest.raises(Interruption):
        stop_collecting(patch, 2)
        encode_to("out", client=client)
    with monkeypatch.context() as patch, pytest.raises(Interruption):
        stop_after(patch, 1)
        encode_to("out")
    report = encode_to("out", client=client)
    assert report.n_resumed >= 3
    assert facts(report) == facts(expected)
    assert contents(folder / "out") == contents(folder / "at once")
