"""The least number of tokens: against all ways there are, and what it saves on a corpus."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer
from dask_bpe.analysis.segmentation import inspect_text
from dask_bpe.analysis.shortest import ShortestEncoder, count_shortest, encode_shortest
from dask_bpe.errors import ParameterError
from dask_bpe.vocabulary import Vocabulary

WORDS = {b"ab": 4, b"bcd": 2, b"bc": 1}


@pytest.fixture(scope="module")
def small() -> Tokenizer:
    return dask_bpe.train(PretokenCounts.from_mapping(WORDS), 259)


def all_ways(data: bytes, tokens: set[bytes]) -> list[list[bytes]]:
    """Every way to spell bytes."""

    @cache
    def ways(at: int) -> list[list[bytes]]:
        if at == len(data):
            return [[]]
        found = [data[at:end] for end in range(at + 1, len(data) + 1) if data[at:end] in tokens]
        return [[token, *rest] for token in found for rest in ways(at + len(token))]

    return ways(0)


def test_merging_takes_three_tokens_where_two_would_do(small: Tokenizer) -> None:
    assert [small.token_bytes(index) for index in small.encode("abcd")] == [b"ab", b"c", b"d"]
    (ids,) = encode_shortest(small, [b"abcd"])
    assert [small.token_bytes(index) for index in ids] == [b"a", b"bcd"]
    (one,) = inspect_text("abcd", small, shortest=True).segmentations
    assert (len(one.pieces), one.n_least) == (3, 2)
    assert list(one.differences()) == [("ab | c | d", "a | bcd")]
    table = inspect_text("abcd abcd", {"t": small}, shortest=True).shown()[1]
    assert table.records()[0] == {"tokenizer": "t", "merged": "ab | c | d", "shortest": "a | bcd"}


@given(st.sets(st.text("abc", min_size=2, max_size=5), max_size=10), st.text("abc", max_size=9))
def test_none_is_shorter_and_the_first_is_the_longest(words: set[str], text: str) -> None:
    tokens = {word.encode() for word in words}
    spelled = tuple([bytes([byte]) for byte in range(256)] + sorted(tokens))
    encoder = ShortestEncoder(Vocabulary(spelled, [], {}, None, whole_tokens=True))
    found = [spelled[index] for index in encoder.encode(text.encode())]
    ways = all_ways(text.encode(), tokens | {bytes([byte]) for byte in range(256)})
    least = min(map(len, ways))
    assert found == max((way for way in ways if len(way) == least), key=lambda way: [len(token) for token in way])
    for way in ways:
        assert encoder.count(text.encode(), len(way)) == least


def test_special_tokens_are_not_used() -> None:
    tokenizer = dask_bpe.train(PretokenCounts.from_mapping(WORDS, special_tokens=["abcd"]), 260)
    assert len(encode_shortest(tokenizer, [b"abcd"])[0]) == 2
    (one,) = inspect_text("abcdabcdbcd", tokenizer, shortest=True).segmentations
    assert [piece.token for piece in one.pieces] == [b"abcd", b"abcd", b"bcd"]
    assert one.n_least == 3


def test_what_a_corpus_would_save(alice: str, poems: str) -> None:
    counts = dask_bpe.count_pretokens(iter([alice[:20_000], poems[:1000]]))
    tokenizer = dask_bpe.train(counts, 500)
    found = count_shortest(tokenizer, counts, most=3)
    differences = []
    n_tokens = n_least = n_longer = 0
    for pretoken, count in counts.to_dict().items():
        by_merging, least = len(tokenizer.encode_ordinary(pretoken)), len(encode_shortest(tokenizer, [pretoken])[0])
        n_tokens += by_merging * count
        n_least += least * count
        n_longer += count * (least < by_merging)
        differences.append((by_merging - least) * count)
    assert (found.n_tokens, found.n_least, found.n_longer) == (n_tokens, n_least, n_longer)
    assert n_least < n_tokens
    assert found.n_pretokens == sum(counts.to_dict().values())
    assert [one.saved for one in found.differences] == sorted(differences, reverse=True)[:3]
    assert found.saved == (n_tokens - n_least) / n_tokens
    assert [table.name for table in found.tables()] == ["differences", "totals"]


def test_counts_of_another_pattern_are_refused(small: Tokenizer) -> None:
    with pytest.raises(ParameterError, match="count with its own"):
        count_shortest(small, PretokenCounts.from_mapping(WORDS, pattern="o200k"))
