"""A tokenizer that goes on from another one: nothing of it changes, and what is new is what the oracle learns."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import regex
import strategies
from hypothesis import example, given
from hypothesis import strategies as st
from reference import TIES
from strategies import examples

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer, Vocabulary
from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.training import fit as training
from dask_bpe.training.extending import Extension

ENDOFTEXT = "<|endoftext|>"


def counted(words: dict[bytes, int], special_tokens: list[str] | None = None) -> PretokenCounts:
    """Not cut any further, so that a tokenizer takes such a word as one pre-token too."""
    return PretokenCounts.from_mapping(words, pattern=None, special_tokens=special_tokens or [])


def rows(log: training.MergeLog) -> list[tuple[int, ...]]:
    columns = (log.left, log.right, log.token, log.count, log.tokens_after)
    return [*zip(*(column.tolist() for column in columns), strict=True)]


@pytest.mark.parametrize("ties", TIES)
@given(
    words=strategies.tied_counts(),
    small=st.integers(0, 25),
    more=st.integers(0, 25),
    special_tokens=st.sampled_from([[], [ENDOFTEXT], ["<|b|>", "<|a|>"]]),
    place=st.sampled_from(["start", "after_bytes"]),
    byte_order=st.sampled_from(["value", "gpt2"]),
    rules=st.sampled_from([{}, {}, {"min_frequency": 2}, {"max_token_length": 3}]),
)
@example({b"a" * 17: 1}, 3, 9, [], "start", "value", {})
@examples(0.6)
def test_extending_on_the_same_counts_is_training_at_once(
    ties: str,
    words: dict[bytes, int],
    small: int,
    more: int,
    special_tokens: list[str],
    place: str,
    byte_order: str,
    rules: dict[str, int],
) -> None:
    counts, size = counted(words, special_tokens), 256 + len(special_tokens) + small
    layout: dict[str, Any] = {"special_tokens_at": place, "byte_order": byte_order}
    head = training.fit(counts, size, ties=ties, **rules, **layout)
    whole = training.fit(counts, size + more, ties=ties, **rules, **layout)
    extended = training.fit(counts, size + more, extend=head.vocabulary, **rules)
    if len(head.vocabulary) < size:  # it has run dry, and what came of it must too
        assert extended.vocabulary == head.vocabulary
    assert extended.vocabulary.to_json() == whole.vocabulary.to_json()
    assert rows(extended.log) == rows(whole.log)
    assert (extended.stop, extended.n_proved) == (whole.stop, whole.n_proved)
    assert extended.n_given == len(head.log)


@pytest.mark.parametrize("ties", TIES)
@given(
    words=strategies.tied_counts(),
    others=strategies.tied_counts(),
    small=st.integers(0, 25),
    more=st.integers(0, 25),
    min_frequency=st.sampled_from([1, 1, 2, 5]),
    max_token_length=st.sampled_from([None, None, 2, 4]),
)
@example({b"abab": 5}, {b"cdcd": 1, b"abx": 3}, 2, 6, 2, 2)
@examples(0.6)
def test_extending_on_other_text_is_the_oracle(
    ties: str,
    words: dict[bytes, int],
    others: dict[bytes, int],
    small: int,
    more: int,
    min_frequency: int,
    max_token_length: int | None,
) -> None:
    head = reference.train(words, 257 + small, [ENDOFTEXT], ties)
    base = training.fit(counted(words, [ENDOFTEXT]), 257 + small, ties=ties).vocabulary
    size = len(base) + more
    result = training.fit(
        counted(others, [ENDOFTEXT]),
        size,
        extend=base,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
    )
    pairs = [(left, right) for left, right, _ in head.merges]
    expected = reference.train(others, size, [ENDOFTEXT], ties, min_frequency, max_token_length, given=pairs)
    assert list(result.vocabulary.tokens) == expected.tokens
    assert [tuple(row) for row in result.vocabulary.merges.tolist()] == expected.merges
    log = result.log
    columns = (log.left, log.right, log.count, log.tokens_after)
    assert [*zip(*(column.tolist() for column in columns), strict=True)] == expected.log
    assert result.vocabulary.tokens[: len(base)] == base.tokens
    assert dict(result.vocabulary.special_tokens) == dict(base.special_tokens)


@given(words=strategies.tied_counts(), small=st.integers(0, 20), more=st.integers(0, 20))
@examples(0.3)
def test_special_tokens_at_the_end_stay_and_new_ids_follow_them(words: dict[bytes, int], small: int, more: int) -> None:
    counts = counted(words, [ENDOFTEXT])
    head = training.fit(counts, 257 + small, special_tokens_at="end").vocabulary
    whole = training.fit(counts, 257 + small + more, special_tokens_at="end").vocabulary
    extended = training.fit(counts, 257 + small + more, extend=head).vocabulary
    assert extended.tokens[: len(head)] == head.tokens
    assert extended.special_tokens[ENDOFTEXT] == head.special_tokens[ENDOFTEXT] == len(head) - 1
    assert extended.merge_bytes() == whole.merge_bytes()


@given(words=strategies.tied_counts(), more=strategies.tied_counts(), size=st.integers(0, 30))
@examples(0.5)
def test_what_was_learned_is_what_is_encoded(words: dict[bytes, int], more: dict[bytes, int], size: int) -> None:
    """The last row of the log says how many tokens the text has; the encoder makes as many."""
    base = training.fit(counted(words), 256 + size).vocabulary
    result = training.fit(counted(more), len(base) + 10, extend=base)
    tokenizer = Tokenizer(result.vocabulary)
    tokens = sum(number * tokenizer.count_tokens(word) for word, number in more.items())
    untouched = sum(number * len(word) for word, number in more.items())
    assert tokens == (result.log.tokens_after[-1] if len(result.log) else untouched)


@given(
    words=strategies.tied_counts(sizes=[1, 2, 5, 20, 90, 400]),
    others=strategies.tied_counts(sizes=[1, 2, 5, 20, 90, 400]),
    size=st.integers(0, 10),
    min_count=st.integers(2, 6),
)
@examples(0.5)
def test_merges_that_are_proved_are_those_without_dropping(
    words: dict[bytes, int], others: dict[bytes, int], size: int, min_count: int
) -> None:
    base = training.fit(counted(words), 256 + size).vocabulary
    whole = training.fit(counted(others), len(base) + 15, extend=base)
    result = training.fit(counted(others).at_least(min_count), len(base) + 15, extend=base)
    n = result.n_proved
    assert len(base.merges) == result.n_given <= n
    assert result.vocabulary.merges[:n].tolist() == whole.vocabulary.merges[:n].tolist()


def go_on(
    words: dict[tuple[int, ...], int], tokens: list[bytes], n_merges: int, ties: str
) -> list[tuple[int, int, int, int, int]]:
    """Merges on from words that are ids already, counting anew each time: left, right, id, count, tokens after."""
    choose, log, symbols = reference.tie_rule(ties, tokens), [], [(list(word), n) for word, n in words.items()]
    while len(log) < n_merges:
        pairs: Counter[tuple[int, int]] = Counter()
        for word, n in symbols:
            for pair in pairwise(word):
                pairs[pair] += n
        if not pairs:
            break
        most = max(pairs.values())
        left, right = choose([pair for pair, n in pairs.items() if n == most])
        tokens.append(tokens[left] + tokens[right])
        symbols = [(reference.merged(word, (left, right), len(tokens) - 1), n) for word, n in symbols]
        log.append((left, right, len(tokens) - 1, most, sum(len(word) * n for word, n in symbols)))
    return log


def assert_goes_on(base: Vocabulary, words: dict[bytes, int], n_merges: int) -> Vocabulary:
    """The extension learns what the oracle does from the ids that the tokenizer gives, and encodes accordingly."""
    before: Counter[tuple[int, ...]] = Counter()
    for word, n in words.items():
        before[tuple(Tokenizer(base).encode_ordinary(word))] += n
    expected = go_on(dict(before), list(base.tokens), n_merges, "bytes")
    result = training.fit(counted(words), len(base) + n_merges, extend=base, ties="bytes")
    assert rows(result.log)[result.n_given :] == expected
    extended = Tokenizer(result.vocabulary)
    for word in words:
        ids = Tokenizer(base).encode_ordinary(word)
        for left, right, token, *_ in expected:
            ids = reference.merged(ids, (left, right), token)
        assert extended.encode_ordinary(word) == ids
    assert result.vocabulary.tokens[: len(base)] == base.tokens
    return result.vocabulary


# Of ranks: what merging makes of some words, and tokens that no merge or another merge than one thinks makes.
@given(
    words=strategies.tied_counts(),
    others=strategies.tied_counts(),
    size=st.integers(0, 20),
    odd=st.lists(st.text("abcd", min_size=2, max_size=5).map(str.encode), max_size=4),
    whole=st.booleans(),
)
@example({b"ab": 2}, {b"abcd": 3, b"cd": 1, b"xabcdx": 2}, 1, [b"abcd"], True)
@example({b"a": 1}, {b"babbb": 1}, 0, [b"abb"], False)
def test_ranks_are_extended_as_they_encode(
    words: dict[bytes, int], others: dict[bytes, int], size: int, odd: list[bytes], whole: bool
) -> None:
    learned = reference.train(words, 256 + size)
    tokens = list(dict.fromkeys([*learned.tokens, *odd]))
    base = Vocabulary.from_ranks({token: rank for rank, token in enumerate(tokens)}, pattern=None, whole_tokens=whole)
    try:
        Extension.of(base)
    except VocabularyError as error:
        assert regex.search("can be extended if (merges come after those of their|all of them are made by)", str(error))
        assert odd
        return
    extended = assert_goes_on(base, others, 8)
    assert extended.ranks == "tokens"
    assert extended.whole_tokens == whole


@given(words=strategies.tied_counts(), others=strategies.tied_counts(), size=st.integers(0, 20), whole=st.booleans())
@examples(0.5)
def test_merges_that_divide_tokens_in_all_ways_are_extended(
    words: dict[bytes, int], others: dict[bytes, int], size: int, whole: bool
) -> None:
    """As in the tokenizer.json of Llama 3: a row for each way to divide a token, most of which never meet."""
    tokens = reference.train(words, 256 + size).tokens
    ranks = Vocabulary.from_ranks({token: rank for rank, token in enumerate(tokens)}, pattern=None)
    base = replace(ranks, ranks="merges", merges=ranks.merges, whole_tokens=whole)
    assert_goes_on(base, others, 8)


def test_gpt2_goes_on(gpt2_files: tuple[Path, Path], alice: str) -> None:
    gpt2 = Tokenizer.from_gpt2(*gpt2_files)
    larger = dask_bpe.train(iter([alice]), 50_300, extend=gpt2)
    assert larger.vocab_size == 50_300
    assert larger.special_tokens == {ENDOFTEXT: 50256}
    assert larger.vocabulary.tokens[:50257] == gpt2.vocabulary.tokens
    assert larger.vocabulary.merges[:50000].tolist() == gpt2.vocabulary.merges.tolist()
    assert larger.training is not None
    assert (larger.training.n_given, larger.training.n_merges) == (50_000, 50_043)
    after = larger.training.log.tokens_after
    assert gpt2.count_tokens(alice) == after[49_999]
    assert larger.count_tokens(alice) == after[-1]
    ids = np.array(larger.encode(alice))
    assert (ids >= 50257).any()
    assert larger.decode(ids) == alice


@pytest.mark.peers
def test_peers_give_the_ids_of_an_extension(gpt2_files: tuple[Path, Path], alice: str, tmp_path: Path) -> None:
    import tiktoken
    import tokenizers

    larger = dask_bpe.train(iter([alice]), 50_500, extend=Tokenizer.from_gpt2(*gpt2_files))
    larger.to_huggingface(tmp_path / "tokenizer.json")
    same = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert same.encode(alice).ids == larger.encode(alice)
    small = dask_bpe.train(iter([alice[:5_000]]), 500, special_tokens=[ENDOFTEXT], special_tokens_at="end")
    ranks = {token: rank for rank, token in enumerate(small.vocabulary.tokens[:499])}
    base = Tokenizer.from_tiktoken(ranks, "gpt2", {ENDOFTEXT: 499})
    larger = dask_bpe.train(iter([alice]), 700, extend=base)
    special = {ENDOFTEXT: 499}
    ranks = {token: rank for rank, token in enumerate(larger.vocabulary.tokens) if rank != 499}
    encoding = tiktoken.Encoding("larger", pat_str=reference.GPT2, mergeable_ranks=ranks, special_tokens=special)
    assert encoding.encode(alice) == larger.encode(alice)


def test_ties_and_pattern_are_those_of_the_tokenizer(corpus: list[str]) -> None:
    rules: dict[str, Any] = {"ties": "ids", "pattern": "cl100k", "special_tokens": [ENDOFTEXT]}
    head, whole = (dask_bpe.train(iter(corpus), size, **rules) for size in (300, 340))
    extended = dask_bpe.train(iter(corpus), 340, extend=head)
    assert extended == whole
    assert extended.pattern == "cl100k"
    assert dask_bpe.train(iter(corpus), 300, extend=head) == head


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"vocab_size": 290}, "less than the 300 ids"),
    ({"special_tokens_at": "end"}, "leave them out"),
    ({"alphabet": "characters"}, "leave them out"),
    ({"byte_order": "gpt2"}, "leave them out"),
    ({"special_tokens": ["<|other|>"]}, "keeps its own"),
    ({"pattern": "cl100k"}, "cut by 'cl100k'"),
    ({"ties": "length"}, "unknown tie rule"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(options) for options, _ in REFUSED])
def test_what_cannot_be_extended_is_said(options: dict[str, Any], message: str, corpus: list[str]) -> None:
    base = dask_bpe.train(iter(corpus), 300, special_tokens=[ENDOFTEXT])
    with pytest.raises(ParameterError, match=message) as refused:
        dask_bpe.train(iter(corpus), **{"vocab_size": 320, "extend": base, **options})
    assert "\n" not in str(refused.value)


def test_counts_of_another_pattern_are_refused(corpus: list[str]) -> None:
    base = dask_bpe.train(iter(corpus), 300)
    counts = dask_bpe.count_pretokens(iter(corpus), pattern="cl100k")
    with pytest.raises(ParameterError, match="cl100k"):
        training.fit(counts, 320, extend=base.vocabulary)


def test_a_vocabulary_that_changes_the_text_is_refused() -> None:
    base = Vocabulary(tuple(bytes([byte]) for byte in range(256)), np.empty((0, 3), np.int32), normalizer=(("nfc",),))
    with pytest.raises(VocabularyError, match="normalizer"):
        training.fit(PretokenCounts.from_mapping({b"ab": 1}), 300, extend=base)


def test_merges_in_another_order_are_refused() -> None:
    """ "ab" + "c" stands before "a" + "b": at once with it when encoding, never when training."""
    tokens = {**{byte: bytes([byte]) for byte in range(256)}, 256: b"ab", 257: b"abc"}
    base = Vocabulary.from_tokens(tokens, [(b"ab", b"c"), (b"a", b"b")])
    with pytest.raises(VocabularyError, match="merge 0 makes b'abc' of b'ab', which merge 1 makes"):
        training.fit(PretokenCounts.from_mapping({b"ab": 1}), 300, extend=base)
