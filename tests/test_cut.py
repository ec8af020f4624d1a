"""Cuts: the same whoever asks, never backwards, and of no effect on pre-tokens and special tokens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import reference
import strategies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dask_bpe.pretokenize import SpecialTokens, cut, get_pattern


def pieces(data: bytes, special: list[str]) -> list[bytes]:
    """Pre-tokens and special tokens of a text, by the oracle."""
    found: list[bytes] = []
    for text, is_special in reference.cut(reference.characters(data), special):
        found += [text.encode()] if is_special else reference.split(text, reference.GPT2)
    return found


@pytest.mark.parametrize("window", [1, 2, 7, 64])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    case=st.one_of(
        strategies.with_special_tokens(strategies.text(12)),
        strategies.text(12).map(lambda text: (text, list[str]())),
    ),
    patience=st.sampled_from([0, 1, 5, 30]),
    broken=st.booleans(),
)
def test_cuts_never_go_back_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch, window: int, case: tuple[str, list[str]], patience: int, broken: bool
) -> None:
    monkeypatch.setattr(cut, "_WINDOW", window)
    monkeypatch.setattr(cut, "_WIDEST", 2 * window)
    text, special = case
    data = text.encode()
    data = data[1:-1] if broken else data
    array = np.frombuffer(data, np.uint8)
    cutter = cut.Cutter(
        lambda start, stop: array[start:stop],
        len(data),
        SpecialTokens(special),
        frozenset(range(len(special))[:2]),
        get_pattern("gpt2"),
        patience,
    )
    whole = pieces(data, special)
    cuts = [cutter.at_or_after(position) for position in range(len(data) + 1)]
    for position, (before, after) in enumerate(pairwise(cuts), 1):
        assert position <= after.position
        assert before.position <= after.position
        assert before.position != after.position or before == after
        at = after.position
        assert pieces(data[:at], special) + pieces(data[at:], special) == whole


def test_a_cut_on_the_edge_of_a_window_is_seen_from_both_sides() -> None:
    data = np.frombuffer(b"z" * 65536 + b" a" + b"z" * 500 + b" b" + b"z" * 500, np.uint8)
    none = SpecialTokens([])
    cutter = cut.Cutter(lambda a, b: data[a:b], len(data), none, frozenset(), get_pattern("gpt2"), 1000)
    assert cutter.at_or_after(1000) == cutter.at_or_after(65000) == cut.Cut(65536, False)


@pytest.mark.parametrize("window", [2, 64])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=strategies.text(12))
def test_cuts_for_several_patterns_change_nothing_for_any(
    monkeypatch: pytest.MonkeyPatch, window: int, text: str
) -> None:
    monkeypatch.setattr(cut, "_WINDOW", window)
    monkeypatch.setattr(cut, "_WIDEST", 2 * window)
    patterns = [reference.GPT2, reference.O200K, r"[\p{L}\p{M}]+|[^\p{L}\p{M}]"]
    data = text.encode()
    array = np.frombuffer(data, np.uint8)
    first, *others = map(get_pattern, ("gpt2", "o200k", patterns[-1]))
    cutter = cut.Cutter(
        lambda start, stop: array[start:stop], len(data), SpecialTokens([]), frozenset(), first, 0, tuple(others)
    )
    cuts = [cutter.at_or_after(position).position for position in range(len(data) + 1)]
    assert all(position <= at for position, at in enumerate(cuts))
    assert cuts == sorted(cuts)
    for at in cuts:
        for pattern in patterns:
            parts = [reference.split(part.decode(), pattern) for part in (data[:at], data[at:])]
            assert parts[0] + parts[1] == reference.split(text, pattern)
