"""Documents of JSON Lines: as Python reads every line, whatever the ranges, and what is bad listed."""

from __future__ import annotations

import gzip
import json
import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from input_files import HARD_TEXTS, compress, read, texts_of, tilings

from dask_bpe.io.inputs import InputFormat, json_line, json_long, jsonl, read_documents


def naive_jsonl(data: bytes, field: str, id_field: str | None) -> tuple[list, list[tuple[int, int]]]:
    """The twin: Python's own parser on every line; of what is bad, position and line."""
    documents, bad = [], []
    position = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            record = json.loads(line.removeprefix(b"\xef\xbb\xbf" if position == 0 else b"").decode())
            text, own = record[field], None if id_field is None else record[id_field]
            if (
                not isinstance(text, str)
                or isinstance(own, bool | float | list | dict)
                or (own is None) != (not id_field)
            ):
                raise ValueError
            (text + str(own)).encode()
            documents.append((position, text, None if own is None else str(own)))
        except (ValueError, KeyError, TypeError):
            if line.strip(b" \t\r\xef\xbb\xbf"):
                bad.append((position, number))
        position += len(line) + 1
    return documents, bad


json_texts = st.one_of(st.sampled_from(HARD_TEXTS), st.text(max_size=30))
json_records = st.one_of(
    st.fixed_dictionaries({"text": json_texts, "id": st.one_of(st.integers(), st.text(max_size=5))}),
    st.fixed_dictionaries({"id": st.integers(0, 9), "text": json_texts, "score": st.just(math.nan)}),
    st.fixed_dictionaries({}, optional={"text": st.sampled_from([None, 3, "ok", ["x"]]), "id": st.just(2.5)}),
)
json_lines = st.one_of(
    st.builds(
        lambda record, ascii_only: json.dumps(record, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"),
        json_records,
        st.booleans(),
    ),
    st.sampled_from([b"", b"  ", b"\r", b"{", b"[]", b"3", b"null", b'{"text": "\xff", "id": 1}', b'"text"', b"{}x"]),
    st.sampled_from([b'{"text": "\\ud83d", "id": 1}', b'{"text": "a", "id": "\\udc00"}', b'{"text":"","id":null}']),
    st.sampled_from([b'{"id": 99999999999999999999999, "text": "t"}', b'{"text": "\x00", "id": 1}']),
)
json_files = st.builds(
    lambda bom, lines, end, last: bom + end.join(lines) + last,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(json_lines, max_size=12),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n", b"\n\n"]),
)


@given(st.data())
def test_jsonl_equals_its_twin_in_any_tiling(tmp_path_factory, data):
    content = data.draw(json_files)
    path = tmp_path_factory.getbasetemp() / "tiled.jsonl"
    path.write_bytes(content)
    id_field = data.draw(st.sampled_from([None, "id"]))
    how = InputFormat(id_field=id_field)
    expected, expected_bad = naive_jsonl(content, "text", id_field)
    batch_bytes = data.draw(st.integers(1, 200))
    documents, bad = read(path, how, data.draw(tilings(len(content))), batch_bytes)
    assert documents == expected
    assert [one.position for one in bad] == [position for position, _ in expected_bad]
    documents, bad = read(path, how, None, batch_bytes)
    assert documents == expected
    assert [(one.position, one.line) for one in bad] == expected_bad
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(content, 1))
    documents, bad = read(packed, how, None, batch_bytes)
    assert documents == expected
    assert [(one.position, one.line) for one in bad] == expected_bad


def test_jsonl_in_every_pair_of_ranges(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "_BEYOND", 3)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\n{"text": "one"}\n\n{"text": "two"}\nbad\n{"text": "three"}')
    whole, bad = read(path)
    assert texts_of(whole) == ["one", "two", "three"]
    assert [(one.position, one.line) for one in bad] == [(34, 5)]
    size = path.stat().st_size
    for first in range(size + 1):
        for second in range(first, size + 1):
            for batch_bytes in (1, 20):
                documents, found = read(path, None, [0, first, second, size], batch_bytes)
                assert documents == whole
                assert [one.position for one in found] == [34]
                assert found[0].line in (5, None)
    documents, found = read(path, None, [0, 20, size])
    assert (found[0].position, found[0].line) == (34, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a"', "malformed JSON: "),
        (b'{"text": "a\xffb"}', "malformed JSON: byte 11 of the line is not UTF-8 (0xff)"),
        (b'{"text": "\xed\xa0\x80"}', "malformed JSON: byte 10 of the line is not UTF-8 (0xed)"),
        (b"[1]", "the line is an array: an object was expected"),
        (b'"x"', "the line is a string: an object was expected"),
        (b"{}", "the field 'text' is missing"),
        (b'{"text": null}', "the field 'text' is null: a string was expected"),
        (b'{"text": 3}', "the field 'text' is a number: a string was expected"),
        (b'{"text": {"a": "b"}}', "the field 'text' is an object: a string was expected"),
        (b'{"text": "a\\udc80"}', "the field 'text' holds half a surrogate pair (\\udc80), which is no character"),
        (b"[" * 100_000, "malformed JSON: brackets are nested too deeply"),
        (b'{"text": "a\tb"}', "malformed JSON: "),
    ],
)
def test_reasons_of_bad_lines(tmp_path, line, reason):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n')
    documents, bad = read(path)
    assert texts_of(documents) == ["before", "after"]
    assert [(one.source, one.position, one.line) for one in bad] == [(str(path), 19, 2)]
    assert bad[0].reason.startswith(reason)


def test_what_orjson_refuses_beside_the_text_loses_no_document(tmp_path):
    lines = [
        b'{"score": NaN, "text": "a"}',
        b'{"text": "b", "score": -Infinity}',
        b'{"text": "c", "title": "\\ud800"}',
        b'{"text": "d", "n": 1e999}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    documents, bad = read(path)
    assert (texts_of(documents), bad) == (["a", "b", "c", "d"], [])


@pytest.mark.parametrize(
    ("field", "record", "text"),
    [
        ("a.b", {"a": {"b": "x"}}, "x"),
        ("a.b", {"a": {"b": "x"}, "a.b": "y"}, "y"),
        ("a.b.c", {"a": {"b.c": "x"}}, "x"),
        ("a.b.c", {"a.b": {"c": "y"}, "a": {"b": {"c": "x"}}}, "y"),
        ("a.b.c", {"a.b": {"d": "y"}, "a": {"b": {"c": "x"}}}, "x"),
        ("a.b", {"a": "b"}, None),
        ("a.b", {"a": {"c": "x"}}, None),
        (".", {"": {"": "x"}}, "x"),
    ],
)
def test_dotted_fields(tmp_path, field, record, text):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(record))
    documents, bad = read(path, InputFormat(field=field))
    assert texts_of(documents) == ([] if text is None else [text])
    assert [one.reason for one in bad] == ([f"the field {field!r} is missing"] if text is None else [])


def test_ids(tmp_path):
    values = ["a", 7, -3, 2**64, 10**40, "", None, True, 2.0, 1.5, [1]]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": "t", "meta": {"id": value}}) for value in values) + '\n{"text": "t"}')
    documents, bad = read(path, InputFormat(id_field="meta.id"))
    assert [own for _, _, own in documents] == ["a", "7", "-3", str(2**64), str(10**40), ""]
    assert [one.line for one in bad] == [7, 8, 9, 10, 11, 12]
    assert bad[0].reason == "the field 'meta.id' is null: a string or a whole number was expected as id"
    assert bad[-1].reason == "the field 'meta.id' is missing"


@given(st.data())
@example(data=None)
def test_long_lines_are_read_as_short_ones(data):
    if data is None:
        line = json.dumps({"text": "\\😀" * 40 + "中é" * 9, "id": 'q"'}).encode()
    else:
        line = data.draw(json_lines)
    for piece in (16, 17, 23, 64):
        for id_field in (None, "id"):
            try:
                expected = json_line.text_and_id(line, "text", id_field)
            except json_line.Unreadable:
                with pytest.raises(json_line.Unreadable):
                    json_long.text_and_id(line, "text", id_field, long_string=8, piece=piece)
                continue
            try:
                text, own = json_long.text_and_id(line, "text", id_field, long_string=8, piece=piece)
            except json_line.Unreadable as error:
                # An id may be too long here, with its escapes.
                assert "which is no id" in str(error)
                assert id_field is not None
                continue
            assert (text.tobytes(), own) == expected


escaped = st.lists(
    st.sampled_from(["\\\\", "\\n", '\\"', "\\u0041", "\\u4e2d", "\\ud83d\\ude00", "u", "d83d", "é", "中", "😀", "a"]),
    max_size=60,
)


@given(escaped, st.integers(16, 40))
def test_pieces_of_a_long_text_cut_no_escape(units, piece):
    line = ('{"other": "' + "\\\\u" * 9 + '", "text": "' + "".join(units) + '"}').encode()
    text, _ = json_long.text_and_id(line, "text", None, long_string=8, piece=piece)
    assert text.tobytes().decode() == json.loads(line)["text"]


def test_long_line_among_others(tmp_path, monkeypatch):
    monkeypatch.setattr(json_long, "LONG_LINE", 5000)
    rng = random.Random(0)
    long = "".join(rng.choice(['"', "\\", "ab ", "é", "😀", "\n"]) for _ in range(20_000))
    lines = [json.dumps({"text": text, "id": k}) for k, text in enumerate(["a", long, "b", "c", long, long, "d"])]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    for batch_bytes in (100, 1000, 1 << 20):
        documents, bad = read(path, InputFormat(id_field="id"), None, batch_bytes)
        assert texts_of(documents) == ["a", long, "b", "c", long, long, "d"]
        assert [own for _, _, own in documents] == list("0123456")
        assert not bad
    path.write_text("\n".join([lines[0], lines[1][:-20], lines[2]]))
    documents, bad = read(path, None, None, 100)
    assert texts_of(documents) == ["a", "b"]
    assert [(one.line, one.reason) for one in bad] == [(2, "malformed JSON: a string has no end")]


def test_batches_are_about_as_large_as_asked_for(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": "x" * (50_000 if k == 500 else 100)}) for k in range(1000)))
    size = path.stat().st_size
    batches = list(read_documents(str(path), 0, size, size, InputFormat(), 5000))
    assert max(len(batch.values) for batch in batches if len(batch) > 1) < 10_000
    assert [len(batch) for batch in batches if len(batch.values) >= 50_000] == [1]


@pytest.mark.parametrize("suffix", ["gz", "zst", "xz", "bz2", "lz4"])
def test_jsonl_cut_short_keeps_what_comes_before(tmp_path, suffix):
    texts = [f"{k} {random.Random(k).random()}" for k in range(5000)]
    data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    path = tmp_path / f"a.jsonl.{suffix}"
    packed = compress(data, InputFormat.compression_of(str(path)))
    path.write_bytes(packed + packed[: len(packed) // 2])
    documents, bad = read(path)
    assert texts_of(documents)[:5000] == texts
    assert texts_of(documents)[5000:] == texts[: len(documents) - 5000]
    assert len(bad) == 1
    assert bad[0].line == len(documents) + 1
    assert bad[0].position == documents[-1][0] + len(json.dumps({"text": documents[-1][1]})) + 1
    assert "data is damaged or cut short" in bad[0].reason
    assert str(path) not in bad[0].reason
