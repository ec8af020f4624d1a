"""Vocabularies of tiktoken's kind and whole tokens: the ids of tiktoken and of Hugging Face's `ignore_merges`."""

from __future__ import annotations

import dataclasses
import os
import pickle
import random
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import huggingface
import numpy as np
import pytest
import tiktoken
import tiktoken.load
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

from dask_bpe import Tokenizer
from dask_bpe.encoder import Encoder
from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

BYTES = {bytes([byte]): byte for byte in range(256)}
# One pre-token is all there is; or runs of spaces and runs of others.
WHOLE, RUNS = r"(?s:.+)", r"[ ]+|[^ ]+"
SPECIAL = {"<s>": 1000, "<t>": 1017}


def both(ranks: Mapping[bytes, int], pattern: str = WHOLE) -> tuple[tiktoken.Encoding, Tokenizer]:
    model = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=dict(ranks), special_tokens=SPECIAL)
    return model, Tokenizer(Vocabulary.from_ranks(ranks, SPECIAL, pattern=pattern))


@st.composite
def ranks(draw: st.DrawFn) -> dict[bytes, int]:
    """Any tokens in any order, bytes between them: parts after their wholes, tokens that no merge makes, gaps."""
    words = draw(st.lists(st.text("ab ", min_size=2, max_size=7), min_size=1, max_size=25, unique=True))
    tokens = [word.encode() for word in words] + list(BYTES)
    order = draw(st.permutations(tokens)) if draw(st.booleans()) else [*BYTES, *tokens[: len(words)]]
    gap = draw(st.sampled_from([1, 1, 2, 3]))
    return {token: rank * gap for rank, token in enumerate(order)}


@given(
    ranks=ranks(),
    texts=st.lists(st.text("ab ", max_size=30), min_size=1, max_size=6),
    pattern=st.sampled_from([WHOLE, RUNS]),
)
@example(BYTES | {b"aa": 256}, ["aaa", "aaaaa", "a" * 130], WHOLE)
@example(BYTES | {b"aa": 256, b"aaa": 257, b"aaaa": 258}, ["aaa", "aaaaa", "aaaaaaa", "a" * 300], WHOLE)
@example(BYTES | {b"aa": 258, b"aaa": 257, b"ab": 256, b"baa": 300}, ["aaab", "aabaa", "baaaa"], WHOLE)
@examples(4)
def test_ranks_are_tiktokens(ranks: dict[bytes, int], texts: list[str], pattern: str) -> None:
    model, tokenizer = both({token: rank + 1100 for token, rank in ranks.items()}, pattern)
    for text in texts:
        expected = model.encode_ordinary(text)
        assert tokenizer.encode_ordinary(text) == expected
        assert tokenizer.decode(expected) == text
    text = "<s>".join([*texts, "<t>"])
    assert tokenizer.encode(text) == model.encode(text, allowed_special="all")


@given(ranks=ranks(), text=st.text("ab", min_size=60, max_size=400))
def test_long_pretokens_are_tiktokens(ranks: dict[bytes, int], text: str) -> None:
    """Where both give up looking at all pairs in favour of a queue."""
    model, tokenizer = both({token: rank + 1100 for token, rank in ranks.items()})
    assert tokenizer.encode_ordinary(text) == model.encode_ordinary(text)


def test_a_token_longer_than_any_pretoken_that_is_remembered() -> None:
    token = b"ab" * 100
    model, tokenizer = both(BYTES | {token: 300, b"ba": 299})
    for text in (token.decode(), token.decode() + "a", "a" + token.decode()):
        assert tokenizer.encode_ordinary(text) == model.encode_ordinary(text)
    assert tokenizer.encode_ordinary(token) == [300]


@given(
    merges=st.lists(
        st.tuples(st.text("ab ", min_size=1, max_size=3), st.text("ab ", min_size=1, max_size=3)), max_size=6
    ),
    more=st.lists(st.text("ab ", min_size=2, max_size=6), max_size=4, unique=True),
    ignore_merges=st.booleans(),
    texts=st.lists(st.text("ab ", max_size=12), max_size=8),
)
@example([("a", "b"), ("ab", "a")], ["aab", "abab", "aba"], True, ["aab", "abab", "aba", "abaa", "aab<s>aab"])
@examples(2)
def test_whole_tokens_are_hugging_faces(
    merges: list[tuple[str, str]], more: list[str], ignore_merges: bool, texts: list[str]
) -> None:
    """Of merges whose parts are there; tokens that merging would not make are found whole, or not at all."""
    known = {*"ab "} | set(more)
    pairs = []
    for left, right in merges:
        if {left, right} <= known and (left.encode(), right.encode()) not in pairs:
            known.add(left + right)
            pairs.append((left.encode(), right.encode()))
    model, vocabulary = huggingface.build(
        {"<s>": ()}, merges=pairs, more=[token.encode() for token in more], ignore_merges=ignore_merges
    )
    tokenizer = Tokenizer(vocabulary)
    for text in [*texts, "<s>".join(texts)]:
        assert tokenizer.encode(text) == model.encode(text).ids


def test_a_special_token_is_no_whole_token() -> None:
    tokens = dict(enumerate([*BYTES, b"<s>", b"<s", b"<t"]))
    vocabulary = Vocabulary.from_tokens(tokens, [(b"<", b"t")], ["<s>", "<t"], pattern=None, whole_tokens=True)
    tokenizer = Tokenizer(vocabulary)
    assert tokenizer.encode("<s>") == [256]
    assert tokenizer.encode_ordinary("<s>") == [*b"<s>"]
    assert tokenizer.encode_ordinary("<s") == [257]
    assert tokenizer.encode_ordinary("<t") == [258]


def test_merges_are_all_ways_to_divide_a_token() -> None:
    vocabulary = Vocabulary.from_ranks(BYTES | {b"aaa": 256, b"aa": 258}, pattern=None)
    assert vocabulary.merges.tolist() == [[97, 258, 256], [258, 97, 256], [97, 97, 258]]
    assert len(vocabulary) == 259
    assert vocabulary.tokens[257] == b""
    assert 257 not in vocabulary.to_dict()
    assert (vocabulary.ranks, vocabulary.whole_tokens, vocabulary.ties) == ("tokens", True, "ids")


@pytest.mark.parametrize(
    ("ranks", "special", "message"),
    [
        (BYTES | {b"ab": 97}, {}, "rank 97 is given to b'a' and to b'ab': each needs its own"),
        (
            {token: rank for token, rank in BYTES.items() if token != b"x"},
            {},
            "1 of the 256 single bytes have no id, 0x78",
        ),
        (BYTES, {"<s>": 7}, r"special token '<s>' has id 7, which is the rank of b'\x07'"),
        (BYTES, {"a": 97}, "special token 'a' has id 97, which is the rank of b'a'"),
        (BYTES | {b"ab": -1}, {}, "b'ab' has id -1: a whole number from 0 to"),
        (BYTES | {b"ab": "256"}, {}, "b'ab' has id '256'"),
        (BYTES | {b"ab": 1 << 40}, {}, f"b'ab' has id {1 << 40}"),
        (BYTES | {"ab": 256}, {}, "id 256 has 'ab' where one byte or more"),
        (BYTES | {b"": 256}, {}, "id 256 has"),
        (BYTES, {"<s>": -1}, "special token '<s>' has id -1"),
    ],
)
def test_refuses(ranks: dict[bytes, int], special: dict[str, int], message: str) -> None:
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_ranks(ranks, special, pattern=None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n", [3, 100])
def test_ids_without_a_token_are_unknown(n: int) -> None:
    tokenizer = both(BYTES)[1]
    assert tokenizer.decode([97] * n + [1017]) == "a" * n + "<t>"
    decoder = tokenizer.decoder()
    for decode in (tokenizer.decode, tokenizer.decode_bytes, decoder.decode):
        for ids in ([97] * n + [1001, 98], np.array([97] * n + [1001, 98])):
            with pytest.raises(
                ParameterError, match=f"token id 1001 at position {n} is unknown; ids go from 0 to 1017, and no"
            ):
                decode(ids)
    with pytest.raises(ParameterError, match=r"token id 1018 at position 0 is unknown; ids go from 0 to 1017$"):
        tokenizer.decode([1018])


VOCABS = Path(os.environ.get("DASK_BPE_VOCABS", "missing"))
NAMES = {"cl100k_base": {"<|endoftext|>": 100257, "<|endofprompt|>": 100276}, "o200k_base": {"<|endoftext|>": 199999}}


@cache
def published(name: str, pattern: str = WHOLE) -> tuple[tiktoken.Encoding, Tokenizer]:
    path = VOCABS / "tiktoken" / f"{name}.tiktoken"
    if not path.exists():
        pytest.skip(f"DASK_BPE_VOCABS names no folder with tiktoken/{name}.tiktoken")
    ranks = tiktoken.load.load_tiktoken_bpe(str(path))
    model = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=NAMES[name])
    return model, Tokenizer(Vocabulary.from_ranks(ranks, NAMES[name], pattern=pattern))


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_published_vocabularies_on_text(name: str, alice: str, poems: str) -> None:
    model, tokenizer = published(name, r"[ ]?[^ ]+|[ ]+")
    for text in (alice[:20_000], poems, "a" * 500 + " " * 500 + "-" * 999 + "é" * 300):
        assert tokenizer.encode_ordinary(text) == model.encode_ordinary(text)


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_published_vocabularies_on_pretokens(name: str) -> None:
    """Tokens alone and joined at random, each text one pre-token, of bytes that need not be UTF-8."""
    model, tokenizer = published(name)
    encoder = Encoder(dataclasses.replace(tokenizer.vocabulary, pattern=None))
    rng = random.Random(0)
    tokens = [model.decode_single_token_bytes(index) for index in range(100_000)]
    for parts in range(1, 6):
        texts = tokens if parts == 1 else [b"".join(rng.choices(tokens, k=parts)) for _ in range(5000)]
        ragged = Ragged.from_list(texts)
        ids, offsets = encoder.encode_segments(ragged.values, ragged.offsets[:-1], ragged.offsets[1:])
        found = [ids[start:stop].tolist() for start, stop in pairwise(offsets)]
        assert found == [model._encode_single_piece(text) for text in texts]


@pytest.mark.peers
def test_a_published_vocabulary_travels_small() -> None:
    vocabulary = published("cl100k_base")[1].vocabulary
    state = pickle.dumps(vocabulary)
    assert len(state) < 1_200_000
    assert pickle.loads(state) == vocabulary
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary
