"""A record is whole, or it is refused."""

import json

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.io import records
from dask_bpe.io.records import DamageError, take

KIND, VERSION = "a.kind", 4
CONTENT = {"name": "é\udcff", "count": 12, "nested": {"b": [1, None], "a": True}, "items": [{"x": 1}, [2, "three"]]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4), st.lists(json_values, max_size=4))
def test_round_trip(tmp_path_factory, content, items):
    content = {key: value for key, value in content.items() if key not in ("kind", "version", "sha256")}
    content.pop("items", None)
    content["items"] = items
    path = str(tmp_path_factory.mktemp("record") / "a.json")
    records.write(path, KIND, VERSION, content)
    assert records.read(path, KIND, VERSION) == content


def test_an_item_a_line():
    text = records.to_text(KIND, VERSION, CONTENT)
    assert text.splitlines()[-5:] == [' "items": [', '  {"x": 1},', '  [2, "three"]', " ]", "}"]
    assert list(json.loads(text)) == ["kind", "version", "sha256", *CONTENT]


def test_the_order_of_keys_does_not_matter():
    assert records.digest({"a": 1, "b": {"c": 2, "d": 3}}) == records.digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert records.digest({"a": 1}) != records.digest({"a": 2})


@given(st.integers(0, 1000), st.integers(1, 255))
def test_any_damaged_byte_is_noticed(tmp_path_factory, place, change):
    path = tmp_path_factory.mktemp("damage") / "a.json"
    records.write(str(path), KIND, VERSION, CONTENT)
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= change
    path.write_bytes(data)
    try:
        found = records.read(str(path), KIND, VERSION)
    except DamageError as error:
        assert "\n" not in str(error)
        return
    # Spaces between the parts may change.
    assert found == CONTENT
    assert json.loads(path.read_bytes()) == json.loads(records.to_text(KIND, VERSION, CONTENT))


@given(st.integers(0, 1000))
def test_any_end_is_missed(tmp_path_factory, length):
    path = tmp_path_factory.mktemp("cut") / "a.json"
    records.write(str(path), KIND, VERSION, CONTENT)
    data = path.read_bytes()
    path.write_bytes(data[: length % (len(data) - 2)])
    with pytest.raises(DamageError, match=r"damaged: not (JSON|UTF-8)"):
        records.read(str(path), KIND, VERSION)


def test_what_is_no_such_record(tmp_path):
    path = tmp_path / "a.json"
    text = records.to_text(KIND, VERSION, CONTENT)
    cases = {
        "[1]": "its kind is not 'a.kind'",
        "null": "its kind is not 'a.kind'",
        text.replace(KIND, "b.kind"): "its kind is not 'a.kind'",
        text.replace('"version": 4', '"version": 5'): "it has version 5; this dask_bpe reads version 4",
        text.replace('"version": 4', '"version": "4"'): "'version' is '4'",
        text.replace('"sha256"', '"sha255"'): "'sha256' is missing",
        text.replace('"count": 12', '"count": 13'): "its checksum does not match its content",
        "\xff": "not JSON",
    }
    for written, message in cases.items():
        path.write_bytes(written.encode())
        with pytest.raises(DamageError, match=message):
            records.read(str(path), KIND, VERSION)
    path.write_bytes(b'{"kind": "\xff"}')
    with pytest.raises(DamageError, match="not UTF-8 at byte 10"):
        records.read(str(path), KIND, VERSION)
    with pytest.raises(FileNotFoundError):
        records.read(str(tmp_path / "missing.json"), KIND, VERSION)


@pytest.mark.parametrize(
    ("value", "kind"), [(-1, int), (True, int), (1.0, int), ("1", int), (None, str), (1, bool), ({}, list), ([], dict)]
)
def test_a_value_of_another_type(value, kind):
    with pytest.raises(DamageError, match="damaged: shard 3: 'a' is "):
        take({"a": value}, "a", kind, "shard 3: ")


def test_a_value_of_the_type():
    data = {"n": 0, "s": "", "b": False, "l": [], "d": {}}
    assert [take(data, key, kind) for key, kind in zip(data, (int, str, bool, list, dict), strict=True)] == [
        *data.values()
    ]
    with pytest.raises(DamageError, match="damaged: 'x' is missing"):
        take(data, "x", int)


def test_remote():
    records.write("memory://records/a.json", KIND, VERSION, CONTENT)
    assert records.read("memory://records/a.json", KIND, VERSION) == CONTENT
    with pytest.raises(FileNotFoundError):
        records.read("memory://records/b.json", KIND, VERSION)
    fsspec.filesystem("memory").rm("/records", recursive=True)
