"""Held-out text: what the training did not meet, told by sets."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import reference
from hypothesis import given
from small_texts import counted, counts_of
from strategies import tied_counts

import dask_bpe
from dask_bpe import PretokenCounts
from dask_bpe.analysis.characters import character_counts, describe_character
from dask_bpe.analysis.coverage import held_out_coverage, is_unseen
from dask_bpe.errors import InputError, ParameterError
from dask_bpe.training.fit import fit


def characters(name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for pretoken, n in counted(name).items():
        for character in pretoken.decode():
            found[character] += n
    return found


@pytest.mark.parametrize("name", ["en", "zh", "ko", "mixed"])
def test_characters(name: str) -> None:
    found = character_counts(counts_of(name))
    assert {chr(i): int(found[i]) for i in np.flatnonzero(found)} == characters(name)


def test_a_character_is_named() -> None:
    assert describe_character(0xAC00) == "가 U+AC00 HANGUL SYLLABLE GA"
    assert describe_character(10) == "↵ U+000A (no name)"


def test_bytes_that_are_no_text_have_no_characters() -> None:
    with pytest.raises(InputError, match="not UTF-8"):
        character_counts(PretokenCounts.from_mapping({b"\xff": 1}))


@given(tied_counts(), tied_counts())
def test_unseen_pretokens_are_those_that_are_not_there(one: dict[bytes, int], other: dict[bytes, int]) -> None:
    held_out = PretokenCounts.from_mapping(other)
    unseen = is_unseen(PretokenCounts.from_mapping(one), held_out)
    assert unseen.tolist() == [string not in one for string in held_out.strings.to_list()]


@pytest.mark.parametrize(("training", "held_out"), [("en", "mixed"), ("mixed", "ko"), ("zh", "en"), ("ko", "ko")])
def test_every_figure(training: str, held_out: str) -> None:
    trained = reference.train(counted(training), 290)
    found = held_out_coverage(fit(counts_of(training), 290).vocabulary, counts_of(training), counts_of(held_out))
    figures = found.to_dict()["coverage"][0]
    known, text = counted(training), counted(held_out)
    unseen = {p: n for p, n in text.items() if p not in known}
    met = characters(training)
    strange = {c: n for c, n in characters(held_out).items() if c not in met}
    ids: Counter[int] = Counter()
    for pretoken, n in text.items():
        for i in reference.encode_pretoken(pretoken, trained):
            ids[i] += n
    n_bytes = sum(n * len(p) for p, n in text.items())
    n_characters = characters(held_out).total()
    assert figures == {
        "bytes": n_bytes,
        "characters": n_characters,
        "pretokens": sum(text.values()),
        "distinct_pretokens": len(text),
        "distinct_characters": len(characters(held_out)),
        "tokens": ids.total(),
        "bytes_per_token": n_bytes / ids.total(),
        "tokens_per_character": ids.total() / n_characters,
        "unseen_pretokens": sum(unseen.values()),
        "unseen_distinct_pretokens": len(unseen),
        "unseen_characters": sum(strange.values()),
        "unseen_distinct_characters": len(strange),
        "single_bytes": sum(n for i, n in ids.items() if i < 256),
        "single_bytes_beyond_ascii": sum(n for i, n in ids.items() if 128 <= i < 256),
    }
    assert {chr(point): n for point, n in found.unseen_characters.tolist()} == strange
    assert [n for _, n in found.unseen_pretokens] == sorted(unseen.values(), reverse=True)[:10]
    assert all(unseen[p] == n for p, n in found.unseen_pretokens)


def test_what_the_training_dropped_counts_as_not_met() -> None:
    dropped = PretokenCounts.from_mapping({"ab": 5, "cd": 1}).at_least(2)
    found = held_out_coverage(fit(dropped, 300).vocabulary, dropped, PretokenCounts.from_mapping({"cd": 1, "ab": 1}))
    assert (found.n_unseen, found.n_left_out) == (1, 1)
    assert found.shown()[0].notes == ("The training had dropped 1 rare pre-tokens, which count as not met.",)


def test_counts_of_other_patterns_are_refused() -> None:
    tokenizer = dask_bpe.train(counts_of("en"), 300)
    with pytest.raises(ParameterError, match="count both with the same one"):
        dask_bpe.measure_coverage(
            tokenizer, PretokenCounts.from_mapping({"a": 1}, pattern="whitespace"), counts_of("ko")
        )


def test_text_and_counts_are_the_same() -> None:
    tokenizer = dask_bpe.train(counts_of("en"), 300)
    text = "".join(p.decode() * n for p, n in counted("ko").items())
    by_text = dask_bpe.measure_coverage(tokenizer, counts_of("en"), iter([text]))
    recounted = PretokenCounts.from_mapping(reference.count([text]))
    assert by_text.to_dict() == dask_bpe.measure_coverage(tokenizer, counts_of("en"), recounted).to_dict()
