"""The vector scanner of GPT-2's pattern cuts as its automaton does, wherever blocks and full buffers end."""

from __future__ import annotations

import numpy as np
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.kernels.scan import MARGIN, scan_gpt2
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.pretokenize.classes import code_point_classes
from dask_bpe.pretokenize.patterns import PATTERNS, Split

Cuts = tuple[list[list[int]], list[int]]


def by_vectors(data: bytes, bounds: list[int], capacity: int) -> Cuts:
    """Spans, and the number of them when each segment ended."""
    text = np.frombuffer(data, np.uint8)
    segments = np.array((bounds[:-1], bounds[1:]), np.int64)
    cursor, stops = np.zeros(2, np.int64), np.zeros(segments.shape[1], np.int64)
    scratch, words = np.full(64, 0xAA, np.uint8), np.full(73, 0xAAAA, np.uint64)
    spans = np.zeros((2, capacity), np.int64)
    found: list[list[int]] = []
    ends: list[int] = []
    while cursor[0] < segments.shape[1]:
        first = int(cursor[0])
        n = scan_gpt2(text, segments, cursor, code_point_classes(), scratch, words, spans, stops)
        ends += [len(found) + int(stop) for stop in stops[first : cursor[0]]]
        found += spans[:, :n].T.tolist()
    return found, ends


def by_automaton(data: bytes, bounds: list[int]) -> Cuts:
    """The same by the automaton: a sequence of one split is not known as "gpt2"."""
    pattern = get_pattern([Split(PATTERNS["gpt2"][0].regex, "isolated")])
    assert pattern.name == "sequence"
    segments = np.array((bounds[:-1], bounds[1:]), np.int64)
    found: list[list[int]] = []
    ends: list[int] = []
    for batch in Scanner(pattern).scan(np.frombuffer(data, np.uint8), segments):
        ends += [len(found) + int(stop) for stop in batch.stops[batch.first : batch.last]]
        found += batch.spans[:, : batch.n_spans].T.tolist()
    return found, ends


@given(
    parts=st.lists(st.one_of(strategies.text().map(str.encode), st.binary(max_size=8)), max_size=40),
    at=st.lists(st.floats(0, 1), max_size=4),
    capacity=st.integers(MARGIN + 1, MARGIN + 40),
)
def test_the_vector_scanner_cuts_like_the_automaton(parts: list[bytes], at: list[float], capacity: int) -> None:
    data = b"".join(parts)
    bounds = sorted([0, len(data), *(int(x * len(data)) for x in at)])
    expected = by_automaton(data, bounds)
    assert by_vectors(data, bounds, capacity) == expected
    assert b"".join(data[start:end] for start, end in expected[0]) == data


def test_one_long_run_is_one_pre_token_however_full_the_buffer() -> None:
    data = b"x " * 120 + b"a" * 1000 + b" b"
    found, _ = by_vectors(data, [0, len(data)], MARGIN + 1)
    assert [240, 1240] in found or [239, 1240] in found
    assert found[-1] == [1240, 1242]
