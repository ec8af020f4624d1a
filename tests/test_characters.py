"""One character, one id: a dictionary is the oracle."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import dask_bpe
from dask_bpe import CharTokenizer, PretokenCounts
from dask_bpe.errors import InputError, ParameterError, VocabularyError


@given(texts=st.lists(strategies.text(), max_size=4), parts=st.lists(st.integers(0, 100), max_size=20))
def test_ids_are_those_of_a_dictionary(texts: list[str], parts: list[int]) -> None:
    tokenizer = CharTokenizer.from_text(texts)
    ids = {character: index for index, character in enumerate(sorted(set("".join(texts))))}
    assert (len(tokenizer), tokenizer.vocab_size, tokenizer.characters) == (len(ids), len(ids), "".join(ids))
    text = "".join(tokenizer.characters[part % len(ids)] for part in parts) if ids else ""
    for given_text in [*texts, text]:
        encoded = tokenizer.encode(given_text)
        assert encoded == [ids[character] for character in given_text]
        assert tokenizer.decode(encoded) == given_text
        assert tokenizer.decode(tokenizer.encode_to_numpy(given_text)) == given_text
        assert tokenizer.encode_to_numpy(given_text).dtype == np.uint16


@given(known=strategies.text(8), text=strategies.text(8))
def test_the_first_unknown_character_is_named_with_its_place(known: str, text: str) -> None:
    tokenizer = CharTokenizer.from_text(known)
    first = next((at for at, character in enumerate(text) if character not in known), None)
    if first is None:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        return
    with pytest.raises(InputError) as refused:
        tokenizer.encode(text)
    n_bytes, line = len(text[:first].encode()), text[:first].count("\n") + 1
    message = str(refused.value)
    assert message.startswith(f"U+{ord(text[first]):04X}")
    assert f"at character {first} (byte {n_bytes}, line {line})" in message
    assert "\n" not in message


def test_an_unknown_character_in_words() -> None:
    with pytest.raises(InputError, match=r"U\+AC00 HANGUL SYLLABLE GA \('가'\) at character 5 \(byte 6, line 2\)"):
        CharTokenizer.from_text("né d\n").encode("né d\n가")
    with pytest.raises(InputError, match=r"U\+D800 \('\\ud800'\) at character 1 "):
        CharTokenizer("a").encode("a\ud800")


def test_ids_beyond_16_bits() -> None:
    every = "".join(chr(point) for point in range(0x11000) if not 0xD800 <= point < 0xE000)
    tokenizer = CharTokenizer(every)
    assert tokenizer.encode_to_numpy("a").dtype == np.uint32
    assert tokenizer.decode(tokenizer.encode(every[::-1])) == every[::-1]


def test_characters_of_counts(corpus: list[str]) -> None:
    counts = dask_bpe.count_pretokens(iter(corpus))
    assert CharTokenizer.from_counts(counts) == CharTokenizer.from_text(corpus)
    assert CharTokenizer.from_counts(PretokenCounts.from_mapping({b"b\xff\xe4\xb8": 1, "é": 1})).characters == "bé"


def test_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = CharTokenizer.from_text("low, lower 자😀\n")
    tokenizer.save(tmp_path / "characters.json")
    same = CharTokenizer.load(tmp_path / "characters.json")
    assert same == tokenizer == pickle.loads(pickle.dumps(tokenizer))
    assert hash(same) == hash(tokenizer)
    assert same.encode("😀 w") == tokenizer.encode("😀 w")
    fields = json.loads((tmp_path / "characters.json").read_text())
    for damage in (b"", b"[]", b"{}", json.dumps(fields | {"characters": "lo"}).encode(), b'{"format": "x"}'):
        (tmp_path / "damaged.json").write_bytes(damage)
        with pytest.raises(VocabularyError, match=r"damaged\.json: "):
            CharTokenizer.load(tmp_path / "damaged.json")
    for wrong in (None, 7, "aa"):
        (tmp_path / "damaged.json").write_text(json.dumps(fields | {"characters": wrong}))
        with pytest.raises(VocabularyError, match="damaged"):
            CharTokenizer.load(tmp_path / "damaged.json")
    with pytest.raises(VocabularyError, match=r"no\.json: cannot read"):
        CharTokenizer.load(tmp_path / "no.json")


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ParameterError, match=r"U\+0061 LATIN SMALL LETTER A \('a'\) is there twice"):
        CharTokenizer("aba")
    with pytest.raises(ParameterError, match="half of a surrogate pair"):
        CharTokenizer("a\udc80")
    with pytest.raises(ParameterError, match="id 3 at position 1 is unknown: ids end at 2"):
        CharTokenizer("abc").decode([0, 3])
    with pytest.raises(ParameterError, match="id -1 at position 0"):
        CharTokenizer("abc").decode([-1])
    with pytest.raises(ParameterError, match="integers in one dimension"):
        CharTokenizer("abc").decode([0.5])  # type: ignore[list-item]
    assert CharTokenizer("").encode("") == []
    assert CharTokenizer("").decode([]) == ""
