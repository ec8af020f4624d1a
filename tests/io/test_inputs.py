"""What holds for all input formats: which one a file is in, flaky storage, wrong arguments."""

from __future__ import annotations

import gzip
import json
import random

import fsspec
import pyarrow as pa
import pyarrow.feather
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from input_files import compress, parquet_of, read, record, texts_of, write_arrow

from dask_bpe.errors import InputError, ParameterError
from dask_bpe.io import patience
from dask_bpe.io.inputs import KINDS, InputFormat, read_documents, tables
from dask_bpe.io.inputs.documents import Documents


class FlakyFileSystem(MemoryFileSystem):
    """Fails every n-th read."""

    protocol = "flaky"
    every = 1 << 60
    reads = 0

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("flaky://", "memory://"))

    @classmethod
    def count(cls) -> None:
        cls.reads += 1
        if cls.reads % cls.every == 0:
            raise OSError(5, "Input/output error")

    def cat_file(self, path, start=None, end=None, **options):
        self.count()
        return super().cat_file(path, start, end, **options)

    def _open(self, path, *args, **options):
        self.count()
        file = super()._open(path, *args, **options)
        return FlakyFile(file)


class FlakyFile:
    def __init__(self, file) -> None:
        self._file = file

    def read(self, n: int = -1) -> bytes:
        FlakyFileSystem.count()
        return self._file.read(n)

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.fixture
def flaky():
    fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)
    FlakyFileSystem.every = 1 << 60
    yield "flaky:///corpus"
    FlakyFileSystem.every = 1 << 60
    FlakyFileSystem.store.clear()


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.jsonl.xz", "a.parquet", "a.arrow", "a.wet"]
)
@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_flaky_storage(tmp_path, flaky, name, every, monkeypatch):
    monkeypatch.setattr(patience, "WAITS", (0.0, 0.0, 0.0))
    texts = [f"{k} {random.Random(k).random()}" for k in range(20_000)]
    local = tmp_path / name
    if name.startswith("a.jsonl"):
        data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
        kind = InputFormat.compression_of(name)
        local.write_bytes(data if kind is None else compress(data, kind))
    elif name == "a.wet":
        local.write_bytes(b"".join(record(text.encode()) for text in texts))
    else:
        write_arrow(local, pa.table({"text": texts}), name.removeprefix("a."), 1000)
    expected = read(local)
    assert texts_of(expected[0]) == texts
    content = local.read_bytes()
    fsspec.filesystem("memory").pipe_file(f"/corpus/{name}", content)
    url = f"{flaky}/{name}"
    whole = (url, 0, len(content), len(content), InputFormat(), 100_000)
    assert sum(len(batch) for batch in read_documents(*whole)) == 20_000
    FlakyFileSystem.every, FlakyFileSystem.reads = every, 0
    failures = n = 0
    try:
        for batch in read_documents(*whole):
            assert isinstance(batch, Documents)  # nothing is taken for bad because the storage fails
            n += len(batch)
    except InputError as error:
        failures += 1
        assert "Input/output error" in str(error)
        assert "\n" not in str(error)
        assert isinstance(error.__cause__, OSError)
        assert error.__cause__.errno == 5
    # A read that fails once is made again.
    assert (failures, n) == ((1, 0) if every == 1 else (0, 20_000))
    assert FlakyFileSystem.reads > every


def test_behind_a_url():
    fs = fsspec.filesystem("memory")
    content, _ = parquet_of([f"text {k}" for k in range(100)], 10)
    fs.pipe_file("/inputs/a.parquet", content)
    lines = b"".join(b'{"text": "%d"}\n' % k for k in range(100))
    fs.pipe_file("/inputs/a.jsonl", lines)
    fs.pipe_file("/inputs/a.jsonl.gz", gzip.compress(lines))
    assert len(read("memory://inputs/a.parquet", None, [0, 300, len(content)])[0]) == 100
    assert len(read("memory://inputs/a.jsonl", None, [0, 300, len(lines)])[0]) == 100
    assert len(read("memory://inputs/a.jsonl.gz")[0]) == 100


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet", "a.arrow", "a.wet"])
def test_missing_file(tmp_path, name):
    with pytest.raises(InputError, match=rf"cannot read .*{name}: No such file") as caught:
        list(read_documents(str(tmp_path / name), 0, 100, 100, InputFormat()))
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.parametrize(
    ("path", "kind", "packed", "splittable"),
    [
        ("/a/b.txt", "text", None, True),
        ("/a/b", "text", None, True),
        ("/a.jsonl/b.TXT.GZ", "text", "gzip", False),
        ("/a/b.jsonl", "jsonl", None, True),
        ("/a/b.NDJSON", "jsonl", None, True),
        ("/a/b.json.zst", "jsonl", "zstd", False),
        ("/a/b.snappy.parquet", "parquet", None, True),
        ("/a/b.arrow", "arrow", None, False),
        ("/a/b.feather.lz4", "arrow", "lz4", False),
        ("/a/b.warc.wet.gz", "warc", "gzip", False),
        ("/a/b.warc", "warc", None, False),
        ("s3://bucket/b.jsonl.xz", "jsonl", "xz", False),
        ("https://host/b.parquet?version=3", "parquet", None, True),
    ],
)
def test_format_of_a_name(path, kind, packed, splittable):
    how = InputFormat()
    assert (how.kind_of(path), how.compression_of(path), how.splittable(path)) == (kind, packed, splittable)
    for told in KINDS:
        assert InputFormat(kind=told).kind_of(path) == told


@pytest.mark.parametrize(
    "options",
    [{"kind": "csv"}, {"kind": ""}, {"field": ""}, {"field": None}, {"column": ""}, {"id_field": ""}, {"id_field": 3}],
)
def test_wrong_format(options):
    with pytest.raises(ParameterError):
        InputFormat(**options)


def test_wrong_arguments(tmp_path):
    path = str(tmp_path / "a.jsonl")
    for start, stop, size in ((-1, 2, 3), (2, 1, 3), (0, 4, 3)):
        with pytest.raises(ParameterError, match="0 <= start <= stop <= size"):
            read_documents(path, start, stop, size, InputFormat())
    with pytest.raises(ParameterError, match="batch_bytes"):
        read_documents(path, 0, 3, 3, InputFormat(), 0)
    with pytest.raises(ParameterError, match="plain text"):
        read_documents(path, 0, 3, 3, InputFormat(kind="text"))
    for name in ("a.jsonl.gz", "a.arrow", "a.wet"):
        with pytest.raises(ParameterError, match="can only be read as a whole"):
            read_documents(str(tmp_path / name), 0, 2, 3, InputFormat())


def test_first_pages_decide_where_a_row_group_belongs():
    content, metadata = parquet_of([f"text {k}" for k in range(30)], 10)
    starts = tables._row_group_starts(metadata, len(content))
    assert starts == [metadata.row_group(k).column(0).dictionary_page_offset for k in range(3)]
    assert starts[0] == 4
