"""Training that is interrupted and run again ends as if it had never been: counts, vocabulary file, and no litter."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client
from filelock import FileLock
from reference import TIES

import dask_bpe
from dask_bpe import PretokenCounts, Progress
from dask_bpe.cluster import count as counting
from dask_bpe.cluster import reduce_durably
from dask_bpe.errors import InputError, OutputError, ParameterError, VocabularyError
from dask_bpe.io.work_folder import open_work_folder, states
from dask_bpe.training import checkpoints
from dask_bpe.training import fit as training
from dask_bpe.training.merger import Merger

ENDOFTEXT = "<|endoftext|>"
RULES: dict[str, Any] = {"special_tokens": [ENDOFTEXT], "block_bytes": 1500, "split_every": 3}


class Stopped(Exception):
    """What stands for Ctrl-C in these tests."""


class Interrupt(Progress):
    """Raises when a stage has advanced so often."""

    def __init__(self, stage: str, after: int) -> None:
        self._stage, self._left = stage, after

    def advance(self, stage: str, amount: int) -> None:
        if stage == self._stage:
            self._left -= 1
            if self._left < 0:
                raise Stopped


@pytest.fixture
def text(tmp_path: Path, corpus: list[str]) -> list[str]:
    """Two files, some eight partitions."""
    folder = tmp_path / "text"
    folder.mkdir()
    for name, lines in (("a", corpus[:50]), ("b", corpus[50:])):
        (folder / f"{name}.txt").write_text(ENDOFTEXT.join(lines), encoding="utf-8", newline="")
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.fixture
def few_merges_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge per call, and a state after each one if so asked."""
    monkeypatch.setattr(checkpoints, "_SHARE", float("inf"))
    monkeypatch.setattr(training, "_FIRST_CALL", 1)
    monkeypatch.setattr(training, "_LARGEST_CALL", 1)


@pytest.fixture
def counted_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The indices of the first blocks of the partitions that this process counts."""
    counted: list[int] = []
    count = counting.count_partition

    def watched(part: Any, bad: Any, reading: Any, job: str) -> PretokenCounts:
        counted.append(part[0].index)
        return count(part, bad, reading, job)

    monkeypatch.setattr(counting, "count_partition", watched)
    return counted


def saved(tokenizer: dask_bpe.Tokenizer, folder: Path) -> bytes:
    tokenizer.save(folder / "saved.json")
    data = (folder / "saved.json").read_bytes()
    (folder / "saved.json").unlink()
    return data


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def assert_tidy(work: Path) -> None:
    """Nothing half written is left, and no state of the merges."""
    assert not [name for name in files_below(work) if ".tmp-" in name or "tree-" in name or "merging" in name]


# Counting


@pytest.mark.parametrize("memory", [None, 300_000])
def test_counts_of_a_work_folder_are_the_counts(memory: int | None, text: list[str], tmp_path: Path) -> None:
    expected = dask_bpe.count_pretokens(text, **RULES)
    work = tmp_path / "work"
    counts = dask_bpe.count_pretokens(text, **RULES, work_dir=work, memory_per_worker=memory)
    assert counts == expected
    assert PretokenCounts.from_parquet(work / "counts.parquet") == expected
    n_buckets = json.loads((work / "plan.json").read_text())["n_buckets"]
    assert (n_buckets > 1) == (memory is not None)
    assert_tidy(work)


def test_a_finished_count_is_not_done_again(
    text: list[str], counted_blocks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = dask_bpe.count_pretokens(text, **RULES, work_dir=tmp_path / "work")
    assert len(counted_blocks) == len(set(counted_blocks)) > 4
    counted_blocks.clear()
    monkeypatch.setattr(reduce_durably, "run", lambda *_: pytest.fail("tasks were run"))
    for options in ({}, {"min_count": 2}, {"block_bytes": None}, {"min_count": 1}):
        again = dask_bpe.count_pretokens(text, **(RULES | options), work_dir=tmp_path / "work")
        assert again == counts.at_least(options.get("min_count") or 1).ranked()
    assert not counted_blocks


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_an_interrupted_count_goes_on(after: int, text: list[str], counted_blocks: list[int], tmp_path: Path) -> None:
    class Interrupt(Progress):
        def advance(self, stage: str, amount: int) -> None:
            if stage == "counting" and len(counted_blocks) > after:
                raise Stopped

    expected = dask_bpe.count_pretokens(text, **RULES)
    work = tmp_path / "work"
    counted_blocks.clear()
    with dask.config.set(scheduler="synchronous"), pytest.raises(Stopped):
        dask_bpe.count_pretokens(text, **RULES, work_dir=work, progress=Interrupt())
    before = {name for name in files_below(work) if name.startswith("counts/part-") and name.endswith(".json")}
    assert len(before) == after
    counted_blocks.clear()
    # Another size of blocks, and another number of threads, would divide the text in another way.
    with dask.config.set(num_workers=5):
        counts = dask_bpe.count_pretokens(text, special_tokens=[ENDOFTEXT], work_dir=work, split_every=2)
    assert counts == expected
    assert len(counted_blocks) == len(json.loads((work / "plan.json").read_text())["partitions"]) - after
    assert_tidy(work)


@pytest.mark.parametrize("damage", ["cut", "flip", "delete", "record", "delete record"])
@pytest.mark.parametrize("which", ["part-00003", "bucket-000"])
def test_what_is_damaged_is_done_again(
    which: str, damage: str, text: list[str], counted_blocks: list[int], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    expected = dask_bpe.count_pretokens(text, **RULES, work_dir=work)
    for name in ("counts.parquet", "counts.json", *(("counts/bucket-000.json",) if which != "bucket-000" else ())):
        (work / name).unlink()
    (data_path,) = (work / "counts").glob(f"{which}*.parquet")
    path = work / "counts" / f"{which}.json" if "record" in damage else data_path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if damage.startswith("delete"):
        path.unlink()
    else:
        path.write_bytes(data[:-5] if damage == "cut" else data)
    counted_blocks.clear()
    assert dask_bpe.count_pretokens(text, **RULES, work_dir=work) == expected
    assert counted_blocks == ([3] if which == "part-00003" else [])
    assert_tidy(work)


def test_damaged_counts_of_the_whole_are_made_again(text: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    expected = dask_bpe.count_pretokens(text, **RULES, work_dir=work)
    data = bytearray((work / "counts.parquet").read_bytes())
    data[100] ^= 1
    (work / "counts.parquet").write_bytes(data)
    assert dask_bpe.count_pretokens(text, **RULES, work_dir=work) == expected
    assert PretokenCounts.from_parquet(work / "counts.parquet") == expected


def test_a_file_damaged_while_it_is_in_use_is_an_error(
    text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = reduce_durably.write_counts

    def damaged(folder: str, name: str, counts: PretokenCounts) -> Any:
        file = write(folder, name, counts)
        if name.startswith("part-00002"):
            path = Path(folder, name)
            path.write_bytes(path.read_bytes()[:-1])
        return file

    with monkeypatch.context() as patch:
        patch.setattr(reduce_durably, "write_counts", damaged)
        with pytest.raises(VocabularyError, match=r"part-00002-000\.parquet.*checksum"):
            dask_bpe.count_pretokens(text, **RULES, work_dir=tmp_path / "work")
    expected = dask_bpe.count_pretokens(text, **RULES)
    assert dask_bpe.count_pretokens(text, **RULES, work_dir=tmp_path / "work") == expected


def test_another_job_is_refused_with_what_differs(text: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    counts = dask_bpe.count_pretokens(text, **RULES, work_dir=work)

    def refused(source: list[str], message: str, **options: Any) -> None:
        with pytest.raises(OutputError, match=message) as caught:
            dask_bpe.count_pretokens(source, **(RULES | options), work_dir=work)
        assert "\n" not in str(caught.value)
        assert "overwrite" in str(caught.value)

    refused(text, "pattern 'gpt2', not 'cl100k'", pattern="cl100k")
    refused(text, "special_tokens .* not", special_tokens=[])
    refused(text, "errors 'replace', not 'strict'", errors="strict")
    refused(text, "max_bytes None, not 500", max_bytes=500)
    refused(text, "block_bytes 1500, not 1600", block_bytes=1600)
    refused(text[:1], f"with the file {text[1]}")
    refused(text[::-1], "another order")
    (tmp_path / "c.txt").write_text("more")
    refused([*text, str(tmp_path / "c.txt")], r"without the file .*c\.txt")
    assert dask_bpe.count_pretokens(text, **RULES, work_dir=work) == counts
    at = Path(text[0]).stat().st_mtime_ns
    os.utime(text[0], ns=(at, at + 1000))
    refused(text, f"before {text[0]} was changed")
    with Path(text[0]).open("a") as file:
        file.write("x")
    refused(text, r"a\.txt had [\d,]+ bytes, not")
    again = dask_bpe.count_pretokens(text, **RULES, work_dir=work, overwrite=True)
    assert again == dask_bpe.count_pretokens(text, **RULES)
    assert again != counts


def test_a_damaged_plan_is_refused(text: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    counts = dask_bpe.count_pretokens(text, **RULES, work_dir=work)
    (work / "plan.json").write_text("{}")
    with pytest.raises(OutputError, match=r"plan\.json is missing or damaged.*overwrite"):
        dask_bpe.count_pretokens(text, **RULES, work_dir=work)
    assert dask_bpe.count_pretokens(text, **RULES, work_dir=work, overwrite=True) == counts


def test_only_what_is_ours_is_deleted(text: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "counts").mkdir(parents=True)
    for name in ("mine.txt", "counts/mine.txt", "plan.json.tmp-123", "counts/part-00001.json.tmp-abc"):
        (work / name).write_text("mine")
    dask_bpe.count_pretokens(text, **RULES, work_dir=work)
    assert (work / "mine.txt").read_text() == (work / "counts" / "mine.txt").read_text() == "mine"
    assert_tidy(work)
    with open_work_folder(work, overwrite=True):
        assert files_below(work) == ["counts/mine.txt", "lock", "mine.txt"]


def test_a_second_job_is_refused(text: list[str], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with FileLock(tmp_path / "work" / "lock"), pytest.raises(OutputError, match="another job works in this folder"):
        dask_bpe.train(text, 300, work_dir=tmp_path / "work")
    assert len(dask_bpe.train(text, 300, work_dir=tmp_path / "work")) == 300


def test_a_work_folder_must_be_a_folder_and_is_for_files(text: list[str], tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"a\.txt: a file; the output must be a folder"):
        dask_bpe.count_pretokens(text, work_dir=text[0])
    with pytest.raises(ParameterError, match="a work_dir is for files"):
        dask_bpe.count_pretokens(iter(["text"]), work_dir=tmp_path / "work")


def test_a_worker_that_does_not_see_the_folder_says_so(text: list[str], tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="a worker does not see this work folder"):
        reduce_durably._see(str(tmp_path / "elsewhere"))


def test_an_error_of_the_text_is_that_of_any_count(text: list[str], tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"good\xff")
    with pytest.raises(InputError, match=r"bad\.txt at 0: byte 4 is not UTF-8"):
        dask_bpe.count_pretokens([tmp_path / "bad.txt"], errors="strict", on_error="raise", work_dir=tmp_path / "work")


def test_a_url_is_a_work_folder_too(text: list[str]) -> None:
    expected = dask_bpe.count_pretokens(text, **RULES)
    for _ in range(2):
        assert dask_bpe.count_pretokens(text, **RULES, work_dir="memory://work/of/mine") == expected
    tokenizer = dask_bpe.train(text, 300, **RULES, work_dir="memory://work/of/mine", checkpoint_seconds=0)
    assert tokenizer.vocabulary == dask_bpe.train(expected, 300).vocabulary
    dask_bpe.count_pretokens(text[:1], **RULES, work_dir="memory://work/of/mine", overwrite=True)


def test_on_a_cluster_only_records_come_back(client: Client, text: list[str], tmp_path: Path) -> None:
    expected = dask_bpe.count_pretokens(text, **RULES)
    run = reduce_durably.run
    work = tmp_path / "work"
    results: list[Any] = []

    def watched(make: Any, n_items: int, client: Client, collect: Any, failed: Any) -> None:
        run(make, n_items, client, lambda report: results.append(report) or collect(report), failed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce_durably, "run", watched)
        counts = dask_bpe.count_pretokens(text, **RULES, work_dir=work, memory_per_worker=300_000, client=client)
    assert counts == expected
    assert len(results) > 1
    assert all(len(pickle.dumps(result)) < 2000 for result in results)
    assert dask_bpe.count_pretokens(text, **RULES, memory_per_worker=300_000, client=client) == expected


# Merging


@pytest.mark.parametrize("ties", TIES)
def test_a_state_may_be_taken_after_any_merge(ties: str, corpus: list[str]) -> None:
    counts = dask_bpe.count_pretokens(iter(corpus))
    whole = Merger(counts, 256 + 60, ties, 1, None)
    whole.advance(60)
    merger = Merger(counts, 256 + 20, ties, 1, None)
    for _ in range(0, 60, 4):
        state = {name: array.copy() for name, array in merger.state().items()}
        merger = Merger(counts, 256 + 60, ties, 1, None, state)
        merger.advance(4)
    layout = training.Layout((), "after_bytes", "value")
    assert merger.vocabulary(layout) == whole.vocabulary(layout)
    assert merger.log(layout).trace(merger.vocabulary(layout)) == whole.log(layout).trace(whole.vocabulary(layout))


@pytest.mark.usefixtures("few_merges_per_call")
@pytest.mark.parametrize(("ties", "min_count"), [*((ties, 1) for ties in TIES), ("bytes", 2)])
def test_interrupted_merges_go_on(ties: str, min_count: int, text: list[str], tmp_path: Path) -> None:
    options: dict[str, Any] = RULES | {"ties": ties, "min_count": min_count}
    expected = dask_bpe.train(text, 310, **options)
    work, runs = tmp_path / "work", 0
    while True:
        try:
            tokenizer = dask_bpe.train(
                text, 310, **options, work_dir=work, checkpoint_seconds=0, progress=Interrupt("merging", 12)
            )
            break
        except Stopped:
            runs += 1
            (number,) = states(str(work / "merging"))
            assert number > 10 * runs
    assert runs > 3
    assert saved(tokenizer, tmp_path) == saved(expected, tmp_path)
    assert tokenizer.training is not None
    assert expected.training is not None
    assert tokenizer.training.n_proved == expected.training.n_proved
    assert tokenizer.training.log.trace(tokenizer.vocabulary) == expected.training.log.trace(expected.vocabulary)
    assert_tidy(work)


def interrupted(text: list[str], work: Path, after: int = 20, **options: Any) -> None:
    """Leaves a state of the merges in the folder."""
    with pytest.raises(Stopped):
        dask_bpe.train(
            text, 340, **RULES, **options, work_dir=work, checkpoint_seconds=0, progress=Interrupt("merging", after)
        )
    assert states(str(work / "merging"))


@pytest.mark.usefixtures("few_merges_per_call")
@pytest.mark.parametrize("damage", ["cut", "flip", "delete", "record"])
def test_a_damaged_state_is_not_used(damage: str, text: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    interrupted(text, work)
    (state,) = (work / "merging").iterdir()
    path = state / ("state.json" if damage == "record" else "symbols.npy")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(data[:-5] if damage == "cut" else data)
    tokenizer = dask_bpe.train(text, 340, **RULES, work_dir=work)
    assert saved(tokenizer, tmp_path) == saved(dask_bpe.train(text, 340, **RULES), tmp_path)
    assert_tidy(work)


@pytest.mark.usefixtures("few_merges_per_call")
@pytest.mark.parametrize("other", [{"ties": "ids"}, {"min_frequency": 3}, {"max_token_length": 4}, {"min_count": 2}])
def test_a_state_of_other_rules_is_not_used(other: dict[str, Any], text: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    interrupted(text, work)
    tokenizer = dask_bpe.train(text, 340, **RULES, **other, work_dir=work)
    assert saved(tokenizer, tmp_path) == saved(dask_bpe.train(text, 340, **RULES, **other), tmp_path)
    assert_tidy(work)


@pytest.mark.usefixtures("few_merges_per_call")
def test_a_state_serves_any_size_of_vocabulary_that_it_fits(text: list[str], tmp_path: Path) -> None:
    for size in (400, 270):
        interrupted(text, tmp_path / "work")
        started: list[int] = []

        class Watch(Progress):
            def advance(self, stage: str, amount: int, started: list[int] = started) -> None:
                if stage == "merging":
                    started.append(amount)

        tokenizer = dask_bpe.train(text, size, **RULES, work_dir=tmp_path / "work", progress=Watch())
        assert saved(tokenizer, tmp_path) == saved(dask_bpe.train(text, size, **RULES), tmp_path)
        assert (started[0] > 0) == (size == 400)


def test_counts_need_the_folder_for_the_merges_only(text: list[str], tmp_path: Path) -> None:
    counts = dask_bpe.count_pretokens(text, **RULES)
    tokenizer = dask_bpe.train(counts, 340, work_dir=tmp_path / "work", checkpoint_seconds=0)
    assert saved(tokenizer, tmp_path) == saved(dask_bpe.train(counts, 340), tmp_path)
    assert files_below(tmp_path / "work") == ["runs.jsonl"]


# Killed processes

DRIVER = """
import os, sys
import dask_bpe
from dask_bpe.training import checkpoints
from dask_bpe.training import fit as training
checkpoints._SHARE = float("inf")
training._FIRST_CALL = training._LARGEST_CALL = 1

class Slow(dask_bpe.Progress):
    def start(self, stage, total, unit):
        print(stage, flush=True)
    def advance(self, stage, amount):
        import time
        time.sleep(0.02)

text, work, out = sys.argv[1:]
tokenizer = dask_bpe.train(
    text, 340, special_tokens=["<|endoftext|>"], block_bytes=700, split_every=3, ties="first",
    work_dir=work, checkpoint_seconds=0, memory_per_worker=600_000, progress=Slow(),
)
tokenizer.save(out)
"""


def kill_in(stage: str, arguments: list[str], wait: float) -> bool:
    """Start a driver and kill it so long after the stage began; False when it came to its end before that."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", DRIVER, *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == stage:
            break
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    return process.wait() == -signal.SIGKILL


def run_to_the_end(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-P", "-c", DRIVER, *arguments], check=True, stdout=subprocess.DEVNULL)


def assert_killed_and_right(text: list[str], tmp_path: Path, kills: list[tuple[str, float]]) -> None:
    folder, work, out = Path(text[0]).parent, tmp_path / "work", tmp_path / "killed.json"
    expected = dask_bpe.train(text, 340, special_tokens=[ENDOFTEXT], ties="first")
    arguments = [str(folder), str(work), str(out)]
    killed = [kill_in(stage, arguments, wait) for stage, wait in kills]
    assert any(killed)
    run_to_the_end(arguments)
    assert out.read_bytes() == saved(expected, tmp_path)
    assert_tidy(work)


def test_the_driver_is_killed_in_counting_and_in_merging(text: list[str], tmp_path: Path) -> None:
    assert_killed_and_right(text, tmp_path, [("counting", 0.1), ("merging", 0.3)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_driver_is_killed_at_random_moments(seed: int, text: list[str], tmp_path: Path) -> None:
    chance = random.Random(seed)
    kills = [("counting", chance.uniform(0, 0.3)) for _ in range(3)] + [
        ("merging", chance.uniform(0, 0.8)) for _ in range(3)
    ]
    assert_killed_and_right(text, tmp_path, kills)


@pytest.mark.slow
def test_the_next_run_may_be_on_a_cluster(client: Client, text: list[str], tmp_path: Path) -> None:
    folder, work = Path(text[0]).parent, tmp_path / "work"
    arguments = [str(folder), str(work), str(tmp_path / "out.json")]
    assert kill_in("counting", arguments, 0.1)
    options: dict[str, Any] = {"special_tokens": [ENDOFTEXT], "ties": "first"}
    tokenizer = dask_bpe.train(str(folder), 340, **options, work_dir=work, client=client)
    assert saved(tokenizer, tmp_path) == saved(dask_bpe.train(text, 340, **options), tmp_path)
    shutil.rmtree(work)


def test_what_cannot_be_read_is_listed_once(tmp_path: Path) -> None:
    """Also when some of it was met by a run that was interrupted."""
    (tmp_path / "text").mkdir()
    for name in "abc":
        lines = ['{"text": "one two"}', f'{{"text": {name}}}', '{"text": 3}'] * 20
        (tmp_path / "text" / f"{name}.jsonl").write_text("\n".join(lines))
    work = tmp_path / "work"
    options: dict[str, Any] = {"work_dir": work, "block_bytes": 300}
    with dask.config.set(scheduler="synchronous"), pytest.raises(Stopped):
        dask_bpe.count_pretokens(tmp_path / "text", progress=Interrupt("counting", 2), **options)
    assert not (work / "quarantine.jsonl").exists()
    for _ in range(2):
        counts = dask_bpe.count_pretokens(tmp_path / "text", **options)
        assert counts.n_quarantined == 120
        found = [json.loads(line) for line in (work / "quarantine.jsonl").read_text("utf-8").splitlines()]
        assert len({(item["source"], item["position"]) for item in found}) == len(found) == 120
        assert {Path(item["source"]).name for item in found} == {"a.jsonl", "b.jsonl", "c.jsonl"}
        assert all(item["reason"] for item in found)
