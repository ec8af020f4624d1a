"""What `verify_corpus` finds: damage, and tokens that are not those of the text."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asserts import trained_on

import dask_bpe
from dask_bpe.errors import ParameterError, ShardError
from dask_bpe.io.atomic import File, checksum
from dask_bpe.io.manifest import Manifest

END = "<|endoftext|>"
DOCUMENTS = [f"Document {i}: {'the cat sat on the mat, ' * (i % 7)}自君之出矣 {i}" for i in range(60)]
TOKENIZER = trained_on(DOCUMENTS, [END, "<|begin|>"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The documents as text, compressed text, JSON Lines and Parquet; some of the text is not UTF-8."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.txt").write_bytes(END.join(DOCUMENTS).encode() + b" bad \xff byte")
    (folder / "b.txt.gz").write_bytes(gzip.compress((END.join(DOCUMENTS) + END).encode()))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS) + '{"text": 3}\n'
    (folder / "c.jsonl").write_text(lines)
    pq.write_table(pa.table({"text": DOCUMENTS}), folder / "d.parquet", row_group_size=7)
    return folder


@pytest.mark.parametrize("fmt", ["bin", "parquet"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_bytes": 200, "shard_tokens": 100},
        {"end_of_document": False},
        {"begin_of_document": "<|begin|>", "block_bytes": 300},
        {"errors": "strict"},
        {"errors": "skip"},
        {"special_tokens_in_text": "encode"},
    ],
    ids=str,
)
def test_all_is_right(source: Path, tmp_path: Path, fmt: str, options: dict[str, Any]) -> None:
    report = dask_bpe.encode_corpus(source, TOKENIZER, tmp_path / "out", fmt, **options)
    found = dask_bpe.verify_corpus(tmp_path / "out", roundtrip=True)
    assert found.n_bytes == report.n_bytes > 0
    assert (found.n_tokens, found.n_documents) == (report.n_tokens, report.n_documents)
    assert found.n_quarantined == report.n_quarantined == (2 if options.get("errors") == "strict" else 1)
    assert dask_bpe.verify_corpus(tmp_path / "out").n_bytes == 0


def test_on_a_cluster(source: Path, tmp_path: Path, client: Any) -> None:
    dask_bpe.encode_corpus(source, TOKENIZER, tmp_path / "out", block_bytes=500)
    here = dask_bpe.verify_corpus(tmp_path / "out", roundtrip=True)
    there = dask_bpe.verify_corpus(tmp_path / "out", roundtrip=True, client=client)
    assert replace(here, seconds=0) == replace(there, seconds=0)


def test_a_source_that_lies_elsewhere_now(source: Path, tmp_path: Path) -> None:
    dask_bpe.encode_corpus(source, TOKENIZER, tmp_path / "out", block_bytes=500)
    shutil.move(source, tmp_path / "moved")
    assert dask_bpe.verify_corpus(tmp_path / "out", roundtrip=tmp_path / "moved").n_bytes > 0
    (tmp_path / "moved" / "a.txt").write_bytes(b"another text")
    with pytest.raises(ParameterError, match="give the same files in the same order"):
        dask_bpe.verify_corpus(tmp_path / "out", roundtrip=tmp_path / "moved")


def with_other_token(folder: Path, position: int, token: int) -> None:
    """Change a token of the first shard, and what the manifest says of its file: only the text can tell."""
    path = folder / "part-00000.bin"
    ids = np.fromfile(path, "<u2")
    ids[position] = token
    ids.tofile(path)
    manifest = Manifest.read(folder)
    first, *others = manifest.shards
    main = File(path.name, path.stat().st_size, checksum(str(path)))
    changed = replace(first, files=(main, *first.files[1:]), max_id=int(ids.max()))
    replace(manifest, shards=(changed, *others)).write(folder)


def test_a_token_that_is_not_of_the_text(source: Path, tmp_path: Path) -> None:
    dask_bpe.encode_corpus(source / "a.txt", TOKENIZER, tmp_path / "out")
    with_other_token(tmp_path / "out", 3, ord("Q"))
    dask_bpe.verify_corpus(tmp_path / "out")
    with pytest.raises(ShardError, match=r"partition 0 decodes to another text than .*a\.txt holds") as caught:
        dask_bpe.verify_corpus(tmp_path / "out", roundtrip=True)
    assert "Q" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_marks_are_counted(source: Path, tmp_path: Path) -> None:
    dask_bpe.encode_corpus(source / "a.txt", TOKENIZER, tmp_path / "out")
    with_other_token(tmp_path / "out", 3, TOKENIZER.special_tokens[END])
    with pytest.raises(ShardError, match=r"hold 61 times id 256, '<\|endoftext\|>' at the end of documents; 60 were"):
        dask_bpe.verify_corpus(tmp_path / "out")


@pytest.mark.parametrize("name", ["part-00000.bin", "part-00000.idx", "part-00000.docs.parquet"])
def test_every_file_is_looked_at(source: Path, tmp_path: Path, name: str) -> None:
    dask_bpe.encode_corpus(source / "a.txt", TOKENIZER, tmp_path / "out")
    path = tmp_path / "out" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ShardError, match=rf"{name} has changed since it was written"):
        dask_bpe.verify_corpus(tmp_path / "out")


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    dask_bpe.encode_corpus(iter(DOCUMENTS), TOKENIZER, tmp_path / "texts")
    dask_bpe.verify_corpus(tmp_path / "texts")
    with pytest.raises(ParameterError, match="was made of an iterable, which cannot be read again"):
        dask_bpe.verify_corpus(tmp_path / "texts", roundtrip=True)
    (tmp_path / "text.txt").write_text("Some Text")
    lower = dask_bpe.Tokenizer(huggingface.build({}, steps=[("lowercase",)])[1])
    dask_bpe.encode_corpus(tmp_path / "text.txt", lower, tmp_path / "lower")
    with pytest.raises(ParameterError, match="its tokenizer normalizes text"):
        dask_bpe.verify_corpus(tmp_path / "lower", roundtrip=True)


def test_another_tokenizer_is_refused(source: Path, tmp_path: Path) -> None:
    dask_bpe.encode_corpus(source / "a.txt", TOKENIZER, tmp_path / "out")
    own = TOKENIZER.vocabulary.fingerprint()
    assert dask_bpe.open_tokens(tmp_path / "out", fingerprint=own).n_documents == 60
    other = trained_on(DOCUMENTS, [END], 3).vocabulary.fingerprint()
    with pytest.raises(ShardError, match=f"encoded with the vocabulary {own[:16]}, not with {other[:16]}"):
        dask_bpe.open_tokens(tmp_path / "out", fingerprint=other)
