"""One contract for every shard writer, and the layout of each format."""

import errno

import numpy as np
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dask_bpe.errors import OutputError, ParameterError
from dask_bpe.io import memmap, parquet
from dask_bpe.io.atomic import AtomicFile
from dask_bpe.io.job import part_name
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.reader import open_tokens
from dask_bpe.io.shards import FORMATS, File, Origins, Shard, Span, open_writer

repeatable = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def ends(*positions: int) -> np.ndarray:
    return np.array(positions, np.int64)


def ids(*values: int, dtype: str = "uint32") -> np.ndarray:
    return np.array(values, dtype)


def read_back(folder, kind: str, dtype: str, *shards: Shard) -> list[list[int]]:
    """Documents of the shards, through a manifest."""
    Manifest(kind, dtype, "f" * 64, 1 << 32, {}, shards).write(folder)
    corpus = open_tokens(folder)
    corpus.verify()
    return [document.tolist() for document in corpus.documents]


@st.composite
def streams(draw):
    """Tokens, document ends, and where the calls of `write` cut them."""
    tokens = draw(st.lists(st.integers(0, 65535), min_size=1, max_size=60))
    positions = st.integers(0, len(tokens))
    return (
        tokens,
        sorted(draw(st.lists(positions, max_size=12))),
        sorted(draw(st.lists(positions, max_size=5))),
    )


def known(*documents: int, source: str = "a.txt") -> Origins:
    """The origins of documents that stand at these places of a file."""
    origins = Origins()
    origins.add(source, np.array(documents, np.int64))
    return origins


def files_of(folder, shard: Shard) -> list[File]:
    """What the files of a shard are found to be, in the order in which it lists them."""
    contents = [(file.name, (folder / file.name).read_bytes()) for file in shard.files]
    return [File(name, len(content), xxhash.xxh3_128(content).hexdigest()) for name, content in contents]


def checksums(shard: Shard) -> list[str]:
    return [file.xxh3_128 for file in shard.files]


def write_in_calls(writer, tokens, bounds, cuts) -> Shard | None:
    """An end on a cut belongs to the call before it."""
    start, taken = 0, 0
    for cut in [*cuts, len(tokens)]:
        here = [b for b in bounds[taken:] if b <= cut]
        taken += len(here)
        writer.write(ids(*tokens[start:cut]), ends(*(b - start for b in here)))
        start = cut
    return writer.close()


@pytest.mark.parametrize("kind", list(FORMATS))
class TestEveryWriter:
    @pytest.mark.parametrize("dtype", ["uint16", "uint32"])
    @pytest.mark.parametrize("given_dtype", ["uint16", "uint32"])
    def test_round_trip(self, tmp_path, kind, dtype, given_dtype):
        spans = [Span("a.txt", 0, 10), Span("b.txt", 3, 7)]
        with open_writer(kind, tmp_path, "part-00003", dtype, sources=spans, fingerprint="f") as writer:
            writer.write(ids(1, 2, 3, 65535, dtype=given_dtype), ends(1, 1, 3))
            writer.write(ids(5, dtype=given_dtype), ends(1))
            shard = writer.close()
        assert shard == Shard(
            name=f"part-00003.{kind}",
            tokens=5,
            documents=4,
            max_id=65535,
            files=tuple(files_of(tmp_path, shard)),
            sources=tuple(spans),
            continues=False,
            open_end=False,
        )
        assert shard.bytes == (tmp_path / shard.name).stat().st_size
        assert {file.name for file in shard.files} == {path.name for path in tmp_path.iterdir()}
        assert shard.files[0].name == shard.name
        assert read_back(tmp_path, kind, dtype, shard) == [[1], [], [2, 3], [65535, 5]]

    @given(streams())
    @repeatable
    def test_calls_may_cut_anywhere(self, tmp_path_factory, kind, stream):
        tokens, bounds, cuts = stream
        folder = tmp_path_factory.mktemp("shards")
        whole = write_in_calls(open_writer(kind, folder, "part-00000", "uint16"), tokens, bounds, [])
        pieces = write_in_calls(open_writer(kind, folder, "part-00001", "uint16"), tokens, bounds, cuts)
        assert checksums(whole) == checksums(pieces)
        rows = [*bounds] if bounds and bounds[-1] == len(tokens) else [*bounds, len(tokens)]
        expected = [tokens[a:b] for a, b in zip([0, *rows[:-1]], rows, strict=True)]
        assert whole.documents == len(rows)
        assert whole.open_end == (rows != bounds)
        assert read_back(folder, kind, "uint16", whole) == expected

    def test_id_that_does_not_fit(self, tmp_path, kind):
        with open_writer(kind, tmp_path, "part-00000", "uint16") as writer:
            writer.write(ids(65535), ends(1))
            with pytest.raises(ParameterError, match="token id 65536 does not fit uint16"):
                writer.write(ids(1, 65536), ends(2))
        assert not list(tmp_path.iterdir())

    def test_large_ids_in_uint32(self, tmp_path, kind):
        with open_writer(kind, tmp_path, "part-00000", "uint32") as writer:
            writer.write(ids(65536, 2**32 - 1), ends(2))
            shard = writer.close()
        assert shard.max_id == 2**32 - 1
        assert read_back(tmp_path, kind, "uint32", shard) == [[65536, 2**32 - 1]]

    @pytest.mark.parametrize("documents", [ends(), ends(0, 0)])
    def test_no_tokens_leave_nothing(self, tmp_path, kind, documents):
        with open_writer(kind, tmp_path, "part-00000", "uint16") as writer:
            writer.write(ids(), documents)
            assert writer.close() is None
        assert not list(tmp_path.iterdir())

    def test_nothing_has_its_name_before_close(self, tmp_path, kind):
        with open_writer(kind, tmp_path, "part-00000", "uint16") as writer:
            writer.write(ids(1, 2), ends(2))
            assert all(".tmp-" in path.name for path in tmp_path.iterdir())
            writer.close()
            assert all(".tmp-" not in path.name for path in tmp_path.iterdir())
            writer.abort()
        assert (tmp_path / f"part-00000.{kind}").exists()

    def test_abort_leaves_nothing(self, tmp_path, kind):
        writer = open_writer(kind, tmp_path, "part-00000", "uint16")
        writer.write(ids(1, 2), ends(2))
        writer.abort()
        writer.abort()
        assert not list(tmp_path.iterdir())

    def test_running_twice_gives_the_same_bytes(self, tmp_path, kind):
        def run() -> tuple[Shard, dict[str, bytes]]:
            with open_writer(
                kind, tmp_path, "part-00000", "uint16", continues=True, fingerprint="f", origins=known(3, 4)
            ) as writer:
                writer.write(ids(1, 2), ends(1))
                shard = writer.close()
            return shard, {path.name: path.read_bytes() for path in tmp_path.iterdir()}

        assert run() == run()

    @pytest.mark.parametrize("wrong", [ends(3), ends(-1, 1), ends(2, 1)])
    def test_wrong_ends(self, tmp_path, kind, wrong):
        with (
            open_writer(kind, tmp_path, "part-00000", "uint16") as writer,
            pytest.raises(ParameterError, match="document ends must not decrease"),
        ):
            writer.write(ids(1, 2), wrong)

    @pytest.mark.parametrize("wrong", [np.array([1, 2]), np.array([[1]], np.uint32), np.array([1.0])])
    def test_wrong_ids(self, tmp_path, kind, wrong):
        with (
            open_writer(kind, tmp_path, "part-00000", "uint16") as writer,
            pytest.raises(ParameterError, match="must be a uint16 or uint32 vector"),
        ):
            writer.write(wrong, ends())

    @pytest.mark.parametrize("dtype", ["int32", "uint8", "uint64", "float32"])
    def test_wrong_dtype(self, tmp_path, kind, dtype):
        with pytest.raises(ParameterError, match="uint16 or uint32"):
            open_writer(kind, tmp_path, "part-00000", dtype)
        assert not list(tmp_path.iterdir())

    def test_missing_folder(self, tmp_path, kind):
        with pytest.raises(OutputError, match="cannot write"):
            open_writer(kind, tmp_path / "missing", "part-00000", "uint16")

    def test_document_that_ends_where_the_next_call_begins(self, tmp_path, kind):
        with open_writer(kind, tmp_path, "part-00000", "uint16") as writer:
            writer.write(ids(1, 2), ends(1))
            writer.write(ids(), ends())
            writer.write(ids(3), ends(0, 0))
            shard = writer.close()
        assert shard.open_end
        assert read_back(tmp_path, kind, "uint16", shard) == [[1], [2], [], [3]]

    def test_strided_ids(self, tmp_path, kind):
        with open_writer(kind, tmp_path, "part-00000", "uint32") as writer:
            writer.write(np.arange(20, dtype=np.uint32)[::2], ends(10))
            shard = writer.close()
        assert read_back(tmp_path, kind, "uint32", shard) == [list(range(0, 20, 2))]

    def test_full_disk(self, tmp_path, kind, monkeypatch):
        def refuse(self, data, /):
            raise OutputError("no space left")

        writer = open_writer(kind, tmp_path, "part-00000", "uint16")
        monkeypatch.setattr(AtomicFile, "write", refuse)
        with pytest.raises(OutputError, match="no space left"), writer:
            writer.write(ids(1, 2), ends(2))
            writer.close()
        assert not list(tmp_path.iterdir())

    def test_failing_rename_leaves_nothing_half(self, tmp_path, kind):
        (tmp_path / f"part-00000.{kind}").mkdir()
        with open_writer(kind, tmp_path, "part-00000", "uint16") as writer, pytest.raises(OutputError):
            writer.write(ids(1), ends(1))
            writer.close()
        # Files that belong to the main one come first, and stay: they may be those of a twin that is done.
        beside = {"bin": ["part-00000.docs.parquet", "part-00000.idx"], "parquet": []}[kind]
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"part-00000.{kind}", *beside])
        assert not list((tmp_path / f"part-00000.{kind}").iterdir())

    def test_remote(self, kind):
        fsspec = pytest.importorskip("fsspec")
        folder = f"memory://out-{kind}"
        fsspec.filesystem("memory").makedirs(f"/out-{kind}")
        shards = []
        for index in range(2):
            with open_writer(kind, folder, part_name(index), "uint16", continues=index > 0) as writer:
                writer.write(ids(index, 7, 8), ends(2))
                shards.append(writer.close())
        assert read_back(folder, kind, "uint16", *shards) == [[0, 7], [8, 1, 7], [8]]
        fsspec.filesystem("memory").rm(f"/out-{kind}", recursive=True)


def test_unknown_format(tmp_path):
    with pytest.raises(ParameterError, match="unknown format 'npy'; choose one of 'bin', 'parquet'"):
        open_writer("npy", tmp_path, "part-00000", "uint16")


def test_layout_of_bin(tmp_path, monkeypatch):
    monkeypatch.setattr(memmap, "PIECE", 2)
    with open_writer("bin", tmp_path, "part-00000", "uint16", origins=known(0, 7, 9)) as writer:
        writer.write(ids(1, 2, 0x1234), ends(1, 3))
        writer.write(ids(4, 5), ends())
        shard = writer.close()
    assert (tmp_path / "part-00000.bin").read_bytes() == bytes.fromhex("0100 0200 3412 0400 0500")
    assert np.fromfile(tmp_path / "part-00000.idx", "<i8").tolist() == [0, 1, 3, 5]
    assert shard.bytes == 10
    assert [file.name for file in shard.files] == ["part-00000.bin", "part-00000.idx", "part-00000.docs.parquet"]
    assert list(shard.files) == files_of(tmp_path, shard)
    assert pq.read_table(tmp_path / "part-00000.docs.parquet").to_pydict() == {
        "doc_id": ["a.txt:0", "a.txt:7", "a.txt:9"],
        "source": ["a.txt"] * 3,
        "position": [0, 7, 9],
    }


def test_bin_whose_last_rename_fails(tmp_path, monkeypatch):
    writer = open_writer("bin", tmp_path, "part-00000", "uint16")
    writer.write(ids(1), ends(1))
    commit = AtomicFile.commit

    def refuse_bin(self):
        if self.path.endswith(".bin"):
            raise OSError(errno.EIO, "broken")
        commit(self)

    monkeypatch.setattr(AtomicFile, "commit", refuse_bin)
    with pytest.raises(OSError, match="broken"):
        writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-00000.docs.parquet", "part-00000.idx"]
    assert np.fromfile(tmp_path / "part-00000.idx", "<i8").tolist() == [0, 1]


def test_layout_of_parquet(tmp_path):
    origins = known(0, 5)
    with open_writer("parquet", tmp_path, "part-00000", "uint16", origins=origins, fingerprint="abc") as writer:
        writer.write(ids(1, 2, 3), ends(1, 1))
        origins.add("b\udcff.txt", np.array([30]), ["an id"])
        origins.add("b\udcff.txt", np.array([40]))
        writer.write(ids(4), ends(1))
        writer.write(ids(5), ends())
        writer.close()
    table = pq.read_table(tmp_path / "part-00000.parquet")
    assert table.to_pydict() == {
        "doc_id": ["a.txt:0", "a.txt:5", "an id", "b\ufffd.txt:40"],
        "source": ["a.txt", "a.txt", "b\ufffd.txt", "b\ufffd.txt"],
        "position": [0, 5, 30, 40],
        "tokens": [[1], [], [2, 3, 4], [5]],
        "n_tokens": [1, 0, 3, 1],
    }
    assert str(table.schema.field("tokens").type) == "list<element: uint16>"
    assert {key: table.schema.metadata[key] for key in (b"dask_bpe.vocabulary", b"dask_bpe.dtype")} == {
        b"dask_bpe.vocabulary": b"abc",
        b"dask_bpe.dtype": b"uint16",
    }


@given(streams(), st.integers(1, 20), st.integers(1, 5))
@repeatable
def test_row_groups_are_capped(tmp_path_factory, stream, group_tokens, group_documents):
    tokens, bounds, cuts = stream
    folder = tmp_path_factory.mktemp("groups")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP_TOKENS", group_tokens)
        patch.setattr(parquet, "ROW_GROUP_DOCUMENTS", group_documents)
        origins = [known(*range(100)) for _ in range(2)]
        whole, pieces = (
            write_in_calls(
                open_writer("parquet", folder, part_name(i), "uint16", origins=origins[i]), tokens, bounds, at
            )
            for i, at in enumerate(([], cuts))
        )
    assert checksums(whole) == checksums(pieces)
    with pq.ParquetFile(folder / whole.name) as file:
        for group in range(file.num_row_groups):
            lengths = file.read_row_group(group, columns=["n_tokens"]).column(0).to_pylist()
            assert 0 < len(lengths) <= group_documents
            assert sum(lengths) <= group_tokens or len(lengths) == 1
        assert file.read(columns=["position"]).column(0).to_pylist() == list(range(whole.documents))
    rows = [*bounds] if bounds and bounds[-1] == len(tokens) else [*bounds, len(tokens)]
    assert read_back(folder, "parquet", "uint16", whole) == [
        tokens[a:b] for a, b in zip([0, *rows[:-1]], rows, strict=True)
    ]


def test_document_too_long_for_a_parquet_list(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "LIST_LIMIT", 10)
    monkeypatch.setattr(parquet, "ROW_GROUP_TOKENS", 5)
    with open_writer("parquet", tmp_path, "part-00000", "uint16") as writer:
        for _ in range(2):
            writer.write(ids(1, 2, 3, 4, 5), ends())
        with pytest.raises(OutputError, match="does not fit a Parquet list"):
            writer.write(ids(6), ends())
    assert not list(tmp_path.iterdir())
