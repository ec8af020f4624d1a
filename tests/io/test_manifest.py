"""The manifest survives nothing but being whole."""

import json
from dataclasses import replace

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.errors import OutputError, ShardError
from dask_bpe.io import manifest as manifests
from dask_bpe.io.manifest import Manifest, clear_output, prepare_output
from dask_bpe.io.shards import Shard, Span

SHARD = Shard(
    name="part-00000.bin",
    tokens=5,
    documents=2,
    bytes=10,
    max_id=7,
    xxh3_128="a" * 32,
    index_xxh3_128="b" * 32,
    sources=(Span("/text/é\udcff.txt", 0, 20),),
    continues=False,
    open_end=True,
)
NEXT = replace(SHARD, name="part-00001.bin", continues=True, open_end=False, max_id=9)
MANIFEST = Manifest("bin", "uint16", "c" * 64, 300, {"errors": "replace", "separator": None}, (SHARD, NEXT))


def test_round_trip(tmp_path):
    path = MANIFEST.write(tmp_path)
    assert path == str(tmp_path / "manifest.json")
    assert Manifest.read(tmp_path) == MANIFEST
    assert (tmp_path / "manifest.json").read_text() == MANIFEST.to_json()
    assert len(list(tmp_path.iterdir())) == 1


def test_no_shards(tmp_path):
    empty = replace(MANIFEST, shards=())
    empty.write(tmp_path)
    assert Manifest.read(tmp_path) == empty
    assert (empty.tokens, empty.documents, empty.bytes, empty.max_id) == (0, 0, 0, -1)


def test_totals():
    assert (MANIFEST.tokens, MANIFEST.documents, MANIFEST.bytes, MANIFEST.max_id) == (10, 3, 20, 9)


@pytest.mark.parametrize(
    ("open_end", "continues", "join"),
    [(True, True, 1), (True, False, 0), (False, True, 0), (False, False, 0)],
)
def test_documents_join_when_both_sides_agree(open_end, continues, join):
    pair = replace(MANIFEST, shards=(replace(SHARD, open_end=open_end), replace(NEXT, continues=continues)))
    assert pair.joins == (False, bool(join))
    assert pair.documents == 4 - join


def damaged(tmp_path, text: str | bytes) -> str:
    """What reading says about such a file."""
    (tmp_path / "manifest.json").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ShardError) as caught:
        Manifest.read(tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(tmp_path / "manifest.json") in message
    return message


def edited(change) -> str:
    """The manifest with a change, and a checksum that fits it."""
    data = json.loads(MANIFEST.to_json())
    change(data)
    content = {key: value for key, value in data.items() if key not in ("kind", "version", "sha256")}
    return json.dumps(data | {"sha256": manifests._digest(content)})


def test_missing(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ShardError, match=r"no manifest\.json"):
            Manifest.read(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", b"\xff", '{"kind": "other"}', MANIFEST.to_json()[:-10]])
def test_not_a_manifest(tmp_path, text):
    damaged(tmp_path, text)


def test_other_version(tmp_path):
    text = MANIFEST.to_json().replace('"version": 2', '"version": 3')
    assert "manifest version 3; this dask_bpe reads version 2" in damaged(tmp_path, text)


def test_changed_by_hand(tmp_path):
    text = MANIFEST.to_json().replace('"tokens": 5', '"tokens": 6', 1)
    assert "checksum" in damaged(tmp_path, text)


@given(st.integers(0, len(MANIFEST.to_json()) - 3), st.integers(1, 255))
def test_any_damaged_byte_is_noticed(tmp_path_factory, place, change):
    folder = tmp_path_factory.mktemp("damage")
    text = bytearray(MANIFEST.to_json().encode())
    text[place] ^= change
    (folder / "manifest.json").write_bytes(text)
    try:
        found = Manifest.read(folder)
    except ShardError:
        return
    # Spaces between the parts may change.
    assert found == MANIFEST


@pytest.mark.parametrize(
    "key", ["version", "sha256", "format", "dtype", "vocabulary", "vocab_size", "options", "shards"]
)
def test_missing_field(tmp_path, key):
    assert f"'{key}' is missing" in damaged(tmp_path, edited_without_digest(lambda data: data.pop(key)))


def edited_without_digest(change) -> str:
    data = json.loads(MANIFEST.to_json())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize("key", list(Shard.__dataclass_fields__))
def test_missing_field_of_a_shard(tmp_path, key):
    assert f"shard 1: '{key}' is missing" in damaged(tmp_path, edited(lambda data: data["shards"][1].pop(key)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../../part-00000.bin"},
        {"name": "part-00000.parquet"},
        {"name": "part-00000.bin.tmp-0"},
        {"name": "part-00001.bin"},
        {"tokens": 0, "bytes": 0},
        {"tokens": -1},
        {"tokens": True},
        {"tokens": "5"},
        {"documents": 0},
        {"bytes": 11},
        {"max_id": 300},
        {"max_id": 65536},
        {"index_xxh3_128": None},
        {"sources": [["a", 1]]},
        {"sources": "a"},
        {"continues": 1},
    ],
)
def test_impossible_shard(tmp_path, wrong):
    damaged(tmp_path, edited(lambda data: data["shards"][0].update(wrong)))


@pytest.mark.parametrize(
    "wrong", [{"format": "npy"}, {"dtype": "int8"}, {"shards": [1]}, {"options": []}, {"vocab_size": -1}]
)
def test_impossible_manifest(tmp_path, wrong):
    damaged(tmp_path, edited(lambda data: data.update(wrong)))


class TestOutput:
    def test_new_folder(self, tmp_path):
        assert prepare_output(tmp_path / "a" / "b") == (str(tmp_path / "a" / "b"), True)
        assert not list((tmp_path / "a" / "b").iterdir())
        prepare_output(tmp_path / "a" / "b")

    def test_not_empty(self, tmp_path):
        (tmp_path / "notes.txt").write_text("")
        with pytest.raises(OutputError, match=r"not empty \(it holds 'notes.txt'\)"):
            prepare_output(tmp_path)

    def test_a_file(self, tmp_path):
        (tmp_path / "a").write_text("")
        with pytest.raises(OutputError, match="the output must be a folder"):
            prepare_output(tmp_path / "a")
        with pytest.raises(OutputError, match="cannot make the output folder"):
            prepare_output(tmp_path / "a" / "b")

    def test_unwritable(self):
        with pytest.raises(OutputError):
            prepare_output("/proc/dask_bpe")

    def test_remote(self):
        assert prepare_output("memory://out-manifest/") == ("memory://out-manifest", False)
        MANIFEST.write("memory://out-manifest")
        assert Manifest.read("memory://out-manifest") == MANIFEST
        with pytest.raises(OutputError, match="not empty"):
            prepare_output("memory://out-manifest")
        clear_output("memory://out-manifest")
        prepare_output("memory://out-manifest")
        fsspec.filesystem("memory").rm("/out-manifest", recursive=True)

    def test_clearing_takes_only_what_is_ours(self, tmp_path):
        ours = [
            "part-00000.bin",
            "part-00000.idx",
            "part-123456.parquet.tmp-0a",
            "manifest.json",
            "manifest.json.tmp-1",
        ]
        others = ["part-0.bin", "notes.txt", "part-00000.bin.old", "x-manifest.json"]
        for name in ours + others:
            (tmp_path / name).write_text("")
        clear_output(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)
        clear_output(tmp_path / "missing")
