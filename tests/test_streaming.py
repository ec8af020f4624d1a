"""`safe_blocks`: blocks as early as is safe, none too large, no look too many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe import streaming
from dask_bpe.pretokenize import Pattern, SpecialTokens, get_pattern
from dask_bpe.streaming import BLOCK_BYTES, SMALL_BYTES, safe_blocks, to_bytes

GPT2 = get_pattern("gpt2")


def blocks(chunks: Iterable[str | bytes], *special_tokens: str, pattern: Pattern = GPT2) -> list[bytes]:
    return list(safe_blocks(chunks, pattern, SpecialTokens(special_tokens)))


@given(st.data(), strategies.with_special_tokens(strategies.text(4)))
def test_blocks_add_up(data: st.DataObject, drawn: tuple[str, list[str]]) -> None:
    text, special_tokens = drawn
    found = blocks(data.draw(strategies.cuts(text)), *special_tokens)
    assert b"".join(found) == text.encode()
    assert b"" not in found


@given(st.data(), st.text(st.sampled_from("a\ud83d\ude00\udfff")))
def test_pairs_of_surrogates_are_not_torn_apart(data: st.DataObject, text: str) -> None:
    assert b"".join(blocks(data.draw(strategies.cuts(text)))) == to_bytes(text)


def test_surrogates_in_a_long_chunk() -> None:
    text = "a" * (BLOCK_BYTES - 1) + "\ud83d\ude00" + "b" * BLOCK_BYTES + "\ud83d"
    assert b"".join(blocks([text, b"c"])) == to_bytes(text) + b"c"


@pytest.mark.parametrize(
    ("special_tokens", "chunks", "expected"),
    [
        ([], ["one two", " three"], ["one", " two", " three"]),
        (["<|a|>"], ["one<|a|>", "two"], ["one<|a|>", "two"]),
        (["<|a|>"], ["one<|a", "|>two", " x"], ["one<|a|>", "two", " x"]),
        (["<|a|>"], ["one two <|a", "b|>"], ["one two", " <|ab", "|>"]),
        # A longer special token may still come: then it does, then it does not.
        (["<b>", "<b><c>"], ["<b>", "<c>", "x"], ["<b><c>", "x"]),
        (["<b>", "<b><c>"], ["one<b>", "<d>", "x"], ["one<b><d", ">", "x"]),
        (["<b>", "<b> y"], ["one two<", "b> ", "x"], ["one", " two<b>", " x"]),
        # One that reaches further may begin earlier.
        (["bc", "abcd"], ["abc", "x"], ["abc", "x"]),
        (["bc", "abcd"], ["abc", "d", "x"], ["abcd", "x"]),
        # None begins inside one that is certain.
        (["aba", "bax"], ["aba", "x"], ["aba", "x"]),
    ],
)
def test_where_blocks_end(special_tokens: list[str], chunks: list[str], expected: list[str]) -> None:
    assert blocks(chunks, *special_tokens) == [block.encode() for block in expected]


def test_blocks_are_bounded_on_ordinary_text() -> None:
    text = "some ordinary text, and more. " * 100_000
    for chunks in ([text], [text.encode()], [text[at : at + 70] for at in range(0, len(text), 70)]):
        sizes = [len(block) for block in blocks(chunks)]
        assert max(sizes) <= 2 * BLOCK_BYTES
        assert len(sizes) <= len(text) / BLOCK_BYTES + 30


@pytest.mark.parametrize("size", [1, 100, 10_000, 1 << 20])
def test_text_without_a_safe_end_is_not_looked_at_again_and_again(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def last_safe_cut(text: npt.NDArray[np.uint8], pattern: Pattern) -> int:
        looked.append(len(text))
        return 0

    monkeypatch.setattr(streaming, "last_safe_cut", last_safe_cut)
    total = 1 << 20
    assert blocks([" " * size] * (total // size)) == [b" " * (total // size * size)]
    assert sum(looked) <= 3 * total + SMALL_BYTES**2 // size


@pytest.mark.parametrize("chunk", [None, 7, [97]])
def test_refuses_what_is_no_text(chunk: Any) -> None:
    with pytest.raises(TypeError, match="text must be str or bytes, not"):
        blocks(["a", chunk])


@pytest.mark.parametrize("text", ["é", "あ", "😀"])
def test_an_unfinished_character_waits(text: str) -> None:
    data = b"one " + text.encode()
    for stop in range(5, len(data)):
        assert streaming._unfinished(np.frombuffer(data[:stop], np.uint8)) == stop - 4
    assert streaming._unfinished(np.frombuffer(data, np.uint8)) == 0
    assert streaming._unfinished(np.frombuffer(data + b"\x80", np.uint8)) == 0
