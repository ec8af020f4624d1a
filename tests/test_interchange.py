"""Vocabulary files of others: read, written, and refused when damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from tokenizers import ByteLevelBPETokenizer

from dask_bpe import Tokenizer
from dask_bpe.errors import OutputError, VocabularyError
from dask_bpe.interchange.course_json import read_pair, write_pair
from dask_bpe.interchange.gpt2 import BYTE_OF_CHARACTER, CHARACTER_OF_BYTE, read_gpt2, write_gpt2
from dask_bpe.vocabulary import Vocabulary

BYTES = {index: bytes([index]) for index in range(256)}
VOCAB = BYTES | {256: b"he", 257: b"\xe3\x81"}
MERGES = [(b"h", b"e"), (b"\xe3", b"\x81")]


def write(folder: Path, vocab: str | bytes, merges: str | bytes) -> tuple[Path, Path]:
    paths = folder / "vocab.json", folder / "merges"
    for path, content in zip(paths, (vocab, merges), strict=True):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return paths


def course_vocab(vocab: dict[int, bytes]) -> str:
    return json.dumps({str(index): list(token) for index, token in vocab.items()})


class TestCourseJson:
    def test_reads_ids_and_lists_of_bytes(self, tmp_path: Path) -> None:
        paths = write(tmp_path, course_vocab(VOCAB), "[[[104], [101]], [[227], [129]]]")
        vocabulary = read_pair(*paths, ["<|endoftext|>"], pattern=None, ties="ids")
        assert vocabulary == Vocabulary.from_tokens(VOCAB, MERGES, ["<|endoftext|>"], pattern=None, ties="ids")
        assert vocabulary.special_tokens == {"<|endoftext|>": 258}

    def test_the_order_of_keys_does_not_count(self, tmp_path: Path) -> None:
        paths = write(tmp_path, course_vocab(dict(reversed(VOCAB.items()))), "[]")
        assert read_pair(*paths).to_dict() == VOCAB

    def test_writes_what_it_reads(self, tmp_path: Path) -> None:
        vocabulary = Vocabulary.from_tokens(VOCAB, MERGES, ["<|endoftext|>", "he"])
        paths = tmp_path / "vocab.json", tmp_path / "merges.json"
        write_pair(vocabulary, *paths)
        vocab, merges = (path.read_text("ascii") for path in paths)
        assert vocab.startswith('{"0":[0],"1":[1],')
        assert '"256":[104,101],"257":[227,129],"258":[60,124,' in vocab
        assert json.loads(vocab)["258"] == list(b"<|endoftext|>")
        assert merges == "[[[104],[101]],[[227],[129]]]\n"
        assert read_pair(*paths, ["<|endoftext|>", "he"]) == vocabulary

    @pytest.mark.parametrize(
        ("vocab", "merges", "message"),
        [
            ("", "[]", "vocab.json: not JSON"),
            (course_vocab(VOCAB)[:-1], "[]", "vocab.json: not JSON"),
            (b"\xff{}", "[]", "vocab.json: not JSON"),
            ("[" * 100_000, "[]", "vocab.json: not JSON"),
            ("[]", "[]", "vocab.json with "),
            ("7", "[]", "vocab.json: an object"),
            ("[1, 2]", "[]", "vocab.json: an object"),
            ("[[1, 2]]", "[]", "vocab.json: an object"),
            ('{"a": [1]}', "[]", "vocab.json: key 'a'"),
            ('{"-1": [1]}', "[]", "vocab.json: key '-1'"),
            ('{"٣": [1]}', "[]", "vocab.json: key '٣'"),
            ('{"1": [1], "01": [1]}', "[]", "vocab.json: key '01'"),
            ('{"1": [256]}', "[]", "vocab.json: id 1: [256] is not a list of byte values"),
            ('{"1": [1.5]}', "[]", "vocab.json: id 1: "),
            ('{"1": 5}', "[]", "vocab.json: id 1: 5 is not"),
            ('{"1": {"2": 3}}', "[]", "vocab.json: id 1: "),
            ('{"1": "a"}', "[]", "vocab.json: id 1: a is not"),
            ('{"1": [1]}', "[]", "id 0 is missing"),
            (course_vocab(VOCAB), "[[[104], [101]]", "merges: not JSON"),
            (course_vocab(VOCAB), "{}", "merges: a list"),
            (course_vocab(VOCAB), "[[[104], [101]], [[104]]]", "merges: merge 1 is not a pair"),
            (course_vocab(VOCAB), "[[[104], 101]]", "merges: merge 0: 101 is not"),
            (course_vocab(VOCAB), "[[[104], [102]]]", "no id spells b'hf'"),
        ],
    )
    def test_refuses_damage_in_one_line(self, tmp_path: Path, vocab: str | bytes, merges: str, message: str) -> None:
        with pytest.raises(VocabularyError) as caught:
            read_pair(*write(tmp_path, vocab, merges))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_refuses_to_write_what_would_be_read_as_other_ids(self, tmp_path: Path) -> None:
        paths = tmp_path / "vocab.json", tmp_path / "merges.json"
        tokens = (*BYTES.values(), b"ab", b"bc", b"abc", b"abc")
        merges = [[97, 98, 256], [98, 99, 257], [256, 99, 258], [97, 257, 259]]
        with pytest.raises(VocabularyError, match="merge 3 refers to id 259, and id 258 spells the same"):
            write_pair(Vocabulary(tokens, np.array(merges)), *paths)
        with pytest.raises(VocabularyError, match="special token 'abc' has id 259, and id 258 spells the same"):
            write_pair(Vocabulary(tokens, np.array(merges[:3]), {"abc": 259}), *paths)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"normalizer": (("nfc",),)}, "it has a normalizer"),
            ({"tokens": (b"", b"he")}, "no token has the id 256"),
            ({"tokens": (b"he",), "whole_tokens": True}, "makes a token of a pre-token b'he'"),
        ],
    )
    def test_refuses_what_it_has_no_place_for(self, tmp_path: Path, fields: dict[str, Any], message: str) -> None:
        rest = dict(fields)
        vocabulary = Vocabulary((*BYTES.values(), *rest.pop("tokens", ())), np.empty((0, 3), np.int32), **rest)
        with pytest.raises(VocabularyError, match=message):
            write_pair(vocabulary, tmp_path / "vocab.json", tmp_path / "merges.json")
        assert list(tmp_path.iterdir()) == []

    def test_writes_both_files_or_none(self, tmp_path: Path) -> None:
        vocabulary = Vocabulary.from_tokens(VOCAB, MERGES)
        with pytest.raises(OutputError):
            write_pair(vocabulary, tmp_path / "vocab.json", tmp_path / "missing" / "merges.json")
        assert list(tmp_path.iterdir()) == []


class TestGpt2:
    def test_stand_ins_of_bytes(self) -> None:
        assert reference.byte_to_character() == CHARACTER_OF_BYTE
        assert CHARACTER_OF_BYTE[ord(" ")] == "Ġ"
        assert {BYTE_OF_CHARACTER[character] for character in CHARACTER_OF_BYTE.values()} == set(range(256))

    def test_reads_the_vocabulary_of_gpt2(self, gpt2_files: tuple[Path, Path]) -> None:
        vocabulary = read_gpt2(*gpt2_files)
        assert len(vocabulary) == 50_257
        assert len(vocabulary.merges) == 50_000
        assert vocabulary.special_tokens == {"<|endoftext|>": 50_256}
        assert vocabulary.merges[:2].tolist() == [[220, 83, 256], [220, 64, 257]]
        assert vocabulary.tokens[262] == b" the"
        assert vocabulary.byte_ids[ord("!")] == 0
        assert vocabulary.byte_ids[ord(" ")] == 220
        assert vocabulary.pattern == "gpt2"

    def test_special_tokens_beyond_printable_bytes(self, tmp_path: Path) -> None:
        vocab = {character: byte for byte, character in CHARACTER_OF_BYTE.items()} | {"<｜end▁of▁text｜>": 256}
        paths = write(tmp_path, json.dumps(vocab), "")
        vocabulary = read_gpt2(*paths, ["<｜end▁of▁text｜>", "<new>"])
        assert vocabulary.special_tokens == {"<｜end▁of▁text｜>": 256, "<new>": 257}
        with pytest.raises(VocabularyError, match=r"holds '｜', which stands for no byte; if it is a special"):
            read_gpt2(*paths)

    def test_line_ends_of_any_system(self, tmp_path: Path) -> None:
        vocab = {character: byte for byte, character in CHARACTER_OF_BYTE.items()} | {"Ġt": 256, "he": 257}
        for merges in ("#version: 0.2\nĠ t\nh e\n", "#version: 0.2\r\nĠ t\r\nh e", "Ġ t\nh e\n\n"):
            vocabulary = read_gpt2(*write(tmp_path, json.dumps(vocab), merges))
            assert vocabulary.merge_bytes() == [(b" ", b"t"), (b"h", b"e")]

    @pytest.mark.parametrize(
        ("vocab", "merges", "message"),
        [
            ('{"!": 0', "", "vocab.json: "),
            (b"\xff", "", "vocab.json: "),
            ("[" * 100_000, "", "vocab.json: "),
            ("[]", "", "vocab.json: an object"),
            ('{"a": "b"}', "", "vocab.json: token 'a' has 'b', which is not an id"),
            ('{"a": 0, "b": 0}', "", "vocab.json: token 'b' has 0, which is not an id, or the same id again"),
            ('{"a": 1}', "", "id 0 is missing"),
            ("{}", "a", "merges: line 1: 'a' is not two tokens"),
            ("{}", "#version: 0.2\na b\na b c\n", "merges: line 3: 'a b c' is not two tokens"),
            ("{}", "a \u3042", "merges: token '\u3042' holds"),
            ("{}", b"a \xff", "merges: 'utf-8' codec"),
            (json.dumps({c: b for b, c in CHARACTER_OF_BYTE.items()}), "a b", "no id spells b'ab'"),
        ],
    )
    def test_refuses_damage_in_one_line(
        self, tmp_path: Path, vocab: str | bytes, merges: str | bytes, message: str
    ) -> None:
        with pytest.raises(VocabularyError) as caught:
            read_gpt2(*write(tmp_path, vocab, merges))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_refuses_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(VocabularyError, match=r"vocab\.json: cannot read the file: No such file"):
            read_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")

    def test_writes_the_files_of_gpt2(self, tmp_path: Path, gpt2_files: tuple[Path, Path], alice: str) -> None:
        vocabulary = read_gpt2(*gpt2_files)
        paths = tmp_path / "vocab.json", tmp_path / "merges.txt"
        write_gpt2(vocabulary, *paths)
        assert read_gpt2(*paths) == vocabulary
        assert paths[1].read_bytes().split(b"\n") == gpt2_files[1].read_bytes().split(b"\n")
        assert json.loads(paths[0].read_bytes()) == json.loads(gpt2_files[0].read_bytes())
        theirs = ByteLevelBPETokenizer(*map(str, paths))
        theirs.add_special_tokens(["<|endoftext|>"])
        text = alice[:20_000] + "<|endoftext|> naïve 自君之出矣\r\n\n 12"
        assert theirs.encode(text).ids == Tokenizer(vocabulary).encode(text)

    def test_special_tokens_are_written_as_text(self, tmp_path: Path) -> None:
        tokens = (*BYTES.values(), b"he", "<｜end▁of▁text｜>".encode(), b" x")
        specials = {"<｜end▁of▁text｜>": 257, " x": 258}
        vocabulary = Vocabulary(tokens, np.array([[104, 101, 256]]), specials, ties="ids")
        paths = tmp_path / "vocab.json", tmp_path / "merges.txt"
        write_gpt2(vocabulary, *paths)
        assert '"<｜end▁of▁text｜>": 257, " x": 258' in paths[0].read_text(encoding="utf-8")
        assert read_gpt2(*paths, list(specials)) == vocabulary

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"pattern": "llama3"}, "its pattern is 'llama3', and readers split as GPT-2 does"),
            ({"normalizer": (("nfc",),)}, "it has a normalizer"),
            ({"template": ((0,), ())}, "it has a template"),
            ({"tokens": (b"he", b"he")}, "ids 256 and 257 are both written 'he'"),
            ({"tokens": (b"", b"he")}, "no token has the id 256"),
            ({"tokens": (b"he",), "whole_tokens": True}, "makes a token of a pre-token b'he'"),
            ({"tokens": (b" x", b" x"), "special_tokens": {" x": 257}}, "special token ' x' has id 257, and id 256"),
            (
                {"tokens": (b" x",), "special_tokens": {" x": 256}, "merges": [[32, 120, 256]]},
                "the special token ' x' takes part in merges",
            ),
            (
                {"tokens": (b"<s>",), "special_tokens": {"<s>": 256}, "added_rules": {"<s>": {"rstrip"}}},
                "the special token '<s>' follows the rule 'rstrip'",
            ),
        ],
    )
    def test_refuses_before_it_writes(self, tmp_path: Path, fields: dict[str, Any], message: str) -> None:
        rest = dict(fields)
        tokens = (*BYTES.values(), *rest.pop("tokens", ()))
        vocabulary = Vocabulary(tokens, np.array(rest.pop("merges", []), np.int32).reshape(-1, 3), **rest)
        with pytest.raises(VocabularyError) as caught:
            write_gpt2(vocabulary, tmp_path / "vocab.json", tmp_path / "merges.txt")
        assert message in str(caught.value)
        assert list(tmp_path.iterdir()) == []
