"""Short texts, which have kernels and memory of their own, get the ids that they get as segments of a long one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe import Tokenizer
from dask_bpe.encoder import SHORT, Encoder, arrays
from dask_bpe.errors import InputError
from dask_bpe.vocabulary import Vocabulary

CORPUS = "the theory of the thing, then  the others’ 1234 123 don't \r\n\n あああ 中文中文 aab abab 😀😀" * 3
PATTERNS = ("gpt2", "cl100k", "o200k", "llama3", "deepseek", None, r"\w+|\s+|[^\w\s]+")


def vocabulary_of(pattern: str | None) -> Vocabulary:
    trained = reference.train(reference.count([CORPUS], pattern), 340, pattern=pattern)
    merges = np.array(trained.merges, np.int32).reshape(-1, 3)
    return Vocabulary(tuple(trained.tokens), merges, {}, pattern)


VOCABULARIES = {pattern: vocabulary_of(pattern) for pattern in PATTERNS}


def as_segment(encoder: Encoder, data: bytes) -> list[int]:
    """The truth: a text in the middle of another one."""
    text = np.frombuffer(b"a's " + data + b"'s 1 ", np.uint8)
    ids, _ = encoder.encode_segments(text, np.array([4]), np.array([4 + len(data)]))
    return ids.tolist()


def short(encoder: Encoder, data: bytes) -> list[int]:
    ids: list[int] = encoder.encode_text(data, np.ndarray.tolist)
    return ids


@pytest.mark.parametrize("pattern", PATTERNS)
@given(texts=st.lists(st.one_of(strategies.text(20), strategies.broken_utf8()), min_size=1, max_size=4))
def test_ids_of_a_segment(pattern: str | None, texts: list[str | bytes]) -> None:
    datas = [text.encode() if isinstance(text, str) else text for text in texts]
    encoder = Encoder(VOCABULARIES[pattern])
    expected = [as_segment(Encoder(VOCABULARIES[pattern]), data) for data in datas]
    assert [short(encoder, data) for data in datas] == expected
    # What an earlier text left behind does not matter.
    assert [short(encoder, data) for data in reversed(datas)] == expected[::-1]


def mixed(lengths: list[int]) -> Iterator[bytes]:
    """Texts that need more room than there is at first, in every array that can be too small."""
    rng = random.Random(3)
    for length in lengths:
        yield "".join(rng.choices("ab é’1\n", k=length)).encode()[:length]
        yield b"a" * length
        yield b" ".join(b"%x" % rng.getrandbits(64) for _ in range(length // 17))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_room_runs_out(pattern: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_FIRST", 1 << 10)
    monkeypatch.setattr(arrays, "_MOST", 1 << 20)
    texts = list(mixed([1, 200, 5000, SHORT - 1, SHORT, SHORT + 1, 3, 60_000, 64, 7000, SHORT]))
    encoder = Encoder(VOCABULARIES[pattern])
    for text in texts + texts[::-1]:
        assert short(encoder, text) == as_segment(Encoder(VOCABULARIES[pattern]), text)


def test_what_is_kept_past_the_limit_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    keep_first = arrays.kernels.keep_first

    def keep(count: int, cache: arrays.kernels.Cache) -> None:
        keep_first(count, cache)
        kept.append(int(cache.used[0]))

    monkeypatch.setattr(arrays.kernels, "keep_first", keep)
    monkeypatch.setattr(arrays, "_FIRST", 1 << 10)
    monkeypatch.setattr(arrays, "_MOST", 1 << 20)
    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefgh é日", k=rng.choice((2, 5, 9, 17, 40)))) for _ in range(30_000)]
    words += rng.choices(words, k=30_000)
    encoder = Encoder(VOCABULARIES["gpt2"])
    for first in range(0, len(words), 1000):
        text = " ".join(words[first : first + 1000]).encode()
        assert short(encoder, text) == as_segment(Encoder(VOCABULARIES["gpt2"]), text)
    assert len(kept) > 1
    assert min(kept) > 0


def test_text_that_the_pattern_leaves_is_an_error() -> None:
    encoder = Encoder(VOCABULARIES["gpt2"])
    picky = Encoder(vocabulary_of("[ab]+| +"))
    for _ in range(2):
        assert short(picky, b"ab ba") == as_segment(picky, b"ab ba")
        with pytest.raises(InputError, match=r"leaves 'c'.* at byte 3 of the text unmatched"):
            short(picky, b"ab c")
    assert short(encoder, b"") == []


def test_ids_taken_are_not_written_over() -> None:
    encoder = Encoder(VOCABULARIES["gpt2"])
    first = encoder.encode_text(b"the theory", np.ndarray.copy)
    expected = first.tolist()
    encoder.encode_text(b"1234 others", np.ndarray.copy)
    assert first.tolist() == expected


@pytest.mark.parametrize("pattern", ["gpt2", "o200k"])
def test_threads(pattern: str) -> None:
    encoder = Encoder(VOCABULARIES[pattern])
    rng = random.Random(7)
    texts = [" ".join(rng.choices(CORPUS.split(" "), k=rng.randrange(1, 40))).encode() for _ in range(400)]
    expected = [as_segment(encoder, text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: short(encoder, text), texts * 5)) == expected * 5


@given(texts=st.lists(st.one_of(strategies.text(), st.sampled_from(["<|a|>", "<|a|><|b|>"])), max_size=12))
def test_a_long_text_becomes_the_same_array_piece_by_piece(texts: list[str]) -> None:
    tokens = {i: bytes([i]) for i in range(256)} | {256: b"th", 257: b" t"}
    tokenizer = Tokenizer(tokens, [(b"t", b"h"), (b" ", b"t")], ["<|a|>", "<|b|>"])
    text = "".join(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dask_bpe.text_encoder._LONG", 3)
        patch.setattr("dask_bpe.encoder.SLICE_BYTES", 8)
        for dtype in ("uint16", "uint32", "int64"):
            ids = tokenizer.encode_to_numpy(text, dtype=dtype)
            assert (ids.dtype.name, ids.tolist()) == (dtype, tokenizer.encode(text))
            ordinary = tokenizer.encode_to_numpy(text, dtype=dtype, disallowed_special=())
            assert ordinary.tolist() == tokenizer.encode_ordinary(text)
