"""Documents that cannot be read are left out as a whole, listed, and counted; the good ones go on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import dask.bag
import pytest
from asserts import assert_encoded, trained_on
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

import dask_bpe
from dask_bpe import EncodeReport
from dask_bpe.errors import InputError, OutputError

END = "<|endoftext|>"
TOKENIZER = trained_on(["one two three four five six, the end of the text"], [END])

good_pieces = st.sampled_from([" the", "x", "one two ", "自君", "😀", "\n", "end of"]).map(str.encode)
bad_pieces = st.sampled_from([b"\xff", b"\xe2\x82", b"\x80", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98 "])
documents_drawn = st.lists(st.lists(good_pieces | bad_pieces, max_size=6).map(b"".join), max_size=7)


def is_text(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return False
    return True


def first_invalid(document: bytes) -> int:
    try:
        document.decode()
    except UnicodeDecodeError as error:
        return error.start
    raise AssertionError("it is UTF-8")


def quarantined(out: Path) -> list[dict[str, Any]]:
    path = out / "quarantine.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def expected_bad(path: Path, documents: list[bytes]) -> list[tuple[str, int, str]]:
    """Where the bad documents of a file begin, and what is said of them."""
    found, at = [], 0
    for document in documents:
        if not is_text(document):
            place = first_invalid(document)
            said = (
                f"byte {at + place} is not UTF-8 (0x{document[place]:02x}): mend it, or use errors='replace' or 'skip'"
            )
            found.append((str(path), at, said))
        at += len(document) + len(END)
    return found


def assert_quarantined(out: Path, report: EncodeReport, expected: list[tuple[str, int, str]]) -> None:
    found = quarantined(out)
    assert [(item["source"], item["position"], item["reason"]) for item in found] == expected
    assert all(item["line"] is None for item in found)
    assert report.n_quarantined == len(expected)
    assert dask_bpe.open_tokens(out).manifest.text["quarantined"] == len(expected)
    assert (out / "quarantine.jsonl").exists() == bool(expected)


@given(
    files=st.lists(documents_drawn, min_size=1, max_size=3),
    block_bytes=st.one_of(st.none(), st.integers(1, 40)),
    fmt=st.sampled_from(["bin", "parquet"]),
    shard_tokens=st.integers(1, 40),
)
@example([[b"\xff", b"good", b"a\xff"], [b"x\x80"]], 3, "bin", 1)
@example([[b"one two three \xff four five six", b"x"]], 4, "bin", 100)
@examples(0.8)
def test_files_in_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[bytes]],
    block_bytes: int | None,
    fmt: str,
    shard_tokens: int,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "text").mkdir()
    files = [*files, [b"something good"]]
    bad = []
    for number, documents in enumerate(files):
        path = folder / "text" / f"{number}.txt"
        # Every file ends with a separator: an empty last document would be none without it.
        path.write_bytes(b"".join(document + END.encode() for document in documents))
        bad += expected_bad(path, documents)
    report = dask_bpe.encode_corpus(
        folder / "text",
        TOKENIZER,
        folder / "out",
        fmt,
        errors="strict",
        block_bytes=block_bytes,
        shard_tokens=shard_tokens,
    )
    good = [document for documents in files for document in documents if is_text(document)]
    assert_encoded(folder / "out", [document.decode() + END for document in good], TOKENIZER, END)
    assert report.n_documents == len(good)
    assert report.n_invalid == 0
    assert_quarantined(folder / "out", report, bad)


@given(documents=documents_drawn, size=st.integers(1, 40))
@examples(0.4)
def test_compressed_files(tmp_path_factory: pytest.TempPathFactory, documents: list[bytes], size: int) -> None:
    documents = [*documents, b"something good"]
    folder = tmp_path_factory.mktemp("any")
    path = folder / "text.gz"
    path.write_bytes(gzip.compress(b"".join(document + END.encode() for document in documents), 1))
    report = dask_bpe.encode_corpus(path, TOKENIZER, folder / "out", errors="strict", block_bytes=size)
    good = [document.decode() + END for document in documents if is_text(document)]
    assert_encoded(folder / "out", good, TOKENIZER, END)
    assert_quarantined(folder / "out", report, expected_bad(path, documents))


@pytest.mark.parametrize("partitions", [1, 2])
def test_documents_of_a_bag(partitions: int, tmp_path: Path) -> None:
    documents = [b"good", b"bad \xff", b"", b"\x80", b"good too"]
    bag = dask.bag.from_sequence(documents, npartitions=partitions)
    report = dask_bpe.encode_corpus(bag, TOKENIZER, tmp_path / "out", errors="strict")
    assert_encoded(tmp_path / "out", [text + END for text in ("good", "", "good too")], TOKENIZER, END)
    assert report.n_documents == 3
    said = "byte {} of its text is not UTF-8 (0x{}): mend it, or use errors='replace' or 'skip'"
    # from_sequence gives the first partition three of five.
    places = [("partition 0", 1), ("partition 0", 3) if partitions == 1 else ("partition 1", 0)]
    reasons = [said.format(4, "ff"), said.format(0, "80")]
    assert_quarantined(
        tmp_path / "out", report, [(*place, reason) for place, reason in zip(places, reasons, strict=True)]
    )


def test_the_same_for_an_iterable(tmp_path: Path) -> None:
    report = dask_bpe.encode_corpus(iter([b"a\xff", "b"]), TOKENIZER, tmp_path / "out", errors="strict")
    assert [(item["source"], item["position"]) for item in quarantined(tmp_path / "out")] == [("documents", 0)]
    assert (report.n_documents, report.n_quarantined) == (1, 1)


@pytest.mark.parametrize("block_bytes", [1, 7, None])
def test_raise_stops_with_one_line(block_bytes: int | None, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(f"good{END}bad ".encode() + b"\xff" + f"{END}good".encode())
    at = len(f"good{END}")
    with pytest.raises(InputError) as caught:
        dask_bpe.encode_corpus(
            path, TOKENIZER, tmp_path / "out", errors="strict", on_error="raise", block_bytes=block_bytes
        )
    assert "\n" not in str(caught.value)
    assert f"byte {at + 4} is not UTF-8 (0xff)" in str(caught.value)
    for documents in (iter([b"\xff"]), dask.bag.from_sequence([b"\xff"])):
        with pytest.raises(InputError, match="is not UTF-8"):
            dask_bpe.encode_corpus(documents, TOKENIZER, tmp_path / "other", errors="strict", on_error="raise")
    assert not (tmp_path / "other").exists()


def test_nothing_but_bad_documents(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"\xff")
    for source in (tmp_path / "text.txt", iter([b"\xff"]), dask.bag.from_sequence([b"\xff"])):
        with pytest.raises(InputError, match="there is nothing to encode; 1 documents cannot be read"):
            dask_bpe.encode_corpus(source, TOKENIZER, tmp_path / "out", errors="strict")
        assert not (tmp_path / "out").exists()


def test_too_many_stop_the_job_and_more_let_it_go_on(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    good = ["good one", "good two", "good six", "good ten"]
    for number, document in enumerate(good):
        # A partition each: a block is as long as a file.
        (tmp_path / "text" / f"{number}.txt").write_bytes(f"{document}{END}".encode() + b"bad \xff")
    out = tmp_path / "out"

    def encode(max_bad: int, out: Path = out) -> EncodeReport:
        with dask.config.set(scheduler="synchronous"):
            return dask_bpe.encode_corpus(
                tmp_path / "text", TOKENIZER, out, errors="strict", block_bytes=26, max_bad=max_bad
            )

    for limit in (0, 1):
        with pytest.raises(
            InputError, match=rf"more than max_bad={limit}; the last one: .*\.txt at 21: byte 25"
        ) as caught:
            encode(limit)
        assert "\n" not in str(caught.value)
        assert len(list(out.glob("part-*.json"))) == limit + 1
        assert not (out / "manifest.json").exists()
    done = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    report = encode(4)
    assert report.n_quarantined == len(good)
    assert report.n_resumed == 2
    assert done.items() <= {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}.items()
    assert_encoded(out, good, TOKENIZER, END)
    encode(4, tmp_path / "at once")
    for path in {*(tmp_path / "at once").iterdir()} - {tmp_path / "at once" / "runs.jsonl"}:
        assert path.read_bytes() == (out / path.name).read_bytes(), path.name
    with pytest.raises(InputError, match="max_bad=2"):
        encode(2)  # it was complete, and is again when more are allowed
    assert encode(4).n_resumed == len(good)


def test_the_policy_is_a_part_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(f"good{END}")
    dask_bpe.encode_corpus(tmp_path / "text.txt", TOKENIZER, tmp_path / "out", errors="strict")
    with pytest.raises(OutputError, match="begun with errors 'strict', not with 'replace'"):
        dask_bpe.encode_corpus(tmp_path / "text.txt", TOKENIZER, tmp_path / "out")
