"""The vector scanner cuts as the scalar one does, wherever blocks of 64 bytes and full buffers fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.kernels.scan import MARGIN, scan_gpt2
from dask_bpe.kernels.scan_scalar import scan_gpt2_scalar
from dask_bpe.pretokenize.classes import code_point_classes


def cuts(kernel: Any, data: bytes, bounds: list[int], capacity: int) -> tuple[list[list[int]], list[int]]:
    """Spans, and the number of them when each segment ended."""
    text = np.frombuffer(data, np.uint8)
    segments = np.array((bounds[:-1], bounds[1:]), np.int64)
    cursor, stops = np.zeros(2, np.int64), np.zeros(segments.shape[1], np.int64)
    scratch, words = np.full(64, 0xAA, np.uint8), np.full(9, 0xAAAA, np.uint64)
    spans = np.zeros((2, capacity), np.int64)
    found: list[list[int]] = []
    ends: list[int] = []
    while cursor[0] < segments.shape[1]:
        first = int(cursor[0])
        n = kernel(text, segments, cursor, code_point_classes(), scratch, words, spans, stops)
        ends += [len(found) + int(stop) for stop in stops[first : cursor[0]]]
        found += spans[:, :n].T.tolist()
    return found, ends


@given(
    parts=st.lists(st.one_of(strategies.text().map(str.encode), st.binary(max_size=8)), max_size=40),
    at=st.lists(st.floats(0, 1), max_size=4),
    capacity=st.integers(MARGIN + 1, MARGIN + 40),
)
def test_the_vector_scanner_cuts_like_the_scalar_one(parts: list[bytes], at: list[float], capacity: int) -> None:
    data = b"".join(parts)
    bounds = sorted([0, len(data), *(int(x * len(data)) for x in at)])
    expected = cuts(scan_gpt2_scalar, data, bounds, capacity)
    assert cuts(scan_gpt2, data, bounds, capacity) == expected
    assert b"".join(data[start:end] for start, end in expected[0]) == data


def test_one_long_run_is_one_pre_token_however_full_the_buffer() -> None:
    data = b"x " * 120 + b"a" * 1000 + b" b"
    for kernel in (scan_gpt2, scan_gpt2_scalar):
        found, _ = cuts(kernel, data, [0, len(data)], MARGIN + 1)
        assert [240, 1240] in found or [239, 1240] in found
        assert found[-1] == [1240, 1242]
