"""UTF-8 repair equals Python's decoder, wherever the text is cut into pieces."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dask_bpe.errors import ParameterError
from dask_bpe.io import utf8

# Bytes at which the decoder changes its mind, mixed with whole characters of each length.
TRICKY = [
    0x00,
    0x41,
    0x7F,
    0x80,
    0x8F,
    0x90,
    0x9F,
    0xA0,
    0xBF,
    0xC0,
    0xC1,
    0xC2,
    0xDF,
    0xE0,
    0xED,
    0xEF,
    0xF0,
    0xF4,
    0xF5,
    0xFF,
]
parts = st.one_of(
    st.sampled_from([bytes([b]) for b in TRICKY]),
    st.sampled_from(["a", "é", "中", "\ufffd", "😀"]).map(str.encode),
    st.binary(max_size=4),
)
texts = st.lists(parts, max_size=30).map(b"".join)


def array(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


def python_invalid_at(text: bytes) -> int:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def count_invalid(text: bytes) -> int:
    """Error by error, as the decoder meets them."""
    count = 0
    while True:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            count += 1
            text = text[error.end :]
        else:
            return count


@given(texts)
@example(b"\xed\xa0\x80")
@example(b"\xf4\x90\x80\x80")
@example(b"\xc0\x80")
@example("é".encode()[:1])
def test_invalid_at_equals_python(text):
    assert utf8.invalid_at(array(text)) == python_invalid_at(text)


@given(texts, st.integers(4, 12))
def test_invalid_at_across_pieces(text, piece_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utf8, "PIECE", piece_bytes)
        assert utf8.invalid_at(array(text)) == python_invalid_at(text)


@given(texts, st.integers(4, 12))
@example(b"\xe4\xb8\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 4)
@example(b"aaa\xf0\x9f\x98\x80", 4)
@example(b"aaa\xf0\x9f\x98a", 4)
def test_repair_equals_python(text, piece_bytes):
    invalid = count_invalid(text)
    assert utf8.repair(text, "replace", piece_bytes=piece_bytes) == (
        text.decode(errors="replace").encode(),
        invalid,
    )
    assert utf8.repair(text, "skip", piece_bytes=piece_bytes) == (
        text.decode(errors="ignore").encode(),
        invalid,
    )


@given(st.text())
def test_valid_text_is_untouched(text):
    data = text.encode(errors="replace")
    assert utf8.invalid_at(array(data)) == -1
    assert utf8.repair(array(data), "replace") == (data, 0)


def test_long_text_is_searched_in_pieces():
    text = np.frombuffer("中文 text ".encode() * 300_000, np.uint8).copy()
    assert utf8.invalid_at(text) == -1
    place = text.size - 4
    assert text[place] == ord("e")
    text[place] = 0xFF
    assert utf8.invalid_at(text) == place
    repaired, count = utf8.repair(text, "replace")
    assert count == 1
    assert repaired == text.tobytes().decode(errors="replace").encode()


def test_unknown_policy():
    with pytest.raises(ParameterError, match="'replace' or 'skip'"):
        utf8.repair(b"", "ignore")
