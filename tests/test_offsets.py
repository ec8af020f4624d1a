"""Where tokens stand in a text: those of Hugging Face, and of nothing but their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import strategies
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from dask_bpe import Vocabulary
from dask_bpe.errors import ParameterError
from dask_bpe.offsets import Encoding
from dask_bpe.pretokenize import Split
from dask_bpe.tokenizer import Tokenizer

BYTES = {index: bytes([index]) for index in range(256)}
CORPUS = ["the theory of the thing, then  the others’ 1234 don't \r\n\n あああ 中文中文 自君之出矣 éé ü 😀😀 "]
SPECIAL = ["<|a|>", "<|a|><|b|>"]


def trained(special: list[str], added_rules: dict[str, frozenset[str]] | None = None, **fields: Any) -> Tokenizer:
    """A tokenizer with a few merges, some of which end inside a character."""
    learned = reference.train(reference.count(CORPUS), 256 + len(special) + 70, special)
    merges = np.array(learned.merges, np.int32)
    vocabulary = Vocabulary(
        tuple(learned.tokens), merges, learned.special_tokens, added_rules=added_rules or {}, **fields
    )
    return Tokenizer(vocabulary)


def hugging_face(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """The same tokenizer in Hugging Face's library, which tells where tokens stand in characters."""
    spell = reference.byte_to_character()
    vocabulary = tokenizer.vocabulary
    spelled = ["".join(spell[byte] for byte in token) for token in vocabulary.tokens]
    ids = {token: index for index, token in enumerate(spelled) if index not in vocabulary.special_tokens.values()}
    ids |= vocabulary.special_tokens
    merges = [(spelled[left], spelled[right]) for left, right, _ in vocabulary.merges.tolist()]
    model = tokenizers.Tokenizer(tokenizers.models.BPE(ids, merges))
    pre_tokenizers = tokenizers.pre_tokenizers
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if isinstance(vocabulary.pattern, tuple):
        steps = [pre_tokenizers.Split(tokenizers.Regex(step.regex), step.behavior) for step in vocabulary.pattern]
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        model.pre_tokenizer = pre_tokenizers.Sequence([*steps, byte_level])
    added = [
        tokenizers.AddedToken(text, **dict.fromkeys(vocabulary.added_rules.get(text, ()), True), normalized=False)
        for text in vocabulary.special_tokens
    ]
    model.add_special_tokens(added)
    return model


PLAIN, WITH_SPECIAL = trained([]), trained(SPECIAL)
HF_PLAIN, HF_WITH_SPECIAL = hugging_face(PLAIN), hugging_face(WITH_SPECIAL)
BY_RULES = trained(
    ["<|l|>", "<|r|>", "<|lr|>", "<|w|>"],
    {
        "<|l|>": frozenset({"lstrip"}),
        "<|r|>": frozenset({"rstrip"}),
        "<|lr|>": frozenset({"lstrip", "rstrip"}),
        "<|w|>": frozenset({"single_word"}),
    },
)
HF_BY_RULES = hugging_face(BY_RULES)


# A pattern that removes white space and commas: no token stands where they are.
REMOVING = trained(SPECIAL, pattern=(Split(r"[\s,]+", "removed"), Split(r"\d", "isolated")))
HF_REMOVING = hugging_face(REMOVING)


def assert_like_huggingface(ours: Tokenizer, theirs: tokenizers.Tokenizer, text: str) -> None:
    expected = theirs.encode(text)
    encoding = ours.encode_with_offsets(text)
    assert encoding.ids == ours.encode(text) == expected.ids
    assert [tuple(pair) for pair in encoding.char_offsets.tolist()] == expected.offsets


def assert_in_place(tokenizer: Tokenizer, text: str | bytes, encoding: Encoding) -> None:
    """Without rules and patterns that remove text the tokens tile the text, and the characters are those touched."""
    data = (
        text if isinstance(text, bytes) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    )
    assert encoding.byte_offsets.dtype == encoding.char_offsets.dtype == np.int64
    assert encoding.byte_offsets.shape == encoding.char_offsets.shape == (len(encoding.ids), 2)
    at = 0
    for index, (start, end) in zip(encoding.ids, encoding.byte_offsets.tolist(), strict=True):
        assert start == at
        assert data[start:end] == tokenizer.token_bytes(index)
        at = end
    assert at == len(data)


@given(strategies.text())
@example("😀é’ ‘中文")
@example("\ufeff\u2028 　x")
def test_huggingface(text: str) -> None:
    assert_like_huggingface(PLAIN, HF_PLAIN, text)
    assert_in_place(PLAIN, text, PLAIN.encode_with_offsets(text))


@given(
    strategies.text(5).flatmap(lambda text: st.sampled_from([text, f"<|a|>{text}<|a|><|b|>{text}<|a", f"{text}<|a|>"]))
)
def test_huggingface_with_special_tokens(text: str) -> None:
    assert_like_huggingface(WITH_SPECIAL, HF_WITH_SPECIAL, text)
    assert_in_place(WITH_SPECIAL, text, WITH_SPECIAL.encode_with_offsets(text))


@given(
    st.lists(st.sampled_from(["<|l|>", "<|r|>", "<|lr|>", "<|w|>", " ", "  ", "\n", "a", "é ", " 中", "1"]), max_size=9)
)
def test_huggingface_with_rules(parts: list[str]) -> None:
    """A token that takes white space has it in its place."""
    assert_like_huggingface(BY_RULES, HF_BY_RULES, "".join(parts))


@given(
    st.lists(st.sampled_from(["<|a|>", "<|a|><|b|>", " ", ", ", "\n", "the", "é ", " 中文", "12"]), max_size=9).map(
        "".join
    )
)
@example(" ,")
@example("the,<|a|> 中")
def test_huggingface_with_a_pattern_that_removes_text(text: str) -> None:
    assert_like_huggingface(REMOVING, HF_REMOVING, text)
    ids, in_bytes, _ = REMOVING.encode_with_offsets(text)
    for index, (start, end) in zip(ids, in_bytes.tolist(), strict=True):
        assert text.encode()[start:end] == REMOVING.token_bytes(index)


@given(st.text(st.one_of(st.characters(), st.sampled_from("a \ud83d\ude00\udfff\ufeff"))))
@example("\ud83d\ude00")
@example("a\ud83d\ud83d\ude00\ude00b😀")
def test_lone_surrogates_have_their_place(text: str) -> None:
    encoding = PLAIN.encode_with_offsets(text)
    assert encoding.ids == PLAIN.encode(text)
    assert_in_place(PLAIN, text, encoding)
    # A character is what stands for itself, or two surrogates that stand for one.
    touched: list[set[int]] = []
    place = 0
    while place < len(text):
        piece = text[place : place + 2]
        pair = len(piece) == 2 and "\ud800" <= piece[0] <= "\udbff" and "\udc00" <= piece[1] <= "\udfff"
        size = 4 if pair else len(piece[0].encode("utf-8", "surrogatepass"))
        touched += [{place, place + 1} if pair else {place}] * size
        place += 2 if pair else 1
    for (start, end), (first, last) in zip(encoding.byte_offsets.tolist(), encoding.char_offsets.tolist(), strict=True):
        assert set(range(first, last)) == set().union(*touched[start:end])


@given(strategies.broken_utf8())
def test_bytes(data: bytes) -> None:
    encoding = PLAIN.encode_with_offsets(data)
    assert encoding.ids == PLAIN.encode(data)
    assert_in_place(PLAIN, data, encoding)
    characters = data.decode("utf-8", "surrogateescape")
    for (start, end), (first, last) in zip(encoding.byte_offsets.tolist(), encoding.char_offsets.tolist(), strict=True):
        before = len(characters[:first].encode("utf-8", "surrogateescape"))
        inside = len(characters[first:last].encode("utf-8", "surrogateescape"))
        assert before <= start < end <= before + inside
        assert before + inside - len(characters[last - 1].encode("utf-8", "surrogateescape")) < end


def test_worked_example() -> None:
    tokenizer = Tokenizer(BYTES | {256: b"\xe3\x81", 257: b" b"}, [(b"\xe3", b"\x81"), (b" ", b"b")], ["<a>"])
    ids, in_bytes, in_characters = tokenizer.encode_with_offsets("aあ<a> b")
    assert ids == [97, 256, 0x82, 258, 257]
    assert in_bytes.tolist() == [[0, 1], [1, 3], [3, 4], [4, 7], [7, 9]]
    assert in_characters.tolist() == [[0, 1], [1, 2], [1, 2], [2, 5], [5, 7]]


def test_choice_of_special_tokens() -> None:
    text = "x<|a|>y"
    ordinary = WITH_SPECIAL.encode_with_offsets(text, disallowed_special=())
    assert ordinary.ids == WITH_SPECIAL.encode_ordinary(text)
    assert_in_place(WITH_SPECIAL, text, ordinary)
    allowed = WITH_SPECIAL.encode_with_offsets(text, allowed_special="all")
    assert allowed.byte_offsets.tolist() == [[0, 1], [1, 6], [6, 7]]
    with pytest.raises(ParameterError, match="at byte 1"):
        WITH_SPECIAL.encode_with_offsets(text, allowed_special=set())


def test_nothing() -> None:
    for text in ("", b""):
        ids, in_bytes, in_characters = PLAIN.encode_with_offsets(text)
        assert ids == []
        assert in_bytes.shape == in_characters.shape == (0, 2)


def test_a_normalizer() -> None:
    tokenizer = trained(["<|a|>"], normalizer=(("nfc",),))
    composed, decomposed = "é<|a|>é x", "é<|a|>e\u0301 x"
    assert_in_place(tokenizer, composed, tokenizer.encode_with_offsets(composed))
    with pytest.raises(ParameterError, match="changes the text in bytes 7 to 12"):
        tokenizer.encode_with_offsets(decomposed)
    prefixed = trained([], normalizer=(("prefix_space",),))
    assert_in_place(prefixed, " the", prefixed.encode_with_offsets(" the"))
    with pytest.raises(ParameterError, match="normalizer"):
        prefixed.encode_with_offsets("the")


def test_more_text_than_a_batch_of_the_scanner_holds() -> None:
    text = "the theory of <|a|> the 中文 thing " * 3000
    assert_in_place(WITH_SPECIAL, text, WITH_SPECIAL.encode_with_offsets(text))
