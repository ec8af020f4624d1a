"""The layouts in the hands of the readers they are made for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layout_readers import END
from token_corpora import Documents, write_corpus

import dask_bpe

pytestmark = [
    pytest.mark.peers,
    # These libraries warn of what will change in those that they are built on.
    pytest.mark.filterwarnings("ignore"),
]
BLOCK = 7
DTYPES = [("uint16", 300), ("uint32", 70_000)]


def documents(vocab_size: int) -> Documents:
    """Of all lengths that the formats tell apart, with an empty one."""
    draw = np.random.default_rng(1)
    lengths = [3, 0, 255, 256, 17, 65_535, 65_536, 1, 400]
    return [[*draw.integers(END + 1, vocab_size, length).tolist(), END] if length else [] for length in lengths]


def reshaped(folder: Path, to: str, dtype: str, vocab_size: int, **options: Any) -> tuple[Path, Documents]:
    made = documents(vocab_size)
    write_corpus(folder / "corpus", made, [200, 1000], dtype=dtype, vocab_size=vocab_size)
    dask_bpe.reshape(folder / "corpus", folder / "out", to, **options)
    return folder / "out", made


def blocks(shards: list[Documents], size: int) -> list[list[int]]:
    """Blocks of each shard's tokens; a rest is left out."""
    found = []
    for shard in shards:
        tokens = [token for document in shard for token in document]
        found += [tokens[i : i + size] for i in range(0, len(tokens) - size + 1, size)]
    return found


@pytest.mark.parametrize(("dtype", "vocab_size"), DTYPES)
def test_datatrove(tmp_path: Path, dtype: str, vocab_size: int) -> None:
    dataset = pytest.importorskip("datatrove.utils.dataset")
    pytest.importorskip("torch")
    # Without the empty one: positions are counted past it.
    made = [document for document in documents(vocab_size) if document]
    write_corpus(tmp_path / "corpus", made, dtype=dtype, vocab_size=vocab_size)
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "datatrove")
    path = str(tmp_path / "out" / "part-00000.ds")
    size = np.dtype(dtype).itemsize
    found = dataset.DatatroveFileDataset(path, BLOCK - 1, token_size=size, return_positions=True)
    items = [found[i] for i in range(len(found))]
    assert [item["input_ids"].tolist() for item in items] == blocks([made], BLOCK)
    starts = set(np.cumsum([0, *map(len, made)]).tolist())
    for number, item in enumerate(items):
        expected: list[int] = []  # counted from the start of the document, or of the window
        for place in range(BLOCK * number, BLOCK * (number + 1)):
            expected.append(expected[-1] + 1 if expected and place not in starts else 0)
        assert item["positions"].tolist() == expected


def test_datatrove_names_amounts_so() -> None:
    humanize = pytest.importorskip("humanize")
    from dask_bpe.io.layouts.datatrove import _for_people

    for count in (1, 12, 999, 1000, 1234, 99_949, 99_951, 999_499, 123_456_789, 5 * 10**11, 10**12):
        assert _for_people(count) == humanize.metric(count, unit="T")


@pytest.mark.parametrize(("dtype", "vocab_size"), DTYPES)
def test_mosaicml_streaming(tmp_path: Path, dtype: str, vocab_size: int) -> None:
    try:
        import streaming
    except Exception as error:  # its torchvision may not fit the torch that is there
        pytest.skip(f"streaming cannot be imported: {error}")
    out, made = reshaped(tmp_path, "mds", dtype, vocab_size, shard_tokens=500)
    found = streaming.LocalDataset(str(out))
    assert [found[i]["tokens"].tolist() for i in range(len(found))] == made
    assert {found[i]["tokens"].dtype.name for i in range(len(found))} == {dtype}
    # The real writer makes the same shard of the same documents (but no empty one).
    full = [document for document in made if document]
    write_corpus(tmp_path / "full", full, dtype=dtype, vocab_size=vocab_size)
    dask_bpe.reshape(tmp_path / "full", tmp_path / "ours", "mds")
    columns = {"tokens": f"ndarray:{dtype}"}
    with streaming.MDSWriter(
        out=str(tmp_path / "theirs"), columns=columns, hashes=["xxh3_128"], size_limit=None
    ) as writer:
        for document in full:
            writer.write({"tokens": np.array(document, dtype)})
    for name in ("shard.00000.mds", "index.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()


@pytest.mark.parametrize(("dtype", "vocab_size"), DTYPES)
def test_litdata(tmp_path: Path, dtype: str, vocab_size: int) -> None:
    litdata = pytest.importorskip("litdata")
    torch = pytest.importorskip("torch")
    made = [document for document in documents(vocab_size) if document]
    write_corpus(tmp_path / "corpus", made, dtype=dtype, vocab_size=vocab_size)
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "litdata", shard_tokens=60_000)
    index = json.loads((tmp_path / "out" / "index.json").read_bytes())
    assert len(index["chunks"]) == 2
    loader = litdata.TokensLoader(block_size=BLOCK)
    found = litdata.StreamingDataset(str(tmp_path / "out"), item_loader=loader, shuffle=False)
    shards: list[Documents] = []
    for chunk in index["chunks"]:
        before = sum(map(len, shards))
        shards.append(made[before : before + chunk["chunk_size"]])
    kind = torch.uint16 if dtype == "uint16" else torch.int32
    got = [found[i] for i in range(len(found))]
    assert [block.tolist() for block in got] == blocks(shards, BLOCK)
    assert {block.dtype for block in got} == {kind}
    # The real writer makes the same chunk of the same documents.
    from litdata.streaming.writer import BinaryWriter

    (tmp_path / "theirs").mkdir()
    writer = BinaryWriter(str(tmp_path / "theirs"), chunk_bytes=1 << 30, item_loader=litdata.TokensLoader(BLOCK))
    for number, document in enumerate(made):
        writer[number] = torch.tensor(document).to(kind)
    writer.done()
    writer.merge()
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "whole", "litdata")
    assert (tmp_path / "theirs" / "chunk-0-0.bin").read_bytes() == (tmp_path / "whole" / "chunk-0-0.bin").read_bytes()
    ours, theirs = (json.loads((tmp_path / name / "index.json").read_bytes()) for name in ("whole", "theirs"))
    assert ours["chunks"] == theirs["chunks"]
    for key in ("compression", "data_format", "data_spec", "encryption", "item_loader"):
        assert ours["config"][key] == theirs["config"][key]


@pytest.mark.parametrize(("dtype", "vocab_size"), DTYPES)
@pytest.mark.parametrize("reader", ["pandas", "polars", "duckdb", "datasets"])
def test_tables(tmp_path: Path, reader: str, dtype: str, vocab_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    library = pytest.importorskip(reader)
    out, made = reshaped(tmp_path, "parquet", dtype, vocab_size, shard_tokens=60_000)
    shards = sorted(str(path) for path in out.glob("part-*.parquet"))
    assert len(shards) > 1
    if reader == "pandas":
        column: Any = [tokens for shard in shards for tokens in library.read_parquet(shard)["tokens"]]
    elif reader == "polars":
        column = library.read_parquet(shards)["tokens"].to_list()
    elif reader == "duckdb":
        column = [row[0] for row in library.read_parquet(shards).project("tokens").fetchall()]
    else:
        cache = os.fspath(tmp_path / "cache")
        column = library.load_dataset("parquet", data_files=shards, split="train", cache_dir=cache)["tokens"]
    assert [list(tokens) for tokens in column] == made


@pytest.mark.parametrize(("dtype", "vocab_size"), DTYPES)
def test_numpy_as_nanogpt_and_olmo_do(tmp_path: Path, dtype: str, vocab_size: int) -> None:
    out, made = reshaped(tmp_path, "dolma", dtype, vocab_size)
    tokens = [token for document in made for token in document]
    assert np.memmap(out / "part-0-00000.npy", mode="r", dtype=dtype).tolist() == tokens
    if dtype == "uint16":
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "nanogpt", "nanogpt")
        ends = [token for document in made for token in document or [END]]
        assert np.memmap(tmp_path / "nanogpt" / "train.bin", dtype=np.uint16, mode="r").tolist() == ends
