"""The table of counts gives what a `Counter` gives, in whatever order text comes and however small its parts are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from reference import GPT2

from dask_bpe import count_table
from dask_bpe.count_table import CountTable
from dask_bpe.counts import PretokenCounts
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.ragged import Ragged

# Few words that come again and again, long ones and letters of several bytes among them.
words = st.sampled_from(
    [" a", " be", " see", "tea", " über", "日本語", " 1234", "!?", "\n", " " + "x" * 20, " " + "y" * 40]
)
texts = st.lists(st.one_of(words, st.text("abc ", max_size=6)), max_size=400).map("".join)


class Oracle:
    """The same, pre-token by pre-token."""

    def __init__(self) -> None:
        self.counts: Counter[bytes] = Counter()
        self.first: dict[bytes, int] = {}

    def add(self, string: bytes, count: int, position: int) -> None:
        self.counts[string] += count
        self.first[string] = min(position, self.first.get(string, position))

    def add_text(self, text: str, start: int) -> None:
        for match in regex.finditer(GPT2, text):
            self.add(match[0].encode(), 1, start + len(text[: match.start()].encode()))


def assert_equal(table: CountTable, oracle: Oracle) -> None:
    counts = PretokenCounts.from_table(table)
    assert counts.to_dict() == oracle.counts
    assert dict(zip(counts.strings.to_list(), counts.first.tolist(), strict=True)) == oracle.first


@pytest.mark.parametrize("lines", [1, 4, 1 << 15])
@given(parts=st.lists(st.tuples(texts, st.integers(0, 3000), st.booleans()), max_size=5))
def test_texts_at_any_place_in_any_order(lines: int, parts: list[tuple[str, int, bool]]) -> None:
    oracle, scanner = Oracle(), Scanner(get_pattern("gpt2"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_table, "_FRONT_LINES", lines)
        table = CountTable()
    for text, origin, look in parts:
        data = np.frombuffer(text.encode(), np.uint8)
        table.add_segments(data, np.array([[0], [len(data)]], np.int64), scanner, origin)
        oracle.add_text(text, origin)
        if look:
            assert len(table) == len(oracle.counts)
    assert_equal(table, oracle)
    assert_equal(table, oracle)


@given(before=texts, strings=st.dictionaries(words, st.tuples(st.integers(1, 9), st.integers(0, 5000))), after=texts)
def test_strings_between_texts(before: str, strings: dict[str, tuple[int, int]], after: str) -> None:
    oracle, scanner, table = Oracle(), Scanner(get_pattern("gpt2")), CountTable()
    for origin, text in ((1000, before), (4000, after)):
        data = np.frombuffer(text.encode(), np.uint8)
        table.add_segments(data, np.array([[0], [len(data)]], np.int64), scanner, origin)
        oracle.add_text(text, origin)
        numbers = np.array(list(strings.values()), np.int64).reshape(-1, 2)
        table.add_strings(Ragged.from_list([s.encode() for s in strings]), *np.ascontiguousarray(numbers.T))
        for string, (count, position) in strings.items():
            oracle.add(string.encode(), count, position)
    assert_equal(table, oracle)


def test_more_strings_than_there_is_room_for_at_first() -> None:
    text = " ".join(map(str, range(100_000, 180_000))) + " ".join("z" * n for n in range(16, 1000))
    oracle, table = Oracle(), CountTable()
    oracle.add_text(text, 7)
    data = np.frombuffer(text.encode(), np.uint8)
    for start in range(0, 2 * len(data), len(data)):
        table.add_segments(data, np.array([[0], [len(data)]], np.int64), Scanner(get_pattern("gpt2")), 7 + start)
    oracle.counts.update(oracle.counts.copy())
    assert_equal(table, oracle)


def test_no_segments() -> None:
    table = CountTable()
    table.add_segments(np.empty(0, np.uint8), np.empty((2, 0), np.int64), Scanner(get_pattern("gpt2")), 0)
    assert len(table) == 0
