"""Sources with weights: training is what it would be on text that is repeated as often as it weighs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from reference import TIES
from strategies import examples

import dask_bpe
from dask_bpe import PretokenCounts, Progress
from dask_bpe.errors import ParameterError
from dask_bpe.training import fit as training
from dask_bpe.training.weighting import find_weights, mix

ENDOFTEXT = "<|endoftext|>"


def counted(words: dict[bytes, int]) -> PretokenCounts:
    return PretokenCounts.from_mapping(words, pattern=None)


weights_of_three = st.tuples(*[st.sampled_from([1, 2, 3, 0.5, 0.1, "1/3", Fraction(7, 4), 1.0])] * 3)
sources_of_three = st.tuples(*[strategies.tied_counts(5)] * 3)


@pytest.mark.parametrize("ties", TIES)
@given(
    sources=sources_of_three,
    weights=weights_of_three,
    n_merges=st.integers(0, 20),
    rules=st.sampled_from([{}, {"min_frequency": 2}, {"min_frequency": 5, "max_token_length": 4}]),
)
@examples(0.7)
def test_training_is_the_oracle_on_what_is_repeated(
    ties: str,
    sources: tuple[dict[bytes, int], ...],
    weights: tuple[Any, ...],
    n_merges: int,
    rules: dict[str, int],
) -> None:
    fractions = [Fraction(str(weight)) for weight in weights]
    unit = math.lcm(*(fraction.denominator for fraction in fractions))
    words: Counter[bytes] = Counter()
    for source, fraction in zip(sources, fractions, strict=True):
        for word, n in source.items():
            words[word] += int(n * fraction * unit)
    tokenizer = dask_bpe.train(
        {str(k): counted(source) for k, source in enumerate(sources)},
        256 + n_merges,
        weights={str(k): weight for k, weight in enumerate(weights)},
        pattern=None,
        ties=ties,
        **rules,
    )
    scaled = rules | ({"min_frequency": rules["min_frequency"] * unit} if rules else {})
    expected = reference.train(dict(words), 256 + n_merges, (), ties, **scaled)
    assert [tuple(row) for row in tokenizer.vocabulary.merges.tolist()] == expected.merges
    report = tokenizer.training
    assert report is not None
    assert report.log.count.tolist() == [count for _, _, count, _ in expected.log]
    assert report.unit == unit
    assert list(report.weights.values()) == fractions
    assert report.n_bytes == sum(len(word) * n for source in sources for word, n in source.items())


@given(sources=sources_of_three, weights=weights_of_three, min_count=st.integers(1, 6))
@examples(0.5)
def test_no_count_is_rounded_and_rare_ones_are_dropped_by_weight(
    sources: tuple[dict[bytes, int], ...], weights: tuple[Any, ...], min_count: int
) -> None:
    parts = {str(k): counted(source) for k, source in enumerate(sources)}
    mixture = mix(parts, weights={str(k): weight for k, weight in enumerate(weights)})
    exact: Counter[bytes] = Counter()
    for source, weight in zip(sources, weights, strict=True):
        for word, n in source.items():
            exact[word] += n * Fraction(str(weight))
    assert {word: Fraction(n, mixture.unit) for word, n in mixture.counts.to_dict().items()} == exact
    kept = mixture.at_least(min_count).counts.to_dict()
    assert set(kept) == {word for word, n in exact.items() if n >= min_count or min_count == 1}


@given(sources=sources_of_three, weights=weights_of_three, min_count=st.integers(2, 4), n_merges=st.integers(1, 15))
@examples(0.5)
def test_what_was_dropped_before_weighs_too(
    sources: tuple[dict[bytes, int], ...], weights: tuple[Any, ...], min_count: int, n_merges: int
) -> None:
    """Merges that are said to be proved are those of all pre-tokens, each source having dropped its own rare ones."""
    named = {str(k): weight for k, weight in enumerate(weights)}
    whole = {str(k): counted(source) for k, source in enumerate(sources)}
    kept = {name: part.at_least(min_count) for name, part in whole.items()}
    every, some = (mix(parts, weights=named) for parts in (whole, kept))
    result = training.fit(some.counts, 256 + n_merges, unit=some.unit)
    expected = training.fit(every.counts, 256 + n_merges, unit=every.unit)
    n = result.n_proved
    assert result.vocabulary.merges[:n].tolist() == expected.vocabulary.merges[:n].tolist()
    if some.counts.dropped is not None:
        lost = every.counts.total - some.counts.total
        assert some.counts.dropped.n_occurrences == lost


def test_whole_weights_are_the_text_again_and_again(corpus: list[str]) -> None:
    english, chinese = corpus[:60], corpus[60:]
    rules: dict[str, Any] = {"ties": "first", "alphabet": "characters", "min_character_count": 3, "min_frequency": 2}
    mixed = dask_bpe.train({"en": iter(english), "zh": iter(chinese)}, 1200, weights={"zh": 3}, **rules)
    repeated = dask_bpe.train(iter(english + 3 * chinese), 1200, **rules)
    assert mixed == repeated
    assert mixed.training is not None
    assert mixed.training.weights == {"en": 1, "zh": 3}
    assert dask_bpe.train({"en": iter(english), "zh": iter(chinese)}, 500) == dask_bpe.train(iter(corpus), 500)


def test_more_weight_more_merges(alice: str, poems: str) -> None:
    """What balancing is for: the smaller language gets shorter as it weighs more."""
    chinese = poems[:1000]
    parts = {"en": dask_bpe.count_pretokens(iter([alice])), "zh": dask_bpe.count_pretokens(iter([chinese]))}
    tokens = [dask_bpe.train(parts, 700, temperature=t).count_tokens(chinese) for t in (1, 2, 100)]
    assert tokens[0] > tokens[1] > tokens[2]


@given(
    sizes=st.lists(st.integers(1, 10**13), min_size=1, max_size=5),
    temperature=st.sampled_from([1, 1.43, 2, "10/3", 5, 1000]),
)
def test_a_temperature_gives_the_shares_that_it_says(sizes: list[int], temperature: Any) -> None:
    weights = find_weights({str(k): size for k, size in enumerate(sizes)}, None, temperature)
    exponent = 1 / float(Fraction(str(temperature)))
    for size, weight in zip(sizes, weights.values(), strict=True):
        expected = (max(sizes) / size) ** (1 - exponent)
        assert 1000 % weight.denominator == 0
        assert abs(float(weight) - expected) <= 0.0005001 + 1e-9 * expected
    assert min(weights.values()) == 1
    if temperature == 1:
        assert set(weights.values()) == {1}


def test_weights_by_temperature_are_these_on_every_machine() -> None:
    sizes = {"en": 825 << 30, "ko": 12_345_678_901, "sw": 987_654}
    # (825 * 2**30 / n) ** 0.7 by tenth roots of whole numbers: 19.91073..., 14686.70237...
    expected = {"en": Fraction(1), "ko": Fraction(19_911, 1000), "sw": Fraction(14_686_702, 1000)}
    assert find_weights(sizes, None, "10/3") == expected
    assert find_weights({"a": 1000, "b": 10}, None, 2) == {"a": 1, "b": 10}


def test_partitions_do_not_matter(corpus: list[str], tmp_path: Path) -> None:
    for name, lines in (("en", corpus[:60]), ("zh", corpus[60:])):
        (tmp_path / f"{name}.txt").write_text(ENDOFTEXT.join(lines), encoding="utf-8", newline="")
    sources = {"en": tmp_path / "en.txt", "zh": [str(tmp_path / "zh.txt")]}
    trained = [
        dask_bpe.train(
            sources, 500, temperature=3, special_tokens=[ENDOFTEXT], ties="first", block_bytes=size
        ).vocabulary.to_json()
        for size in (None, 700, 1500)
    ]
    assert len(set(trained)) == 1


class Stopped(Exception):
    """What stands for Ctrl-C in these tests."""


class Interrupt(Progress):
    """Raises when the second source is being counted, or the merges are made."""

    def __init__(self, stage: str, start: int) -> None:
        self._stage, self._left = stage, start

    def start(self, stage: str, total: int | None, unit: str) -> None:
        self._left -= stage == self._stage
        if self._left < 0:
            raise Stopped


def written(work: Path) -> dict[str, int]:
    """The counts of partitions in a work folder, and when each was written."""
    return {str(path.relative_to(work)): path.stat().st_mtime_ns for path in work.rglob("part-*.parquet")}


def test_an_interrupted_training_goes_on(corpus: list[str], tmp_path: Path) -> None:
    for name, lines in (("en", corpus[:60]), ("zh", corpus[60:])):
        (tmp_path / f"{name}.txt").write_text(ENDOFTEXT.join(lines), encoding="utf-8", newline="")
    sources = {name: tmp_path / f"{name}.txt" for name in ("en", "zh")}
    rules: dict[str, Any] = {"special_tokens": [ENDOFTEXT], "block_bytes": 1500}
    work = tmp_path / "work"
    durably: dict[str, Any] = rules | {"work_dir": work, "checkpoint_seconds": 0}
    with pytest.raises(Stopped):
        dask_bpe.train(sources, 400, temperature=2, progress=Interrupt("counting", 1), **durably)
    first = written(work)
    assert {name.split("/")[0] for name in first} == {"source-000"}
    with pytest.raises(Stopped):
        dask_bpe.train(sources, 400, temperature=2, progress=Interrupt("merging", 0), **durably)
    every = written(work)
    assert first.items() < every.items()
    assert dask_bpe.train(sources, 400, temperature=2, **durably) == dask_bpe.train(
        sources, 400, temperature=2, **rules
    )
    other = dask_bpe.train(sources, 400, weights={"zh": 9}, **durably)
    assert other == dask_bpe.train(sources, 400, weights={"zh": 9}, **rules)
    assert written(work) == every, "nothing was counted twice: other weights need no other pass over the text"


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ({"a": {b"x": 1}}, {"weights": {"b": 1}}, "'b' has a weight and is no source: sources are 'a'"),
    ({"a": {b"x": 1}}, {"weights": {"a": 0}}, "the weight of 'a' is 0: more than 0"),
    ({"a": {b"x": 1}}, {"weights": {"a": -0.5}}, "more than 0"),
    ({"a": {b"x": 1}}, {"weights": {"a": "much"}}, "is 'much': a number was expected"),
    ({"a": {b"x": 1}}, {"weights": {"a": math.nan}}, "is nan: a number"),
    ({"a": {b"x": 1}}, {"weights": {"a": math.inf}}, "is inf: a number"),
    ({"a": {b"x": 1}}, {"weights": {"a": True}}, "is True"),
    ({"a": {b"x": 1}}, {"weights": [2]}, "weights is [2]: a mapping"),
    ({"a": {b"x": 1}}, {"weights": {"a": "1/0"}}, "a number was expected"),
    ({"a": {b"x": 1}}, {"temperature": 0.3}, "temperature is 0.3: 1 or more was expected"),
    ({"a": {b"x": 1}}, {"temperature": 2, "weights": {"a": 1}}, "both weights and a temperature"),
    ({"a": {b"x": 2**50}}, {"weights": {"a": "0.123456789"}}, "more than 64 bits can count"),
    ({"a": {b"x": 1}, "b": {}}, {"temperature": 2}, "source 'b' has no text"),
    ({}, {"weights": {}}, "there are no sources"),
    (None, {"weights": {"a": 1}}, "give a mapping of names"),
    (None, {"temperature": 2}, "give a mapping of names"),
]


@pytest.mark.parametrize(("sources", "options", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_weights_that_cannot_be_are_said(sources: Any, options: dict[str, Any], message: str) -> None:
    source = counted({b"x": 1}) if sources is None else {name: counted(words) for name, words in sources.items()}
    with pytest.raises(ParameterError) as refused:
        dask_bpe.train(source, 300, pattern=None, **options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_sources_that_were_cut_in_other_ways_are_refused(corpus: list[str]) -> None:
    one, other = (dask_bpe.count_pretokens(iter(corpus), pattern=pattern) for pattern in ("gpt2", "cl100k"))
    with pytest.raises(ParameterError, match="don't add up"):
        mix({"a": one, "b": other})
    assert training.fit(mix({"a": one}).counts, 300).vocabulary == training.fit(one, 300).vocabulary
