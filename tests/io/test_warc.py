"""Text from WARC files, and what is said of those that are damaged or hold none."""

from __future__ import annotations

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from input_files import read, record

from dask_bpe.io.inputs import InputFormat

TEXTS = ["one", "", "WARC/1.0\r\n\r\nnot a record", "zwei é\r\n\r\n", "\n\n", "x" * 3000]


INFO = record(b"software: none\r\n", "warcinfo", "application/warc-fields")


def whole_file() -> tuple[bytes, list[tuple[int, str, None]]]:
    """A file of text and other records, and its documents."""
    data, documents = INFO, []
    for text in TEXTS:
        data += record(b"<html>", "response", "application/http")
        documents.append((len(data), text, None))
        data += record(text.encode())
        data += record(b"x: y\r\n", "metadata", "application/warc-fields")
    return data, documents


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("batch_bytes", [1, 100, 8 << 20])
def test_text_records(tmp_path, packed, batch_bytes):
    data, expected = whole_file()
    path = tmp_path / ("a.warc.wet.gz" if packed else "a.warc.wet")
    # As in the wild, every record is a member of its own.
    starts = [0, *(position for position, _, _ in expected), len(data)]
    pieces = [data[start:stop] for start, stop in pairwise(starts)]
    path.write_bytes(b"".join(gzip.compress(piece) for piece in pieces) if packed else data)
    assert read(path, None, None, batch_bytes) == (expected, [])


def test_ids_are_headers(tmp_path):
    path = tmp_path / "a.wet"
    uri = b"WARC-Target-URI: http://host/\xc3\xa9\r\n"
    path.write_bytes(record(b"abc", extra=uri) + record(b"d") + record(b"ef", extra=uri + b" more\r\n"))
    documents, bad = read(path, InputFormat(id_field="WARC-Record-ID"))
    assert [own for _, _, own in documents] == ["<urn:uuid:3>", "<urn:uuid:1>", "<urn:uuid:2>"]
    assert not bad
    documents, bad = read(path, InputFormat(id_field="warc-target-uri"))
    assert [own for _, _, own in documents] == ["http://host/é", "http://host/é more"]
    assert [(one.position, one.reason) for one in bad] == [
        (len(record(b"abc", extra=uri)), "the record has no header 'warc-target-uri'")
    ]


def test_plain_line_ends_and_other_text_records(tmp_path):
    path = tmp_path / "a.wet"
    records = [
        record(b"a", end=b"\n"),
        record(b"b", "resource", "Text/Plain; charset=utf-8"),
        record(b"<p>", "resource", "text/html"),
        record(b"%PDF", "conversion", "application/pdf"),
        record(b"c").replace(b"Content-Type: text/plain\r\n", b"").replace(b"WARC/1.0", b"WARC/1.1"),
    ]
    path.write_bytes(b"".join(records))
    documents, bad = read(path)
    assert [text for _, text, _ in documents] == ["a", "b", "c"]
    assert not bad


def test_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.wet"
    path.write_bytes(record(b"a") + record(b"ab\xff") + record(b"c"))
    documents, bad = read(path)
    assert [text for _, text, _ in documents] == ["a", "c"]
    assert [(one.position, one.reason) for one in bad] == [
        (len(record(b"a")), "byte 2 of the text is not UTF-8 (0xff)")
    ]


def test_file_without_text(tmp_path):
    path = tmp_path / "a.warc"
    path.write_bytes(INFO + 2 * record(b"HTTP/1.1 200", "response", "application/http"))
    documents, bad = read(path)
    assert documents == []
    assert [(one.position, one.reason) for one in bad] == [
        (
            None,
            "holds no text, only records of these types: 2 response, 1 warcinfo; extract their text first, as WET",
        )
    ]
    path.write_bytes(b"")
    assert read(path) == ([], [])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"hello\nworld\n", "not a WARC file: 'WARC/1.0' or the like was expected, not b'hello\\n'"),
        (b"\0" * 2_000_000, "not a WARC file: a header line has more than 1048576 bytes"),
    ],
)
def test_other_files(tmp_path, data, reason):
    path = tmp_path / "a.wet"
    path.write_bytes(data)
    documents, bad = read(path)
    assert documents == []
    assert [(one.position, one.reason) for one in bad] == [(None, reason)]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            b"Content-Length: 3",
            b"Content-Length: 2",
            "after the 2 bytes of its Content-Length two line ends were expected",
        ),
        (b"Content-Length: 3", b"Content-Length: 4", "after the 4 bytes of its Content-Length two line"),
        (b"Content-Length: 3", b"Content-Length: 999999", "it is cut short, "),
        (b"Content-Length: 3", b"Content-Length: x", "its Content-Length is 'x', a number was expected"),
        (b"Content-Length: 3", b"Content-Type: a/b", "its Content-Length is 'missing', a number was expected"),
        (b"Content-Length: 3", b"nonsense", "a header must be a name, a colon and a value"),
    ],
)
def test_damaged_records_cost_the_rest_only(tmp_path, old, new, reason):
    path = tmp_path / "a.wet"
    before = record(b"before") + INFO
    path.write_bytes(before + record(b"abc").replace(old, new) + record(b"after"))
    documents, bad = read(path)
    assert [text for _, text, _ in documents] == ["before"]
    assert [one.position for one in bad] == [len(before)]
    assert bad[0].reason.startswith(f"the record at byte {len(before)} and what follows cannot be read: ")
    assert reason in bad[0].reason


def test_cut_short_anywhere(tmp_path):
    data, expected = whole_file()
    path = tmp_path / "a.wet"
    for cut in range(0, len(data), 5):
        path.write_bytes(data[:cut])
        documents, bad = read(path)
        assert documents == expected[: len(documents)]
        # A document is there or said to be missing: those of which a byte is in the file.
        begun = sum(position < cut for position, _, _ in expected)
        assert len(documents) == begun or (len(bad) == 1 and len(documents) == begun - 1)


@given(st.data())
def test_no_damage_makes_documents(tmp_path_factory, data):
    content, expected = whole_file()
    altered = bytearray(content)
    at = data.draw(st.integers(0, len(content) - 1))
    altered[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "altered.wet"
    path.write_bytes(altered)
    documents, _ = read(path)
    # Before the damage all is as it was.
    before = [one for one in expected if one[0] + len(record(one[1].encode())) <= at]
    assert documents[: len(before)] == before


@pytest.mark.peers
def test_as_fastwarc_reads(tmp_path):
    warc = pytest.importorskip("fastwarc.warc")
    data, expected = whole_file()
    path = tmp_path / "a.wet"
    path.write_bytes(data)
    with path.open("rb") as file:
        records = warc.ArchiveIterator(file, parse_http=False, record_types=warc.WarcRecordType.conversion)
        theirs = [(one.stream_pos, one.reader.read().decode(), None) for one in records]
    assert theirs == expected == read(path)[0]
