"""4 GB of text on workers of 1 GiB: no worker is ended, paused or made to spill, whatever is trained or encoded.

With ``-s`` every test says what its workers took: a row of the table in the README.
"""

from __future__ import annotations

import os
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

import dask_bpe
from dask_bpe import machine

pytestmark = pytest.mark.slow

LIMIT = 1 << 30
# DASK_BPE_TEST_GB: another size, for a machine with less room or more time.
BYTES = int(float(os.environ.get("DASK_BPE_TEST_GB", "4")) * 1e9)
END = "<|endoftext|>"


def in_other_words(text: bytes) -> Iterator[bytes]:
    """A text again and again, with other letters each time: pre-tokens that were not there before."""
    letters = string.ascii_lowercase.encode()
    while True:
        for seed in range(200):
            mixed = bytes(np.random.default_rng(seed).permutation(list(letters)).tolist())
            yield text.translate(bytes.maketrans(letters + letters.upper(), mixed + mixed.upper()))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, alice: str, poems: str) -> Iterator[Path]:
    """Plain files without separators, one of them large; compressed ones; a table."""
    folder = tmp_path_factory.mktemp("text")
    source = in_other_words((alice + poems).encode())
    for name, share in (("large.txt", 0.5), ("small-0.txt", 0.1), ("small-1.txt", 0.1), ("packed.txt.gz", 0.15)):
        with fsspec.open(str(folder / name), "wb", compression="infer") as file:
            written = 0
            while written < share * BYTES:
                written += file.write(next(source))
    with pq.ParquetWriter(folder / "table.parquet", pa.schema({"text": pa.string()})) as writer:
        written = 0
        while written < 0.15 * BYTES:
            documents = [next(source).decode() for _ in range(100)]
            writer.write_table(pa.table({"text": documents}))
            written += sum(map(len, documents))
    yield folder
    for path in folder.iterdir():
        path.unlink()


@pytest.fixture
def workers(request: pytest.FixtureRequest) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit=LIMIT, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        before = client.run(os.getpid)
        yield client
        peak = max(client.run(machine.peak_memory).values())
        what = request.node.name.removeprefix("test_").replace("_", " ")
        sys.stdout.write(f"\n| {what} | {BYTES / 1e9:g} GB | 2 of 1 GiB | {peak / 1e6:.0f} MB |\n")
        assert client.run(os.getpid) == before
        assert peak < LIMIT
        assert not any(client.run(spilled).values())
        assert "paused" not in statuses(client)


def spilled(dask_worker: Any) -> bool:
    """Whether a worker has ever put data on its disk."""
    return any(dask_worker.data.spilled_total)


def statuses(client: Client) -> set[str]:
    """What the workers have said that they are: a worker that is short of memory is "paused"."""
    events = [event for worker in client.nthreads() for _, event in client.get_events(worker)]
    return {event["status"] for event in events if event["action"] == "worker-status-change"}


def test_training(text: Path, workers: Client) -> None:
    tokenizer = dask_bpe.train(text, 2_000, special_tokens=[END], client=workers, memory_per_worker=LIMIT)
    assert tokenizer.training.n_bytes > BYTES


def test_training_in_a_work_folder(text: Path, workers: Client, tmp_path: Path) -> None:
    tokenizer = dask_bpe.train(
        text, 2_000, special_tokens=[END], client=workers, memory_per_worker=LIMIT, work_dir=tmp_path / "work"
    )
    assert tokenizer.training.n_bytes > BYTES


def test_encoding(text: Path, workers: Client, tmp_path: Path, alice: str, poems: str) -> None:
    tokenizer = dask_bpe.train(iter([alice, poems]), 2_000, special_tokens=[END])
    report = dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", client=workers)
    assert report.n_bytes > BYTES
    assert dask_bpe.verify_corpus(tmp_path / "out").n_tokens == report.n_tokens
