"""Special tokens in text by choice, batches in two arrays, the template, and the bytes and ids of tokens."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import reference
import strategies
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe import Vocabulary, text_encoder
from dask_bpe.errors import ParameterError
from dask_bpe.tokenizer import Tokenizer

BYTES = {index: bytes([index]) for index in range(256)}
CORPUS = "the theory of the thing, then  the others’ 1234 don't \r\n\n あああ 中文 <|a|> <|a|><|b|> 😀"
# None of them begins with another one: tiktoken takes such a pair in any order.
SPECIAL = ["<|a|>", "<|b|>", "|>x<|", "\n\n", "é", "<|endoftext|>"]


def learned(special: list[str]) -> Tokenizer:
    trained = reference.train(reference.count([CORPUS]), 256 + len(special) + 60, special)
    return Tokenizer(dict(enumerate(trained.tokens)), trained.merge_bytes, special)


TOKENIZER, PLAIN = learned(SPECIAL), learned([])
TIKTOKEN = tiktoken.Encoding(
    "test",
    pat_str=reference.GPT2,
    mergeable_ranks={
        token: index
        for index, token in enumerate(TOKENIZER.vocabulary.tokens)
        if index not in TOKENIZER.special_tokens.values()
    },
    special_tokens=TOKENIZER.special_tokens,
)
PIECES = [*SPECIAL, "<|a|", "|>", "x", "<|", "\n", " the", "ab", " ", "中"]
UNKNOWN = "<|unknown|>"
texts_with_special = st.lists(st.sampled_from([*PIECES, UNKNOWN]), max_size=8).map("".join)
choices = st.one_of(st.just("all"), st.sets(st.sampled_from([*SPECIAL, UNKNOWN, "ab"])))


def outcome(encode: Any, text: str, **options: Any) -> list[int] | str:
    """The ids, or what kind of error there is."""
    try:
        return list(encode(text, **options))
    except ValueError:
        return "refused"


class TestChoice:
    @given(
        texts_with_special,
        st.fixed_dictionaries({}, optional={"allowed_special": choices, "disallowed_special": choices}),
    )
    def test_is_that_of_tiktoken(self, text: str, options: dict[str, Any]) -> None:
        if not options:
            options = {"allowed_special": set()}  # without any, every special token becomes its id
        expected = outcome(TIKTOKEN.encode, text, **options)
        assert outcome(TOKENIZER.encode, text, **options) == expected
        assert outcome(TOKENIZER.encode, text.encode(), **options) == expected
        assert outcome(TOKENIZER.encode_to_numpy, text, **options) == expected
        batch = outcome(TOKENIZER.encode_batch, ["the", text, "x"], **options)  # type: ignore[arg-type]
        assert (batch if batch == "refused" else batch[1]) == expected

    @given(texts_with_special)
    def test_defaults(self, text: str) -> None:
        assert TOKENIZER.encode(text) == TIKTOKEN.encode(text, allowed_special="all")
        assert TOKENIZER.encode(text, allowed_special="all") == TOKENIZER.encode(text)
        assert TOKENIZER.encode(text, disallowed_special=()) == TOKENIZER.encode_ordinary(text)
        assert TOKENIZER.encode_ordinary(text) == TIKTOKEN.encode_ordinary(text)

    @given(texts_with_special, st.sets(st.sampled_from(SPECIAL)))
    def test_every_way_to_encode(self, text: str, allowed: set[str]) -> None:
        options: dict[str, Any] = {"allowed_special": allowed, "disallowed_special": ()}
        ids = TOKENIZER.encode(text, **options)
        assert TOKENIZER.encode_to_numpy(text, **options).tolist() == ids
        assert TOKENIZER.count_tokens(text, **options) == len(ids)
        assert TOKENIZER.encode_batch([text, "", text], **options) == [ids, [], ids]
        assert TOKENIZER.encode_with_offsets(text, **options).ids == ids
        flat, offsets = TOKENIZER.encode_batch_to_numpy([text, "", text], **options)
        assert flat.tolist() == ids + ids
        assert offsets.tolist() == [0, len(ids), len(ids), 2 * len(ids)]

    def test_the_longest_of_those_allowed(self) -> None:
        tokenizer = Tokenizer(BYTES, [], ["<a>", "<a><b>"])
        text = "<a><b>"
        assert tokenizer.encode(text) == [257]
        assert tokenizer.encode(text, allowed_special={"<a>"}, disallowed_special=()) == [256, *b"<b>"]
        with pytest.raises(ParameterError, match="holds the special token '<a><b>' at byte 0"):
            tokenizer.encode(text, allowed_special={"<a>"})

    def test_the_error_says_what_where_and_the_way_out(self) -> None:
        message = (
            "the text holds the special token '<|b|>' at byte 4: with allowed_special={'<|b|>'} it becomes its id,"
            " with disallowed_special=() it is encoded as text"
        )
        for text in ("中 <|b|><|a|>", "中 <|b|><|a|>".encode()):
            for encode in (TOKENIZER.encode, TOKENIZER.encode_to_numpy, TOKENIZER.count_tokens):
                with pytest.raises(ParameterError) as caught:
                    encode(text, allowed_special=set())  # type: ignore[operator]
                assert str(caught.value) == message
        with pytest.raises(ParameterError, match=re.escape("text 2 holds the special token '<|b|>' at byte 1:")):
            TOKENIZER.encode_batch(["a", "", "x<|b|>", "<|b|>"], disallowed_special=["<|b|>"])

    def test_texts_of_later_groups_have_their_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_encoder, "BATCH_BYTES", 4)
        with pytest.raises(ParameterError, match=r"^text 3 holds"):
            TOKENIZER.encode_batch_to_numpy(["abcd", "ab", "cd", "<|a|>"], disallowed_special="all")

    def test_special_tokens_do_not_form_across_texts_of_a_batch(self) -> None:
        assert TOKENIZER.encode_batch(["<|a", "|>"], allowed_special=set()) == [
            TOKENIZER.encode("<|a"),
            TOKENIZER.encode("|>"),
        ]

    @pytest.mark.parametrize("name", ["allowed_special", "disallowed_special"])
    @pytest.mark.parametrize("value", ["<|a|>", 5, [1], [""], b"<|a|>"])
    def test_refuses_what_is_no_choice(self, name: str, value: Any) -> None:
        with pytest.raises(ParameterError, match=f'{name} is .*: "all" or a set of special tokens was expected'):
            TOKENIZER.encode("a", **{name: value})

    def test_any_number_of_choices(self) -> None:
        for number in range(200):
            text = f"<|{number}|>"
            assert TOKENIZER.encode("<|a|>", disallowed_special={text}) == TOKENIZER.encode_ordinary("<|a|>")
            with pytest.raises(ParameterError):
                TOKENIZER.encode(text, disallowed_special={text})

    def test_without_special_tokens(self) -> None:
        assert PLAIN.encode("<|a|>", allowed_special=set()) == PLAIN.encode("<|a|>")
        assert PLAIN.encode("", allowed_special="all", disallowed_special="all") == []

    def test_rules_of_the_tokens_that_are_allowed(self) -> None:
        tokens = (*BYTES.values(), b"<l>", b"<r>")
        rules = {"<l>": frozenset({"lstrip"}), "<r>": frozenset({"rstrip"})}
        tokenizer = Tokenizer(Vocabulary(tokens, np.empty((0, 3)), {"<l>": 256, "<r>": 257}, added_rules=rules))
        text = "a <l> <r> b"
        assert tokenizer.encode(text) == [97, 256, 32, 257, 98]
        options: dict[str, Any] = {"allowed_special": {"<l>"}, "disallowed_special": ()}
        assert tokenizer.encode(text, **options) == [97, 256, *b" <r> b"]


class TestTemplate:
    @staticmethod
    def framed(before: tuple[int, ...], after: tuple[int, ...]) -> Tokenizer:
        tokens = (*BYTES.values(), b"<s>", b"</s>")
        specials = {"<s>": 256, "</s>": 257}
        return Tokenizer(Vocabulary(tokens, np.empty((0, 3)), specials, template=(before, after)))

    @pytest.mark.parametrize(
        "template", [((), ()), ((256,), ()), ((), (257,)), ((256,), (257,)), ((256, 97), (257, 256))]
    )
    @given(st.lists(st.sampled_from(["", "a", "ab c", "x<s>", "</s>"]), max_size=5))
    def test_goes_around_every_text(self, template: tuple[Any, Any], texts: list[str]) -> None:
        tokenizer = self.framed(*template)
        expected = [[*template[0], *tokenizer.encode(text), *template[1]] for text in texts]
        assert [tokenizer.encode(text, add_special_tokens=True) for text in texts] == expected
        assert [tokenizer.encode_to_numpy(text, add_special_tokens=True).tolist() for text in texts] == expected
        assert [tokenizer.count_tokens(text, add_special_tokens=True) for text in texts] == [*map(len, expected)]
        assert tokenizer.encode_batch(texts, add_special_tokens=True) == expected
        ids, offsets = tokenizer.encode_batch_to_numpy(texts, add_special_tokens=True)
        assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == expected

    def test_without_a_template(self) -> None:
        assert PLAIN.encode("the", add_special_tokens=True) == PLAIN.encode("the")


class TestBatchToNumpy:
    @given(st.lists(st.one_of(strategies.text(6), strategies.broken_utf8(), st.sampled_from(SPECIAL)), max_size=8))
    def test_is_encode_batch(self, texts: list[str | bytes]) -> None:
        ids, offsets = TOKENIZER.encode_batch_to_numpy(iter(texts))
        assert (ids.dtype, offsets.dtype) == (np.uint16, np.int64)
        assert len(offsets) == len(texts) + 1
        expected = TOKENIZER.encode_batch(texts)
        assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == expected
        assert TOKENIZER.decode_batch((ids, offsets)) == TOKENIZER.decode_batch(expected)

    def test_of_several_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_encoder, "BATCH_BYTES", 20)
        texts = CORPUS.split(" ") * 3
        ids, offsets = TOKENIZER.encode_batch_to_numpy(texts)
        assert TOKENIZER.decode_batch((ids, offsets)) == texts

    def test_dtype(self) -> None:
        for dtype in (np.uint16, "uint32", np.int64):
            assert TOKENIZER.encode_batch_to_numpy(["the"], dtype=dtype)[0].dtype == np.dtype(dtype)
            assert TOKENIZER.encode_batch_to_numpy([], dtype=dtype)[0].dtype == np.dtype(dtype)
        with pytest.raises(ParameterError, match="uint8 does not hold all ids"):
            TOKENIZER.encode_batch_to_numpy(["the"], dtype=np.uint8)

    def test_nothing(self) -> None:
        ids, offsets = TOKENIZER.encode_batch_to_numpy([])
        assert ids.tolist() == []
        assert offsets.tolist() == [0]


class TestDecode:
    @given(st.lists(st.lists(st.integers(0, len(TOKENIZER) - 1), max_size=100), max_size=5))
    def test_batch(self, batch: list[list[int]]) -> None:
        offsets = np.cumsum([0, *map(len, batch)])
        ids = np.array([index for ids in batch for index in ids], np.uint16)
        for skip in (False, True):
            expected = [TOKENIZER.decode(ids, skip_special_tokens=skip) for ids in batch]
            for given_batch in (batch, iter(batch), tuple(map(tuple, batch)), [np.array(ids, int) for ids in batch]):
                assert TOKENIZER.decode_batch(given_batch, skip_special_tokens=skip) == expected
            assert TOKENIZER.decode_batch((ids, offsets), skip_special_tokens=skip) == expected

    @given(st.lists(st.integers(0, len(TOKENIZER) - 1), max_size=100))
    def test_without_special_tokens(self, ids: list[int]) -> None:
        kept = [index for index in ids if index not in TOKENIZER.special_tokens.values()]
        for given_ids in (ids, iter(ids), np.array(ids, np.uint32)):
            assert TOKENIZER.decode_bytes(given_ids, skip_special_tokens=True) == TOKENIZER.decode_bytes(kept)

    def test_ordinary_added_tokens_are_kept(self) -> None:
        tokens = (*BYTES.values(), b"<s>", b"<think>")
        rules = {"<think>": {"ordinary"}}
        vocabulary = Vocabulary(tokens, np.empty((0, 3)), {"<s>": 256, "<think>": 257}, added_rules=rules)  # type: ignore[arg-type]
        tokenizer = Tokenizer(vocabulary)
        assert tokenizer.decode([256, 257, 97], skip_special_tokens=True) == "<think>a"
        assert tokenizer.decode([256, 257, 97]) == "<s><think>a"

    @pytest.mark.parametrize("count", [3, 100])
    def test_unknown_ids_have_their_place_among_all(self, count: int) -> None:
        tokenizer = Tokenizer(BYTES, [], ["<s>"])
        ids = [256, 65] * count + [999]
        message = f"token id 999 at position {2 * count} is unknown"
        for given_ids in (ids, np.array(ids)):
            with pytest.raises(ParameterError, match=message):
                tokenizer.decode(given_ids, skip_special_tokens=True)
        with pytest.raises(ParameterError, match=f"^text 1: {message}"):
            tokenizer.decode_batch([[65], ids], skip_special_tokens=True)
        for skip in (False, True):
            with pytest.raises(ParameterError, match=message):
                tokenizer.decode_batch((np.array(ids), np.array([0, len(ids)])), skip_special_tokens=skip)

    @pytest.mark.parametrize("ids", [["a"], [[1]], [1.0], np.zeros((2, 2), int), np.zeros(3)])
    def test_refuses_what_are_no_ids(self, ids: Any) -> None:
        with pytest.raises(ParameterError, match="token ids must be integers"):
            TOKENIZER.decode(ids, skip_special_tokens=True)

    @pytest.mark.parametrize("offsets", [[], [0], [0, 1], [1, 3], [0, 2, 1, 3], [0.0, 3.0], [[0, 3]]])
    def test_refuses_what_are_no_offsets(self, offsets: Any) -> None:
        with pytest.raises(ParameterError, match="offsets do not go from 0 to 3"):
            TOKENIZER.decode_batch((np.array([65, 66, 67]), np.array(offsets)))


class TestTokens:
    def test_bytes_and_ids(self) -> None:
        tokenizer = Tokenizer(BYTES | {256: b"he", 257: b"\xe3\x81"}, [(b"h", b"e"), (b"\xe3", b"\x81")], ["<s>", "é"])
        assert tokenizer.token_bytes(256) == b"he"
        assert tokenizer.token_bytes(np.uint16(257)) == b"\xe3\x81"
        assert tokenizer.id_of("he") == tokenizer.id_of(b"he") == 256
        assert tokenizer.id_of(b"\xe3\x81") == 257
        assert tokenizer.id_of("<s>") == tokenizer.id_of(b"<s>") == 258
        assert tokenizer.id_of("é") == 259
        for index in range(len(tokenizer)):
            assert tokenizer.id_of(tokenizer.token_bytes(index)) == index

    def test_a_special_token_that_a_merge_spells_too(self) -> None:
        tokenizer = Tokenizer(Vocabulary((*BYTES.values(), b"he", b"he"), np.array([[104, 101, 257]]), {"he": 256}))
        assert tokenizer.id_of("he") == 256
        assert tokenizer.id_of(b"he") == 257

    def test_refuses(self) -> None:
        tokenizer = Tokenizer(Vocabulary((*BYTES.values(), b"", b"he"), np.empty((0, 3))))
        for index in (-1, 256, 258):
            with pytest.raises(ParameterError, match=f"token id {index} "):
                tokenizer.token_bytes(index)
        for token in ("hey", b"hey", "", b""):
            with pytest.raises(ParameterError, match=r"is not a token: encode\(\) gives"):
                tokenizer.id_of(token)
        with pytest.raises(TypeError):
            tokenizer.id_of(5)  # type: ignore[arg-type]
