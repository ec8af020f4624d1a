"""The manifest survives nothing but being whole."""

import json
from dataclasses import replace

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.errors import ShardError
from dask_bpe.io import records
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.shards import File, Shard, Span

SHARD = Shard(
    name="part-00000.bin",
    tokens=5,
    documents=2,
    max_id=7,
    files=(
        File("part-00000.bin", 10, "a" * 32),
        File("part-00000.idx", 24, "b" * 32),
        File("part-00000.docs.parquet", 900, "c" * 32),
    ),
    sources=(Span("/text/é\udcff.txt", 0, 20),),
    continues=False,
    open_end=True,
)
NEXT = replace(
    SHARD,
    name="part-00001.bin",
    files=tuple(replace(file, name=file.name.replace("0.", "1.")) for file in SHARD.files),
    continues=True,
    open_end=False,
    max_id=9,
)
MANIFEST = Manifest(
    "bin",
    "uint16",
    "c" * 64,
    300,
    {"errors": "replace", "separator": None},
    (SHARD, NEXT),
    {"bytes": 40, "documents": 3, "invalid": 0, "quarantined": 1},
    {"end": {"text": "<|é|>", "id": 299, "count": 3}},
)


def test_round_trip(tmp_path):
    path = MANIFEST.write(tmp_path)
    assert path == str(tmp_path / "manifest.json")
    assert Manifest.read(tmp_path) == MANIFEST
    assert (tmp_path / "manifest.json").read_text() == MANIFEST.to_json()
    assert len(list(tmp_path.iterdir())) == 1


def test_one_shard_a_line():
    lines = MANIFEST.to_json().splitlines()
    assert [line.strip().rstrip(",") for line in lines[-4:-2]] == [
        json.dumps(shard) for shard in json.loads(MANIFEST.to_json())["shards"]
    ]


def test_a_remote_folder():
    MANIFEST.write("memory://manifest")
    assert Manifest.read("memory://manifest/") == MANIFEST
    fsspec.filesystem("memory").rm("/manifest", recursive=True)


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
    return json.dumps(data | {"sha256": records.digest(content)})


def test_missing(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ShardError, match=r"no manifest\.json"):
            Manifest.read(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", b"\xff", '{"kind": "other"}', MANIFEST.to_json()[:-10]])
def test_not_a_manifest(tmp_path, text):
    damaged(tmp_path, text)


def test_other_version(tmp_path):
    text = MANIFEST.to_json().replace('"version": 3', '"version": 2')
    assert "it has version 2; this dask_bpe reads version 3" in damaged(tmp_path, text)


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


@pytest.mark.parametrize("key", ["format", "dtype", "vocabulary", "vocab_size", "options", "shards", "text", "marks"])
def test_missing_field(tmp_path, key):
    assert f"'{key}' is missing" in damaged(tmp_path, edited(lambda data: data.pop(key)))


@pytest.mark.parametrize("key", ["version", "sha256"])
def test_missing_field_of_the_record(tmp_path, key):
    data = json.loads(MANIFEST.to_json())
    del data[key]
    assert f"'{key}' is missing" in damaged(tmp_path, json.dumps(data))


@pytest.mark.parametrize("key", ["bytes", "documents", "invalid", "quarantined"])
def test_missing_field_of_the_text(tmp_path, key):
    assert f"text: '{key}' is missing" in damaged(tmp_path, edited(lambda data: data["text"].pop(key)))


@pytest.mark.parametrize("key", ["text", "id", "count"])
def test_missing_field_of_a_mark(tmp_path, key):
    assert f"mark 'end': '{key}' is missing" in damaged(tmp_path, edited(lambda data: data["marks"]["end"].pop(key)))


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
        {"tokens": 0, "files": [["part-00000.bin", 0, "a"], ["part-00000.idx", 24, "b"]]},
        {"tokens": 0},
        {"tokens": 6},
        {"tokens": -1},
        {"tokens": True},
        {"tokens": "5"},
        {"documents": 0},
        {"files": []},
        {"files": [["part-00000.bin", 10, "a"], ["part-00000.idx", 24, "b"]]},
        {"files": [["part-00000.bin", 11, "a"], ["part-00000.idx", 24, "b"], ["part-00000.docs.parquet", 9, "c"]]},
        {"files": [["part-00000.bin", 10, "a"], ["part-00001.idx", 24, "b"], ["part-00000.docs.parquet", 9, "c"]]},
        {"files": [["part-00000.bin", 10, 3], ["part-00000.idx", 24, "b"], ["part-00000.docs.parquet", 9, "c"]]},
        {"files": [["part-00000.bin", "10", "a"], ["part-00000.idx", 24, "b"], ["part-00000.docs.parquet", 9, "c"]]},
        {"files": "a"},
        {"max_id": 300},
        {"max_id": 65536},
        {"sources": [["a", 1]]},
        {"sources": "a"},
        {"continues": 1},
    ],
)
def test_impossible_shard(tmp_path, wrong):
    damaged(tmp_path, edited(lambda data: data["shards"][0].update(wrong)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "npy"},
        {"dtype": "int8"},
        {"shards": [1]},
        {"options": []},
        {"vocab_size": -1},
        {"text": []},
        {"text": {"bytes": -1}},
        {"marks": []},
        {"marks": {"end": 3}},
        {"marks": {"end": {"text": "x", "id": "y", "count": 3}}},
        {"marks": {"end": {"text": "x", "id": 1, "count": -3}}},
    ],
)
def test_impossible_manifest(tmp_path, wrong):
    damaged(tmp_path, edited(lambda data: data.update(wrong)))
