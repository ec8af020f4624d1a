"""Encoding gives the ids of an oracle that looks for the lowest rank at every step, and of GPT-2's tools."""

from __future__ import annotations

import json
import random
import time
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import strategies
import tiktoken
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st
from reference import GPT2, TIES, Trained
from strategies import examples

from dask_bpe import Tokenizer
from dask_bpe.encoder import Encoder
from dask_bpe.vocabulary import Vocabulary

ENDOFTEXT = "<|endoftext|>"


def vocabulary_of(trained: Trained, ties: str = "bytes") -> Vocabulary:
    """The same vocabulary, ids included, as the package knows it."""
    pattern = "gpt2" if trained.pattern == GPT2 else trained.pattern
    merges = np.array(trained.merges, np.int32).reshape(-1, 3)
    return Vocabulary(tuple(trained.tokens), merges, trained.special_tokens, pattern, ties)


@st.composite
def trained_vocabularies(draw: st.DrawFn) -> tuple[Trained, str]:
    """Trained by the oracle on text full of ties, with or without merges that cross the pattern's cuts."""
    texts = draw(st.lists(st.one_of(strategies.tied_text(), strategies.text(12)), min_size=1, max_size=4))
    ties = draw(st.sampled_from(TIES))
    special = draw(st.sampled_from([[], [ENDOFTEXT], ["<|a|>", "<|a|><|b|>"]]))
    counts = reference.count(texts, draw(st.sampled_from([None, GPT2])), special)
    size = 256 + len(special) + draw(st.integers(0, 60))
    return reference.train(counts, size, special, ties, pattern=draw(st.sampled_from([None, GPT2]))), ties


@st.composite
def arbitrary_vocabularies(draw: st.DrawFn) -> Trained:
    """Merges in an order that no training gives: products before parts, one product in two ways."""
    words = draw(st.lists(st.text("abc", min_size=2, max_size=6), min_size=1, max_size=8, unique=True))
    pairs = {
        (word[:i].encode(), word[i:j].encode()) for word in words for j in range(2, len(word) + 1) for i in range(1, j)
    }
    merges = draw(st.permutations(sorted(pairs)).map(lambda order: order[:30]))
    products = [part for left, right in merges for part in (left, right, left + right) if len(part) > 1]
    tokens = {i: bytes([i]) for i in range(256)} | {256 + i: token for i, token in enumerate(dict.fromkeys(products))}
    return reference.vocabulary(tokens, merges)


def any_text() -> st.SearchStrategy[str | bytes]:
    return st.one_of(strategies.tied_text(60), strategies.text(20), strategies.broken_utf8(), st.binary(max_size=40))


@given(drawn=trained_vocabularies(), texts=st.lists(any_text(), min_size=1, max_size=4))
@examples(2.5)
def test_encoder_is_the_oracle(drawn: tuple[Trained, str], texts: list[str | bytes]) -> None:
    trained, ties = drawn
    segments = [text.encode() if isinstance(text, str) else text for text in texts]
    ends = np.cumsum([len(segment) for segment in segments])
    starts = ends - [len(segment) for segment in segments]
    text = np.frombuffer(b"".join(segments), np.uint8)
    encoder = Encoder(vocabulary_of(trained, ties))
    for _ in range(2):  # the second time from whatever the encoder remembers
        ids, offsets = encoder.encode_segments(text, starts.astype(np.int64), ends.astype(np.int64))
        parts = [ids[a:b].tolist() for a, b in pairwise(offsets)]
        assert parts == [reference.encode(segment, trained, ()) for segment in segments]
        assert (ids.dtype, offsets.dtype, int(offsets[0])) == (np.uint32, np.int64, 0)


@given(drawn=trained_vocabularies(), texts=st.lists(any_text(), min_size=1, max_size=4))
def test_tokenizer_is_the_oracle(drawn: tuple[Trained, str], texts: list[str | bytes]) -> None:
    trained, ties = drawn
    tokenizer = Tokenizer(vocabulary_of(trained, ties))
    for text in texts:
        data = reference.characters(text).encode("utf-8", "surrogateescape")
        ids = tokenizer.encode(text)
        assert ids == reference.encode(text, trained)
        assert tokenizer.encode_ordinary(text) == reference.encode(text, trained, ())
        assert tokenizer.decode_bytes(ids) == data
        assert tokenizer.decode(ids) == data.decode("utf-8", "replace")
        assert tokenizer.count_tokens(text) == len(ids) <= len(data)
        assert tokenizer.encode_to_numpy(text).tolist() == ids
    assert tokenizer.encode_batch(texts) == [reference.encode(text, trained) for text in texts]


@given(texts=st.lists(strategies.tied_text(300), min_size=1, max_size=2), size=st.integers(257, 300))
@examples(0.5)
def test_long_pretokens_are_the_oracle(texts: list[str], size: int) -> None:
    """Beyond the length at which a search for the lowest rank gives way to a queue."""
    trained = reference.train(reference.count([*texts, "aa"], None), size, pattern=None)
    tokenizer = Tokenizer(vocabulary_of(trained))
    for text in (*texts, "".join(texts), texts[0] * 3):
        assert tokenizer.encode(text) == reference.encode(text, trained)


@pytest.mark.parametrize("alphabet", ["a", "ab", "the of and ", "中文é "])
def test_pretokens_of_every_length_are_the_oracle(alphabet: str) -> None:
    """Short, middling and long ones are merged by three different loops."""
    rng = random.Random(alphabet)
    texts = ["".join(rng.choices(alphabet, k=size)) for size in range(1, 150)]
    trained = reference.train(reference.count(texts[::7], None), 320, ties="bytes")
    vocabulary = Vocabulary(tuple(trained.tokens), np.array(trained.merges, np.int32).reshape(-1, 3), {}, None)
    expected = [reference.encode_pretoken(text.encode(), trained) for text in texts]
    assert Tokenizer(vocabulary).encode_batch(texts) == expected


@given(trained=arbitrary_vocabularies(), text=st.text("abc", max_size=40))
@example(
    reference.vocabulary(
        {i: bytes([i]) for i in range(256)} | {256: b"bc", 257: b"abc", 258: b"abcd"},
        [(b"abc", b"d"), (b"b", b"c"), (b"a", b"bc")],
    ),
    "abcdabcd",
)
@examples(2.5)
def test_merges_that_no_training_gives(trained: Trained, text: str) -> None:
    """A rank lower than the one just applied may come into reach: it is next."""
    pairs = trained.merge_bytes
    tokenizer = Tokenizer(dict(enumerate(trained.tokens)), pairs)
    assert tokenizer.encode(text) == reference.encode(text, trained)


@given(drawn=strategies.with_special_tokens(strategies.text(3)), data=st.data())
def test_special_tokens_and_chunks(drawn: tuple[str, list[str]], data: st.DataObject) -> None:
    text, special = drawn
    trained = reference.train(reference.count([text], None), 280 + len(special), special)
    tokenizer = Tokenizer(vocabulary_of(trained))
    expected = reference.encode(text, trained)
    assert tokenizer.encode(text) == expected
    assert tokenizer.encode_batch([text, "", text]) == [expected, [], expected]
    chunks = data.draw(st.one_of(strategies.cuts(text), strategies.cuts(text.encode())))
    assert list(tokenizer.encode_iterable(chunks)) == expected


@given(drawn=trained_vocabularies(), text=any_text(), data=st.data())
def test_any_chunks_give_the_ids_of_the_whole(
    drawn: tuple[Trained, str], text: str | bytes, data: st.DataObject
) -> None:
    trained, ties = drawn
    tokenizer = Tokenizer(vocabulary_of(trained, ties))
    raw = reference.characters(text).encode("utf-8", "surrogateescape")
    assert list(tokenizer.encode_iterable(data.draw(strategies.cuts(raw)))) == reference.encode(raw, trained)
    single = [raw[i : i + 1] for i in range(len(raw))]
    assert list(tokenizer.encode_iterable(single)) == reference.encode(raw, trained)


@pytest.mark.filterwarnings("ignore::dask_bpe.errors.PatternWarning")
@pytest.mark.parametrize("pattern", strategies.PATTERNS)
@given(text=strategies.text(15), data=st.data())
@examples(0.3)
def test_any_pattern(pattern: str, text: str, data: st.DataObject) -> None:
    trained = reference.train(reference.count([text], None), 290, [ENDOFTEXT], pattern=pattern)
    tokenizer = Tokenizer(vocabulary_of(trained))
    expected = reference.encode(text, trained)
    assert tokenizer.encode(text) == expected
    assert list(tokenizer.encode_iterable(data.draw(strategies.cuts(text)))) == expected


def test_worked_examples() -> None:
    merges = [(b"l", b"o"), (b"lo", b"w"), (b"e", b"s"), (b"s", b"low"), (b"es", b"t")]
    tokens = {i: bytes([i]) for i in range(256)} | {256 + i: a + b for i, (a, b) in enumerate(merges)}
    tokenizer = Tokenizer(tokens, merges)
    assert tokenizer.encode("slowest") == [259, 260]
    assert tokenizer.encode("lower") == [257, *b"er"]
    hiragana = Tokenizer(dict(enumerate([bytes([i]) for i in range(256)])) | {256: b"\xe3\x81"}, [(b"\xe3", b"\x81")])
    assert hiragana.encode("あ") == [256, 0x82]
    assert hiragana.decode([256]) == "\ufffd"
    decoder = hiragana.decoder()
    assert [decoder.decode(i) for i in (256, 0x82)] == ["", "あ"]


def test_encoding_does_not_commute_with_concatenation() -> None:
    tokenizer = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"ab"}, [(b"a", b"b")])
    assert tokenizer.encode("a") + tokenizer.encode("b") != tokenizer.encode("ab") == [256]


@given(data=st.binary(max_size=300))
def test_every_byte_string_comes_back(data: bytes) -> None:
    tokenizer = Tokenizer(vocabulary_of(reference.train(reference.count([data[:50], b"ab"], None), 300)))
    assert tokenizer.decode_bytes(tokenizer.encode(data)) == data


@pytest.fixture(scope="module")
def gpt2(gpt2_files: tuple[Path, Path]) -> Tokenizer:
    return Tokenizer.from_gpt2(*gpt2_files)


@pytest.fixture(scope="module")
def gpt2_tiktoken(gpt2_files: tuple[Path, Path]) -> tiktoken.Encoding:
    """tiktoken with the ranks of the files: for GPT-2, ranks are the ids."""
    byte = {character: byte for byte, character in reference.byte_to_character().items()}
    ids: dict[str, int] = json.loads(gpt2_files[0].read_text(encoding="utf-8"))
    ranks = {bytes(byte[c] for c in token): i for token, i in ids.items() if token != ENDOFTEXT}
    special = {ENDOFTEXT: ids[ENDOFTEXT]}
    return tiktoken.Encoding("gpt2 of the files", pat_str=GPT2, mergeable_ranks=ranks, special_tokens=special)


@pytest.fixture(scope="module")
def gpt2_huggingface(gpt2_files: tuple[Path, Path]) -> tokenizers.Tokenizer:
    model = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*map(str, gpt2_files)))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.add_special_tokens([ENDOFTEXT])
    return model


CODE = """\
class Trie(Generic[K]):\n\tdef __init__(self, *items: tuple[str, int], default=0x7F) -> None:  # don't!
        self._root = {"a": [1_000, 2.5e-3]}\r\n
        if x != y and not (z<=3 or s == 'it''s'):\n\n\n            return f"{x!r:>10}"\n"""
TEXTS = {
    "english": "It's  THE 1st of May, isn't it? They'll've gone -- \"we're\";\n\n  naïve… don'T\tI'D 3.14%",
    "chinese": "自君之出矣，不復理殘機。思君如滿月，夜夜減清輝。　　（唐）張九齡２０２４年",
    "arabic": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. ١٢٣٤ وَقَدْ وُهِبُوا",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪🇫🇷 ☺️😀😀😀 👍🏽 ❤️‍🔥 1️⃣2️⃣ 🫠🪿",
    "code": CODE,
    "hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता १२३",
    "special": f"one{ENDOFTEXT}two {ENDOFTEXT}{ENDOFTEXT}\n<|endoftext| >",
    "spaces": "   a  \n \n\t b\r\n\r\n   \u00a0\u3000 c   ",
    "runs": "a" * 300 + " " * 200 + "-" * 100 + "0" * 77 + "\n" * 50 + "哈" * 90,
}


@pytest.mark.parametrize("name", TEXTS)
def test_gpt2_is_tiktoken_and_hugging_face(
    name: str, gpt2: Tokenizer, gpt2_tiktoken: tiktoken.Encoding, gpt2_huggingface: tokenizers.Tokenizer
) -> None:
    text = TEXTS[name]
    ids = gpt2.encode(text)
    assert ids == gpt2_tiktoken.encode(text, allowed_special="all")
    assert ids == gpt2_huggingface.encode(text).ids
    assert gpt2.encode_ordinary(text) == gpt2_tiktoken.encode_ordinary(text)
    assert gpt2.decode(ids) == text


def test_gpt2_on_books(
    gpt2: Tokenizer,
    gpt2_tiktoken: tiktoken.Encoding,
    gpt2_huggingface: tokenizers.Tokenizer,
    alice: str,
    poems: str,
) -> None:
    for text in (alice, poems):
        ids = gpt2.encode(text)
        assert ids == gpt2_tiktoken.encode(text, allowed_special="all") == gpt2_huggingface.encode(text).ids
        lines = text.splitlines(keepends=True)
        assert gpt2.encode_batch(lines) == gpt2_tiktoken.encode_batch(lines, allowed_special="all")
        assert list(gpt2.encode_iterable(lines)) == ids


def assigned(text: str) -> str:
    """Without the code points that are free in Python's Unicode: newer libraries may know them as letters."""
    return "".join(character for character in text if unicodedata.category(character) != "Cn")


@given(text=strategies.text(40).map(assigned))
@examples(2.5)
def test_gpt2_on_random_text(text: str, gpt2: Tokenizer, gpt2_tiktoken: tiktoken.Encoding) -> None:
    assert gpt2.encode(text) == gpt2_tiktoken.encode(text, allowed_special="all")


def test_gpt2_on_random_words(gpt2: Tokenizer, gpt2_tiktoken: tiktoken.Encoding) -> None:
    """Tokens of the vocabulary joined at random: merges compete in every way."""
    rng = random.Random(0)
    for _ in range(100):
        text = gpt2.decode([rng.randrange(50_256) for _ in range(100)])
        assert gpt2.encode(text) == gpt2_tiktoken.encode(text, allowed_special="all")


def seconds(call: Any, *args: Any) -> float:
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def long_pretokens(size: int) -> Iterator[tuple[str, str]]:
    """Single pre-tokens of `size` characters, in which merges overlap, compete, are nested."""
    rng = random.Random(1)
    yield "one letter", "a" * size
    yield "two letters", "".join(rng.choices("ab", k=size))
    yield "all letters", "".join(rng.choices("etaoinshrdlu", k=size))
    yield "spaces", " " * size
    yield "punctuation", "".join(rng.choices("=-*/", k=size))


def test_long_pretokens_are_right(gpt2: Tokenizer, gpt2_tiktoken: tiktoken.Encoding) -> None:
    for _, text in long_pretokens(50_000):
        assert gpt2.encode(text) == gpt2_tiktoken.encode(text)


def test_long_pretokens_take_no_more_than_n_log_n(gpt2: Tokenizer) -> None:
    """Sixteen times the length must not take a hundred times as long: a quadratic loop would take 256."""
    gpt2.encode("warm " * 3 + "a" * 1000)
    for (name, short), (_, long) in zip(long_pretokens(50_000), long_pretokens(800_000), strict=True):
        quick = min(seconds(gpt2.encode_to_numpy, short) for _ in range(3))
        slow = min(seconds(gpt2.encode_to_numpy, long) for _ in range(2))
        assert slow < 100 * max(quick, 0.005), f"{name}: {quick:.3f} s, then {slow:.3f} s"


@pytest.mark.slow
def test_a_pretoken_of_ten_megabytes(gpt2: Tokenizer) -> None:
    for name, text in long_pretokens(10_000_000):
        start = time.perf_counter()
        ids = gpt2.encode_to_numpy(text)
        assert time.perf_counter() - start < 30, name
        assert gpt2.decode_bytes(ids) == text.encode()


def test_one_long_document_without_a_pattern() -> None:
    """The whole document is one pre-token."""
    text = "".join(random.Random(2).choices(["ab", "ba", "a", " "], k=100_000))
    trained = reference.train(reference.count([text[:300]], None), 290, pattern=None)
    tokenizer = Tokenizer(vocabulary_of(trained))
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode(text[:2000]) == reference.encode(text[:2000], trained)


@pytest.mark.parametrize("repeat", [1, 3])
def test_more_distinct_words_than_any_cache_holds(
    repeat: int, gpt2: Tokenizer, gpt2_tiktoken: tiktoken.Encoding
) -> None:
    rng = random.Random(repeat)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(1, 24))) for _ in range(60_000)]
    text = " ".join(words * repeat)
    assert gpt2.encode(text) == gpt2_tiktoken.encode(text)


def test_threads_share_an_encoder(gpt2: Tokenizer, corpus: list[str]) -> None:
    expected = [gpt2.encode(text) for text in corpus]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            fresh = Tokenizer(gpt2.vocabulary)
            assert list(pool.map(fresh.encode, corpus)) == expected


def test_a_stream_is_lazy(gpt2: Tokenizer) -> None:
    """Ids come out long before the stream ends, and a stream without end can be encoded."""

    def endless() -> Iterator[str]:
        while True:
            yield "and so it goes on and on\n"

    ids = gpt2.encode_iterable(endless())
    assert gpt2.decode([next(ids) for _ in range(50)]).startswith("and so it goes on and on\nand so")


@pytest.mark.parametrize(
    "line", ["自君之出矣，不復理殘機。\n", "自君之出矣，", "Все люди рождаются\n", "1,2,3\n", "});\n"]
)
def test_a_stream_is_lazy_in_any_script(line: str, gpt2: Tokenizer) -> None:
    read = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for read in range(1, 20_001):  # noqa: B007
            yield line

    ids = gpt2.encode_iterable(counted())
    first = [next(ids) for _ in range(10)]
    assert read < 20_000
    assert [*first, *ids] == gpt2.encode(line * 20_000)
