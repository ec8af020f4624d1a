"""The oracle itself: independent of the package, and right where the answer is known by hand."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from reference import TIES, count, cut, encode, split, train


def test_it_imports_nothing_of_the_package_it_judges() -> None:
    path = Path(reference.__file__)
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names <= {"__future__", "collections", "collections.abc", "dataclasses", "itertools", "regex"}
    program = f"import sys; sys.path.insert(0, {str(path.parent)!r}); import reference; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {name for name in loaded.split() if name.split(".")[0] in ("dask_bpe", "dask", "numba", "numpy")}


def test_worked_example_of_gpt2s_pattern() -> None:
    assert split("Hello, I'm 42.", reference.GPT2) == [b"Hello", b",", b" I", b"'m", b" 42", b"."]


def test_special_tokens_cut_leftmost_then_longest() -> None:
    assert list(count(["hello<|endoftext|>world"], special_tokens=["<|endoftext|>"])) == [b"hello", b"world"]
    assert cut("x<|a|><|b|><|a|>", ["<|a|>", "<|a|><|b|>"]) == [
        ("x", False),
        ("<|a|><|b|>", True),
        ("<|a|>", True),
    ]
    assert cut("aaaaa", ["aa"]) == [("aa", True), ("aa", True), ("a", False)]
    assert cut("", ["aa"]) == []


def test_worked_example_of_a_training_log() -> None:
    words = {b"slow": 4, b"slower": 2, b"lowest": 3, b"newest": 3}
    trained = train(words, 1000, ties="ids")
    steps = [(trained.tokens[left] + trained.tokens[right], n, after) for left, right, n, after in trained.log]
    assert steps[:5] == [(b"lo", 9, 55), (b"low", 9, 46), (b"es", 6, 40), (b"slow", 6, 34), (b"est", 6, 28)]
    assert len(steps) == 11
    assert steps[-1][-1] == sum(words.values()) == 12


def test_worked_examples_of_encoding() -> None:
    merges = [(b"l", b"o"), (b"lo", b"w"), (b"e", b"s"), (b"s", b"low"), (b"es", b"t")]
    tokens = {i: bytes([i]) for i in range(256)} | {256 + i: a + b for i, (a, b) in enumerate(merges)}
    trained = reference.vocabulary(tokens, merges)
    assert [trained.tokens[i] for i in encode("slowest", trained)] == [b"slow", b"est"]
    assert [trained.tokens[i] for i in encode("lower", trained)] == [b"low", b"e", b"r"]


def test_worked_example_where_bpe_is_not_shortest() -> None:
    trained = train({b"ab": 4, b"bcd": 2, b"bc": 1}, 259)
    assert trained.merge_bytes == [(b"a", b"b"), (b"b", b"c"), (b"bc", b"d")]
    assert [trained.tokens[i] for i in encode("abcd", trained)] == [b"ab", b"c", b"d"]


def test_overlaps_count_and_are_replaced_from_the_left() -> None:
    trained = train({b"aaa": 1}, 257)
    assert trained.log == [(97, 97, 2, 2)]
    assert reference.merged([97] * 5, (97, 97), 256) == [256, 256, 97]


@pytest.mark.parametrize(
    ("ties", "merge"),
    [
        ("bytes", (b"x", b"y")),
        ("ids", (b"\x00", b"z")),
        ("first", (b"m", b"n")),
        ("huggingface", (b"m", b"n")),
    ],
)
def test_each_tie_rule_picks_its_pair(ties: str, merge: tuple[bytes, bytes]) -> None:
    """GPT-2 writes byte 0 as U+0100, after all letters, so only the rule `ids` takes it first."""
    assert train({b"mn": 2, b"xy": 2, b"\x00z": 2, b"ab": 1}, 257, ties=ties).merge_bytes == [merge]


@pytest.mark.parametrize("ties", TIES)
@given(counts=strategies.tied_counts(), n_merges=st.integers(0, 30))
def test_training_never_spells_the_same_bytes_twice(ties: str, counts: dict[bytes, int], n_merges: int) -> None:
    """Whatever stands around it, a string that becomes one token has been merged in the same steps."""
    trained = train(counts, 256 + n_merges, ties=ties)
    assert len(set(trained.tokens)) == len(trained.tokens)


@given(strategies.text())
def test_gpt2s_pattern_loses_nothing(text: str) -> None:
    assert b"".join(split(text, reference.GPT2)) == text.encode()
