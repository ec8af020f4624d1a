"""minbpe's models, held to minbpe's own rules, which are retold here in as few lines as they need."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import regex
from huggingface_files import CORPUS, SAMPLES, texts
from hypothesis import given
from strategies import examples

from dask_bpe import Tokenizer, Vocabulary
from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.pretokenize import PATTERNS, Split

END = "<|endoftext|>"
BYTES = tuple(bytes([byte]) for byte in range(256))


class MinBpe:
    """What minbpe's base.py, basic.py and regex.py do with a model file."""

    def __init__(self, path: Path) -> None:
        with path.open(encoding="utf-8") as file:
            assert file.readline().strip() == "minbpe v1"
            self.pattern = file.readline().strip()
            self.specials = dict(file.readline().strip().split() for _ in range(int(file.readline().strip())))
            rows = [tuple(map(int, line.split())) for line in file]
        self.merges = {pair: 256 + index for index, pair in enumerate(rows)}

    def encode(self, text: str) -> list[int]:
        alternatives = "|".join(map(regex.escape, self.specials))
        ids: list[int] = []
        for part in regex.split(f"({alternatives})", text) if self.specials else [text]:
            if part in self.specials:
                ids.append(int(self.specials[part]))
            else:
                chunks = regex.findall(self.pattern, part) if self.pattern else [part]
                ids += [index for chunk in chunks for index in self.encode_chunk(list(chunk.encode()))]
        return ids

    def encode_chunk(self, ids: list[int]) -> list[int]:
        while len(ids) > 1:
            pair = min(pairwise(ids), key=lambda pair: self.merges.get(pair, 1 << 30))
            if pair not in self.merges:
                break
            merged, at = [], 0
            while at < len(ids):
                found = tuple(ids[at : at + 2]) == pair
                merged.append(self.merges[pair] if found else ids[at])
                at += 1 + found
            ids = merged
        return ids


def tokenizer(pattern: Any = "gpt2", specials: tuple[str, ...] = (END,), **fields: Any) -> Tokenizer:
    """What the oracle learns with minbpe's layout of ids, and special tokens after a gap."""
    learned = reference.train(reference.count(CORPUS, None, []), 400)
    ids = {text: 450 + index for index, text in enumerate(specials)}
    tokens = (
        [*learned.tokens, *[b""] * (450 - len(learned.tokens)), *map(str.encode, specials)] if ids else learned.tokens
    )
    merges = np.array(learned.merges, np.int32)
    return Tokenizer(Vocabulary(tuple(tokens), merges, ids, pattern, "ids", **fields))


@pytest.mark.parametrize("specials", [(), (END, "<a>", "<a><b>")])
@pytest.mark.parametrize("name", [name for name, splits in PATTERNS.items() if len(splits) < 2])
def test_writes_and_reads_what_minbpe_reads(tmp_path: Path, name: str, specials: tuple[str, ...]) -> None:
    ours = tokenizer(None if name == "none" else name, specials)
    ours.to_minbpe(tmp_path / "ours.model")
    theirs, again = MinBpe(tmp_path / "ours.model"), Tokenizer.from_minbpe(tmp_path / "ours.model")
    assert (again.special_tokens, again.pattern, len(again)) == (ours.special_tokens, ours.pattern, len(ours))
    assert again == ours or specials  # the longer special tokens come first in the file

    @examples(0.3)
    @given(texts(*specials))
    def check(text: str) -> None:
        assert ours.encode(text) == theirs.encode(text) == again.encode(text)

    check()


def test_an_isolating_split_keeps_what_lies_between(tmp_path: Path) -> None:
    ours = tokenizer((Split(r"\p{L}+|'(?:s|t)"),))
    ours.to_minbpe(tmp_path / "ours.model")
    theirs = MinBpe(tmp_path / "ours.model")
    for text in SAMPLES:
        assert theirs.encode(text) == ours.encode(text)


def test_ranks_of_tokens(tmp_path: Path) -> None:
    vocabulary = tokenizer().vocabulary
    ranks = {token: index for index, token in enumerate(vocabulary.tokens[:400])}
    ours = Tokenizer.from_tiktoken(ranks, "gpt2", {END: 450})
    ours.to_minbpe(tmp_path / "ours.model")
    assert Tokenizer.from_minbpe(tmp_path / "ours.model").vocabulary == vocabulary


def test_reads_a_model_as_minbpe_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "tok.model"
    path.write_bytes(b"minbpe v1\n\n0\n97 98\n256 99\n")
    assert Tokenizer.from_minbpe(path).encode("abcab") == [257, 256]
    path.write_bytes(b"minbpe v1\r\n\\w+|\\W\r\n1\r\n<e> 258\r\n97 98\r\n256 99\r\n")
    read = Tokenizer.from_minbpe(path)
    assert (read.pattern, read.special_tokens, read.encode("abc<e> ab")) == (
        r"\w+|\W",
        {"<e>": 258},
        [257, 258, 32, 256],
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1 is ''"),
        (b"minbpe v2\n\n0\n", "line 1 is 'minbpe v2'"),
        (b"minbpe v1\n\n", "line 3 is not the number"),
        (b"minbpe v1\n\n1\n97 98 99\n", "line 4: '97 98 99' is not a special token"),
        (b"minbpe v1\n\n0\n97 98\n97\n", "line 5: '97' is not a merge"),
        (b"minbpe v1\n\n0\n97 256\n", "line 4: merge '97 256' refers to id 256, which comes later"),
        (b"minbpe v1\n\n1\n<e> 256\n97 98\n", "special token '<e>' has id 256, which is that of b'ab' too"),
        (b"minbpe v1\n\n2\n<e> 300\n<e>a 301\n", "minbpe takes the shorter one"),
        (b"minbpe v1\n\xff\n0\n", "utf-8"),
    ],
)
def test_refuses_damage_in_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "tok.model"
    path.write_bytes(data)
    with pytest.raises(VocabularyError) as caught:
        Tokenizer.from_minbpe(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tokens": (b"ab", b"cd"), "merges": [[99, 100, 257], [97, 98, 256]]}, "makes id 257 is where that of id 256"),
        ({"tokens": (b"ab",)}, "no merge makes id 256, b'ab'"),
        ({"tokens": (b"",) * 4 + (b"ab",), "merges": [[97, 98, 260]]}, "makes id 260 is where that of id 256"),
        ({"tokens": (b"a b",), "special_tokens": {"a b": 256}}, "'a b' holds white space"),
        ({"pattern": r"(a)|[\s\S]"}, "a group in round brackets"),
        ({"pattern": "a|\n|[\\s\\S]"}, "has a line end"),
        ({"normalizer": (("nfc",),)}, "it has a normalizer"),
        ({"pattern": "starcoder"}, "a sequence of splits"),
        (
            {"tokens": (b"ab", b"bc", b"abc"), "merges": [[97, 98, 256], [98, 99, 257], [97, 257, 258]]}
            | {"whole_tokens": True},
            "makes a token of a pre-token b'abc'",
        ),
    ],
)
def test_refuses_what_it_cannot_express(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    rest = dict(fields)
    merges = np.array(rest.pop("merges", []), np.int32).reshape(-1, 3)
    ours = Tokenizer(Vocabulary((*BYTES, *rest.pop("tokens", ())), merges, **rest))
    with pytest.raises(VocabularyError) as caught:
        ours.to_minbpe(tmp_path / "x.model")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ParameterError, match=r'does not end with "\.model"'):
        ours.to_minbpe(tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []


def test_bytes_in_another_order(tmp_path: Path) -> None:
    ours = Tokenizer(Vocabulary(BYTES[::-1], np.empty((0, 3), np.int32)))
    with pytest.raises(VocabularyError, match="the byte 0x00 has id 255 and not 0"):
        ours.to_minbpe(tmp_path / "x.model")
