"""`Vocabulary`: what it takes and refuses, and what its file holds."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.pretokenize import Split, get_pattern
from dask_bpe.vocabulary import Vocabulary

BYTES = {index: bytes([index]) for index in range(256)}
LOWEST = BYTES | {256: b"lo", 257: b"low", 258: b"es"}
LOWEST_MERGES = [(b"l", b"o"), (b"lo", b"w"), (b"e", b"s")]


def lowest(*special_tokens: str) -> Vocabulary:
    return Vocabulary.from_tokens(LOWEST, LOWEST_MERGES, special_tokens)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Any merges of what is there, products spelled twice included, special tokens among them."""
    order = draw(st.permutations(range(256)))
    tokens = [bytes([byte]) for byte in order]
    specials = {}
    for text in draw(st.lists(st.text(min_size=1, max_size=5).filter(encodable), unique=True, max_size=3)):
        specials[text] = len(tokens)
        tokens.append(text.encode())
    merges = []
    for _ in range(draw(st.integers(0, 8))):
        left, right = draw(st.integers(0, len(tokens) - 1)), draw(st.integers(0, len(tokens) - 1))
        merges.append((left, right, len(tokens)))
        tokens.append(tokens[left] + tokens[right])
    pattern = draw(st.sampled_from(["gpt2", None, r"\w+|\W+"]))
    ties = draw(st.sampled_from(["bytes", "ids", "huggingface", "first"]))
    return Vocabulary(tuple(tokens), np.array(merges, np.int32), specials, pattern, ties)


RULES = ["lstrip", "rstrip", "single_word", "normalized", "ordinary"]
STEPS = [("nfc",), ("lowercase",), ("prepend", "é"), ("replace", "a", ""), ("prefix_space",)]
PATTERNS = ["gpt2", None, r"\w+|\W+", ("a", Split(r"\s+", "removed", invert=True))]


@st.composite
def all_fields(draw: st.DrawFn) -> Vocabulary:
    """What only other programs' tokenizers have: ids without a token among it."""
    plain = draw(vocabularies())
    tokens, merges = list(plain.tokens), plain.merges
    ranks = draw(st.sampled_from(["merges", "tokens"]))
    if ranks == "tokens":
        reserved = set(plain.special_tokens.values())
        # A token once only; another one that spells the same is left out.
        learned = [token for index, token in enumerate(tokens) if index not in reserved]
        tokens = list(dict.fromkeys(learned)) + [text.encode() for text in plain.special_tokens]
        specials = {text: len(tokens) - len(plain.special_tokens) + k for k, text in enumerate(plain.special_tokens)}
        merges = np.empty((0, 3), np.int32)
    else:
        specials = dict(plain.special_tokens)
    tokens += [b""] * draw(st.integers(0, 3)) + [b"last"]
    ids = st.lists(st.sampled_from([0, 7, len(tokens) - 1]), max_size=2).map(tuple)
    return Vocabulary(
        tuple(tokens),
        merges,
        specials,
        draw(st.sampled_from(PATTERNS)),
        plain.ties,
        normalizer=tuple(draw(st.lists(st.sampled_from(STEPS), max_size=2))),
        added_rules={text: draw(st.frozensets(st.sampled_from(RULES))) for text in specials},
        template=(draw(ids), draw(ids)),
        whole_tokens=draw(st.booleans()),
        ranks=ranks,
    )


def encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


class TestFromTokens:
    def test_ids_of_merges(self) -> None:
        assert lowest().merges.tolist() == [[108, 111, 256], [256, 119, 257], [101, 115, 258]]

    def test_gives_back_what_it_took(self) -> None:
        assert lowest().to_dict() == LOWEST
        assert lowest().merge_bytes() == LOWEST_MERGES

    def test_special_tokens_that_are_missing_get_the_next_ids(self) -> None:
        vocabulary = lowest("<a>", "low", "é")
        assert list(vocabulary.special_tokens.items()) == [("<a>", 259), ("low", 257), ("é", 260)]
        assert vocabulary.tokens[259:] == (b"<a>", "é".encode())

    def test_two_ids_with_the_same_bytes_merges_take_the_lowest(self) -> None:
        vocabulary = Vocabulary.from_tokens(LOWEST | {259: b"low"}, [*LOWEST_MERGES, (b"l", b"o")])
        assert vocabulary.merges[1].tolist() == [256, 119, 257]
        assert vocabulary.merges[3].tolist() == [108, 111, 256]

    def test_a_special_token_that_spells_a_merge_is_another_id(self) -> None:
        vocab = BYTES | {256: b"lo", 257: b"lo", 258: b"low"}
        vocabulary = Vocabulary.from_tokens(vocab, LOWEST_MERGES[:2], ["lo"])
        assert vocabulary.special_tokens == {"lo": 256}
        assert vocabulary.merges.tolist() == [[108, 111, 257], [257, 119, 258]]

    def test_a_special_token_that_spells_a_byte_is_another_id(self) -> None:
        vocabulary = Vocabulary.from_tokens(BYTES | {256: b"a", 257: b"ab"}, [(b"a", b"b")], ["a"])
        assert vocabulary.special_tokens == {"a": 256}
        assert vocabulary.merges.tolist() == [[97, 98, 257]]
        assert vocabulary.byte_ids[97] == 97

    def test_a_special_token_shares_the_only_id_that_spells_it(self) -> None:
        vocabulary = Vocabulary.from_tokens(LOWEST, LOWEST_MERGES, ["low", "a"])
        assert vocabulary.special_tokens == {"low": 257, "a": 97}
        assert vocabulary.merges[1].tolist() == [256, 119, 257]
        assert vocabulary.byte_ids[97] == 97

    def test_ids_of_special_tokens_may_be_given(self) -> None:
        vocabulary = Vocabulary.from_tokens(LOWEST, LOWEST_MERGES, {"<a>": 300, "lo": 256, "low": 310}, gaps=True)
        assert vocabulary.special_tokens == {"<a>": 300, "lo": 256, "low": 310}
        assert (vocabulary.tokens[299:302], len(vocabulary)) == ((b"", b"<a>", b""), 311)
        assert vocabulary.merges.tolist() == lowest().merges.tolist()
        with pytest.raises(VocabularyError, match="id 259 is missing while there is 300"):
            Vocabulary.from_tokens(LOWEST, LOWEST_MERGES, {"<a>": 300})
        with pytest.raises(VocabularyError, match="special token '<a>' has id 256, which does not spell it"):
            Vocabulary.from_tokens(LOWEST, LOWEST_MERGES, {"<a>": 256})

    def test_ids_that_no_token_has(self) -> None:
        vocabulary = Vocabulary.from_tokens(BYTES | {300: b"lo"}, [(b"l", b"o")], gaps=True)
        assert vocabulary.merges.tolist() == [[108, 111, 300]]
        assert vocabulary.to_dict() == BYTES | {300: b"lo"}
        for stranger in (-1, "300", 1 << 40):
            with pytest.raises(VocabularyError, match="a whole number from 0 to"):
                Vocabulary.from_tokens(BYTES | {stranger: b"lo"}, [], gaps=True)  # type: ignore[dict-item]

    @pytest.mark.parametrize(
        ("vocab", "merges", "message"),
        [
            (dict(list(LOWEST.items())[1:]), [], "id 0 is missing while there is 258"),
            (BYTES | {300: b"ab"}, [], "id 256 is missing while there is 300"),
            ({str(index): token for index, token in BYTES.items()}, [], "id 0 is missing while there is '0'"),
            (BYTES | {65: b"BB"}, [], "1 of the 256 single bytes have no id, 0x41"),
            (BYTES | {256: b""}, [], "id 256 has"),
            (BYTES | {256: [97]}, [], "id 256 has"),
            (LOWEST, [(b"l", b"ow")], "merge 0 joins b'l' and b'ow', and no id spells b'ow'"),
            (LOWEST, [(b"l", b"o"), (b"e", b"e")], "merge 1 joins b'e' and b'e', and no id spells b'ee'"),
            (LOWEST, [(b"l" * 99, b"o")], "of 99 bytes"),
        ],
    )
    def test_refuses(self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], message: str) -> None:
        with pytest.raises(VocabularyError) as caught:
            Vocabulary.from_tokens(vocab, merges)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("special_tokens", "message"),
        [([""], "empty"), (["<a>", "<b>", "<a>"], "'<a>' is given twice"), (["\ud800"], "lone surrogate")],
    )
    def test_refuses_special_tokens(self, special_tokens: list[str], message: str) -> None:
        with pytest.raises(ParameterError, match=message):
            Vocabulary.from_tokens(LOWEST, LOWEST_MERGES, special_tokens)

    def test_refuses_an_unknown_tie_rule(self) -> None:
        with pytest.raises(ParameterError, match="unknown tie rule 'random'; known are bytes, ids"):
            Vocabulary.from_tokens(LOWEST, LOWEST_MERGES, ties="random")


class TestConstructor:
    tokens = tuple(LOWEST.values())

    @pytest.mark.parametrize(
        ("merges", "message"),
        [
            ([[108, 111, 257]], r"merge 0 joins b'l' and b'o', and its id 257 spells b'low'"),
            ([[108, 111, 256], [108, 112, 256]], r"merge 1 joins b'l' and b'p'"),
            ([[108, 111, 259]], r"merge 0 is \[108, 111, 259\], and ids end at 258"),
            ([[-1, 111, 256]], r"merge 0 is \[-1, 111, 256\]"),
            ([[108, 111], [108, 111], [108, 111]], r"shape \(3, 2\)"),
        ],
    )
    def test_refuses_merges(self, merges: list[list[int]], message: str) -> None:
        with pytest.raises(VocabularyError, match=message):
            Vocabulary(self.tokens, np.array(merges, np.int32))

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"ranks": "ids"}, "ranks is 'ids': 'merges' or 'tokens' was expected"),
            ({"whole_tokens": 1}, "whole_tokens is 1: True or False"),
            ({"normalizer": [("nfc", "x")]}, "nfc takes 0 texts"),
            ({"added_rules": {"low": {"strip"}}}, "unknown rule 'strip'"),
            ({"added_rules": {"es": {"lstrip"}}}, "rules for 'es', which is not a special token"),
            ({"template": ((1,),)}, "two sequences of ids were expected"),
            ({"template": 7}, "two sequences of ids were expected"),
            ({"template": ((), (259,))}, "the template names id 259, and no token has it"),
            ({"template": ((-1,), ())}, "the template names id -1"),
        ],
    )
    def test_refuses_fields(self, fields: dict[str, Any], message: str) -> None:
        with pytest.raises((VocabularyError, ParameterError)) as caught:
            Vocabulary(self.tokens, np.empty((0, 3), np.int32), {"low": 257}, **fields)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("tokens", "merges", "specials", "message"),
        [
            ([b"lo", b"lo"], [], {}, "ids 256 and 257 both spell b'lo'"),
            ([b"lo"], [[108, 111, 256], [108, 111, 256]], {}, "2 merges were given, and the tokens have 1 other ones"),
            ([b"b"], [], {"a": 97, "b": 256}, "the byte 0x61 has no id but that of a special token"),
        ],
    )
    def test_refuses_ranks_of_tokens(
        self, tokens: list[bytes], merges: list[list[int]], specials: dict[str, int], message: str
    ) -> None:
        with pytest.raises(VocabularyError) as caught:
            Vocabulary((*BYTES.values(), *tokens), np.array(merges, np.int32), specials, ranks="tokens")
        assert message in str(caught.value)

    def test_ids_that_no_token_has(self) -> None:
        tokens = (*BYTES.values(), b"", b"lo")
        with pytest.raises(VocabularyError, match=r"merge 0 is \[256, 257, 257\], and no token has the id 256"):
            Vocabulary(tokens, np.array([[256, 257, 257]], np.int32))
        with pytest.raises(VocabularyError, match=r"id 258 has .* where one byte or more"):
            Vocabulary((*tokens, b""), np.array([[108, 111, 257]], np.int32))

    @pytest.mark.parametrize("index", [-1, 0, 259])
    def test_refuses_a_special_token_with_the_id_of_another(self, index: int) -> None:
        with pytest.raises(VocabularyError, match=f"'low' has id {index}"):
            Vocabulary(self.tokens, np.empty((0, 3), np.int32), {"low": index})

    def test_keeps_two_symbols_of_the_same_bytes_apart(self) -> None:
        tokens = (*self.tokens, b"ow", b"low", b"lowe")
        merges = [[108, 111, 256], [111, 119, 259], [108, 259, 260], [260, 101, 261]]
        assert Vocabulary(tokens, np.array(merges)).merges.tolist() == merges

    def test_is_immutable(self) -> None:
        merges = np.array([[108, 111, 256]], np.int32)
        specials = {"low": 257}
        vocabulary = Vocabulary(self.tokens, merges, specials)
        merges[0] = 0
        specials["es"] = 258
        assert vocabulary.merges.tolist() == [[108, 111, 256]]
        assert vocabulary.special_tokens == {"low": 257}
        with pytest.raises(ValueError, match="read-only"):
            vocabulary.merges[0, 0] = 1
        with pytest.raises(ValueError, match="read-only"):
            vocabulary.byte_ids[0] = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            vocabulary.ties = "ids"  # type: ignore[misc]
        with pytest.raises(TypeError):
            vocabulary.special_tokens["es"] = 258  # type: ignore[index]

    def test_byte_ids_where_bytes_are_permuted(self) -> None:
        vocabulary = Vocabulary.from_tokens({index: bytes([255 - index]) for index in range(256)}, [])
        assert vocabulary.byte_ids.dtype == np.int32
        assert vocabulary.byte_ids.tolist() == list(range(255, -1, -1))

    @pytest.mark.parametrize(("size", "dtype"), [(256, "uint16"), (65_536, "uint16"), (65_537, "uint32")])
    def test_dtype_holds_every_id(self, size: int, dtype: str) -> None:
        tokens = [bytes([index]) for index in range(256)] + [b"%d" % index * 2 for index in range(size - 256)]
        assert Vocabulary(tuple(tokens), np.empty((0, 3), np.int32)).dtype == dtype


class TestEquality:
    def test_of_equal_contents(self) -> None:
        assert lowest("<a>") == lowest("<a>")
        assert len({lowest("<a>"), lowest("<a>"), lowest()}) == 2

    @pytest.mark.parametrize(
        "change",
        [
            {"tokens": (*LOWEST.values(), b"x")},
            {"merges": np.array([[101, 115, 258]])},
            {"special_tokens": {"low": 257}},
            {"pattern": None},
            {"pattern": "none"},
            {"ties": "ids"},
            {"tokens": (*LOWEST.values(), b"", b"x")},
            {"pattern": ("x",)},
            {"pattern": [Split("x", "removed")]},
            {"normalizer": (("nfc",),)},
            {"template": ((97,), ())},
            {"template": ((), (97,))},
            {"whole_tokens": True},
            {"ranks": "tokens"},
        ],
    )
    def test_of_different_contents(self, change: dict[str, Any]) -> None:
        other = dataclasses.replace(lowest(), **change)
        assert other != lowest()
        assert other.fingerprint() != lowest().fingerprint()

    def test_a_sequence_of_splits_is_the_pattern_it_spells(self) -> None:
        named = dataclasses.replace(lowest(), pattern=list(get_pattern("deepseek").splits))
        assert named == dataclasses.replace(lowest(), pattern="deepseek")
        assert dataclasses.replace(lowest(), pattern=["x", "y"]).pattern == (Split("x"), Split("y"))

    def test_rules_count_in_any_order(self) -> None:
        def ruled(*rules: str) -> Vocabulary:
            return dataclasses.replace(lowest("<a>"), added_rules={"<a>": rules} if rules else {})

        assert ruled("lstrip", "rstrip") == ruled("rstrip", "lstrip") != ruled("lstrip") != ruled()
        assert dataclasses.replace(lowest("<a>"), added_rules={"<a>": ()}) == lowest("<a>")

    def test_the_order_of_special_tokens_counts(self) -> None:
        assert Vocabulary.from_tokens(LOWEST, [], ["lo", "low"]) != Vocabulary.from_tokens(LOWEST, [], ["low", "lo"])

    def test_the_bounds_of_tokens_count(self) -> None:
        one = Vocabulary.from_tokens(BYTES | {256: b"ab", 257: b"c!"}, [])
        other = Vocabulary.from_tokens(BYTES | {256: b"abc", 257: b"!"}, [])
        assert one.fingerprint() != other.fingerprint()

    def test_the_fingerprint_never_changes(self) -> None:
        expected = "30739747e182ae71ce9b0387206ee9d93745fbcf208bef21d6b04920e993b512"
        assert lowest("<|endoftext|>").fingerprint() == expected


class TestFile:
    @given(all_fields())
    def test_round_trip_of_all_fields(self, vocabulary: Vocabulary) -> None:
        for again in (Vocabulary.from_json(vocabulary.to_json()), pickle.loads(pickle.dumps(vocabulary))):
            assert again == vocabulary
            assert again.merges.tolist() == vocabulary.merges.tolist()
            for name in ("tokens", "pattern", "normalizer", "added_rules", "template", "whole_tokens", "ranks"):
                assert getattr(again, name) == getattr(vocabulary, name)
        assert dataclasses.replace(vocabulary) == vocabulary

    def test_new_fields_stand_before_the_tokens(self) -> None:
        text = dataclasses.replace(lowest("<a>"), normalizer=[["nfc"]], template=[[97], []]).to_json()
        assert text.splitlines()[2] == '"version":2,'
        assert text.splitlines()[7:9] == ['"normalizer":[["nfc"]],', '"template":[[97],[]],']

    @given(vocabularies())
    def test_round_trip(self, vocabulary: Vocabulary) -> None:
        text = vocabulary.to_json()
        again = Vocabulary.from_json(text)
        assert again == vocabulary
        assert again.tokens == vocabulary.tokens
        assert again.merges.tolist() == vocabulary.merges.tolist()
        assert list(again.special_tokens.items()) == list(vocabulary.special_tokens.items())
        assert (again.pattern, again.ties) == (vocabulary.pattern, vocabulary.ties)
        assert again.to_json() == text

    def test_is_json_a_field_a_line(self) -> None:
        text = lowest("é").to_json()
        assert text.isascii()
        assert text.endswith("]\n}\n")
        assert [line.partition(":")[0] for line in text.splitlines()[1:-1]] == [
            f'"{name}"'
            for name in (
                "format",
                "version",
                "sha256",
                "pattern",
                "ties",
                "special_tokens",
                "tokens",
                "merges",
            )
        ]
        fields = json.loads(text)
        assert fields["special_tokens"] == {"é": 259}
        assert fields["tokens"][256:] == ["bG8=", "bG93", "ZXM=", "w6k="]
        assert fields["merges"] == [[108, 111, 256], [256, 119, 257], [101, 115, 258]]

    def test_save_and_load(self, tmp_path: Path) -> None:
        lowest("<a>").save(tmp_path / "v.json")
        assert (tmp_path / "v.json").read_text("ascii") == lowest("<a>").to_json()
        assert Vocabulary.load(str(tmp_path / "v.json")) == lowest("<a>")

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda fields: fields.update(format="x"), '"format" is not "dask_bpe.vocabulary"'),
            (lambda fields: fields.pop("format"), '"format" is not'),
            (lambda fields: fields.update(version=2), "do not match its checksum"),
            (lambda fields: fields.update(ranks="tokens"), "do not match its checksum"),
            (lambda fields: fields.update(whole_tokens=True), "do not match its checksum"),
            (lambda fields: fields.update(whole_tokens="yes"), "whole_tokens is 'yes'"),
            (lambda fields: fields.update(normalizer=[["nfx"]]), "unknown step 'nfx'"),
            (lambda fields: fields.update(template=[[300], []]), "the template names id 300"),
            (lambda fields: fields.update(added_rules=[7]), "a mapping of text to rules was expected"),
            (lambda fields: fields.update(version=3), "vocabulary of version 3, and this dask_bpe reads 1 to 2"),
            (lambda fields: fields.update(sha256="0" * 64), "do not match its checksum"),
            (lambda fields: fields.update(ties="ids"), "do not match its checksum"),
            (lambda fields: fields.update(pattern=None), "do not match its checksum"),
            (lambda fields: fields.update(pattern=7), "pattern is 7"),
            (lambda fields: fields.update(pattern=[["a"]]), "a list of [regex, behavior, invert] was expected"),
            (lambda fields: fields.update(pattern=[["(", "isolated", False]]), "damaged vocabulary: pattern"),
            (lambda fields: fields.update(ties=7), "unknown tie rule 7"),
            (lambda fields: fields.pop("merges"), "field 'merges' is missing"),
            (lambda fields: fields.update(merges=[[1, 2]]), "shape"),
            (lambda fields: fields.update(merges=[[1, 2], [3]]), "damaged vocabulary"),
            (lambda fields: fields.update(merges=[[1 << 40, 2, 3]]), "damaged vocabulary"),
            (lambda fields: fields.update(merges=None), "damaged vocabulary"),
            (lambda fields: fields["merges"].pop(), "do not match its checksum"),
            (lambda fields: fields["merges"].reverse(), "do not match its checksum"),
            (lambda fields: fields["tokens"].pop(), "ids end at"),
            (lambda fields: fields["tokens"].append("YQ="), "damaged vocabulary"),
            (lambda fields: fields["tokens"].append(7), "damaged vocabulary"),
            (lambda fields: fields["tokens"].append(""), "id 260 has"),
            (lambda fields: fields.update(special_tokens=[1, 2]), "damaged vocabulary"),
            (lambda fields: fields.update(special_tokens={"<a>": "259"}), "damaged vocabulary"),
            (lambda fields: fields.update(special_tokens={"<a>": 256}), "'<a>' has id 256"),
            (lambda fields: fields.update(special_tokens={"": 259}), "empty"),
        ],
    )
    def test_refuses_damage_in_one_line(
        self, tmp_path: Path, damage: Callable[[dict[str, Any]], object], message: str
    ) -> None:
        path = tmp_path / "v.json"
        vocabulary = Vocabulary.from_tokens(LOWEST | {259: b"<a>"}, LOWEST_MERGES, ["<a>"])
        fields = json.loads(vocabulary.to_json())
        if message == "ids end at":
            fields["merges"].append([60, 97, 259])
        damage(fields)
        path.write_text(json.dumps(fields))
        with pytest.raises(VocabularyError) as caught:
            Vocabulary.load(path)
        assert message in str(caught.value)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("content", [b"", b"[]", b"7", b"\xff\xfe\x00", b"[" * 100_000, b"{", b"null"])
    def test_refuses_what_is_no_vocabulary(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "v.json").write_bytes(content)
        with pytest.raises(VocabularyError, match="not a vocabulary"):
            Vocabulary.load(tmp_path / "v.json")

    def test_refuses_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(VocabularyError, match=r"missing\.json: cannot read the file: No such file"):
            Vocabulary.load(tmp_path / "missing.json")
        with pytest.raises(VocabularyError, match="cannot read the file: Is a directory"):
            Vocabulary.load(tmp_path)

    def test_refuses_every_cut_and_every_changed_byte(self) -> None:
        content = lowest("<|endoftext|>").to_json().encode()
        for place in range(0, len(content) - 2, 7):
            with pytest.raises(VocabularyError):
                Vocabulary.from_json(content[:place])
        for place in range(0, len(content), 7):
            changed = bytearray(content)
            changed[place] = (changed[place] + 1) % 256
            try:
                again = Vocabulary.from_json(bytes(changed))
            except VocabularyError:
                continue
            assert again == lowest("<|endoftext|>")


class TestPickle:
    @given(vocabularies())
    def test_round_trip(self, vocabulary: Vocabulary) -> None:
        again = pickle.loads(pickle.dumps(vocabulary))
        assert again == vocabulary
        assert list(again.special_tokens.items()) == list(vocabulary.special_tokens.items())

    def test_holds_nothing_that_can_be_derived(self) -> None:
        vocabulary = lowest("<a>")
        before = pickle.dumps(vocabulary)
        vocabulary.fingerprint()
        vocabulary.byte_ids.sum()
        assert pickle.dumps(vocabulary) == before
        assert len(before) < 2_500
