"""Training that begins with the characters of the corpus, against twins that know characters only."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st
from reference import TIES
from strategies import examples

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer
from dask_bpe.errors import ParameterError
from dask_bpe.training import fit as training
from dask_bpe.training.alphabet import count_characters

ENDOFTEXT = "<|endoftext|>"
# Some share their first bytes with others: U+AC00 and U+AC01 two of three, the emoji three of four.
LETTERS = "aab éñ가각나中串😀😁"


def words() -> st.SearchStrategy[dict[bytes, int]]:
    whole = st.text(LETTERS, min_size=1, max_size=8).map(str.encode)
    broken = st.lists(
        st.sampled_from([b"a", "가".encode(), b"\xea\xb0", b"\xea", b"\x80", b"\xf0\x9f", b"\xff"]), min_size=1
    )
    return st.dictionaries(
        st.one_of(whole, whole, broken.map(b"".join)), st.sampled_from([1, 2, 3]), min_size=1, max_size=8
    )


def counted(words: dict[bytes, int], special_tokens: list[str] | None = None) -> PretokenCounts:
    return PretokenCounts.from_mapping(words, pattern=None, special_tokens=special_tokens or [])


def naive_characters(words: dict[bytes, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, n in words.items():
        for character in word.decode("utf-8", "surrogateescape"):
            if not "\ud800" <= character <= "\udfff":
                found[character] += n
    return found


def naive_alphabet(words: dict[bytes, int], least: int = 1, longest: int | None = None) -> list[bytes]:
    """The characters, the most frequent first, and before each what of its beginnings is not there yet."""
    found = sorted(naive_characters(words).items(), key=lambda item: (-item[1], item[0]))
    spelled = [character.encode() for character, n in found if n >= least]
    kept = [token for token in spelled if longest is None or len(token) <= longest]
    return list(dict.fromkeys(token[:end] for token in kept for end in range(2, len(token) + 1)))


def naive_symbols(word: bytes, alphabet: list[bytes]) -> list[bytes]:
    """The word in characters of the alphabet; where none stands, the longest beginning of one, or a byte."""
    symbols = []
    while word:
        symbols.append(max((token for token in alphabet if word.startswith(token)), key=len, default=word[:1]))
        word = word[len(symbols[-1]) :]
    return symbols


def merged(symbols: list[bytes], left: bytes, right: bytes) -> list[bytes]:
    result: list[bytes] = []
    here = 0
    while here < len(symbols):
        found = symbols[here : here + 2] == [left, right]
        result.append(left + right if found else symbols[here])
        here += 2 if found else 1
    return result


@pytest.mark.parametrize("ties", TIES)
@given(
    words=words(),
    n_merges=st.integers(0, 20),
    special_tokens=st.sampled_from([[], [ENDOFTEXT]]),
    least=st.sampled_from([1, 1, 2, 4]),
    min_frequency=st.sampled_from([1, 2, 3]),
    max_token_length=st.sampled_from([None, None, 1, 2, 3, 6]),
)
@example({"가각".encode(): 1}, 5, [], 1, 2, 2)
@examples(0.6)
def test_training_is_the_oracle(
    ties: str,
    words: dict[bytes, int],
    n_merges: int,
    special_tokens: list[str],
    least: int,
    min_frequency: int,
    max_token_length: int | None,
) -> None:
    alphabet = naive_alphabet(words, least, max_token_length)
    first = 256 + len(special_tokens)
    ids = {bytes([byte]): byte for byte in range(256)} | {token: first + k for k, token in enumerate(alphabet)}
    pairs = [(ids[token[:-1]], token[-1]) for token in alphabet]
    size = first + len(alphabet) + n_merges
    result = training.fit(
        counted(words, special_tokens),
        size,
        ties=ties,
        alphabet="characters",
        min_character_count=least,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
    )
    expected = reference.train(words, size, special_tokens, ties, min_frequency, max_token_length, given=pairs)
    assert list(result.vocabulary.tokens) == expected.tokens
    assert [tuple(row) for row in result.vocabulary.merges.tolist()] == expected.merges
    log = result.log
    columns = (log.left, log.right, log.count, log.tokens_after)
    assert [*zip(*(column.tolist() for column in columns), strict=True)] == expected.log
    assert result.n_given == len(alphabet)


@given(words=words(), others=words(), n_merges=st.integers(0, 12), least=st.sampled_from([1, 1, 2, 4]))
@example({"가가".encode(): 2, "각".encode(): 1}, {"각나".encode() + b"\xff": 1, "각가".encode(): 1}, 3, 2)
@examples(0.7)
def test_merges_and_ids_are_those_of_a_twin_of_characters(
    words: dict[bytes, int], others: dict[bytes, int], n_merges: int, least: int
) -> None:
    """It has no chains of merges: words are lists of characters from the start, merged by recounting."""
    alphabet = naive_alphabet(words, least)
    symbols = [(naive_symbols(word, alphabet), n) for word, n in words.items()]
    learned: list[tuple[bytes, bytes]] = []
    while len(learned) < n_merges:
        pairs: Counter[tuple[bytes, bytes]] = Counter()
        for word, n in symbols:
            for pair in pairwise(word):
                pairs[pair] += n
        if not pairs:
            break
        learned.append(max(pairs, key=lambda pair: (pairs[pair], pair)))
        symbols = [(merged(word, *learned[-1]), n) for word, n in symbols]
    size = 256 + len(alphabet) + n_merges
    result = training.fit(counted(words), size, alphabet="characters", min_character_count=least)
    assert result.vocabulary.merge_bytes()[len(alphabet) :] == learned
    tokenizer = Tokenizer(result.vocabulary)
    for word in [*words, *others]:
        expected = naive_symbols(word, alphabet)
        for pair in learned:
            expected = merged(expected, *pair)
        ids = tokenizer.encode_ordinary(word)
        assert [tokenizer.token_bytes(index) for index in ids] == expected
        assert tokenizer.decode_bytes(ids) == word


@given(words=words())
def test_characters_are_counted_as_python_decodes(words: dict[bytes, int]) -> None:
    found = count_characters(counted(words))
    assert found == naive_characters(words)
    assert list(found) == [c for c, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


@pytest.mark.parametrize("place", ["start", "after_bytes", "end"])
def test_every_character_of_the_corpus_is_one_token(place: str, corpus: list[str], tmp_path: Path) -> None:
    rules: dict[str, Any] = {"special_tokens": [ENDOFTEXT], "special_tokens_at": place, "alphabet": "characters"}
    tokenizer = dask_bpe.train(iter(corpus), 2000, **rules)
    report = tokenizer.training
    assert report is not None
    seen = set("".join(corpus))
    assert all(len(tokenizer.encode_ordinary(character)) == 1 for character in seen)
    assert report.n_given == len(naive_alphabet({line.encode(): 1 for line in corpus}))
    assert tokenizer.vocab_size == 257 + report.n_merges == 2000
    assert "鱻" not in seen
    assert len(tokenizer.encode("鱻")) > 1
    assert tokenizer.decode(tokenizer.encode("鱻")) == "鱻"
    least = 257 + report.n_given
    with pytest.raises(ParameterError, match=f"give at least {least}, or a larger min_character_count"):
        dask_bpe.train(iter(corpus), least - 1, **rules)
    characters = dask_bpe.train(iter(corpus), least, **rules)
    assert all(len(characters.encode_ordinary(line)) == len(line) for line in corpus)
    tokenizer.to_huggingface(tmp_path / "tokenizer.json")
    same = Tokenizer.from_huggingface(tmp_path / "tokenizer.json")
    assert same.encode_batch(corpus) == tokenizer.encode_batch(corpus)


def test_what_was_dropped_may_have_been_characters() -> None:
    """Rare pre-tokens decide which characters there are, so that nothing can be proved without them."""
    counts = PretokenCounts.from_mapping({"가가": 100, "ab": 50, "나": 1})
    kept = training.fit(counts.at_least(2), 262, alphabet="characters")
    assert kept.n_proved == 0
    whole = training.fit(counts, 262, alphabet="characters")
    assert whole.n_proved == len(whole.log) == 6


def test_what_is_no_alphabet_is_said() -> None:
    counts = PretokenCounts.from_mapping({"ab": 1})
    with pytest.raises(ParameterError, match="alphabet is 'letters': known are bytes, characters"):
        training.fit(counts, 300, alphabet="letters")
    with pytest.raises(ParameterError, match='is about the alphabet "characters"'):
        training.fit(counts, 300, min_character_count=2)
    with pytest.raises(ParameterError, match="min_character_count is 0: 1 or more"):
        training.fit(counts, 300, alphabet="characters", min_character_count=0)
