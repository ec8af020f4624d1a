"""Where text stops being UTF-8: by vectors, byte by byte, and by Python's decoder."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dask_bpe.kernels.validate import first_invalid

# Bytes at which a decoder changes its mind.
TELLING = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
CHARACTERS = ["a", "é", "߿", "ࠀ", "中", "\ud7ff", "\ue000", "\ufffd", "😀", "\U0010ffff"]
parts = st.one_of(
    st.sampled_from([bytes([byte]) for byte in TELLING]),
    st.sampled_from(CHARACTERS).map(str.encode),
    st.integers(0, 70).map(lambda n: b"x" * n),
    st.integers(0, 30).map(lambda n: "中".encode() * n),
)


def expected(text: bytes) -> int:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def found(text: bytes, by_vectors: int) -> int:
    return first_invalid(np.frombuffer(text, np.uint8), by_vectors)


@pytest.mark.parametrize("by_vectors", [0, 1])
@given(st.lists(parts, max_size=40).map(b"".join))
@example("é".encode()[:1])
@example(b"x" * 63 + "é".encode())
@example(b"x" * 64 + b"\x80")
@example(b"xx" + "😀".encode() + b"x" * 61 + "😀".encode()[:3])
def test_it_is_where_pythons_decoder_stops(by_vectors: int, text: bytes) -> None:
    assert found(text, by_vectors) == expected(text)


@pytest.mark.parametrize("before", [1, 62, 66])
def test_every_telling_sequence_of_four_bytes_anywhere_in_a_block(before: int) -> None:
    for sequence in itertools.product(TELLING[3:], repeat=4):
        text = b"x" * before + bytes(sequence) + b"y" * 70
        assert found(text, 1) == expected(text)


def test_every_sequence_of_two_bytes() -> None:
    for first, second in itertools.product(range(256), repeat=2):
        text = b"x" * 65 + bytes((first, second)) + b"y" * 64
        assert found(text, 1) == found(text, 0) == expected(text)
