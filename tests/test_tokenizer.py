"""`Tokenizer`: every way in gives the ids of the oracle, every way out gives back the text."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe import text_encoder
from dask_bpe.errors import ParameterError, PatternError, VocabularyError
from dask_bpe.tokenizer import Tokenizer

BYTES = {index: bytes([index]) for index in range(256)}
CORPUS = "the theory of the thing, then  the others’ 1234 123 don't \r\n\n あああ 中文中文 "
CORPUS += "<|a|> <|endoftext| aab abab 😀😀"


def learned(*special_tokens: str) -> tuple[Tokenizer, reference.Trained]:
    """A tokenizer with a few merges, and the oracle's view of it."""
    trained = reference.train(reference.count([CORPUS]), 256 + len(special_tokens) + 60, special_tokens)
    return Tokenizer(dict(enumerate(trained.tokens)), trained.merge_bytes, special_tokens), trained


PLAIN, PLAIN_TRAINED = learned()
LEARNED = {tuple(special): learned(*special) for special in strategies.SPECIAL_TOKENS}


class TestConstructor:
    def test_worked_example(self) -> None:
        tokenizer = Tokenizer(BYTES | {256: b"he"}, [(b"h", b"e")], ["<|endoftext|>"])
        assert tokenizer.encode("hey<|endoftext|>") == [256, 121, 257]
        assert tokenizer.decode([256, 121]) == "hey"
        assert tokenizer.special_tokens == {"<|endoftext|>": 257}
        assert len(tokenizer) == tokenizer.vocab_size == 258
        assert tokenizer.pattern == "gpt2"
        assert repr(tokenizer) == "Tokenizer(vocab_size=258, special_tokens=['<|endoftext|>'], pattern='gpt2')"

    def test_from_a_vocabulary(self) -> None:
        assert Tokenizer(PLAIN.vocabulary) == PLAIN
        others: list[dict[str, Any]] = [
            {"merges": []},
            {"special_tokens": ["a"]},
            {"pattern": None},
            {"ties": "ids"},
        ]
        for arguments in others:
            with pytest.raises(ParameterError, match="leave the other arguments out"):
                Tokenizer(PLAIN.vocabulary, **arguments)

    def test_refuses(self) -> None:
        with pytest.raises(ParameterError, match="merges are missing"):
            Tokenizer(BYTES)
        with pytest.raises(ParameterError, match="'<a>' is given twice"):
            Tokenizer(BYTES, [], ["<a>", "<a>"])
        with pytest.raises(ParameterError, match="empty"):
            Tokenizer(BYTES, [], [""])
        with pytest.raises(PatternError):
            Tokenizer(BYTES, [], pattern="gpt7")
        with pytest.raises(PatternError):
            Tokenizer(BYTES, [], pattern="(")
        with pytest.raises(VocabularyError):
            Tokenizer(BYTES, [(b"a", b"b")])

    def test_a_copy_of_the_special_tokens_is_given_out(self) -> None:
        tokenizer = Tokenizer(BYTES, [], ["<a>"])
        tokenizer.special_tokens.clear()
        assert tokenizer.encode("<a>") == [256]


class TestFiles:
    def test_own_file(self, tmp_path: Path) -> None:
        tokenizer = Tokenizer(BYTES | {256: b"he"}, [(b"h", b"e")], ["<a>"], pattern=r"\w+|\W", ties="ids")
        tokenizer.save(tmp_path / "tokenizer.json")
        again = Tokenizer.load(tmp_path / "tokenizer.json")
        assert again == tokenizer
        assert again.encode("hey<a>") == tokenizer.encode("hey<a>")

    def test_pair_of_the_course(self, tmp_path: Path) -> None:
        tokenizer = Tokenizer(BYTES | {256: b"he"}, [(b"h", b"e")], ["<a>"])
        tokenizer.to_files(tmp_path / "vocab.json", tmp_path / "merges.json")
        again = Tokenizer.from_files(tmp_path / "vocab.json", tmp_path / "merges.json", ["<a>"])
        assert again == tokenizer
        more = Tokenizer.from_files(tmp_path / "vocab.json", tmp_path / "merges.json", ["<a>", "<b>"], pattern=None)
        assert more.encode("he <b>") == [256, 32, 258]

    def test_gpt2(self, gpt2_files: tuple[Path, Path]) -> None:
        tokenizer = Tokenizer.from_gpt2(*gpt2_files)
        ids = [15496, 995, 0, 314, 1101, 5433, 13, 50256]
        assert tokenizer.encode("Hello world! I'm 42.<|endoftext|>") == ids
        assert tokenizer.decode(ids) == "Hello world! I'm 42.<|endoftext|>"


class TestValue:
    def test_equality(self) -> None:
        assert Tokenizer(BYTES, []) == Tokenizer(BYTES, [])
        assert Tokenizer(BYTES, []) != Tokenizer(BYTES, [], ["a"])
        assert Tokenizer(BYTES, []) != "tokenizer"
        assert len({Tokenizer(BYTES, []), Tokenizer(BYTES, [])}) == 1

    def test_pickle_is_the_vocabulary(self) -> None:
        tokenizer = Tokenizer(PLAIN.vocabulary)
        before = pickle.dumps(tokenizer)
        tokenizer.encode("the theory")
        tokenizer.decode(range(300))
        assert pickle.dumps(tokenizer) == before
        assert len(before) < len(pickle.dumps(tokenizer.vocabulary)) + 100
        again = pickle.loads(before)
        assert again == tokenizer
        assert again.encode("the theory") == tokenizer.encode("the theory")


class TestEncode:
    @given(strategies.text())
    def test_equals_the_oracle(self, text: str) -> None:
        assert PLAIN.encode(text) == reference.encode(text, PLAIN_TRAINED)

    @given(strategies.with_special_tokens(strategies.text(3)))
    def test_equals_the_oracle_with_special_tokens(self, drawn: tuple[str, list[str]]) -> None:
        text, special_tokens = drawn
        tokenizer, trained = LEARNED[tuple(special_tokens)]
        assert tokenizer.encode(text) == reference.encode(text, trained)
        assert tokenizer.encode(text.encode()) == reference.encode(text, trained)
        assert tokenizer.encode_ordinary(text) == reference.encode(text, trained, [])

    @given(strategies.broken_utf8())
    def test_bytes_need_not_be_utf8(self, data: bytes) -> None:
        assert PLAIN.encode(data) == reference.encode(data, PLAIN_TRAINED)
        assert PLAIN.decode_bytes(PLAIN.encode(data)) == data
        for view in (bytearray(data), memoryview(data)):
            assert PLAIN.encode(view) == PLAIN.encode(data)  # type: ignore[arg-type]

    @given(st.text(st.one_of(st.characters(), st.sampled_from("a\ud83d\ude00\udfff\ufeff"))))
    def test_lone_surrogates_become_replacement_characters(self, text: str) -> None:
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert PLAIN.encode(text) == PLAIN.encode(clean)
        assert PLAIN.decode(PLAIN.encode(text)) == clean

    @pytest.mark.parametrize(
        ("merges", "words"),
        [
            (
                ["l o", "lo w", "e s", "s low", "es t"],
                {"slowest": "slow est", "lower": "low e r", "eest": "e est"},
            ),
            (["b c", "a b"], {"abc": "a bc", "abbc": "ab bc"}),
            (["a a", "aa a"], {"aaaaa": "aa aaa", "aaaa": "aa aa", "aaa": "aaa"}),
        ],
    )
    def test_worked_merges(self, merges: list[str], words: dict[str, str]) -> None:
        pairs = [(left.encode(), right.encode()) for left, right in (merge.split() for merge in merges)]
        vocab = BYTES | {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
        tokenizer = Tokenizer(vocab, pairs)
        for word, tokens in words.items():
            assert [vocab[index].decode() for index in tokenizer.encode(word)] == tokens.split()

    def test_the_longest_special_token_wins(self) -> None:
        tokenizer = Tokenizer(BYTES, [], ["<a>", "<a><b>", "<b><b>"])
        assert tokenizer.encode("<a><b><b>x<b><b>") == [257, *b"<b>x", 258]
        assert tokenizer.encode("<a><a><b>") == [256, 257]
        assert tokenizer.encode_ordinary("<a>") == list(b"<a>")

    def test_no_pattern(self) -> None:
        tokenizer = Tokenizer(BYTES | {256: b"a ", 257: b"a b"}, [(b"a", b" "), (b"a ", b"b")], ["<a>"], pattern=None)
        assert tokenizer.encode("a ba b") == [257, 257]
        assert tokenizer.encode("a <a>b") == [256, 258, 98]

    def test_nothing(self) -> None:
        assert PLAIN.encode("") == PLAIN.encode(b"") == PLAIN.encode_ordinary("") == []
        assert PLAIN.encode_to_numpy("").size == PLAIN.count_tokens("") == 0
        assert PLAIN.decode([]) == PLAIN.decode(np.array([], np.uint16)) == ""

    @pytest.mark.parametrize("text", [None, 7, ["a"], np.zeros(3, np.uint8)])
    def test_refuses_what_is_no_text(self, text: Any) -> None:
        with pytest.raises(TypeError, match="text must be str or bytes, not"):
            PLAIN.encode(text)

    def test_numpy(self) -> None:
        ids = PLAIN.encode_to_numpy("the theory")
        assert ids.dtype == np.uint16
        assert ids.tolist() == PLAIN.encode("the theory")
        for dtype in ("uint32", "int64", "int16"):
            other = PLAIN.encode_to_numpy("the theory", dtype=dtype)
            assert other.dtype == np.dtype(dtype)
            assert other.tolist() == ids.tolist()
        for dtype in ("uint8", "int8", "float64", "bool", "U5"):
            with pytest.raises(ParameterError, match="does not hold all ids up to"):
                PLAIN.encode_to_numpy("the theory", dtype=dtype)

    def test_numpy_of_a_large_vocabulary(self) -> None:
        vocab = BYTES | {index: b"%d-" % index for index in range(256, 70_000)}
        tokenizer = Tokenizer(vocab, [], ["<a>"])
        assert tokenizer.encode_to_numpy("a<a>").dtype == np.uint32
        assert tokenizer.encode_to_numpy("a<a>").tolist() == [97, 70_000]
        with pytest.raises(ParameterError, match="uint16 does not hold all ids up to 70000"):
            tokenizer.encode_to_numpy("a", dtype=np.uint16)

    @given(st.lists(st.one_of(strategies.text(6), strategies.broken_utf8(), st.just("<|a|><|b|>")), max_size=8))
    def test_batch(self, texts: list[str | bytes]) -> None:
        for tokenizer in (PLAIN, LEARNED["<|a|>", "<|a|><|b|>"][0], LEARNED["<", "<<|", "|>"][0]):
            assert tokenizer.encode_batch(iter(texts)) == [tokenizer.encode(text) for text in texts]

    def test_special_tokens_do_not_form_across_texts_of_a_batch(self) -> None:
        tokenizer = Tokenizer(BYTES, [], ["<a>"])
        assert tokenizer.encode_batch(["<", "a>", "<a>", ""]) == [[60], [97, 62], [256], []]

    def test_batch_of_several_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_encoder, "BATCH_BYTES", 20)
        texts = CORPUS.split(" ") * 3
        assert PLAIN.encode_batch(texts) == [PLAIN.encode(text) for text in texts]


class TestEncodeIterable:
    @given(st.data(), strategies.with_special_tokens(strategies.text(4)))
    def test_equals_encode_of_the_whole(self, data: st.DataObject, drawn: tuple[str, list[str]]) -> None:
        text, special_tokens = drawn
        for tokenizer in (LEARNED[tuple(special_tokens)][0], PLAIN):
            ids = tokenizer.encode(text)
            assert list(tokenizer.encode_iterable(data.draw(strategies.cuts(text)))) == ids
            assert list(tokenizer.encode_iterable(data.draw(strategies.cuts(text.encode())))) == ids
            assert list(tokenizer.encode_iterable(text)) == ids

    def test_equals_encode_of_the_whole_at_length(self) -> None:
        randomly = random.Random(0)
        special_tokens = ["<|a|>", "<|a|><|b|>", "\n\n"]
        tokenizer = learned(*special_tokens)[0]
        parts = [*special_tokens, *strategies.PIECES, *CORPUS.split(" "), " ", " ", "the ", "<|a|", "\r\n"]
        for _ in range(30):
            text = "".join(randomly.choices(parts, k=randomly.choice([20, 200, 5_000])))
            for whole in (text, text.encode()):
                size = randomly.choice([1, 3, 40, 1_000, 100_000])
                chunks: list[Any] = [whole[at : at + size] for at in range(0, len(whole), size)]
                assert list(tokenizer.encode_iterable(chunks)) == tokenizer.encode(text)

    def test_an_open_file(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_bytes((CORPUS + "\r\n\r\n").encode() * 50)
        tokenizer = LEARNED["<|endoftext|>",][0]
        with (tmp_path / "text").open("rb") as file:
            assert list(tokenizer.encode_iterable(file)) == tokenizer.encode((tmp_path / "text").read_bytes())

    def test_is_lazy(self) -> None:
        chunks = cycle(["the theory ", "of the ", "others\n"])
        ids = PLAIN.encode_iterable(chunks)
        text = "the theory of the others\n" * 4_000
        assert list(islice(ids, 10_000)) == PLAIN.encode(text)[:10_000]

    def test_first_ids_come_with_the_first_chunk(self) -> None:
        taken = []

        def chunks() -> Iterator[str]:
            for chunk in ("hello the", "re is ", "more<|endoftext|>"):
                taken.append(chunk)
                yield chunk

        next(PLAIN.encode_iterable(chunks()))
        assert taken == ["hello the"]

    def test_nothing(self) -> None:
        assert list(PLAIN.encode_iterable([])) == list(PLAIN.encode_iterable(["", b""])) == []


class TestDecode:
    @given(st.binary())
    def test_round_trip(self, data: bytes) -> None:
        assert PLAIN.decode_bytes(PLAIN.encode(data)) == data
        assert PLAIN.decode(PLAIN.encode(data)) == data.decode("utf-8", "replace")

    @pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int32, np.int64, np.uint64])
    def test_arrays(self, dtype: type) -> None:
        vocab = BYTES | {256 + length: b"x" * length for length in range(1, 40)} | {256: b"long" * 100}
        tokenizer = Tokenizer(vocab, [])
        ids = np.random.default_rng(0).integers(0, len(vocab), 5_000)
        for size in (1, 2, 63, 64, 5_000):
            expected = b"".join(vocab[index] for index in ids[:size].tolist())
            assert tokenizer.decode_bytes(ids[:size].astype(dtype)) == expected
            assert tokenizer.decode_bytes(ids[:size].tolist()) == expected
            assert tokenizer.decode_bytes(iter(ids[:size].tolist())) == expected
        assert tokenizer.decode_bytes(ids[::-3].astype(dtype)) == b"".join(vocab[index] for index in ids[::-3].tolist())

    @pytest.mark.parametrize("count", [3, 100])
    @pytest.mark.parametrize("bad", [-1, 257, 1 << 40])
    def test_refuses_unknown_ids(self, bad: int, count: int) -> None:
        tokenizer = Tokenizer(BYTES | {256: b"he"}, [])
        ids = [65] * count + [bad, -5]
        for given_ids in (ids, tuple(ids), iter(ids), np.array(ids)):
            with pytest.raises(
                ParameterError, match=f"token id {bad} at position {count} is unknown; ids go from 0 to 256"
            ):
                tokenizer.decode(given_ids)

    @pytest.mark.parametrize(
        "ids", ["ab", ["a"], [1.0], [None], [1.0] * 100, np.zeros(3), np.zeros((2, 2), int), np.array([True])]
    )
    def test_refuses_what_are_no_ids(self, ids: Any) -> None:
        with pytest.raises(ParameterError, match="token ids must be integers"):
            PLAIN.decode(ids)

    def test_a_character_in_two_tokens(self) -> None:
        tokenizer = Tokenizer(BYTES | {256: b"\xe3\x81"}, [(b"\xe3", b"\x81")])
        assert tokenizer.encode("あ") == [256, 0x82]
        assert tokenizer.decode([256, 0x82]) == "あ"
        assert tokenizer.decode([256]) == "\ufffd"
        assert tokenizer.decode([0x82]) == "\ufffd"


class TestIncrementalDecoder:
    def test_holds_back_an_unfinished_character(self) -> None:
        decoder = Tokenizer(BYTES | {256: b"\xe3\x81"}, []).decoder()
        assert [decoder.decode(index) for index in (97, 256, 0x82, 256, 98, np.uint16(256))] == [
            "a", "", "あ", "", "\ufffdb", "",
        ]  # fmt: skip
        assert decoder.flush() == "\ufffd"
        assert decoder.flush() == ""
        assert decoder.decode([256, 0x82]) == "あ"

    @given(strategies.broken_utf8().flatmap(strategies.cuts))
    def test_parts_add_up_to_decode(self, parts: list[bytes]) -> None:
        decoder = PLAIN.decoder()
        pieces = [decoder.decode(np.frombuffer(part, np.uint8)) for part in parts]
        assert "".join(pieces) + decoder.flush() == PLAIN.decode(b"".join(parts))

    def test_refuses_unknown_ids(self) -> None:
        with pytest.raises(ParameterError, match="token id 9999 at position 0"):
            PLAIN.decoder().decode(9999)
