"""Plans: what they say of a corpus against what the jobs then do."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

import dask_bpe
from dask_bpe.cluster.planning.growth import Growth
from dask_bpe.cluster.planning.plan import WORKERS, plan_corpus
from dask_bpe.cluster.planning.predict import Predictor, scaled
from dask_bpe.cluster.planning.sample import FormatSample, Sample
from dask_bpe.cluster.planning.sample_pieces import choose
from dask_bpe.cluster.planning.simulate import Cluster, simulate
from dask_bpe.errors import InputError, ParameterError
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.source import SourceFile

END = "<|endoftext|>"
LAW = Growth(3.45, 0.62, 0.01, ((1 << 20, 18_000),))
SAMPLE = Sample(
    n_pieces=64, n_bytes=1 << 26, text_bytes=1 << 26, n_bad=0, seconds=2.0, busy=0.0, read=1e9,
    formats=(FormatSample("text", 1 << 26, 1 << 26, 0.05),), count=300e6, freeze=1e7, combine=2e7, distinct=LAW,
    distinct_bytes=Growth(10.0, 0.65, 0.01, ()), vocab_size=32_000, n_merges=31_743, merge_base=0.2, merge_each=2e-6,
    encode=300e6, bytes_per_token=4.2, write=5e8, shard_bytes=0.48, dtype="uint16",
)  # fmt: skip


def text_like(n_words: int) -> str:
    """Words by Zipf's law, of which there is no end, in documents of fifty."""
    letters = str.maketrans("0123456789", "etaoinshrd")
    drawn = np.random.default_rng(3).zipf(1.4, n_words)
    lines = [" ".join(map(str, part.tolist())) for part in np.array_split(drawn, max(1, n_words // 50))]
    return END.join(lines).translate(letters)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files, 1.2 MB."""
    folder = tmp_path_factory.mktemp("corpus")
    text = text_like(240_000)
    for number, part in enumerate((text[:100_000], text[100_000:350_000], text[350_000:])):
        (folder / f"{number}.txt").write_text(part)
    return folder


@pytest.fixture(scope="module")
def plan(corpus: Path) -> dask_bpe.Plan:
    return plan_corpus(corpus, vocab_size=1000, special_tokens=[END], threads=1)


def test_a_plan_says_what_the_jobs_do(corpus: Path, plan: dask_bpe.Plan, tmp_path: Path) -> None:
    with dask.config.set(num_workers=1):
        counts = dask_bpe.count_pretokens(corpus, special_tokens=[END])
        tokenizer = dask_bpe.train(counts, 1000)
        report = dask_bpe.encode_corpus(corpus, tokenizer, tmp_path / "out")
    written = [
        file for file in (tmp_path / "out").iterdir() if file.name.startswith("part-") and file.suffix != ".json"
    ]
    assert plan.n_bytes == report.n_bytes == pytest.approx(plan.text_bytes, abs=1)
    assert (plan.files, plan.shards, plan.sample.dtype) == (3, report.n_shards, report.dtype)
    assert plan.distinct == pytest.approx(len(counts), rel=0.15)
    assert plan.distinct_bytes == pytest.approx(len(counts.strings.values), rel=0.15)
    assert plan.tokens == pytest.approx(report.n_tokens, rel=0.02)
    assert plan.output_bytes == pytest.approx(sum(file.stat().st_size for file in written), rel=0.3)
    assert plan.encodings == len(json.loads((tmp_path / "out" / "job.json").read_text())["partitions"])


def test_a_tokenizer_may_be_given(corpus: Path, plan: dask_bpe.Plan) -> None:
    tokenizer = dask_bpe.train(corpus, 400, special_tokens=[END])
    given = plan_corpus(corpus, tokenizer=tokenizer, threads=1)
    assert given.sample.vocab_size == 400
    assert given.tokens > plan.tokens
    assert given.tokens == pytest.approx(sum(map(len, tokenizer.encode_batch(_texts(corpus)))), rel=0.02)


def _texts(corpus: Path) -> list[str]:
    return [file.read_text() for file in sorted(corpus.iterdir())]


def test_stages_add_up(plan: dask_bpe.Plan) -> None:
    assert tuple(row.workers for row in plan.rows) == WORKERS
    for row in plan.rows:
        assert row.total == pytest.approx(row.counting + row.reducing + row.merging + row.encoding)
        assert row.speed_up == pytest.approx(plan.rows[0].total / row.total)
        assert row.efficiency == pytest.approx(row.speed_up / row.workers)
    assert plan.forecast == plan.rows[0]


def test_it_is_json(plan: dask_bpe.Plan) -> None:
    data = json.loads(json.dumps(plan.to_json(), allow_nan=False))
    assert data["sample"]["distinct"]["exponent"] == plan.sample.distinct.exponent
    assert len(data["rows"]) == len(WORKERS)


def test_the_same_pieces_every_time(corpus: Path, plan: dask_bpe.Plan) -> None:
    again = plan_corpus(corpus, vocab_size=1000, special_tokens=[END], threads=1)
    assert (again.tokens, again.distinct, again.output_bytes) == (plan.tokens, plan.distinct, plan.output_bytes)


def test_a_smaller_sample_says_nearly_the_same(corpus: Path, plan: dask_bpe.Plan) -> None:
    small = plan_corpus(corpus, vocab_size=1000, special_tokens=[END], threads=1, sample_bytes=300_000)
    assert small.sample.n_bytes == pytest.approx(300_000, abs=100)
    assert small.distinct == pytest.approx(plan.distinct, rel=0.3)
    assert small.tokens == pytest.approx(plan.tokens, rel=0.1)


def test_more_of_the_same_can_be_planned_for(corpus: Path, plan: dask_bpe.Plan) -> None:
    large = plan_corpus(
        corpus, vocab_size=1000, special_tokens=[END], threads=4, workers=30, size=10**10, memory_per_worker=8 << 30
    )
    assert large.n_bytes == 10**10
    assert large.source_bytes == plan.n_bytes
    assert large.tokens == pytest.approx(plan.tokens * 10**10 / plan.n_bytes, rel=0.01)
    assert large.forecast.workers == 30
    assert 30 in [row.workers for row in large.rows]
    assert large.rows[0].total > 100 * plan.forecast.total


def test_a_storage_that_all_share_binds(corpus: Path) -> None:
    slow = plan_corpus(corpus, vocab_size=1000, special_tokens=[END], threads=1, size=10**9, storage=1e7)
    moved = slow.n_bytes / 1e7
    assert all(row.counting >= moved * 0.999 and row.encoding > row.counting * 0.9 for row in slow.rows)
    assert slow.rows[-1].bound == "storage"


def predictor(files: list[SourceFile], sample: Sample = SAMPLE) -> Predictor:
    return Predictor(files, sample, InputFormat(), 8)


def test_every_partition_is_counted_and_added_up_once() -> None:
    made = predictor([SourceFile(f"/{k}.txt", 10_000_000 * (k + 1)) for k in range(20)])
    counted = made.partitions(7_000_000)
    for n_buckets in (1, 3):
        tasks = made.counting(counted, n_buckets, Cluster(5, 2, 1e9, 1e9))
        users: list[int] = [0] * len(tasks)
        for task, before in enumerate(tasks.after):
            assert len(before) <= 8
            assert all(earlier < task for earlier in before)
            for earlier in before:
                users[earlier] += 1
        n = len(counted)
        # A partition goes to each bucket, a sum to one; the roots to none.
        assert users[:n] == [n_buckets] * n
        assert sorted(users[n:]) == [0] * n_buckets + [1] * (len(tasks) - n - n_buckets)
        assert sum(tasks.messages[n:]) == len(tasks) - n
        run = simulate(tasks, Cluster(5, 2, 1e9, 1e9))
        assert run.end[:n].max() < run.seconds


def test_many_buckets_are_taken_together_without_losing_work() -> None:
    made = predictor([SourceFile("/a.txt", 10**12)])
    counted = made.partitions(10**8)
    cluster = Cluster(100, 4, 1e9, 1e9, network=1e9)
    one, many = made.counting(counted, 1, cluster), made.counting(counted, 256, cluster)
    n = len(counted)
    assert many.seconds[n:].sum() == pytest.approx(one.seconds[n:].sum())
    assert sum(many.messages[n:]) == 256 * (len(one) - n)
    assert len(many) < 60_000
    assert simulate(many, cluster).seconds < simulate(one, cluster).seconds


def test_one_thread_takes_the_sum_of_all_tasks() -> None:
    made = predictor([SourceFile("/a.txt", 10**9)])
    encoded = counted = made.partitions(10**8)
    cluster = Cluster(1, 1, SAMPLE.read, SAMPLE.write)
    tasks = made.counting(counted, 1, cluster)
    assert simulate(tasks, cluster).seconds == pytest.approx(tasks.alone(cluster).sum())
    expected = 10**9 * (1 / 1e9 + 0.05 / (1 << 26) + 1 / 300e6 + 0.48 / 5e8)
    assert simulate(made.encoding(encoded), cluster).seconds == pytest.approx(expected)


def test_a_large_compressed_file_is_one_task() -> None:
    formats = (FormatSample("text", 1000, 1000, 1e-6), FormatSample("text in gzip", 1000, 4000, 1e-5))
    sample = Sample(**{**vars(SAMPLE), "formats": formats, "text_bytes": 5000})
    files = [SourceFile("/a.txt.gz", 10**9), *(SourceFile(f"/{k}.txt", 10**8) for k in range(10))]
    made = predictor(files, sample)
    encoded = made.partitions(10**7)
    assert made.text == pytest.approx(5e9)
    assert encoded.whole == encoded.text.max() == pytest.approx(4e9)
    seconds = simulate(made.encoding(encoded), Cluster(1000, 1, 1e9, 1e9)).seconds
    assert seconds == pytest.approx(made.encoding(encoded).alone(Cluster(1, 1, 1e9, 1e9)).max(), rel=0.01)


def test_files_are_scaled_to_the_byte() -> None:
    files = [SourceFile("/a", 1000), SourceFile("/b", 1), SourceFile("/c", 333)]
    for size in (1, 500, 1334, 5000, 10**13):
        made = scaled(files, size)
        assert sum(file.size for file in made) == size
        assert {file.path for file in made} == {"/a", "/b", "/c"}
    assert len(scaled(files, 13_340)) == 30
    assert len(scaled(files, 10**13)) <= 10_000


@pytest.mark.parametrize("n_bytes", [1, 70_000, 1_000_000, 5_000_000, 10**9])
def test_pieces_lie_everywhere_and_never_on_each_other(n_bytes: int) -> None:
    files = [SourceFile(f"/{k}.txt", size) for k, size in enumerate((3_000_000, 1, 700_000, 50, 50, 1_200_000))]
    total = sum(file.size for file in files)
    pieces = choose(files, n_bytes, InputFormat())
    parts = sorted((block.path, block.start, block.stop) for piece in pieces for block in piece.blocks)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(parts))
    covered = sum(stop - start for _, start, stop in parts)
    assert covered == pytest.approx(min(n_bytes, total), abs=len(parts))
    if n_bytes >= total:
        assert covered == total


def test_of_many_small_files_a_piece_takes_several() -> None:
    files = [SourceFile(f"/{k}.txt", 1000) for k in range(10_000)]
    pieces = choose(files, 1_000_000, InputFormat())
    assert len(pieces) < 40
    assert sum(piece.n_bytes for piece in pieces) == pytest.approx(1_000_000, abs=100)


def test_of_a_compressed_file_the_beginning_is_taken() -> None:
    (piece,) = choose([SourceFile("/a.txt.gz", 10**9)], 1 << 20, InputFormat())
    assert piece.n_bytes == piece.head == pytest.approx(1 << 20, abs=64)
    assert (piece.blocks[0].start, piece.blocks[0].stop) == (0, 10**9)


def test_of_a_parquet_file_a_large_part_is_taken_once() -> None:
    (piece,) = choose([SourceFile("/a.parquet", 10**9)], 1 << 20, InputFormat())
    assert piece.n_bytes == 64 << 20
    (piece,) = choose([SourceFile("/a.parquet", 10**6)], 1 << 18, InputFormat())
    assert (piece.blocks[0].start, piece.blocks[0].stop) == (0, 10**6)


def test_what_compressed_files_hold_is_found_from_their_beginnings(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"text": f"{k} {k * k} words and more"}) + "\n" for k in range(60_000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "b.jsonl").write_text(lines)
    n_bytes = sum(len(json.loads(line)["text"].encode()) for line in lines.splitlines())
    plan = plan_corpus(tmp_path, vocab_size=300, threads=1, sample_bytes=400_000)
    assert [item.name for item in plan.sample.formats] == ["jsonl", "jsonl in gzip"]
    assert plan.text_bytes == pytest.approx(2 * n_bytes, rel=0.1)
    assert plan.whole == pytest.approx(n_bytes, rel=0.1)
    assert plan.sample.n_bad == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"threads": "two"}, "threads is 'two'"),
        ({"vocab_size": 100}, "vocabulary size 100"),
        ({"storage": 0}, "storage is 0"),
        ({"network": -1.0}, "network is -1.0"),
        ({"sample_bytes": 0}, "sample_bytes is 0"),
        ({"memory_per_worker": 0}, "memory_per_worker is 0"),
        ({"format": "xml"}, "unknown format 'xml'"),
        ({"size": 0}, "size is 0"),
        ({"block_bytes": 0}, "block_bytes"),
        ({"split_every": 1}, "split_every is 1"),
    ],
)
def test_what_makes_no_sense_is_refused(corpus: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        plan_corpus(corpus, **wrong)
    assert "\n" not in str(caught.value)


def test_a_plan_is_for_files(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="a plan is made for files, not for generator"):
        plan_corpus(text for text in ["a"])
    with pytest.raises(InputError, match="no such file"):
        plan_corpus(tmp_path / "missing.txt")
    tokenizer = dask_bpe.train(iter(["a b"]), 257, special_tokens=[END])
    with pytest.raises(ParameterError, match="its own pattern and special tokens"):
        plan_corpus(corpus, tokenizer=tokenizer, special_tokens=[END])


@pytest.mark.parametrize("text", ["a", "é", "word " * 20, END])
def test_the_smallest_corpora_have_plans(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text)
    plan = plan_corpus(file, vocab_size=300, special_tokens=[END])
    assert plan.text_bytes == len(text.encode())
    assert plan.partitions == plan.encodings == plan.shards == 1
    assert plan.forecast.total > 0


def test_a_sample_without_text_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.txt"
    file.write_text("text")
    monkeypatch.setattr("dask_bpe.cluster.blocks.read", lambda *_: iter(()))
    with pytest.raises(InputError, match="pieces of the sample hold no text"):
        plan_corpus(file)


class _Waiting:
    """Seconds for which the threads of this process have waited for a CPU, on average of the busiest `n`.

    As far as Linux says: elsewhere 0. Threads may end, so they are looked at all the time.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}
        self._first: dict[str, int] = {}
        self._over = threading.Event()

    def __enter__(self) -> _Waiting:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            for file in Path("/proc/self/task").glob("*/schedstat"):
                try:
                    worked, waited, _ = map(int, file.read_text().split())
                except OSError:
                    continue  # it has just ended
                self._first.setdefault(str(file), waited)
                self._seen[str(file)] = worked, waited

    def seconds(self, n: int) -> float:
        waits = sorted((waited - self._first[name] for name, (_, waited) in self._seen.items()), reverse=True)
        return sum(waits[:n]) / n / 1e9


def _measured(job: Callable[[], Any], n_threads: int) -> tuple[Any, float]:
    """What a job gives, and its seconds as if other programs had let it."""
    with _Waiting() as waiting:
        began = time.perf_counter()
        result = job()
        seconds = time.perf_counter() - began
    return result, seconds - waiting.seconds(n_threads)


@pytest.mark.slow
def test_real_jobs_take_what_was_planned(tmp_path: Path) -> None:
    """40 MB, of which 8 are looked at, on one thread and on two."""
    file = tmp_path / "text.txt"
    file.write_text(text_like(8_000_000))
    dask_bpe.train(iter(["warm up"]), 260)
    for n_threads in (1, 2):
        plan = plan_corpus(file, threads=n_threads, vocab_size=8000, special_tokens=[END], sample_bytes=8 << 20)
        with dask.config.set(num_workers=n_threads):
            train = partial(dask_bpe.train, file, 8000, special_tokens=[END])
            tokenizer, trained = _measured(train, n_threads)
            encode = partial(dask_bpe.encode_corpus, file, tokenizer, tmp_path / f"out-{n_threads}")
            report, encoded = _measured(encode, n_threads)
        forecast = plan.forecast
        ratios = {
            "training": (forecast.counting + forecast.reducing + forecast.merging) / trained,
            "encoding": forecast.encoding / encoded,
            "distinct": plan.distinct / tokenizer.training.n_distinct,
            "tokens": plan.tokens / report.n_tokens,
        }
        assert all(1 / 3 < ratio < 3 for ratio in ratios.values()), (n_threads, ratios)
