"""Cuts inside a document, where a pattern allows them, change nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import reference
import strategies
from cutting import NAMES, RUNS, SIMPLE, encoded, quietly, random_patterns, representatives, spec_of, within_time
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import NAMED, Step
from strategies import CODE_POINTS, examples

from dask_bpe.pretokenize import SpecialTokens, cut, get_pattern


def assert_cuts_change_nothing(steps: Sequence[Step], data: bytes, cuts: Iterable[int]) -> None:
    whole = reference.split_sequence(reference.characters(data), steps)
    for at in cuts:
        halves = [reference.split_sequence(reference.characters(half), steps) for half in (data[:at], data[at:])]
        assert halves[0] + halves[1] == whole, f"cut at byte {at} of {data!r}"


def cuts_of(data: bytes, spec: Any) -> list[int]:
    """All places where blocks of a text without special tokens may end."""
    text = np.frombuffer(data, np.uint8)
    cutter = cut.Cutter(
        lambda start, stop: text[start:stop], len(data), SpecialTokens([]), frozenset(), get_pattern(spec), 0
    )
    found = [cutter.at_or_after(position) for position in range(len(data) + 1)]
    assert all(position <= place.position for position, place in enumerate(found))
    positions = [place.position for place in found]
    assert positions == sorted(positions)
    assert all(place.starts_document == (place.position in (0, len(data))) for place in found)
    assert all(found[position] == place for place in found for position in [place.position])
    return sorted(set(positions))


texts_to_cut = st.one_of(
    strategies.text(12), st.text(st.sampled_from(CODE_POINTS), max_size=20), strategies.text_for_patterns()
)


@pytest.mark.parametrize("name", NAMES)
@given(text=texts_to_cut, broken=st.booleans())
@examples(0.6)
def test_cuts_by_named_patterns_change_nothing(name: str, text: str, broken: bool) -> None:
    data = encoded([text])[0]
    data = data[1:-1] if broken else data
    assert_cuts_change_nothing(NAMED[name], data, cuts_of(data, name))


@pytest.mark.parametrize("name", NAMES)
def test_cuts_in_all_short_strings_change_nothing(name: str) -> None:
    """Around every place that may be cut, whatever stands a little further off."""
    rng = random.Random(name)
    points = representatives(name)
    pairs = ["".join(pair) for pair in product(points, repeat=2)]
    data = encoded(["".join(rng.sample(pairs, len(pairs))) for _ in range(2)])
    for text in data:
        at = cuts_of(text, name)
        for start, end in zip([0, *at], [*at[3:], len(text)], strict=False):
            part = text[start:end]
            assert_cuts_change_nothing(NAMED[name], part, [place - start for place in at if start <= place <= end])


@pytest.mark.parametrize("name", NAMES)
@given(text=texts_to_cut, follow=texts_to_cut)
@examples(0.6)
def test_the_last_safe_cut_is_safe_whatever_follows(name: str, text: str, follow: str) -> None:
    data, more = encoded([text, follow])
    at = cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(name))
    assert 0 <= at <= len(data)
    assert_cuts_change_nothing(NAMED[name], data + more, [at])


@random_patterns
@quietly
@given(
    steps=st.one_of(
        strategies.patterns().map(lambda pattern: [(pattern, "matches", False)]),
        strategies.steps(st.one_of(strategies.patterns(), st.sampled_from(SIMPLE))),
    ),
    text=strategies.text_for_patterns(20),
    follow=strategies.text_for_patterns(5),
)
@examples(0.15)
def test_cuts_by_random_patterns_change_nothing(steps: list[Step], text: str, follow: str) -> None:
    assume(within_time([step[0] for step in steps], [text, text + follow]))
    spec = spec_of(steps)
    data, more = encoded([text, follow])
    at = cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(spec))
    assert_cuts_change_nothing(steps, data + more, [at])
    assert_cuts_change_nothing(steps, data, cuts_of(data, spec))


PROSE = "She said: “I don't know.” It's the 2nd of May, 1865; and so on. "


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_prose_can_be_cut_in_every_sentence(name: str) -> None:
    data = (PROSE * 40).encode()
    at = cuts_of(data, name)
    assert max(after - before for before, after in pairwise(at)) <= len(PROSE.encode())
    last = cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(name))
    assert last >= len(data) - len(PROSE.encode())
    assert last in at


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_not_cut_where_it_may_go_on(name: str) -> None:
    for unit in RUNS:
        data = encoded([unit * 3000])[0]
        assert_cuts_change_nothing(
            NAMED[name], data, [cut.last_safe_cut(np.frombuffer(data, np.uint8), get_pattern(name))]
        )
