"""Compressed files: read whole, in any steps, and never short without an error."""

from __future__ import annotations

import random

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from input_files import compress

from dask_bpe.errors import CorruptError, InputError
from dask_bpe.io.inputs import compression
from dask_bpe.io.inputs.compression import SUFFIXES, compression_of, open_stream, without_compression

KINDS = sorted(set(SUFFIXES.values()))
TEXT = b"".join(b"line %d %s\n" % (i, random.Random(i).randbytes(6).hex().encode()) for i in range(9_000))


def drain(path: str, kind: str | None, step: int = 70_000) -> tuple[bytes, InputError | None]:
    """All that is given out, and the error at the end if there is one."""
    parts = []
    with open_stream(path, kind) as stream:
        try:
            while part := stream.read(step):
                assert len(part) <= step
                parts.append(part)
        except InputError as error:
            with pytest.raises(type(error)):
                stream.read(step)  # an error is never followed by an end
            return b"".join(parts), error
        assert stream.read(step) == b""
    return b"".join(parts), None


@pytest.fixture(scope="module")
def members() -> dict[str, tuple[bytes, bytes]]:
    return {kind: (compress(TEXT[:100_000], kind), compress(TEXT[100_000:], kind)) for kind in KINDS}


@pytest.mark.parametrize("kind", [None, *KINDS])
@pytest.mark.parametrize("step", [1 << 30, 70_000, 999])
def test_whole_files(tmp_path, kind, step):
    path = tmp_path / "file"
    path.write_bytes(TEXT if kind is None else compress(TEXT, kind))
    assert drain(str(path), kind, step) == (TEXT, None)


@pytest.mark.parametrize("kind", KINDS)
def test_members_follow_each_other(tmp_path, members, kind):
    path = tmp_path / "file"
    path.write_bytes(b"".join(members[kind]))
    assert drain(str(path), kind) == (TEXT, None)
    empty = compress(b"", kind)
    path.write_bytes(b"".join((empty, members[kind][0], empty, members[kind][1], empty)))
    assert drain(str(path), kind) == (TEXT, None)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_file_holds_nothing(tmp_path, kind):
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert drain(str(path), kind) == (b"", None)


def test_behind_a_url(members):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/packed/file.zst", members["zstd"][0])
    assert drain("memory://packed/file.zst", "zstd") == (TEXT[:100_000], None)


@pytest.mark.parametrize("kind", KINDS)
def test_cut_short_anywhere(tmp_path, members, kind):
    first, second = members[kind]
    data = first + second
    path = tmp_path / "file"
    near = range(-24, 25, 3)
    cuts = {len(first) + k for k in near} | {len(data) + k for k in near} | {k + 25 for k in near}
    cuts |= set(range(0, len(data), len(data) // 6))
    for cut in sorted(cut for cut in cuts if 0 < cut < len(data)):
        path.write_bytes(data[:cut])
        text, error = drain(str(path), kind)
        assert TEXT.startswith(text)
        if cut == len(first):  # nobody can know that another one followed
            assert (text, error) == (TEXT[:100_000], None)
            continue
        assert isinstance(error, CorruptError)
        assert str(error).startswith(f"{path}: the {kind} data is damaged or cut short")
        assert "\n" not in str(error)
        if cut > len(first):
            assert len(text) >= 100_000  # all of what is whole


@pytest.mark.parametrize("kind", KINDS)
def test_something_else_after_the_data(tmp_path, members, kind):
    path = tmp_path / "file"
    path.write_bytes(members[kind][0] + b"garbage that is no member")
    text, error = drain(str(path), kind)
    assert text == TEXT[:100_000]
    assert isinstance(error, CorruptError)


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz", "lz4"])
@given(st.data())
def test_altered_data_is_found_out(tmp_path_factory, members, kind, data):
    packed = bytearray(members[kind][1])
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / f"altered-{kind}"
    path.write_bytes(packed)
    text, error = drain(str(path), kind)
    # Some bytes, as the time in the header of gzip, say nothing of the text; frames of lz4 have no checksum here.
    assert isinstance(error, CorruptError) or text == TEXT[100_000:] or kind == "lz4"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_out_before_damage_depends_on_no_step(tmp_path, members, kind):
    data = bytearray(b"".join(members[kind]))
    data[len(members[kind][0]) + len(members[kind][1]) // 2] ^= 0xFF
    path = tmp_path / "file"
    path.write_bytes(data)
    texts = {drain(str(path), kind, step)[0] for step in (1 << 30, 70_001, 4096, 999)}
    assert len(texts) == 1
    assert len(texts.pop()) >= 100_000


def test_padding_between_xz_streams(tmp_path, members):
    first, second = members["xz"]
    path = tmp_path / "file"
    path.write_bytes(first + bytes(8) + second + bytes(100_000))
    assert drain(str(path), "xz") == (TEXT, None)


def test_a_bomb_is_given_out_in_steps(tmp_path):
    path = tmp_path / "file"
    for kind in KINDS:
        path.write_bytes(compress(bytes(10 << 20), kind))
        with open_stream(str(path), kind) as stream:
            assert len(stream.read(1000)) == 1000
            assert stream.position == 1000


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none.gz: No such file") as caught:
        open_stream(str(tmp_path / "none.gz"), "gzip")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_suffixes():
    for suffix, kind in SUFFIXES.items():
        assert compression_of(f"/a.b/c{suffix}") == compression_of(f"/a/C{suffix.upper()}") == kind
        assert without_compression(f"/a.b/c.jsonl{suffix}") == "c.jsonl"
    assert compression_of("https://host/a.jsonl.gz?key=a.zst") == "gzip"
    assert without_compression("https://host/a.jsonl.gz?key=a.zst") == "a.jsonl"
    for name in ("a.txt", "/a.gz/b", "agz", ""):
        assert compression_of(name) is None
    assert compression.without_compression("/a/b.txt") == "b.txt"
