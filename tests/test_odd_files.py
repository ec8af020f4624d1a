"""Odd vocabulary files: of a merge listed twice the last one holds, as for the libraries; a huge id is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from dask_bpe import Tokenizer
from dask_bpe.errors import BpeError, VocabularyError


def test_gpt2s_files_give_the_ids_of_hugging_face(gpt2_files: tuple[Path, Path], tmp_path: Path, alice: str) -> None:
    vocab, merges = gpt2_files
    lines = merges.read_text(encoding="utf-8").splitlines()
    repeated = tmp_path / "merges.txt"
    repeated.write_text("\n".join([*lines, lines[1], ""]), encoding="utf-8")
    peer = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(vocab), str(repeated)))
    peer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    ids = Tokenizer.from_gpt2(vocab, repeated).encode(alice)
    assert ids == peer.encode(alice).ids
    assert ids != Tokenizer.from_gpt2(vocab, merges).encode(alice)


def test_minbpe_overwrites_the_first_one(tmp_path: Path) -> None:
    path = tmp_path / "twice.model"
    path.write_text("minbpe v1\n\n0\n104 101\n256 108\n104 101\n")
    assert Tokenizer.from_minbpe(path).encode("hel") == [258, 108]


def test_merges_given_as_such_are_no_exception() -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"he", 257: b"el"}
    merges = [(b"h", b"e"), (b"e", b"l"), (b"h", b"e")]
    assert Tokenizer(vocab, merges).encode("hel") == [ord("h"), 257]


@pytest.mark.parametrize("index", [2**31, 2**32, 2**63])
def test_a_huge_id_is_refused_before_there_is_room_made_for_it(index: int, tmp_path: Path) -> None:
    path = tmp_path / "huge.model"
    path.write_text(f"minbpe v1\n\n1\n<|e|> {index}\n")
    with pytest.raises(VocabularyError, match="67108863"):
        Tokenizer.from_minbpe(path)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = {"type": "BPE", "vocab": {text: at for at, text in enumerate(alphabet)} | {"he": index}, "merges": ["h e"]}
    with pytest.raises(VocabularyError, match="67108863"):
        Tokenizer.from_huggingface(
            json.dumps({"model": model, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}})
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("minbpe v1\n\n1", "line 3 announces 1 special tokens, and 0 lines follow"),
        (f"minbpe v1\n\n{'9' * 5000}\n", "line 3 is not the number"),
        (f"minbpe v1\n\n0\n{'9' * 5000} 1\n", "line 4: '9999"),
    ],
)
def test_minbpe_files_that_are_damaged(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "damaged.model"
    path.write_text(content)
    with pytest.raises(VocabularyError, match=message):
        Tokenizer.from_minbpe(path)


@pytest.mark.parametrize("name", ["\0", "a" * 300])
@pytest.mark.parametrize("read", [Tokenizer.from_huggingface, Tokenizer.from_minbpe, Tokenizer.from_tiktoken])
def test_names_that_no_file_has(read: Callable[[str], Tokenizer], name: str) -> None:
    with pytest.raises(BpeError) as caught:
        read(name)
    assert "\n" not in str(caught.value)


def test_arguments_of_another_kind() -> None:
    tokenizer = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [])
    ranks = {bytes([byte]): byte for byte in range(256)}
    for wrong in (
        lambda: Tokenizer.from_tiktoken(ranks, "gpt2", ["<a>"]),
        lambda: Tokenizer.from_tiktoken(ranks, "gpt2", {"<a>": 300, "<b>": 300}),
        lambda: tokenizer.decode_batch(3),
        lambda: tokenizer.decode_batch([3]),
        lambda: tokenizer.decode_batch((np.array(3), np.array([0]))),
        lambda: tokenizer.decode(3),
        lambda: tokenizer.encode_batch_to_numpy(["a"], dtype="nope"),
        lambda: tokenizer.encode_to_numpy("a", dtype=3),
    ):
        with pytest.raises(BpeError) as caught:
            wrong()
        assert "\n" not in str(caught.value)
