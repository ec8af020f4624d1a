"""Readers of the layouts, written from their descriptions alone: slow, and strict about every byte.

Each takes a folder and returns its shards, in order, as lists of documents (lists of ids).
"""

from __future__ import annotations

import csv
import gzip
import json
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

Documents = list[list[int]]
END = 256  # the separator of the corpora of the tests


def nanogpt(folder: Path, dtype: str) -> list[Documents]:
    assert dtype == "uint16"
    names = [name for name in ("val.bin", "train.bin") if (folder / name).exists()]
    return [_cut_after(_numbers((folder / name).read_bytes(), "<u2")) for name in names]


def llmc(folder: Path, dtype: str) -> list[Documents]:
    shards = []
    names = sorted(path.name for path in folder.glob("tokens_*.bin"))
    for index, name in enumerate(sorted(names, key=lambda name: name[-10:])):
        assert name in (f"tokens_train_{index:06d}.bin", "tokens_val_000000.bin")
        data = (folder / name).read_bytes()
        header = struct.unpack("<256i", data[:1024])
        assert header[:2] == {"uint16": (20240520, 1), "uint32": (20240801, 7)}[dtype]
        assert set(header[3:]) == {0}
        size = {"uint16": 2, "uint32": 4}[dtype]
        assert len(data) == 1024 + size * header[2]
        shards.append(_cut_before(_numbers(data[1024:], f"<u{size}")))
    return shards


def megatron(folder: Path, dtype: str) -> list[Documents]:
    shards = []
    for index in sorted(folder.glob("*.idx")):
        data = index.read_bytes()
        magic, version, code, sequences, documents = struct.unpack("<9sQBQQ", data[:34])
        assert (magic, version, documents) == (b"MMIDIDX\0\0", 1, sequences + 1)
        assert code == {"uint16": 8, "int32": 4}[dtype]
        assert len(data) == 34 + 20 * sequences + 8
        lengths = struct.unpack(f"<{sequences}i", data[34 : 34 + 4 * sequences])
        pointers = struct.unpack(f"<{sequences}q", data[34 + 4 * sequences : 34 + 12 * sequences])
        assert struct.unpack(f"<{documents}q", data[34 + 12 * sequences :]) == tuple(range(documents))
        tokens = index.with_suffix(".bin").read_bytes()
        size = np.dtype(dtype).itemsize
        assert sum(lengths) * size == len(tokens)
        shards.append(
            [
                _numbers(tokens[start : start + size * length], np.dtype(dtype).str)
                for start, length in zip(pointers, lengths, strict=True)
            ]
        )
    return shards


def dolma(folder: Path, dtype: str) -> list[Documents]:
    shards = []
    for path in sorted(folder.glob("*.npy")):
        ids = _numbers(path.read_bytes(), np.dtype(dtype).str)
        with gzip.open(path.with_suffix(".csv.gz"), "rt", encoding="utf-8", newline="") as file:
            lines = file.read().split("\n")
        assert lines.pop() == ""
        bounds = [tuple(map(int, line.split(",")[:2])) for line in lines]
        assert [len(row) for row in csv.reader(lines)] == [5] * len(lines)
        assert [start for start, _ in bounds] == [0, *(end for _, end in bounds[:-1])]
        assert bounds[-1][1] == len(ids)
        shards.append([ids[start:end] for start, end in bounds])
    return shards


def datatrove(folder: Path, dtype: str) -> list[Documents]:
    shards = []
    size = np.dtype(dtype).itemsize
    for path in sorted(folder.glob("*.ds")):
        ids = _numbers(path.read_bytes(), f"<u{size}")
        ends = _numbers(Path(f"{path}.index").read_bytes(), "<u8")
        tokenizer, count, _ = Path(f"{path}.metadata").read_text().split("\n")
        assert tokenizer.split("|")[1] == str(size)
        assert int(count) == len(ids) == ends[-1]
        shards.append([ids[start:end] for start, end in pairwise([0, *ends])])
    return shards


def mds(folder: Path, dtype: str) -> list[Documents]:
    index = json.loads((folder / "index.json").read_bytes())
    assert index["version"] == 2
    shards = []
    for number, entry in enumerate(index["shards"]):
        assert entry["raw_data"]["basename"] == f"shard.{number:05d}.mds"
        data = (folder / entry["raw_data"]["basename"]).read_bytes()
        assert entry["raw_data"]["bytes"] == len(data)
        assert entry["column_encodings"] == [f"ndarray:{dtype}"]
        count = struct.unpack_from("<I", data)[0]
        assert count == entry["samples"]
        offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
        config = json.loads(data[4 * (count + 2) : offsets[0]])
        assert {key: entry[key] for key in config} == config
        assert entry.keys() - config.keys() == {"raw_data", "samples", "zip_data"}
        assert offsets[-1] == len(data)
        shards.append([_mds_array(data[a:b], dtype) for a, b in pairwise(offsets)])
    return shards


def _mds_array(sample: bytes, dtype: str) -> list[int]:
    assert struct.unpack_from("<I", sample)[0] == len(sample) - 4
    code = sample[4] - 4  # one dimension
    length = int.from_bytes(sample[5 : 5 + 2**code], "little")
    assert code == (length >= 256) + (length >= 65536)
    ids = _numbers(sample[5 + 2**code :], np.dtype(dtype).str)
    assert len(ids) == length
    return ids


def litdata(folder: Path, dtype: str) -> list[Documents]:
    index = json.loads((folder / "index.json").read_bytes())
    assert index["config"]["data_format"] == [{"uint16": "no_header_tensor:20", "int32": "no_header_tensor:16"}[dtype]]
    assert index["config"]["item_loader"] == "TokensLoader"
    shards = []
    for number, entry in enumerate(index["chunks"]):
        assert entry["filename"] == f"chunk-0-{number}.bin"
        data = (folder / entry["filename"]).read_bytes()
        count = struct.unpack_from("<I", data)[0]
        offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
        assert (count, len(data), offsets[0], offsets[-1]) == (
            entry["chunk_size"],
            entry["chunk_bytes"],
            4 * (count + 2),
            len(data),
        )
        documents = [_numbers(data[a:b], np.dtype(dtype).str) for a, b in pairwise(offsets)]
        assert sum(map(len, documents)) == entry["dim"]
        shards.append(documents)
    return shards


def bin(folder: Path, dtype: str) -> list[Documents]:  # noqa: A001 (named as the layout)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert (manifest["format"], manifest["dtype"]) == ("bin", dtype)
    shards = []
    for entry in manifest["shards"]:
        ids = _numbers((folder / entry["name"]).read_bytes(), np.dtype(dtype).str)
        bounds = _numbers((folder / entry["name"]).with_suffix(".idx").read_bytes(), "<i8")
        shards.append([ids[a:b] for a, b in pairwise(bounds)])
    return shards


def parquet(folder: Path, dtype: str) -> list[Documents]:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert (manifest["format"], manifest["dtype"]) == ("parquet", dtype)
    return [pq.read_table(folder / entry["name"]).column("tokens").to_pylist() for entry in manifest["shards"]]


READERS = {
    reader.__name__: reader for reader in (bin, parquet, nanogpt, llmc, megatron, dolma, datatrove, mds, litdata)
}


def _numbers(data: bytes, dtype: str) -> list[int]:
    return np.frombuffer(data, dtype).tolist()


def _cut_after(ids: list[int]) -> Documents:
    documents: Documents = [[]]
    for token in ids:
        documents[-1].append(token)
        if token == END:
            documents.append([])
    assert documents.pop() == [], "the file ends with a separator"
    return documents


def _cut_before(ids: list[int]) -> Documents:
    documents: Documents = []
    for token in ids:
        if token == END:
            documents.append([])
        documents[-1].append(token)
    return documents
