"""The kernels of decoding against a join of the tokens: every byte of the text, and not one beside it."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe import decoding
from dask_bpe.decoding import TokenTable, _flattened
from dask_bpe.errors import ParameterError
from dask_bpe.kernels import gather as kernels
from dask_bpe.kernels.memory import new_bytes

# Of every length around those at which the copy changes; empty where no token has the id.
LENGTHS = (*range(20), 31, 32, 33, 47, 48, 49, 254, 255, 256, 300)
TOKENS = tuple(bytes((index * 7 + at) % 251 for at in range(length)) for index, length in enumerate(LENGTHS))
KNOWN = range(1, len(TOKENS))
TABLE = TokenTable(TOKENS)
ID_TYPES = (np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.dtype(">i4"))

id_lists = st.lists(st.sampled_from(KNOWN), max_size=80)


def simple(ids: list[int]) -> bytes:
    """The truth."""
    return b"".join(TOKENS[index] for index in ids)


@pytest.fixture(autouse=True)
def _kernels_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_FEW", 0)


@given(id_lists, st.sampled_from(ID_TYPES))
def test_bytes_of_ids(ids: list[int], dtype: Any) -> None:
    assert TABLE.decode(np.array(ids, dtype)) == TABLE.decode(ids) == simple(ids)
    assert TABLE.decode(np.array(ids, dtype)[::-1]) == simple(ids[::-1])


@given(id_lists, st.sampled_from((np.uint16, np.uint32, np.uint64)))
def test_nothing_is_written_beside_the_text(ids: list[int], dtype: Any) -> None:
    expected = simple(ids)
    words = np.array(ids, dtype)
    room = np.full(len(expected) + 128, 0xEE, np.uint8)
    kernels.gather[words.itemsize](words, *TABLE._flat[2:], room[64 : 64 + len(expected)])
    assert room.tobytes() == b"\xee" * 64 + expected + b"\xee" * 64


@given(st.lists(id_lists, max_size=6), st.sampled_from((np.uint16, np.int64)))
def test_texts_of_a_batch(batch: list[list[int]], dtype: Any) -> None:
    ids = np.array([index for text in batch for index in text], dtype)
    bounds = np.array([0, *accumulate(map(len, batch))])
    expected = [simple(text).decode("utf-8", "replace") for text in batch]
    assert TABLE.decode_texts(ids, bounds) == expected
    flat = _flattened(batch)
    assert flat is not None
    assert [flat[0][a:b].tolist() for a, b in pairwise(flat[1])] == batch


@given(id_lists, st.sets(st.sampled_from(KNOWN)))
def test_ids_left_out(ids: list[int], left_out: set[int]) -> None:
    table = TokenTable(TOKENS, left_out)
    assert table.decode(np.array(ids, np.uint16)) == simple([index for index in ids if index not in left_out])
    with pytest.raises(ParameterError, match=f"id 0 at position {len(ids)} is unknown.*no token has this one"):
        table.decode([*ids, 0])


@pytest.mark.parametrize("dtype", ID_TYPES)
def test_the_first_unknown_id_is_named(dtype: Any) -> None:
    kind = np.dtype(dtype)
    for bad in (0, len(TOKENS), np.iinfo(kind).max, -1 if kind.kind == "i" else 0):
        for ids in (np.array([1, 2, bad, 0, bad], kind), np.array([1, 2, bad], kind)):
            with pytest.raises(ParameterError, match=f"token id {bad} at position 2 is unknown"):
                TABLE.decode(ids)


def test_negative_ids_are_not_large_ones() -> None:
    table = TokenTable([b"x"] * (1 << 16))
    assert table.decode(np.array([65535], np.uint16)) == b"x"
    with pytest.raises(ParameterError, match="token id -1 at position 1 is unknown"):
        table.decode(np.array([0, -1], np.int16))


def test_lists_that_are_not_of_ids() -> None:
    others: list[Any] = [[[1], (2,)], [[1.0]], [["a"]], [[-1]], [[1 << 32]], [np.array([1])], [3]]
    assert [_flattened(batch) for batch in others] == [None] * len(others)


def test_new_bytes() -> None:
    assert new_bytes(0) == b""
    one, other = new_bytes(1), new_bytes(1)
    assert one is not other
    assert len(new_bytes(1000)) == 1000


def test_bytes_on_huge_pages() -> None:
    for size in ((1 << 21) - 1, 1 << 21, (3 << 21) + 5):
        made = new_bytes(size)
        assert len(made) == size
    table = TokenTable([b"", b"ab"])
    assert table.decode(np.ones(3 << 21, np.uint16)) == b"ab" * (3 << 21)
