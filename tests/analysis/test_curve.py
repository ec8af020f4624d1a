"""The curve of sizes: every point is what a training of that size gives."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from small_texts import counted, counts_of, n_tokens, texts
from strategies import tied_counts

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer
from dask_bpe.analysis.curve import ALL, cut_curve, cut_vocabulary, is_cumulative, train_curve
from dask_bpe.analysis.token_kinds import learned_tokens
from dask_bpe.errors import ParameterError
from dask_bpe.training.fit import fit
from dask_bpe.vocabulary import TIE_RULES

SIZES = [256, 257, 270, 320, 400]


@pytest.mark.parametrize("ties", TIE_RULES)
@pytest.mark.parametrize("name", ["en", "zh", "ko", "mixed"])
def test_each_size_is_a_training_of_that_size(name: str, ties: str) -> None:
    points = train_curve(counts_of(name), SIZES, ties=ties).points
    text = "".join(pretoken.decode() * n for pretoken, n in counted(name).items())
    for size, point in zip(SIZES, points, strict=True):
        anew = Tokenizer(fit(counts_of(name), size, ties=ties).vocabulary)
        assert point.n_tokens == sum(n * len(anew.encode(p)) for p, n in counted(name).items())
        assert (point.n_bytes, point.n_characters) == (len(text.encode()), len(text))
        assert point.bytes_per_token == point.n_bytes / point.n_tokens
        assert point.characters_per_token == point.n_characters / point.n_tokens


@given(tied_counts(), tied_counts(), st.sampled_from(TIE_RULES), st.integers(0, 20))
def test_each_source_has_the_tokens_of_the_oracle(
    one: dict[bytes, int], other: dict[bytes, int], ties: str, n_merges: int
) -> None:
    total = Counter(one)
    total.update(other)
    trained = reference.train(total, 256 + n_merges, ties=ties)
    counts = {"one": PretokenCounts.from_mapping(one), "other": PretokenCounts.from_mapping(other)}
    curve = train_curve(counts, [256 + n_merges], ties=ties)
    assert [(point.source, point.n_tokens) for point in curve.points] == [
        ("one", n_tokens(one, trained)),
        ("other", n_tokens(other, trained)),
        (ALL, n_tokens(total, trained)),
    ]


def test_rules_hold_for_every_size() -> None:
    rules = {"min_frequency": 3, "max_token_length": 4}
    curve = train_curve(counts_of("en"), [300, 100_000], **rules)
    for point in curve.points:
        trained = fit(counts_of("en"), point.vocab_size, **rules)
        assert (point.n_merges, point.n_tokens) == (len(trained.log), trained.log.tokens_after[-1])


def test_sizes_beyond_what_there_is_to_learn_are_said() -> None:
    curve = train_curve(PretokenCounts.from_mapping({"abc": 2}), [256, 258, 1000])
    assert [(point.n_merges, point.n_tokens) for point in curve.points] == [(0, 6), (2, 2), (2, 2)]
    assert curve.largest == 258
    assert curve.tables()[0].notes == ("No more than 258 ids: beyond, at 1,000, the vocabulary is the same.",)


def test_special_tokens_take_their_room() -> None:
    counts = PretokenCounts.from_mapping(counted("en"), special_tokens=["<a>", "<b>"])
    assert train_curve(counts, [258, 300]).points == tuple(
        point.__class__(**{**vars(point), "vocab_size": point.vocab_size + 2})
        for point in train_curve(counts_of("en"), [256, 298]).points
    )
    with pytest.raises(ParameterError, match="256 bytes and 2 special tokens: give at least 258"):
        train_curve(counts, [257])


@pytest.mark.parametrize("sizes", [[], [0], ["300"], [255]])
def test_sizes_that_are_none_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ParameterError, match="size"):
        train_curve(counts_of("ko"), sizes)


@pytest.mark.parametrize("name", ["en", "zh", "mixed"])
def test_a_vocabulary_of_another_text_is_cut(name: str) -> None:
    vocabulary = fit(counts_of("mixed"), 400).vocabulary
    assert is_cumulative(vocabulary)
    for point in cut_curve(vocabulary, {name: counts_of(name)}).points:
        smaller = reference.train(counted("mixed"), point.vocab_size)
        assert point.n_tokens == n_tokens(counted(name), smaller)


def test_a_vocabulary_is_cut_at_doublings(gpt2_files: tuple[Path, Path]) -> None:
    gpt2 = Tokenizer.from_gpt2(*gpt2_files).vocabulary
    curve = cut_curve(gpt2, counts_of("en"))
    assert [point.vocab_size for point in curve.points] == [257, *(256 << k for k in range(1, 8)), 50257]
    assert curve.points[-1].n_tokens == sum(n * len(Tokenizer(gpt2).encode(p)) for p, n in counted("en").items())


def test_where_merges_are_not_in_the_order_of_ranks_every_size_is_encoded() -> None:
    trained = Tokenizer(fit(counts_of("en"), 330).vocabulary)
    ranks = {token: index for index, token in enumerate(trained.vocabulary.tokens)}
    by_ranks = Tokenizer.from_tiktoken(ranks, "gpt2").vocabulary
    assert not is_cumulative(by_ranks)
    curve = cut_curve(by_ranks, counts_of("en"), [256, 280, 330])
    for point in curve.points:
        smaller = Tokenizer.from_tiktoken({t: i for t, i in ranks.items() if i < point.vocab_size}, "gpt2")
        assert point.n_tokens == sum(n * len(smaller.encode(p)) for p, n in counted("en").items())


def test_a_vocabulary_with_tokens_that_no_merge_makes_is_cut() -> None:
    tokens = [bytes([i]) for i in range(256)] + [b"th", b" the"]
    vocabulary = dask_bpe.Vocabulary(tuple(tokens), np.array([[116, 104, 256]], np.int32), whole_tokens=True)
    assert learned_tokens(vocabulary).tolist() == [256, 257]
    found = {point.vocab_size: point.n_tokens for point in cut_curve(vocabulary, counts_of("en")).points}
    smaller = Tokenizer(cut_vocabulary(vocabulary, 1))
    assert found[258] == sum(n * len(Tokenizer(vocabulary).encode(p)) for p, n in counted("en").items())
    assert found[258] < sum(n * len(smaller.encode(p)) for p, n in counted("en").items()) < found[256]


def test_sources_of_text_and_of_counts_are_the_same(tmp_path: Path) -> None:
    for name in ("en", "ko"):
        (tmp_path / f"{name}.txt").write_text(texts()[name], encoding="utf-8")
    of_text = dask_bpe.vocab_curve({name: tmp_path / f"{name}.txt" for name in ("en", "ko")}, [300, 400])
    assert of_text.points == dask_bpe.vocab_curve({name: counts_of(name) for name in ("en", "ko")}, [300, 400]).points
    assert (
        of_text.points
        == dask_bpe.vocab_curve({name: iter([texts()[name]]) for name in ("en", "ko")}, [400, 300]).points
    )
    assert of_text.sources == ("en", "ko", ALL)
    assert of_text.of("ko")[0].n_bytes == len(texts()["ko"].encode())
    with pytest.raises(ParameterError, match="known are en, ko, all"):
        of_text.of("zh")


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(ParameterError, match="no sizes"):
        dask_bpe.vocab_curve(counts_of("en"))
    with pytest.raises(ParameterError, match="at least one source"):
        train_curve({}, [300])
    with pytest.raises(ParameterError, match="another name"):
        train_curve({"all": counts_of("en"), "ko": counts_of("ko")}, [300])
    whitespace = PretokenCounts.from_mapping({"a b": 1}, pattern="whitespace")
    with pytest.raises(ParameterError, match="count the text with the pattern of the vocabulary"):
        cut_curve(fit(counts_of("en"), 300).vocabulary, whitespace)


def test_a_corpus_without_text_costs_nothing() -> None:
    (point,) = train_curve(PretokenCounts.from_mapping({}), [300]).points
    assert (point.n_tokens, math.isnan(point.bytes_per_token)) == (0, True)
