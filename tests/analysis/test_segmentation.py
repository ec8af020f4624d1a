"""inspect: what is shown of the tokens of a text, and the trees of merges."""

from __future__ import annotations

from pathlib import Path

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.analysis.legible import legible
from dask_bpe.analysis.merge_tree import MergeRules, MergeTree
from dask_bpe.analysis.segmentation import Inspection, inspect_text
from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.vocabulary import Vocabulary

END = "<|endoftext|>"
TEXT = f"Lowest 1234 naïve 自君之出矣\n    return 👩‍👧{END}don't 조선"


@pytest.fixture(scope="module")
def tokenizer(alice: str, poems: str) -> Tokenizer:
    return dask_bpe.train(iter([alice, poems]), 700, special_tokens=[END])


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("自".encode(), "自"),
        (bytes.fromhex("e5 b8"), "[e5 b8]"),
        (bytes.fromhex("82"), "[82]"),
        (b" \xe5\xb8", "·[e5 b8]"),
        (b"\x82\x83abc\xff", "[82 83]abc[ff]"),
        (b"   x\n\r\t", "···x↵←→"),
        ("\u200d".encode(), "[U+200D]"),
        ("\u00a0a\u0000".encode(), "[U+00A0]a[U+0000]"),
        ("\u0301".encode(), "◌\u0301"),
        ("e\u0301".encode(), "e\u0301"),
        ("👩".encode(), "👩"),
        (b"", ""),
    ],
)
def test_a_token_is_legible(token: bytes, shown: str) -> None:
    assert legible(token) == shown


@given(st.binary(max_size=12))
def test_every_token_is_one_visible_line(token: bytes) -> None:
    shown = legible(token)
    assert shown.isprintable()
    assert " " not in shown or "[" in shown
    assert bool(shown) == bool(token)


def test_partial_characters_in_a_line() -> None:
    tokens = {i: bytes([i]) for i in range(256)} | {256: b"\xe8\x87", 257: b"\xe8\x87\xaa"}
    merges = [(b"\xe8", b"\x87"), (b"\xe8\x87", b"\xaa")]
    (one,) = inspect_text("自臺", Tokenizer(tokens, merges)).segmentations
    assert one.line() == "自 | [e8 87] | [ba]"


def test_ids_ranks_and_pretokens(tokenizer: Tokenizer) -> None:
    found = inspect_text(TEXT, {"t": tokenizer})
    rows = found.tables()[0].records()
    ids = tokenizer.encode(TEXT)
    assert [row["id"] for row in rows] == ids
    assert b"".join(bytes.fromhex(str(row["bytes"])) for row in rows) == TEXT.encode()
    products = [product for _, _, product in tokenizer.vocabulary.merges.tolist()]
    for row in rows:
        assert row["rank"] == (products.index(row["id"]) if row["id"] in products else None)
    pieces = [reference.split(part, reference.GPT2) for part in TEXT.split(END)]
    pretokens: dict[object, bytes] = {}
    for row in rows:
        if row["id"] != tokenizer.special_tokens[END]:
            pretokens[row["pretoken"]] = pretokens.get(row["pretoken"], b"") + bytes.fromhex(str(row["bytes"]))
        else:
            assert row["pretoken"] is None
    assert list(pretokens.values()) == [*pieces[0], *pieces[1]]
    assert [row["position"] for row in rows] == [
        sum(len(bytes.fromhex(str(before["bytes"]))) for before in rows[:at]) for at in range(len(rows))
    ]


def check(tree: MergeTree, vocabulary: Vocabulary) -> None:
    """A tree spells its token, of merges that are in the vocabulary."""
    assert vocabulary.tokens[tree.id] == tree.token
    if not tree.parts:
        assert (len(tree.token), tree.rank) == (1, None)
        return
    left, right = tree.parts
    assert tree.rank is not None
    assert vocabulary.merges[tree.rank].tolist() == [left.id, right.id, tree.id]
    check(left, vocabulary)
    check(right, vocabulary)


def test_trees_are_made_of_merges(tokenizer: Tokenizer) -> None:
    (one,) = inspect_text(TEXT, tokenizer).segmentations
    assert set(one.trees) == set(tokenizer.encode(TEXT)) - {tokenizer.special_tokens[END]}
    for tree in one.trees.values():
        check(tree, tokenizer.vocabulary)
        assert len(list(tree.merges())) == len(tree.token) - 1


@given(st.text(max_size=12))
def test_merging_one_by_one_is_encoding(text: str) -> None:
    vocabulary = _small().vocabulary
    for pretoken in reference.split(reference.characters(text), reference.GPT2):
        assert [tree.id for tree in MergeRules(vocabulary).merge(pretoken)] == _small().encode_ordinary(pretoken)


def _small() -> Tokenizer:
    return _SMALL


_SMALL = dask_bpe.train(iter(["aaa abab aabb é éé 自自 1212 aaaa b b"] * 3), 280)


def test_ranks_of_tiktoken_are_ids(tokenizer: Tokenizer) -> None:
    tokens = [token for index, token in enumerate(tokenizer.vocabulary.tokens) if index != 256]
    ranked = Tokenizer.from_tiktoken({token: index for index, token in enumerate(tokens)}, "gpt2")
    (one,) = inspect_text("Alice was beginning", ranked).segmentations
    assert [piece.id for piece in one.pieces] == ranked.encode("Alice was beginning")
    assert [piece.rank for piece in one.pieces] == [p.id if len(p.token) > 1 else None for p in one.pieces]


def test_a_token_that_is_taken_as_a_whole_has_no_tree() -> None:
    tokens = {bytes([byte]): byte for byte in range(256)} | {b"abc": 256}
    (one,) = inspect_text("abc", Tokenizer.from_tiktoken(tokens, "gpt2")).segmentations
    assert [(piece.id, piece.rank) for piece in one.pieces] == [(256, None)]
    assert one.trees == {}


def test_a_normalizer_is_said(tokenizer: Tokenizer) -> None:
    plain = tokenizer.vocabulary
    small = Vocabulary(plain.tokens, plain.merges, plain.special_tokens, "gpt2", normalizer=(("lowercase",),))
    found = inspect_text("ALICE was", {"small": Tokenizer(small)}, shortest=True)
    assert found.segmentations[0].line().replace(" | ", "") == "alice·was"
    assert found.shown()[0].notes == ("The tokens spell another text than was given, with: small.",)


def test_several_side_by_side(tmp_path: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(tmp_path / "ours.json")
    tokenizer.to_huggingface(tmp_path / "hf")
    found = inspect_text(TEXT, [tmp_path / "ours.json", tmp_path / "hf", tokenizer, tokenizer])
    assert [one.tokenizer for one in found.segmentations] == ["ours", "hf", "tokenizer 1", "tokenizer 2"]
    (table,) = found.shown()
    assert len(set(map(str, table.columns["text"]))) == 1
    assert table.columns["tokens"] == [len(tokenizer.encode(TEXT))] * 4


def test_json_has_the_merges(tokenizer: Tokenizer) -> None:
    found: Inspection = inspect_text(" the", {"t": tokenizer}, shortest=True)
    (one,) = found.to_dict()["tokenizers"]
    index = tokenizer.encode(" the")[0]
    tree = found.segmentations[0].trees[index]
    assert one["merges"] == {str(index): [[m.parts[0].id, m.parts[1].id, m.id, m.rank] for m in tree.merges()]}
    assert one["least"] == [[index]]


def test_what_is_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="no such file, and tiktoken knows no encoding"):
        inspect_text("a", "nothing")
    with pytest.raises(ParameterError, match="a tokenizer is of type int"):
        inspect_text("a", [7])  # type: ignore[list-item]
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(VocabularyError, match=r"x\.json does not show what tokenizer it is"):
        inspect_text("a", tmp_path / "x.json")


def test_a_name_that_tiktoken_cannot_load_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("tiktoken.get_encoding", unreachable)
    with pytest.raises(
        VocabularyError, match=r"cannot load it here.*give the file of it, such as cl100k_base\.tiktoken"
    ):
        inspect_text("a", "cl100k_base")
    monkeypatch.setitem(__import__("sys").modules, "tiktoken", None)
    with pytest.raises(VocabularyError, match="is not installed: give the file of it"):
        inspect_text("a", "cl100k_base")
