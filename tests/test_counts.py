"""Counts of pre-tokens as values: they add up, keep the order of the corpus, and survive a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dask_bpe
from dask_bpe import PretokenCounts
from dask_bpe.counts import combine
from dask_bpe.errors import ParameterError, VocabularyError


def counted(*texts: str, **options: object) -> PretokenCounts:
    """Counts of texts, a document each."""
    return dask_bpe.count_pretokens(iter(texts), **options)  # type: ignore[arg-type]


def test_the_sum_is_the_count_of_both_corpora() -> None:
    first, second = ["the cat", "a cat sat on the mat there"], ["the dog", "an unusually long-winded cat"]
    total = counted(*first) + counted(*second)
    assert total == counted(*first, *second)
    assert total.n_documents == 4
    assert total.total == sum(total.to_dict().values())


def test_the_order_of_first_occurrence_survives_a_sum() -> None:
    ab, cd = counted("x b a"), counted("d c a")
    assert (ab + cd).in_order_of_first().to_dict() == {b"x": 1, b" b": 1, b" a": 2, b"d": 1, b" c": 1}
    assert [*(ab + cd).in_order_of_first().to_dict()] == [b"x", b" b", b" a", b"d", b" c"]
    assert [*(cd + ab).in_order_of_first().to_dict()] == [b"d", b" c", b" a", b"x", b" b"]


def test_counts_of_other_rules_do_not_add_up() -> None:
    with pytest.raises(ParameterError, match="count with the same ones"):
        counted("a b") + counted("a b", pattern=None)
    with pytest.raises(ParameterError, match="count with the same ones"):
        counted("a b") + counted("a b", special_tokens=["b"])


def test_strings_are_sorted_as_bytes() -> None:
    words = [b"a" * n for n in (1, 7, 8, 9, 15, 16, 17, 40)] + [b"a" * 8 + b"\x00", b"\xff", b"\x00", b"a\x00"]
    counts = PretokenCounts.from_mapping({word: k + 1 for k, word in enumerate(words)})
    assert list(counts.to_dict()) == sorted(words)
    assert counts.to_dict() == {word: k + 1 for k, word in enumerate(words)}


strings_that_share_beginnings = st.lists(
    st.tuples(st.sampled_from([b"", b"a" * 7, b"a" * 8, b"a" * 15, b"a" * 16, b"\xff" * 9]), st.binary(max_size=12)),
    max_size=30,
).map(lambda pairs: [b"".join(pair) for pair in pairs if any(pair)])


@given(st.lists(strings_that_share_beginnings, min_size=1, max_size=9))
def test_counts_of_any_number_of_parts_add_up(parts: list[list[bytes]]) -> None:
    expected: Counter[bytes] = Counter()
    first: dict[bytes, int] = {}
    counts = []
    for number, strings in enumerate(parts):
        expected.update(strings)
        part = PretokenCounts.from_mapping(Counter(strings))
        counts.append(replace(part, first=part.first + 1000 * number))
        for string, position in zip(part.strings.to_list(), counts[-1].first.tolist(), strict=True):
            first.setdefault(string, position)
    total = combine(counts)
    assert total.to_dict() == {string: expected[string] for string in sorted(expected)}
    assert list(total.to_dict()) == sorted(expected)
    assert total.first.tolist() == [first[string] for string in sorted(expected)]


def test_many_strings_outgrow_the_first_table() -> None:
    words = {f"{k:x}{'y' * (k % 30)}".encode(): k + 1 for k in range(20_000)}
    assert PretokenCounts.from_mapping(words).to_dict() == words


def test_rare_ones_are_dropped() -> None:
    counts = counted("a a a b b c")
    assert counts.at_least(2).to_dict() == {b" a": 2, b" b": 2}


@pytest.mark.parametrize("count", [0, -1, 1.5, 1 << 63, "x", None])
def test_a_count_must_be_a_positive_integer(count: object) -> None:
    with pytest.raises(ParameterError, match="count of"):
        PretokenCounts.from_mapping({"a": count})  # type: ignore[dict-item]


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    counts = counted("some text\nand more of it", "x<|e|>", special_tokens=["<|e|>"], pattern=r"\S+|\s+")
    counts.to_parquet(tmp_path / "counts.parquet")
    again = PretokenCounts.from_parquet(tmp_path / "counts.parquet")
    assert again == counts
    assert (again.pattern, again.special_tokens) == (r"\S+|\s+", ("<|e|>",))
    assert pq.read_table(tmp_path / "counts.parquet").column_names == ["pretoken", "count", "first"]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "counts.parquet"
    counted("some text").to_parquet(whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    (tmp_path / "text.parquet").write_text("no Parquet at all")
    pq.write_table(pa.table({"pretoken": ["a"], "count": [1]}), tmp_path / "other.parquet")
    for name in ("cut.parquet", "text.parquet", "other.parquet", "missing.parquet"):
        with pytest.raises(VocabularyError, match=name) as caught:
            PretokenCounts.from_parquet(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_counts_are_64_bit() -> None:
    counts = PretokenCounts.from_mapping({"ab": 1 << 40, "b": 1})
    assert counts.counts.dtype == np.int64
    assert (counts + counts).to_dict() == {b"ab": 1 << 41, b"b": 2}
