"""Seams stand where no token can, and what is merged from one to the next is what the oracle makes of the whole."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from reference import Trained
from strategies import examples

from dask_bpe.encoder.arrays import make_scratch
from dask_bpe.encoder.rules import rules_of
from dask_bpe.kernels import encode, lanes, merge_pieces, seams
from dask_bpe.kernels._jit import i64, i64s, kernel, text_type, u32s, u64s
from dask_bpe.kernels.encode import CACHED_BYTES, rules_type
from dask_bpe.kernels.merging import scratch_type
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

LETTERS = "abé日本本語"
KINDS = range(2) if lanes.WIDE else range(1)  # without vectors, and with them where the processor has them
texts = st.text(LETTERS, min_size=1, max_size=36)


@kernel(i64, text_type, i64, i64, i64, u64s, i64s)
def find_seams(text, start, stop, wide, crossed, found):
    return seams.find_seams(text, start, stop, wide, crossed, found)


@kernel(i64, text_type, i64, i64, i64, rules_type, scratch_type, u32s)
def merge_in_pieces(text, start, length, wide, rules, scratch, out):
    return merge_pieces.merge_in_pieces(text, start, length, wide, rules, scratch, out, 0)


def seams_of(data: bytes, tokens: list[bytes], wide: int, words: int = 1 << 12) -> list[int]:
    """The seams of a text of which the kernel sees the middle only, without its end."""
    ragged, crossed = Ragged.from_list(tokens), np.zeros(words, np.uint64)
    seams.fill_crossed(ragged.values, ragged.offsets, np.arange(len(tokens)), crossed)
    text = np.frombuffer(b"abc" + data + b"cba" + bytes(8), np.uint8)
    found = np.empty(len(data) + lanes.LANES, np.int64)
    n = find_seams(text, 3, 3 + len(data), wide, crossed, found)
    assert found[n - 1] == 3 + len(data)
    return (found[: n - 1] - 3).tolist()


def is_covered(data: bytes, at: int, tokens: list[bytes]) -> bool:
    """Whether a token of the text stands across a place."""
    return any(data[start:].startswith(token) for token in tokens for start in range(max(at - len(token) + 1, 0), at))


def between_characters(data: bytes) -> list[int]:
    return [at for at in range(1, len(data)) if data[at] & 0xC0 != 0x80]


@given(text=texts, words=st.lists(st.text(LETTERS, min_size=1, max_size=5), max_size=12), cut=st.integers(0, 2))
@examples(12)
def test_no_token_covers_a_seam(text: str, words: list[str], cut: int) -> None:
    data, tokens = text.encode(), [token for word in words if (token := word.encode()[cut:])]
    for wide in KINDS:
        for filter_words in (1, 1 << 12):
            for at in seams_of(data, tokens, wide, filter_words):
                assert at in between_characters(data) and not is_covered(data, at, tokens)
    assert len({tuple(seams_of(data, tokens, wide)) for wide in KINDS}) == 1


@pytest.mark.parametrize("wide", KINDS)
def test_seams_are_found(wide: int) -> None:
    data = "日本語日本語ab語é".encode()
    assert seams_of(data, [], wide) == between_characters(data)
    tokens = ["日本".encode(), "b語".encode(), "é".encode()]
    covered = [at for at in between_characters(data) if is_covered(data, at, tokens)]
    assert len(covered) == 3
    assert seams_of(data, tokens, wide) == [at for at in between_characters(data) if at not in covered]


def test_a_full_filter_leaves_no_seam() -> None:
    tokens = [bytes([a, b]) for a in range(256) for b in range(256)]
    for wide in KINDS:
        assert seams_of("日本語abé".encode(), tokens, wide, words=1) == []


@cache
def trained(size: int) -> Trained:
    counts = reference.count(["日本語日本 本日 語語本 été abba 日本本語 ab日"] * 2, None)
    return reference.train(counts, 256 + size, pattern=None)


def merged(texts: list[bytes], vocabulary: Trained, wide: int, n_pieces: int) -> list[list[int]]:
    """Each text twice: the second time from the pieces that are remembered."""
    merges = np.array(vocabulary.merges, np.int32).reshape(-1, 3)
    rules = rules_of(Vocabulary(tuple(vocabulary.tokens), merges, {}, None))
    scratch = make_scratch(1 << 12)._replace(pieces=np.zeros(4 * n_pieces, np.uint64))
    results = []
    for data in texts * 2:
        text, out = np.frombuffer(b"ab" + data + bytes(16), np.uint8), np.zeros(len(data) + encode.SPARE, np.uint32)
        results.append(out[: merge_in_pieces(text, 2, len(data), wide, rules, scratch, out)].tolist())
    return results


@given(
    lines=st.lists(texts, min_size=1, max_size=4), size=st.integers(0, 25), n_pieces=st.sampled_from([1, 4, 1 << 10])
)
@examples(6)
def test_pieces_are_the_oracle(lines: list[str], size: int, n_pieces: int) -> None:
    vocabulary, data = trained(size), [line.encode() for line in lines]
    expected = [reference.encode_pretoken(line, vocabulary) for line in data] * 2
    for wide in KINDS:
        assert merged(data, vocabulary, wide, n_pieces) == expected


@pytest.mark.parametrize("wide", KINDS)
def test_pieces_of_every_length(wide: int) -> None:
    """One letter is one piece, whose ids fit in an entry, or don't, and whose bytes fit in a key, or don't."""
    pairs = [("a" * (1 << k), "a" * (1 << k)) for k in range(3)]
    tokens = {i: bytes([i]) for i in range(256)} | {256 + k: b"a" * (2 << k) for k in range(3)}
    vocabulary = reference.vocabulary(tokens, [(left.encode(), right.encode()) for left, right in pairs])
    data = [b"a" * length for length in range(1, CACHED_BYTES + 1)]
    assert merged(data, vocabulary, wide, 64) == [reference.encode_pretoken(line, vocabulary) for line in data] * 2
