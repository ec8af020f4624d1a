"""Documents of Parquet and Arrow IPC: every row once, whatever the ranges, and what is bad listed."""

from __future__ import annotations

import gzip
import random

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from input_files import HARD_TEXTS, parquet_of, read, texts_of, tilings, write_arrow

from dask_bpe.errors import InputError
from dask_bpe.io.inputs import InputFormat, read_documents

TEXT_TYPES = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string())),
]


def as_type(texts: list[str | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(texts, kind.value_type).dictionary_encode().cast(kind)
    return pa.array([None if text is None else text.encode() for text in texts], pa.binary()).cast(kind)


# Parquet has no views.
FORMS = [
    (form, kind)
    for kind in TEXT_TYPES
    for form in ("parquet", "arrow", "stream")
    if form != "parquet" or "view" not in str(kind)
]


@pytest.mark.parametrize(("form", "kind"), FORMS, ids=str)
def test_tables_of_all_types(tmp_path, form, kind):
    texts = [*HARD_TEXTS, None, *("again" for _ in range(5)), None, *(f"n{k}" for k in range(90))]
    path = tmp_path / ("a.parquet" if form == "parquet" else "a.arrow")
    chunks = [as_type(texts[:7], kind), as_type(["left out", *texts[7:]], kind)[1:]]
    column = pa.chunked_array(chunks) if not pa.types.is_dictionary(kind) else as_type(["left out", *texts], kind)[1:]
    write_arrow(path, pa.table({"n": range(len(texts)), "text": column}), form, 40)
    expected = [(row, text, None) for row, text in enumerate(texts) if text is not None]
    for batch_bytes in (1, 50, 8 << 20):
        documents, bad = read(path, None, None, batch_bytes)
        assert documents == expected
        assert [one.position for one in bad] == [row for row, text in enumerate(texts) if text is None]
        assert {one.reason for one in bad} == {"the column 'text' is null in this row"}


@given(st.data())
def test_parquet_equals_its_rows_in_any_tiling(tmp_path_factory, data):
    texts = data.draw(st.lists(st.one_of(st.none(), st.sampled_from(HARD_TEXTS), st.text(max_size=20)), max_size=40))
    path = tmp_path_factory.getbasetemp() / "tiled.parquet"
    table = pa.table({"id": pa.array(range(len(texts))), "text": pa.array(texts, pa.string())})
    options = data.draw(st.fixed_dictionaries({"use_dictionary": st.booleans(), "data_page_size": st.just(64)}))
    pq.write_table(table, path, row_group_size=data.draw(st.integers(1, 12)), **options)
    expected = [(row, text, str(row)) for row, text in enumerate(texts) if text is not None]
    ranges = data.draw(tilings(path.stat().st_size))
    documents, bad = read(path, InputFormat(id_field="id"), ranges, data.draw(st.integers(1, 100)))
    assert documents == expected
    assert [one.position for one in bad] == [row for row, text in enumerate(texts) if text is None]


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_columns_in_structs(tmp_path, form):
    rows = [{"b": "x", "c": 1}, None, {"b": None, "c": 1}, {"b": "y", "c": 2}]
    path = tmp_path / ("a.parquet" if form == "parquet" else "a.arrow")
    kind = pa.struct([("b", pa.string()), ("c", pa.int32())])
    write_arrow(path, pa.table({"a": pa.array(rows, kind), "z": [0] * 4}), form)
    documents, bad = read(path, InputFormat(column="a.b"))
    assert documents == [(0, "x", None), (3, "y", None)]
    assert [one.position for one in bad] == [1, 2]
    documents, bad = read(path, InputFormat(field="a.b", id_field="a.c"))
    assert documents == [(0, "x", "1"), (3, "y", "2")]
    assert [one.position for one in bad] == [1, 2]
    write_arrow(path, pa.table({"a": pa.array(rows, kind), "a.b": ["1", "2", "3", "4"]}), form)
    assert texts_of(read(path, InputFormat(column="a.b"))[0]) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_ids_of_tables(tmp_path, form):
    path = tmp_path / ("a.parquet" if form == "parquet" else "a.arrow")
    texts = ["a", "b", None, "d"]
    for ids, expected in (
        (pa.array(["x", None, "z", "é"]), [(0, "a", "x"), (3, "d", "é")]),
        (pa.array([1, None, 3, 2**64 - 1], pa.uint64()), [(0, "a", "1"), (3, "d", str(2**64 - 1))]),
        (pa.array(["x", None, "z", "x"]).dictionary_encode(), [(0, "a", "x"), (3, "d", "x")]),
    ):
        write_arrow(path, pa.table({"text": texts, "key": ids}), form)
        documents, bad = read(path, InputFormat(id_field="key"))
        assert documents == expected
        assert sorted((one.position, one.reason) for one in bad) == [
            (1, "the column 'key' is null in this row"),
            (2, "the column 'text' is null in this row"),
        ]


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_text_that_is_not_utf8_in_a_table(tmp_path, form):
    path = tmp_path / ("a.parquet" if form == "parquet" else "a.arrow")
    halves = [b"ok", b"\xc3", b"\xa9", b"\xff", "é".encode()]  # together the first halves would be valid
    for column in (pa.array(halves), pa.array(halves).view(pa.string())):
        write_arrow(path, pa.table({"text": column}), form)
        documents, bad = read(path)
        assert documents == [(0, "ok", None), (4, "é", None)]
        assert [(one.position, one.reason) for one in bad] == [
            (row, "the column 'text' is not UTF-8 in this row") for row in (1, 2, 3)
        ]


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_tables_without_the_column(tmp_path, form):
    path = tmp_path / ("a.parquet" if form == "parquet" else "a.arrow")
    write_arrow(path, pa.table({"a": ["x"], "b": [1], "f": [1.5], "l": [["x"]]}), form)
    size = path.stat().st_size
    for how, reason in (
        (InputFormat(), "no column, or more than one, is named 'text'; there are: 'a', 'b', 'f', 'l'"),
        (InputFormat(column="b"), "the column 'b' is of type int64: strings were expected"),
        (InputFormat(column="l"), "the column 'l' is of type list<"),
        (
            InputFormat(column="a", id_field="f"),
            "the column 'f' is of type double: strings or whole numbers were expected",
        ),
    ):
        ranges = [0, 0, 5, size] if form == "parquet" else None
        documents, bad = read(path, how, ranges)
        assert documents == []
        assert [(one.position, one.line) for one in bad] == [(None, None)]
        assert bad[0].reason.startswith(reason)


def test_text_shared_by_many_rows_is_not_laid_out_at_once(tmp_path):
    path = tmp_path / "a.arrow"
    long = "x" * 100_000
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int8()), pa.array([long]))
    write_arrow(path, pa.table({"text": column}), "arrow", 10_000)
    size = path.stat().st_size
    n = 0
    for batch in read_documents(str(path), 0, size, size, InputFormat(), 1 << 20):
        assert len(batch.values) <= 1 << 20
        n += len(batch)
    assert n == 2000


def test_parquet_with_a_damaged_row_group_keeps_the_others(tmp_path):
    texts = [f"{k} {random.Random(k).random()}" for k in range(100)]
    content, metadata = parquet_of(texts, 25)
    data = bytearray(content)
    data[metadata.row_group(1).column(0).dictionary_page_offset + 60] ^= 0xFF
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    for ranges in (None, [0, 4, metadata.row_group(2).column(0).dictionary_page_offset, len(data)]):
        documents, bad = read(path, None, ranges)
        assert documents == [(row, texts[row], None) for row in [*range(25), *range(50, 100)]]
        assert [one.position for one in bad] == [25]
        assert bad[0].reason.startswith("rows 25 to 49 (row group 1) cannot be read: ")


@pytest.mark.parametrize("cut", [1, 4, 8, 50, -1])
def test_parquet_with_a_bad_footer(tmp_path, cut):
    content, _ = parquet_of(["a", "b"], 1)
    path = tmp_path / "a.parquet"
    path.write_bytes(content[:-cut] if cut > 0 else b"")
    size = path.stat().st_size
    documents, bad = read(path, None, [0, size // 2, size] if size else None)
    assert documents == []
    assert [(one.position, one.reason.startswith("not a whole Parquet file: ")) for one in bad] == [(None, True)]


def test_parquet_that_changed(tmp_path):
    content, _ = parquet_of(["a", "b"], 1)
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match="file changed while being read"):
        list(read_documents(str(path), 0, 10, 10, InputFormat()))


@given(st.data())
def test_damaged_tables_never_lose_rows_unseen(tmp_path_factory, data):
    """Whatever byte is altered: no crash, and the rows that are missing are said to be."""
    form = data.draw(st.sampled_from(["parquet", "arrow", "stream"]))
    path = tmp_path_factory.getbasetemp() / ("altered.parquet" if form == "parquet" else "altered.arrow")
    write_arrow(path, pa.table({"text": [f"text {k}" for k in range(40)]}), form, 10)
    content = bytearray(path.read_bytes())
    # Not the footer of Parquet: Arrow itself ends the process for some bytes that are altered there.
    n_footer = 8 + int.from_bytes(content[-8:-4], "little") if form == "parquet" else 0
    content[data.draw(st.integers(0, len(content) - n_footer - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    documents, bad = read(path)
    rows = [position for position, _, _ in documents]
    assert rows == sorted(set(rows))
    assert bad or len(rows) == 40 or form == "parquet"


@pytest.mark.parametrize("form", ["arrow", "stream"])
def test_arrow_cut_short_anywhere(tmp_path, form):
    path = tmp_path / "a.arrow"
    texts = [f"text {k}" for k in range(40)]
    write_arrow(path, pa.table({"text": texts}), form, 10)
    content = path.read_bytes()
    for cut in range(0, len(content) - 1, 7):
        path.write_bytes(content[:cut])
        documents, bad = read(path)
        assert documents == [(row, texts[row], None) for row in range(len(documents))]
        assert len(bad) == 1
        assert bad[0].position in (None, len(documents))
    path.write_bytes(content + content)
    assert len(read(path)[1]) == 1


@pytest.mark.parametrize("form", ["arrow", "stream"])
def test_compressed_arrow(tmp_path, form):
    path = tmp_path / "a.arrow"
    texts = [f"text {k}" for k in range(1000)]
    write_arrow(path, pa.table({"text": texts}), form, 300)
    packed = tmp_path / "a.arrow.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert texts_of(read(packed)[0]) == texts
    packed.write_bytes(gzip.compress(path.read_bytes())[:-9])
    documents, bad = read(packed)
    assert texts_of(documents) == texts[: len(documents)]
    assert "the gzip data is damaged or cut short" in bad[0].reason


def test_feather_with_compressed_buffers(tmp_path):
    path = tmp_path / "a.feather"
    pa.feather.write_feather(pa.table({"text": ["a", "b" * 10_000], "z": [1, 2]}), path, compression="zstd")
    assert texts_of(read(path)[0]) == ["a", "b" * 10_000]


def test_parquet_inside_gzip_is_refused(tmp_path):
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(gzip.compress(parquet_of(["a"], 1)[0]))
    documents, bad = read(path)
    assert documents == []
    assert bad[0].reason == "Parquet inside gzip cannot be read, only from its end; decompress the file first"
