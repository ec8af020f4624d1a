"""One contract for every layout: what is written is read back by a reader made from its description alone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from asserts import contents, read_back
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from layout_readers import END
from token_corpora import Documents, corpora, write_corpus

import dask_bpe
from dask_bpe.errors import OutputError, ParameterError
from dask_bpe.io.layouts import LAYOUTS
from dask_bpe.io.layouts.datatrove import _for_people
from dask_bpe.io.layouts.record import LayoutRecord

repeatable = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
every_layout = pytest.mark.parametrize("to", list(LAYOUTS))
divisible = pytest.mark.parametrize("to", [name for name in LAYOUTS if name != "nanogpt"])


@pytest.fixture(autouse=True)
def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of outputs, each flushed to the disk, would take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def placed(to: str, documents: Documents) -> Documents:
    """The documents as the layout has them."""
    bodies = [document[:-1] if document[-1:] == [END] else document for document in documents]
    if to == "nanogpt":
        return [[*body, END] for body in bodies]
    if to == "llmc":
        return [[END, *body] for body in bodies]
    return documents


def divided(to: str, documents: Documents, shard_tokens: int | None) -> list[Documents]:
    """The shards: closed by the document that fills one, if what is left of the corpus fills another."""
    shards: list[Documents] = [[]]
    for number, document in enumerate(placed(to, documents)):
        shards[-1].append(document)
        left = sum(map(len, documents[number + 1 :]))
        if shard_tokens is not None and sum(map(len, shards[-1])) >= shard_tokens <= left:
            shards.append([])
    return shards


@every_layout
@given(corpora(), st.one_of(st.none(), st.integers(1, 12)))
@example(([[], [1, END], []], [1]), 1)
@repeatable
def test_documents_are_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    to: str,
    corpus: tuple[Documents, list[int]],
    shard_tokens: int | None,
) -> None:
    documents, cuts = corpus
    source, out = tmp_path_factory.mktemp("corpus"), tmp_path_factory.mktemp("out")
    write_corpus(source, documents, cuts)
    asked = None if to == "nanogpt" else shard_tokens
    report = dask_bpe.reshape(source, out, to, shard_tokens=asked)
    shards = read_back(to, out)
    assert shards == divided(to, documents, asked)
    lacking = sum(document[-1:] != [END] for document in documents)
    assert (report.n_documents, report.n_shards, report.n_lacking) == (len(documents), len(shards), lacking)
    assert (report.path, report.layout, report.dtype) == (str(out), to, "uint16")
    table = pq.read_table(out / LAYOUTS[to].sidecar)
    assert table.column("doc_id").to_pylist() == [str(i) for i in range(len(documents))]


@every_layout
def test_the_shards_of_the_corpus_do_not_show(tmp_path: Path, to: str) -> None:
    documents = [[1, 2, END], [3, END], [], [4] * 50 + [END], [5]]
    found = []
    for name, cuts, kind in (("a", [], "bin"), ("b", [2, 30, 41], "parquet"), ("c", [1, 2, 3, 5], "bin")):
        write_corpus(tmp_path / name, documents, cuts, kind=kind)
        dask_bpe.reshape(tmp_path / name, tmp_path / f"{name}-out", to)
        assert read_back(to, tmp_path / f"{name}-out") == [placed(to, documents)]
        files = contents(tmp_path / f"{name}-out")
        # These name the sources, which are other ones here.
        found.append({n: files[n] for n in files if n.endswith((".bin", ".idx", ".npy", ".ds", ".index", ".mds"))})
    assert found[0] == found[1] == found[2]


@every_layout
@pytest.mark.parametrize("shuffle", [None, 5])
def test_the_same_corpus_gives_the_same_bytes(tmp_path: Path, to: str, shuffle: int | None) -> None:
    write_corpus(tmp_path / "corpus", [[i, i + 1, END] for i in range(50)], [7, 100])
    for name in ("a", "b"):
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / name, to, shuffle=shuffle)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@every_layout
def test_wide_ids(tmp_path: Path, to: str) -> None:
    documents = [[1, 69_999, END], [65_535, 65_536]]
    write_corpus(tmp_path / "corpus", documents, dtype="uint32", vocab_size=70_000)
    if to == "nanogpt":
        with pytest.raises(ParameterError, match="holds token id 69999, which does not fit uint16 of nanogpt"):
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to)
        assert not (tmp_path / "out").exists()
        return
    report = dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to)
    assert report.dtype == ("int32" if to in ("megatron", "litdata") else "uint32")
    assert read_back(to, tmp_path / "out") == [placed(to, documents)]
    with pytest.raises(ParameterError, match="69999, which does not fit uint16"):
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "narrow", to, dtype="uint16")
    assert not (tmp_path / "narrow").exists()


@every_layout
def test_the_dtype_is_that_of_the_vocabulary(tmp_path: Path, to: str) -> None:
    """A corpus of uint32 whose ids are all small becomes uint16, if the vocabulary is small too."""
    write_corpus(tmp_path / "small", [[1, END]], dtype="uint32", vocab_size=65_536)
    assert dask_bpe.reshape(tmp_path / "small", tmp_path / "a", to).dtype == "uint16"
    write_corpus(tmp_path / "large", [[1, END]], dtype="uint32", vocab_size=65_537)
    expected = {"nanogpt": "uint16", "megatron": "int32", "litdata": "int32"}.get(to, "uint32")
    assert dask_bpe.reshape(tmp_path / "large", tmp_path / "b", to).dtype == expected
    with pytest.raises(ParameterError, match=f"dtype float32 does not exist in {to}; choose one of "):
        dask_bpe.reshape(tmp_path / "small", tmp_path / "c", to, dtype="float32")


@every_layout
def test_ids_are_looked_at_again(tmp_path: Path, to: str) -> None:
    """A shard that changed since it was written: the id is not one of the vocabulary."""
    write_corpus(tmp_path / "corpus", [[1, 2, END], [3, END]])
    np.array([1, 2, END, 300, END], "<u2").tofile(tmp_path / "corpus" / "part-00000.bin")
    with pytest.raises(ParameterError, match="token id 300 is not one of the 300 ids"):
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to)
    assert not (tmp_path / "out").exists()


def test_bytes_for_dolma(tmp_path: Path) -> None:
    """Its readers take the smallest dtype that holds the vocabulary, which may be uint8."""
    write_corpus(tmp_path / "corpus", [[1, 255], [7]], vocab_size=256, separator=False)
    assert dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "dolma").dtype == "uint8"
    assert read_back("dolma", tmp_path / "out") == [[[1, 255], [7]]]


@divisible
def test_a_giant_document_is_one_large_shard(tmp_path: Path, to: str) -> None:
    documents = [[1] * 9 + [END], [2] * 300_000 + [END], [3] * 9 + [END], [4] * 9 + [END]]
    write_corpus(tmp_path / "corpus", documents, [100_000, 200_000])
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to, shard_tokens=10)
    assert [list(map(len, shard)) for shard in read_back(to, tmp_path / "out")] == [[10], [300_001], [10], [10]]


@divisible
def test_many_shards_and_no_small_one(tmp_path: Path, to: str) -> None:
    documents = [[i % 250, END] for i in range(1001)]
    write_corpus(tmp_path / "corpus", documents, list(range(100, 2000, 100)))
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to, shard_tokens=20)
    shards = read_back(to, tmp_path / "out")
    assert [sum(map(len, shard)) for shard in shards] == [20] * 99 + [22]
    assert [document for shard in shards for document in shard] == placed(to, documents)


@every_layout
def test_without_a_separator(tmp_path: Path, to: str) -> None:
    write_corpus(tmp_path / "corpus", [[1, 2], [3]], separator=False)
    if to in ("nanogpt", "llmc"):
        with pytest.raises(
            ParameterError, match=f"encoded without a separator, and {to} marks its documents by nothing"
        ):
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to)
        assert not (tmp_path / "out").exists()
    else:
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to)
        assert read_back(to, tmp_path / "out") == [[[1, 2], [3]]]
        assert LayoutRecord.read(tmp_path / "out").separator is None


def test_the_record_says_where_the_separator_is(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", [[1, END], [2], [3, END]])
    places = {"nanogpt": "after", "llmc": "before"}
    for to in LAYOUTS:
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / to, to)
        assert LayoutRecord.read(tmp_path / to).separator == {
            "token": "<|end|>",
            "id": END,
            "place": places.get(to, "kept"),
            "lacking": 1,
        }


@pytest.mark.parametrize("to", ["nanogpt", "llmc"])
def test_validation(tmp_path: Path, to: str) -> None:
    documents = [[i, END] for i in range(20)]
    write_corpus(tmp_path / "corpus", documents)
    asked = None if to == "nanogpt" else 10
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to, val_tokens=5, shard_tokens=asked)
    shards = read_back(to, tmp_path / "out")
    assert [len(shard) for shard in shards] == ([3, 17] if to == "nanogpt" else [3, 5, 5, 7])
    assert [document for shard in shards for document in shard] == placed(to, documents)
    names = set(contents(tmp_path / "out")) - {"layout.json", "documents.parquet"}
    assert names == (
        {"train.bin", "val.bin"}
        if to == "nanogpt"
        else {"tokens_val_000000.bin", *(f"tokens_train_{i:06d}.bin" for i in (1, 2, 3))}
    )
    with pytest.raises(ParameterError, match="val_tokens is 40: the corpus has 40"):
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "all", to, val_tokens=40)
    with pytest.raises(ParameterError, match="val_tokens is 39: the documents that reach it are all there are"):
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "all", to, val_tokens=39)
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize(("to", "limit"), [("llmc", 12), ("mds", 60), ("litdata", 40)])
def test_a_shard_ends_at_the_limit_of_the_format(
    tmp_path: Path, to: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [[1] * 4 + [END] for _ in range(6)]
    write_corpus(tmp_path / "corpus", [*documents, [2] * 100 + [END]])
    monkeypatch.setattr(LAYOUTS[to], "shard_limit", limit)
    with pytest.raises(OutputError, match="document 6 of 101 tokens is too long for the format"):
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to, shard_tokens=6)
    assert not (tmp_path / "out").exists()
    write_corpus(tmp_path / "other", documents)
    dask_bpe.reshape(tmp_path / "other", tmp_path / "out", to)
    assert read_back(to, tmp_path / "out") == [placed(to, documents)[i : i + 2] for i in (0, 2, 4)]
    with pytest.raises(ParameterError, match=f"shards of {to} are filled with {limit // 2} at most"):
        dask_bpe.reshape(tmp_path / "other", tmp_path / "c", to, shard_tokens=limit)


@pytest.mark.parametrize(("source", "to"), [("bin", "parquet"), ("parquet", "bin")])
def test_our_own_shards_are_a_corpus_again(tmp_path: Path, source: str, to: str) -> None:
    documents = [[1, 2, END], [3, END], [4, 5]]
    corpus = write_corpus(tmp_path / "corpus", documents, [1, 4], kind=source)
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to, shard_tokens=3)
    found = dask_bpe.open_tokens(tmp_path / "out")
    found.verify()
    assert [document.tolist() for document in found.documents] == documents
    assert found.manifest.options == corpus.manifest.options
    assert (found.manifest.vocabulary, found.manifest.vocab_size) == (corpus.manifest.vocabulary, 300)
    dask_bpe.reshape(tmp_path / "out", tmp_path / "back", source)
    assert [document.tolist() for document in dask_bpe.open_tokens(tmp_path / "back").documents] == documents


@every_layout
def test_remote(to: str, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    write_corpus(tmp_path / "corpus", [[i, END] for i in range(9)])
    report = dask_bpe.reshape(tmp_path / "corpus", f"memory://reshaped-{to}", to, shuffle=3)
    assert dask_bpe.verify_layout(report.path).documents == 9
    fs = fsspec.filesystem("memory")
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "here", to, shuffle=3)
    there = {name.rsplit("/", 1)[-1]: fs.cat_file(name) for name in fs.ls(f"/reshaped-{to}", detail=False)}
    assert there == contents(tmp_path / "here")
    fs.rm(f"/reshaped-{to}", recursive=True)


def test_names_that_a_table_cannot_hold(tmp_path: Path) -> None:
    """A file name that is not UTF-8, and one with a line end, which the readers of dolma's table do not expect."""
    write_corpus(tmp_path / "corpus", [[1, END]], source='a,"b"\n\udcff.txt')
    dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "dolma")
    assert read_back("dolma", tmp_path / "out") == [[[1, END]]]
    assert pq.read_table(tmp_path / "out" / "documents.parquet").column("source").to_pylist() == ['a,"b"\n\ufffd.txt']


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (5, "5.00 T"),
        (999, "999 T"),
        (1234, "1.23 kT"),
        (12_345_678, "12.3 MT"),
        (999_999, "1.00 MT"),
        (10**12, "1.00 TT"),
    ],
)
def test_tokens_for_people(count: int, text: str) -> None:
    assert _for_people(count) == text
