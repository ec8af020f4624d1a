"""Reading encoded corpora: documents, windows, damage."""

import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dask_bpe.errors import ParameterError, ShardError
from dask_bpe.io import reader
from dask_bpe.io.job import part_name
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.reader import open_tokens
from dask_bpe.io.shards import FORMATS, open_writer
from dask_bpe.progress import Progress


def encode(folder, kind: str, documents: list[list[int]], cuts: list[int], dtype: str = "uint16") -> None:
    """A corpus whose shards are cut at token positions; empty shards are left out as the writers do."""
    tokens = [token for document in documents for token in document]
    ends = np.cumsum([len(document) for document in documents]).tolist()
    shards = []
    start = taken = 0
    for index, cut in enumerate([*cuts, len(tokens)]):
        here = [end for end in ends[taken:] if end <= cut]
        with open_writer(kind, folder, part_name(index), dtype, continues=start > 0 and start not in ends) as writer:
            writer.write(np.array(tokens[start:cut], np.uint32), np.array(here, np.int64) - start)
            if shard := writer.close():
                # Documents without tokens go with the shard they are in; one of them alone leaves no shard.
                shards.append(shard)
        taken += len(here)
        start = cut
    Manifest(kind, dtype, "f", 70_000, {}, tuple(shards)).write(folder)


@st.composite
def corpora(draw):
    documents = draw(st.lists(st.lists(st.integers(0, 65535), min_size=1, max_size=12), min_size=1, max_size=8))
    total = sum(map(len, documents))
    return documents, sorted(draw(st.lists(st.integers(0, total), max_size=8)))


@pytest.fixture(params=list(FORMATS))
def corpus(request, tmp_path):
    """Ten tokens in four documents and three shards; the third document lies in all of them."""
    encode(tmp_path, request.param, [[0], [1, 2], [3, 4, 5, 6, 7, 8], [9]], [5, 7])
    return open_tokens(tmp_path)


@pytest.mark.parametrize("kind", list(FORMATS))
@given(corpora(), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_shards_do_not_show(tmp_path_factory, kind, corpus, length, stride):
    documents, cuts = corpus
    folder = tmp_path_factory.mktemp("corpus")
    encode(folder, kind, documents, cuts)
    tokens = [token for document in documents for token in document]
    found = open_tokens(folder)
    assert [document.tolist() for document in found.documents] == documents
    assert found.n_documents == len(found.documents) == len(documents)
    assert found.n_tokens == len(found) == len(tokens)
    windows = found.windows(length, stride)
    expected = [tokens[i : i + length] for i in range(0, len(tokens) - length + 1, stride)]
    assert len(windows) == len(expected)
    assert [window.tolist() for window in windows] == expected
    assert found.tokens(0, len(tokens)).tolist() == tokens
    assert found.dtype == np.uint16
    assert all(array.dtype == np.uint16 for array in (*found.documents, *windows))
    found.verify()


def test_sequences_behave(corpus):
    documents = corpus.documents
    assert documents[-1].tolist() == [9]
    assert documents[np.int64(1)].tolist() == [1, 2]
    assert [document.tolist() for document in documents[::-2]] == [[9], [1, 2]]
    for index in (4, -5):
        with pytest.raises(IndexError, match="out of range for 4 items"):
            documents[index]
    assert [window.tolist() for window in corpus.windows(4)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [window.tolist() for window in corpus.windows(5, 4)] == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    assert len(corpus.windows(11)) == 0
    with pytest.raises(IndexError):
        corpus.windows(11)[0]


def test_windows_that_cannot_be(corpus):
    for length, stride in [(0, None), (3, 0), (-1, 1)]:
        with pytest.raises(ParameterError, match="must be positive"):
            corpus.windows(length, stride)
    for start, stop in [(-1, 2), (3, 2), (0, 11)]:
        with pytest.raises(ParameterError, match="not within the corpus of 10"):
            corpus.tokens(start, stop)
    assert corpus.tokens(10, 10).tolist() == []


def test_what_is_read_cannot_be_changed(corpus):
    with pytest.raises(ValueError, match="read-only"):
        corpus.documents[1][0] = 3


def test_views_inside_a_shard(tmp_path):
    encode(tmp_path, "bin", [[0], [1, 2], [3, 4, 5]], [])
    found = open_tokens(tmp_path)
    first, second = found.documents[1], found.windows(2)[0]
    assert type(first) is np.ndarray
    assert np.shares_memory(first, found.tokens(0, 6))
    assert np.shares_memory(second, found.tokens(0, 6))


def test_repr_shards_and_manifest_path(corpus):
    assert "10 tokens of uint16, 4 documents, 3 shards" in repr(corpus)
    assert [shard.tokens for shard in corpus.shards] == [5, 2, 3]
    assert open_tokens(corpus.path + "/manifest.json").path == corpus.path


def test_pickles_without_its_files(corpus):
    corpus.windows(3)[0]
    copy = pickle.loads(pickle.dumps(corpus))
    assert [d.tolist() for d in copy.documents] == [d.tolist() for d in corpus.documents]


def test_cache_is_bounded(corpus, monkeypatch):
    monkeypatch.setattr(reader, "_MAPS_KEPT", 1)
    monkeypatch.setattr(reader, "_DECODED_KEPT", 1)
    for _ in range(2):
        assert corpus.documents[2].tolist() == [3, 4, 5, 6, 7, 8]
        assert len(corpus._files._kept) == 1


def test_threads_share_a_corpus(corpus, monkeypatch):
    monkeypatch.setattr(reader, "_DECODED_KEPT", 1)
    wrong: list[list[list[int]]] = []

    def read() -> None:
        for _ in range(50):
            found = [document.tolist() for document in corpus.documents]
            if found != [[0], [1, 2], [3, 4, 5, 6, 7, 8], [9]]:
                wrong.append(found)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_empty_corpus(tmp_path):
    Manifest("bin", "uint16", "f", 256).write(tmp_path)
    found = open_tokens(tmp_path)
    assert (len(found), found.n_documents, len(found.windows(1))) == (0, 0, 0)
    assert list(found.documents) == []
    found.verify()


def test_two_open_shards_that_do_not_continue(tmp_path):
    """Files without a final separator: the last document ends with its file."""
    shards = []
    for index in range(2):
        with open_writer("bin", tmp_path, part_name(index), "uint16") as writer:
            writer.write(np.array([index, 5], np.uint16), np.array([], np.int64))
            shards.append(writer.close())
    Manifest("bin", "uint16", "f", 256, {}, tuple(shards)).write(tmp_path)
    assert [d.tolist() for d in open_tokens(tmp_path).documents] == [[0, 5], [1, 5]]


class TestDamage:
    def main_file(self, corpus):
        return corpus.path + "/" + corpus.shards[1].name

    def flip(self, path: str, place: int) -> None:
        with Path(path).open("r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1]))

    def refuses_to_open(self, corpus, message: str) -> None:
        with pytest.raises(ShardError, match=message) as caught:
            open_tokens(corpus.path)
        assert "damaged shard part-00001" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_truncated(self, corpus):
        with Path(self.main_file(corpus)).open("r+b") as file:
            file.truncate(3)
        self.refuses_to_open(corpus, "has 3 bytes, [0-9]+ were written")

    def test_longer(self, corpus):
        with Path(self.main_file(corpus)).open("ab") as file:
            file.write(b"xx")
        self.refuses_to_open(corpus, "bytes, [0-9]+ were written")

    def test_missing(self, corpus, tmp_path):
        (tmp_path / corpus.shards[1].name).unlink()
        self.refuses_to_open(corpus, "No such file")

    def test_truncated_index(self, tmp_path):
        encode(tmp_path, "bin", [[0], [1]], [1])
        with (tmp_path / "part-00001.idx").open("r+b") as file:
            file.truncate(8)
        self.refuses_to_open(Located(tmp_path), r"part-00001\.idx has 8 bytes, 16 were written")

    def test_changed_content(self, corpus):
        self.flip(self.main_file(corpus), 2)
        found = open_tokens(corpus.path)
        with pytest.raises(ShardError, match=r"damaged shard part-00001.*has changed since it was written"):
            found.verify()

    def test_changed_index(self, tmp_path):
        encode(tmp_path, "bin", [[0], [1, 2], [3]], [])
        self.flip(str(tmp_path / "part-00000.idx"), 8)
        with pytest.raises(ShardError, match=r"part-00000\.idx has changed"):
            open_tokens(tmp_path).verify()
        self.flip(str(tmp_path / "part-00000.idx"), 0)
        with pytest.raises(ShardError, match="document offsets do not fit 4 tokens"):
            open_tokens(tmp_path).documents[0]

    @pytest.mark.parametrize("change", ["missing", "cut", "changed"])
    def test_origins(self, tmp_path, change):
        encode(tmp_path, "bin", [[0], [1]], [1])
        path = tmp_path / "part-00001.docs.parquet"
        if change == "changed":
            self.flip(str(path), 30)
            with pytest.raises(ShardError, match=r"part-00001\.docs\.parquet has changed"):
                open_tokens(tmp_path).verify()
            return
        path.unlink() if change == "missing" else path.write_bytes(path.read_bytes()[:-1])
        message = {"missing": r"cannot read part-00001\.docs\.parquet: No such", "cut": r"docs\.parquet has \d+ bytes"}
        self.refuses_to_open(Located(tmp_path), message[change])

    def test_parquet_of_garbage(self, tmp_path):
        encode(tmp_path, "parquet", [[0], [1, 2]], [1])
        path = tmp_path / "part-00001.parquet"
        path.write_bytes(b"\0" * path.stat().st_size)
        with pytest.raises(ShardError, match=r"damaged shard part-00001\.parquet: cannot be read"):
            open_tokens(tmp_path).documents[1]

    def test_parquet_of_another_run(self, tmp_path):
        encode(tmp_path / "a", "parquet", [[0], [1, 2]], [1]) if (tmp_path / "a").mkdir() is None else None
        found = open_tokens(tmp_path / "a")
        (tmp_path / "a" / "part-00001.parquet").write_bytes((tmp_path / "a" / "part-00000.parquet").read_bytes())
        with pytest.raises(ShardError, match="it holds 1 tokens"):
            found.documents[1]

    def test_file_that_goes_away_later(self, corpus, tmp_path):
        found = open_tokens(corpus.path)
        for path in tmp_path.glob("part-00001.*"):
            path.unlink()
        with pytest.raises(ShardError, match="damaged shard part-00001"):
            found.documents[2]
        with pytest.raises(ShardError, match="No such file"):
            found.verify()


class Located:
    """What `refuses_to_open` asks of a corpus."""

    def __init__(self, path) -> None:
        self.path = path


def test_verify_tells_its_progress(corpus):
    calls = []

    class Recorder(Progress):
        def start(self, stage, total, unit):
            calls.append((stage, total, unit))

        def advance(self, stage, amount):
            calls.append(amount)

        def finish(self, stage):
            calls.append(stage)

    corpus.verify(Recorder())
    n_bytes = sum(path.stat().st_size for path in Path(corpus.path).glob("part-*"))
    assert calls[0] == ("verifying", n_bytes, "B")
    assert sum(calls[1:-1]) == n_bytes
    assert calls[-1] == "verifying"
