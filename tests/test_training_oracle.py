"""Training gives the merges of an oracle that recounts every pair at every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import strategies
from hypothesis import example, given
from hypothesis import strategies as st
from reference import TIES, Trained
from strategies import examples

import dask_bpe
from dask_bpe import PretokenCounts
from dask_bpe.training import fit as training

ENDOFTEXT = "<|endoftext|>"
T10 = {b"slow": 4, b"slower": 2, b"lowest": 3, b"newest": 3}
HUGE = [3_000_000_000, 2**31 - 1, 2**31, 2**32 + 1, 2**40]


def documents(texts: Iterable[str]) -> Iterator[str]:
    """The texts as a source: a list of str would be a list of paths."""
    yield from texts


def fit(words: Mapping[bytes, int], vocab_size: int, special_tokens: Iterable[str] = (), **rules: Any) -> Any:
    """What `training.fit` makes of these counts."""
    special = list(special_tokens)
    counts = PretokenCounts.from_mapping(words, special_tokens=special)
    return training.fit(counts, vocab_size, special_tokens=special, **rules)


def assert_trained(result: Any, expected: Trained) -> None:
    """The vocabulary and every row of the log are those of the oracle."""
    log = result.log
    rows = zip(log.left.tolist(), log.right.tolist(), log.count.tolist(), log.tokens_after.tolist(), strict=True)
    assert list(rows) == expected.log
    assert_vocabulary(result.vocabulary, expected)


def assert_vocabulary(vocabulary: dask_bpe.Vocabulary, expected: Trained) -> None:
    assert vocabulary.merge_bytes() == expected.merge_bytes
    assert [tuple(row) for row in vocabulary.merges.tolist()] == expected.merges
    assert list(vocabulary.tokens) == expected.tokens
    assert dict(vocabulary.special_tokens) == expected.special_tokens


@pytest.mark.parametrize("ties", TIES)
@given(
    words=strategies.tied_counts(),
    n_merges=st.integers(0, 40),
    special_tokens=st.sampled_from([[], [ENDOFTEXT], ["<|b|>", "<|a|>"]]),
    min_frequency=st.sampled_from([1, 1, 2, 3, 7]),
    max_token_length=st.sampled_from([None, None, 2, 3, 4, 7]),
)
@example({b"a" * 17: 1}, 40, [], 1, None)
@example({b"aaa": 2, b"aa": 1, b"aaaa": 1}, 10, [], 1, 3)
@example({b"abab": 1, b"baba": 1}, 10, [], 1, None)
@example({b"x": 3}, 10, [], 1, None)
def test_fit_is_the_oracle(
    ties: str,
    words: dict[bytes, int],
    n_merges: int,
    special_tokens: list[str],
    min_frequency: int,
    max_token_length: int | None,
) -> None:
    size = 256 + len(special_tokens) + n_merges
    result = fit(
        words,
        size,
        special_tokens,
        ties=ties,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
    )
    expected = reference.train(words, size, special_tokens, ties, min_frequency, max_token_length)
    assert_trained(result, expected)
    assert result.vocabulary.ties == ties


@pytest.mark.parametrize("ties", TIES)
@given(texts=st.lists(strategies.tied_text(), min_size=1, max_size=5), n_merges=st.integers(1, 30))
@examples(0.5)
def test_train_on_strings_is_the_oracle(ties: str, texts: list[str], n_merges: int) -> None:
    if not any(texts):
        texts = ["a"]
    special = [ENDOFTEXT]
    tokenizer = dask_bpe.train(documents(texts), 257 + n_merges, special_tokens=special, ties=ties)
    counts = reference.count(texts, special_tokens=special)
    assert_vocabulary(tokenizer.vocabulary, reference.train(counts, 257 + n_merges, special, ties))


@pytest.mark.parametrize("ties", TIES)
@given(drawn=strategies.with_special_tokens(strategies.tied_text(10)), n_merges=st.integers(1, 20))
@examples(0.5)
def test_special_tokens_are_neither_counted_nor_merged(ties: str, drawn: tuple[str, list[str]], n_merges: int) -> None:
    text, special = drawn
    size = 256 + len(special) + n_merges
    tokenizer = dask_bpe.train(documents(["a", text]), size, special_tokens=special, ties=ties)
    expected = reference.train(reference.count(["a", text], special_tokens=special), size, special, ties)
    assert_vocabulary(tokenizer.vocabulary, expected)


@pytest.mark.parametrize("ties", TIES)
@given(texts=st.lists(strategies.tied_text(30), min_size=1, max_size=3), n_merges=st.integers(1, 30))
@examples(0.4)
def test_without_a_pattern_merges_cross_spaces(ties: str, texts: list[str], n_merges: int) -> None:
    texts = [*texts, "a b"]
    tokenizer = dask_bpe.train(documents(texts), 256 + n_merges, pattern=None, ties=ties)
    expected = reference.train(reference.count(texts, None), 256 + n_merges, (), ties)
    assert_vocabulary(tokenizer.vocabulary, expected)
    assert tokenizer.pattern is None


def test_without_a_pattern_the_is_one_token() -> None:
    text = "in the end the cat and the dog met the others at the gate of the town"
    tokenizer = dask_bpe.train(documents([text]), 300, pattern=None)
    assert b" the " in tokenizer.vocabulary.tokens


@pytest.mark.parametrize("ties", TIES)
def test_real_text_is_the_oracle(ties: str, corpus: list[str]) -> None:
    tokenizer = dask_bpe.train(documents(corpus), 420, special_tokens=[ENDOFTEXT], ties=ties)
    expected = reference.train(reference.count(corpus), 420, [ENDOFTEXT], ties)
    assert_vocabulary(tokenizer.vocabulary, expected)


def test_worked_example_of_the_log() -> None:
    result = fit(T10, 1000, ties="ids")
    log, tokens = result.log, result.vocabulary.tokens
    products = [tokens[a] + tokens[b] for a, b in zip(log.left.tolist(), log.right.tolist(), strict=True)]
    rows = [*zip(products, log.count.tolist(), log.tokens_after.tolist(), strict=True)]
    assert rows[:5] == [(b"lo", 9, 55), (b"low", 9, 46), (b"es", 6, 40), (b"slow", 6, 34), (b"est", 6, 28)]
    assert len(rows) == 11
    assert rows[-1][2] == 12
    assert result.stop != "vocab_size"
    assert fit(T10, 261, ties="ids").stop == "vocab_size"


def test_worked_example_of_min_frequency() -> None:
    """The teaching-lab variant of the same words: the pairs that occur once or twice are left alone."""
    assert_trained(
        fit(T10, 1000, ties="ids", min_frequency=3),
        reference.train(T10, 1000, ties="ids", min_frequency=3),
    )


@pytest.mark.parametrize("ties", TIES)
@given(words=strategies.tied_counts(), small=st.integers(0, 20), more=st.integers(0, 20))
def test_a_larger_vocabulary_extends_a_smaller_one(ties: str, words: dict[bytes, int], small: int, more: int) -> None:
    head = fit(words, 256 + small, ties=ties).vocabulary
    whole = fit(words, 256 + small + more, ties=ties).vocabulary
    assert whole.merges[: len(head.merges)].tolist() == head.merges.tolist()
    assert whole.tokens[: len(head)] == head.tokens


@pytest.mark.parametrize("ties", TIES)
@given(words=strategies.tied_counts(), n_merges=st.integers(0, 60))
def test_properties_of_what_is_learned(ties: str, words: dict[bytes, int], n_merges: int) -> None:
    result = fit(words, 257 + n_merges, [ENDOFTEXT], ties=ties)
    vocabulary, log = result.vocabulary, result.log
    symbols = sum(len(word) * count for word, count in words.items())
    assert len(vocabulary) == 257 + len(vocabulary.merges) <= 257 + n_merges
    assert len(vocabulary.merges) <= symbols - sum(words.values())
    assert (log.count > 0).all()
    assert (np.diff(log.count) <= 0).all(), "no pair is ever born more frequent than the one just merged"
    assert (np.diff(log.tokens_after, prepend=symbols) < 0).all()
    assert len(log.count) == len(vocabulary.merges)
    assert all(ENDOFTEXT not in token.decode("utf-8", "replace") for token in vocabulary.tokens[257:])


@pytest.mark.parametrize("ties", TIES)
@given(words=strategies.tied_counts(4, [*HUGE, 1, 2]), n_merges=st.integers(1, 20))
@examples(0.5)
def test_counts_beyond_32_bits(ties: str, words: dict[bytes, int], n_merges: int) -> None:
    assert_trained(fit(words, 256 + n_merges, ties=ties), reference.train(words, 256 + n_merges, ties=ties))


def test_counts_beyond_32_bits_are_exact() -> None:
    words = {
        b"ab": 3_000_000_000,
        b"abab": 2**40,
        b"cd": 2**41 + 3_000_000_000 - 1,
        b"ef": 2**32 + 1,
        b"g": 1,
    }
    log = fit(words, 258).log
    assert log.count.dtype == log.tokens_after.dtype == np.int64
    assert log.count.tolist() == [2**41 + 3_000_000_000, 2**41 + 3_000_000_000 - 1]


@given(words=strategies.tied_counts(), scale=st.sampled_from([1, 2, 1000, 2**33]))
def test_counts_add_up(words: dict[bytes, int], scale: int) -> None:
    counts = PretokenCounts.from_mapping({word: scale * n for word, n in words.items()})
    assert (counts + counts).to_dict() == {word: 2 * scale * n for word, n in words.items()}
    assert counts.total == scale * sum(words.values())
    assert len(counts) == len(words)


@pytest.mark.parametrize("ties", TIES)
def test_saved_counts_train_the_identical_vocabulary(ties: str, corpus: list[str], tmp_path: Path) -> None:
    rules: dict[str, Any] = {"special_tokens": [ENDOFTEXT], "ties": ties}
    counts = dask_bpe.count_pretokens(documents(corpus), special_tokens=[ENDOFTEXT])
    counts.to_parquet(tmp_path / "counts.parquet")
    loaded = PretokenCounts.from_parquet(tmp_path / "counts.parquet")
    assert loaded.to_dict() == counts.to_dict() == reference.count(corpus)
    dask_bpe.train(documents(corpus), 400, **rules).save(tmp_path / "from_text.json")
    dask_bpe.train(counts, 400, **rules).save(tmp_path / "from_counts.json")
    dask_bpe.train(loaded, 400, **rules).save(tmp_path / "from_file.json")
    written = {(tmp_path / f"from_{source}.json").read_bytes() for source in ("text", "counts", "file")}
    assert len(written) == 1


def test_parts_of_the_corpus_counted_apart_add_up(corpus: list[str]) -> None:
    whole = dask_bpe.count_pretokens(documents(corpus))
    parts = [dask_bpe.count_pretokens(documents(part)) for part in (corpus[:7], corpus[7:])]
    assert (parts[0] + parts[1]).to_dict() == (parts[1] + parts[0]).to_dict() == whole.to_dict()
    for ties in TIES:
        assert (
            training.fit(parts[0] + parts[1], 400, ties=ties).vocabulary
            == training.fit(whole, 400, ties=ties).vocabulary
        )


def test_the_course_interface(tmp_path: Path) -> None:
    text = f"low low low{ENDOFTEXT}lower newest newest\r\nwidest 自 {ENDOFTEXT}"
    path = tmp_path / "corpus.txt"
    path.write_bytes(text.encode())
    expected = reference.train(reference.count([text], special_tokens=[ENDOFTEXT]), 270, [ENDOFTEXT])
    vocab, merges = dask_bpe.train_bpe(path, 270, [ENDOFTEXT])
    assert vocab == dict(enumerate(expected.tokens))
    assert merges == expected.merge_bytes
    assert vocab[256] == ENDOFTEXT.encode()


@pytest.mark.parametrize("max_bytes", [1, 3, 5, 11, 24, 40, 10_000])
def test_the_course_interface_on_a_prefix_of_the_file(max_bytes: int, tmp_path: Path) -> None:
    data = f"low low low{ENDOFTEXT}lower newest newest widest".encode()
    path = tmp_path / "corpus.txt"
    path.write_bytes(data)
    counts = reference.count([data[:max_bytes].decode()], special_tokens=[ENDOFTEXT])
    expected = reference.train(counts, 270, [ENDOFTEXT])
    assert dask_bpe.train_bpe(str(path), 270, [ENDOFTEXT], max_bytes=max_bytes) == (
        dict(enumerate(expected.tokens)),
        expected.merge_bytes,
    )


def test_a_prefix_that_ends_inside_a_character(tmp_path: Path) -> None:
    """The file is valid, so nothing in it is invalid; what is left of the last character is not text."""
    path = tmp_path / "corpus.txt"
    path.write_bytes("ab 自君".encode())
    for max_bytes, text in ((3, "ab "), (4, "ab "), (5, "ab "), (6, "ab 自"), (8, "ab 自"), (9, "ab 自君")):
        expected = reference.train(reference.count([text]), 262)
        assert dask_bpe.train_bpe(path, 262, [], max_bytes=max_bytes)[1] == expected.merge_bytes
