"""Training gives the vocabularies of other trainers, id by id, and the order of ids changes no merge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import reference
import regex
import strategies
import tokenizers
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from reference import GPT2, TIES
from strategies import examples

import dask_bpe
from dask_bpe import PretokenCounts, Vocabulary
from dask_bpe.cli import main
from dask_bpe.training import fit as training

ENDOFTEXT = "<|endoftext|>"
LAYOUTS = [(at, order) for at in training.PLACES for order in training.BYTE_ORDERS]
HUGGING_FACE: dict[str, Any] = {"ties": "huggingface", "special_tokens_at": "start", "byte_order": "gpt2"}
CHARACTER_OF_BYTE = reference.byte_to_character()
BYTE_OF_CHARACTER = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}


def documents(texts: Iterable[str]) -> Iterator[str]:
    """The texts as a source: a list of str would be a list of paths."""
    yield from texts


def spelled(vocabulary: Vocabulary) -> dict[str, int]:
    """The vocabulary as Hugging Face writes it: token in the characters that stand for its bytes -> id."""
    special = {index: text for text, index in vocabulary.special_tokens.items()}
    return {
        special.get(index) or "".join(CHARACTER_OF_BYTE[byte] for byte in token): index
        for index, token in enumerate(vocabulary.tokens)
    }


def huggingface(
    texts: Iterable[str], vocab_size: int, **options: Any
) -> tuple[tokenizers.Tokenizer, list[tuple[bytes, bytes]]]:
    """What the trainer of Hugging Face's `tokenizers` learns, with GPT-2's pattern; its merges as bytes."""
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = byte_level
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size, show_progress=False, initial_alphabet=byte_level.alphabet(), **options
    )
    model.train_from_iterator(texts, trainer)
    pairs = json.loads(model.to_str())["model"]["merges"]
    return model, [tuple(bytes(BYTE_OF_CHARACTER[c] for c in part) for part in pair) for pair in pairs]


def assert_same_as_huggingface(
    texts: list[str], vocab_size: int, special: list[str], options: dict[str, Any] | None = None, **rules: Any
) -> dask_bpe.Tokenizer:
    """Same ids, same merges; returns ours."""
    ours = dask_bpe.train(documents(texts), vocab_size, special_tokens=special, **HUGGING_FACE, **rules)
    model, merges = huggingface(texts, vocab_size, special_tokens=special, **(options or rules))
    assert ours.vocabulary.merge_bytes() == merges
    assert spelled(ours.vocabulary) == model.get_vocab()
    return ours


def few_letters(max_size: int = 400) -> st.SearchStrategy[str]:
    """Text of two or three letters, in which most counts are tied."""
    alphabet = st.sampled_from(["ab ", "abc ", "aé ", "ab\n", "a1! ", "自君"])
    return alphabet.flatmap(lambda letters: st.text(letters, min_size=1, max_size=max_size))


@given(
    texts=st.lists(st.one_of(strategies.tied_text(), few_letters()), min_size=1, max_size=5),
    n_merges=st.integers(0, 60),
    rare=st.integers(1, 3),
    special=st.sampled_from([[], [ENDOFTEXT], ["<|b|>", "<|a|>"]]),
)
@example(["aaaaaaa aaaaaa aaaaa aaaa aaa aa a"], 20, 1, [])
@example(["abababab babababa aabb bbaa"], 30, 1, [ENDOFTEXT])
def test_huggingface_on_ties(texts: list[str], n_merges: int, rare: int, special: list[str]) -> None:
    texts = [*texts, "ab"]
    assert_same_as_huggingface(texts, 256 + len(special) + n_merges, special, min_frequency=rare)


def test_huggingface_on_real_text(alice: str, poems: str) -> None:
    texts = [*alice.split("\n"), *poems.split("\n")]
    special = [ENDOFTEXT, "<|pad|>"]
    tokenizer = assert_same_as_huggingface(texts, 3000, special)
    model, _ = huggingface(texts, 3000, special_tokens=special)
    for text in (alice[-2000:], poems[-500:], f"Quite other words: 'tis 3.14!{ENDOFTEXT}"):
        assert tokenizer.encode(text) == model.encode(text).ids


def test_huggingface_until_nothing_is_left(corpus: list[str]) -> None:
    """Down to the pairs that occur once, thousands of them tied."""
    tokenizer = assert_same_as_huggingface(corpus, 20_000, [ENDOFTEXT])
    assert len(tokenizer) < 20_000


@pytest.mark.parametrize("rare", [2, 3, 10])
def test_huggingface_with_a_least_frequency(rare: int, alice: str) -> None:
    tokenizer = assert_same_as_huggingface(alice.split("\n"), 5000, [ENDOFTEXT], min_frequency=rare)
    assert len(tokenizer) < 5000


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6, 17])
def test_huggingface_with_a_longest_token(limit: int, alice: str) -> None:
    """Its limit is the first length that it refuses, and two bytes it always allows; ours is the last allowed."""
    longest = max(limit - 1, 2)
    tokenizer = assert_same_as_huggingface(
        alice.split("\n"), 1500, [ENDOFTEXT], {"max_token_length": limit}, max_token_length=longest
    )
    learned = tokenizer.vocabulary.tokens[257:]
    assert max(map(len, learned)) <= longest


@given(texts=st.lists(few_letters(), min_size=1, max_size=3), limit=st.integers(1, 9))
@examples(0.5)
def test_huggingface_with_a_longest_token_on_ties(texts: list[str], limit: int) -> None:
    assert_same_as_huggingface(texts, 300, [], {"max_token_length": limit}, max_token_length=max(limit - 1, 2))


@pytest.mark.parametrize("limit", [256, 300])
def test_huggingface_with_a_limit_of_the_alphabet(limit: int, alice: str) -> None:
    """All bytes are in the alphabet: a limit that leaves room for them changes nothing."""
    texts = alice.split("\n")[:200]
    ours = dask_bpe.train(documents(texts), 600, **HUGGING_FACE)
    model, merges = huggingface(texts, 600, limit_alphabet=limit)
    assert ours.vocabulary.merge_bytes() == merges
    assert spelled(ours.vocabulary) == model.get_vocab()


def minbpe(text: str, n_merges: int) -> list[tuple[int, int]]:
    """The rule of minbpe's `RegexTokenizer.train`: the first of the most frequent pairs that the counting met."""
    words = [[*match[0].encode()] for match in regex.finditer(GPT2, text)]
    merges: list[tuple[int, int]] = []
    while len(merges) < n_merges:
        counts: dict[tuple[int, int], int] = {}
        for word in words:
            for pair in pairwise(word):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        best = max(counts, key=lambda pair: counts[pair])
        words = [reference.merged(word, best, 256 + len(merges)) for word in words]
        merges.append(best)
    return merges


@given(text=st.one_of(strategies.tied_text(80), few_letters(80)), n_merges=st.integers(1, 40))
def test_minbpe_merges_what_occurs_first(text: str, n_merges: int) -> None:
    counts = PretokenCounts.from_mapping(reference.count([text]))
    log = training.fit(counts, 256 + n_merges, ties="first").log
    assert [*zip(log.left.tolist(), log.right.tolist(), strict=True)] == minbpe(text, n_merges)


def test_minbpe_on_real_text(alice: str) -> None:
    counts = PretokenCounts.from_mapping(reference.count([alice[:20_000]]))
    log = training.fit(counts, 256 + 150, ties="first").log
    assert [*zip(log.left.tolist(), log.right.tolist(), strict=True)] == minbpe(alice[:20_000], 150)


def rustbpe_tokens(texts: list[str], vocab_size: int) -> list[bytes]:
    """The tokens that rustbpe learns, by id."""
    rustbpe = pytest.importorskip("rustbpe", exc_type=ImportError)
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=GPT2)
    ranks = {index: bytes(token) for token, index in tokenizer.get_mergeable_ranks()}
    return [ranks[index] for index in range(len(ranks))]


@given(texts=st.lists(st.one_of(strategies.tied_text(), few_letters()), min_size=1, max_size=5))
def test_rustbpe_merges_the_smallest_ids(texts: list[str]) -> None:
    texts = [*texts, "ab"]
    tokenizer = dask_bpe.train(documents(texts), 300, ties="ids")
    assert list(tokenizer.vocabulary.tokens) == rustbpe_tokens(texts, 300)


def test_rustbpe_on_real_text(alice: str, poems: str) -> None:
    texts = [*alice.split("\n"), *poems.split("\n")]
    tokenizer = dask_bpe.train(documents(texts), 6000, ties="ids")
    assert list(tokenizer.vocabulary.tokens) == rustbpe_tokens(texts, 6000)


@pytest.mark.parametrize("ties", TIES)
@given(
    words=strategies.tied_counts(),
    n_merges=st.integers(0, 40),
    special=st.sampled_from([[], [ENDOFTEXT], ["<|b|>", "<|a|>", "ab"]]),
    layout=st.sampled_from(LAYOUTS),
)
@examples(0.7)
def test_the_order_of_ids_changes_no_merge(
    ties: str, words: dict[bytes, int], n_merges: int, special: list[str], layout: tuple[str, str]
) -> None:
    at, order = layout
    counts = PretokenCounts.from_mapping(words, special_tokens=special)
    size = 256 + len(special) + n_merges
    plain = training.fit(counts, size, ties=ties)
    result = training.fit(counts, size, ties=ties, special_tokens_at=at, byte_order=order)
    vocabulary, log, n = result.vocabulary, result.log, len(plain.log)
    assert vocabulary.merge_bytes() == plain.vocabulary.merge_bytes()
    assert log.count.tolist() == plain.log.count.tolist()
    assert log.trace(vocabulary) == plain.log.trace(plain.vocabulary)
    assert [log.left.tolist(), log.right.tolist(), log.token.tolist()] == vocabulary.merges.T.tolist()
    values = sorted(range(256), key=lambda byte: ord(CHARACTER_OF_BYTE[byte])) if order == "gpt2" else range(256)
    bytes_ = [bytes([value]) for value in values]
    specials = [text.encode() for text in special]
    merged = [left + right for left, right in plain.vocabulary.merge_bytes()]
    expected = {
        "start": [*specials, *bytes_, *merged],
        "after_bytes": [*bytes_, *specials, *merged],
        "end": [*bytes_, *merged, *specials],
    }
    assert list(vocabulary.tokens) == expected[at]
    assert [vocabulary.tokens[index].decode() for index in vocabulary.special_tokens.values()] == special
    assert log.token.tolist() == [*range(len(vocabulary) - n - len(special) * (at == "end"), len(vocabulary))][:n]


@pytest.mark.parametrize(("at", "order"), LAYOUTS)
def test_every_order_of_ids_encodes_to_the_same_tokens(at: str, order: str, corpus: list[str], tmp_path: Path) -> None:
    special = ["<|pad|>", ENDOFTEXT]
    options: dict[str, Any] = {"special_tokens_at": at, "byte_order": order}
    plain = dask_bpe.train(documents(corpus), 400, special_tokens=special)
    tokenizer = dask_bpe.train(documents(corpus), 400, special_tokens=special, **options)
    counts = dask_bpe.count_pretokens(documents(corpus), special_tokens=special)
    assert dask_bpe.train(counts, 400, **options) == tokenizer
    assert training.fit(counts, 400, **options).vocabulary == tokenizer.vocabulary
    text = ENDOFTEXT.join(corpus) + "<|pad|>"
    ids = tokenizer.encode(text)
    spelling = [tokenizer.vocabulary.tokens[index] for index in ids]
    assert spelling == [plain.vocabulary.tokens[index] for index in plain.encode(text)]
    assert tokenizer.decode(ids) == text
    first = {"start": 0, "after_bytes": 256, "end": 398}[at]
    assert tokenizer.special_tokens == {"<|pad|>": first, ENDOFTEXT: first + 1}
    tokenizer.save(tmp_path / "vocabulary.json")
    assert dask_bpe.Tokenizer.load(tmp_path / "vocabulary.json").encode(text) == ids


def test_the_order_of_ids_at_the_end_follows_the_merges_that_there_were() -> None:
    counts = PretokenCounts.from_mapping({b"abc": 2}, special_tokens=["<a>"])
    vocabulary = training.fit(counts, 1000, special_tokens_at="end").vocabulary
    assert len(vocabulary) == 259
    assert vocabulary.special_tokens == {"<a>": 258}
    assert training.fit(counts, 257, special_tokens_at="end").vocabulary.special_tokens == {"<a>": 256}


def test_gpt2_has_its_own_order_of_bytes(gpt2_files: tuple[Path, Path], corpus: list[str]) -> None:
    options: dict[str, Any] = {"special_tokens": [ENDOFTEXT], "special_tokens_at": "end", "byte_order": "gpt2"}
    ours = dask_bpe.train(documents(corpus), 300, **options)
    gpt2 = dask_bpe.Tokenizer.from_gpt2(*gpt2_files)
    assert ours.vocabulary.tokens[:256] == gpt2.vocabulary.tokens[:256]
    assert ours.special_tokens[ENDOFTEXT] == len(ours) - 1


@pytest.mark.parametrize(("option", "value"), [("special_tokens_at", "front"), ("byte_order", "hf")])
def test_refuses_unknown_orders(option: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(dask_bpe.BpeError, match=f"{option} is '{value}': known are"):
        dask_bpe.train(documents(["ab"]), 300, **{option: value})
    (tmp_path / "text.txt").write_text("ab ab")
    arguments = ["train", str(tmp_path / "text.txt"), "--vocab-size", "300", "-o", str(tmp_path / "out.json")]
    result = CliRunner().invoke(main, [*arguments, f"--{option.replace('_', '-')}", value])
    assert result.exit_code == 2
    assert f"{option} is '{value}'" in result.output


def test_command_line(tmp_path: Path, corpus: list[str]) -> None:
    (tmp_path / "text.txt").write_text(ENDOFTEXT.join(corpus), encoding="utf-8", newline="")
    arguments = ["train", str(tmp_path / "text.txt"), "--vocab-size", "300", "-o", str(tmp_path / "out.json")]
    arguments += ["--special-token", ENDOFTEXT, "--ties", "huggingface"]
    arguments += ["--special-tokens-at", "start", "--byte-order", "gpt2", "--quiet"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    tokenizer = dask_bpe.Tokenizer.load(tmp_path / "out.json")
    _, merges = huggingface(corpus, 300, special_tokens=[ENDOFTEXT])
    assert tokenizer.special_tokens == {ENDOFTEXT: 0}
    assert tokenizer.vocabulary.merge_bytes() == merges
