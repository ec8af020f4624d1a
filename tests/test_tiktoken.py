"""Ranks of tiktoken: the same ids as `tiktoken` itself, for good vocabularies and for strange ones."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import tiktoken
from huggingface_files import CORPUS, SAMPLES, known, texts, trained
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from dask_bpe import Tokenizer, Vocabulary
from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.interchange.divisions import last_divisions
from dask_bpe.pretokenize import PATTERNS, Split

END, PAD = "<|endoftext|>", "<|pad|>"
BYTES = [bytes([byte]) for byte in range(256)]
ONE_SPLIT = [name for name, splits in PATTERNS.items() if len(splits) == 1]


def encoding(ranks: Mapping[bytes, int], pattern: str, special_tokens: Mapping[str, int] = {}) -> tiktoken.Encoding:
    return tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=dict(ranks), special_tokens=dict(special_tokens))


def trained_ranks() -> dict[bytes, int]:
    """What the oracle learns, with merges that cross the cuts of any pattern."""
    return {token: index for index, token in enumerate(reference.train(reference.count(CORPUS, None, []), 420).tokens)}


def opened(snippet: str, folder: Path) -> tiktoken.Encoding:
    """What the two lines of an export make, run where the files lie."""
    assert len(snippet.split("\n")) == 2
    before = Path.cwd()
    names: dict[str, Any] = {}
    os.chdir(folder)
    try:
        exec(snippet, names)
    finally:
        os.chdir(before)
    made = names["encoding"]
    assert isinstance(made, tiktoken.Encoding)
    return made


def ids_of(theirs: tiktoken.Encoding, text: str) -> list[int]:
    return theirs.encode(text, allowed_special="all")


@st.composite
def ranks(draw: st.DrawFn) -> dict[bytes, int]:
    """Bytes and tokens of few letters in any order, many of them out of reach of merges, with gaps."""
    letters = st.lists(st.sampled_from([b"a", b"b", b" "]), min_size=2, max_size=6).map(b"".join)
    tokens = draw(st.lists(letters, unique=True, max_size=14))
    order = draw(st.permutations([b"a", b"b", b" ", *tokens]))
    ordered = dict.fromkeys([*order, *BYTES])
    return {token: 3 * index + 1 for index, token in enumerate(ordered)}


class TestReading:
    @examples(1)
    @given(ranks(), st.text("ab ", max_size=14))
    def test_any_ranks(self, given_ranks: dict[bytes, int], text: str) -> None:
        theirs = encoding(given_ranks, r"[\s\S]+", {END: 2})
        ours = Tokenizer.from_tiktoken(theirs)
        assert ours.encode(text + END + text) == ids_of(theirs, text + END + text)
        assert ours.vocabulary.tokens[0] == b""
        assert ours.pattern is None

    @pytest.mark.parametrize("name", ONE_SPLIT)
    def test_named_patterns(self, name: str) -> None:
        theirs = encoding(trained_ranks(), PATTERNS[name][0].regex, {END: 500})
        ours = Tokenizer.from_tiktoken(theirs)
        assert ours.pattern == name
        assert Tokenizer.from_tiktoken(trained_ranks(), name, {END: 500}) == ours

        @examples(0.6)
        @given(texts(END))
        def check(text: str) -> None:
            assert ours.encode(text) == ids_of(theirs, text)

        check()
        for text in SAMPLES:
            assert ours.encode(text) == ids_of(theirs, text)

    def test_patterns_as_tiktoken_writes_them(self) -> None:
        published = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
        assert Tokenizer.from_tiktoken(trained_ranks(), published).pattern == "gpt2"
        theirs = encoding(trained_ranks(), r"a$|[b-z]+|[^a]|a")
        ours = Tokenizer.from_tiktoken(theirs)
        for text in ("ba\n", "a", "a\na", "word a"):  # $ is the end alone, and not before a line end there
            assert ours.encode(text) == ids_of(theirs, text)
        with pytest.raises(VocabularyError, match="a set in a set"):
            Tokenizer.from_tiktoken(trained_ranks(), r"[a-z&&[^b]]|[\s\S]")

    def test_files(self, tmp_path: Path) -> None:
        path = tmp_path / "ours.tiktoken"
        lines = [base64.b64encode(token) + b" %d" % index for token, index in trained_ranks().items()]
        path.write_bytes(b"\n".join(lines) + b"\n")
        ours = Tokenizer.from_tiktoken(path, "llama3", {END: 420})
        assert ours == Tokenizer.from_tiktoken(trained_ranks(), "llama3", {END: 420})
        assert Tokenizer.from_tiktoken(path, "none").pattern is None
        with pytest.raises(ParameterError, match="ranks do not say how text is split") as caught:
            Tokenizer.from_tiktoken(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"YQ== 0\nYg==\n", "line 2: b'Yg==' is not a token"),
            (b"YQ== 0\n??? 1\n", "line 2"),
            (b"YQ== x\n", "line 1"),
            (b"YQ== 0\nYQ== 1\n", "line 2: the token b'a' is there before"),
            (b"YQ== 0\nYg== 0\n", "rank 0 is given to"),
            (b"YQ== 0\n", "255 of the 256"),
        ],
    )
    def test_damaged_files(self, tmp_path: Path, data: bytes, message: str) -> None:
        path = tmp_path / "damaged.tiktoken"
        path.write_bytes(data)
        with pytest.raises(VocabularyError) as caught:
            Tokenizer.from_tiktoken(path, "gpt2")
        assert str(path) in str(caught.value)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_what_does_not_go_together(self) -> None:
        theirs = encoding(trained_ranks(), PATTERNS["gpt2"][0].regex)
        with pytest.raises(ParameterError, match="comes with its pattern"):
            Tokenizer.from_tiktoken(theirs, "gpt2")
        with pytest.raises(ParameterError, match="ranks do not say"):
            Tokenizer.from_tiktoken(trained_ranks())
        with pytest.raises(ParameterError, match="a path, a mapping or a"):
            Tokenizer.from_tiktoken(7)
        overlapping = encoding(trained_ranks(), PATTERNS["gpt2"][0].regex, {"<a>": 500, "<a>b": 501})
        with pytest.raises(VocabularyError, match="tiktoken does not say which"):
            Tokenizer.from_tiktoken(overlapping)

    @pytest.mark.peers
    @pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
    def test_published_ranks(self, name: str, tmp_path: Path) -> None:
        path = Path(os.environ.get("DASK_BPE_VOCABS", "")) / "tiktoken" / f"{name}.tiktoken"
        if not path.is_file():
            pytest.skip("DASK_BPE_VOCABS names no folder with it")
        from tiktoken_ext import openai_public

        ours = Tokenizer.from_tiktoken(path)
        loaded: dict[str, Any] = {}
        lines = path.read_bytes().splitlines()
        mergeable = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: mergeable)
            loaded = getattr(openai_public, name)()
        theirs = tiktoken.Encoding(**loaded)
        assert Tokenizer.from_tiktoken(theirs) == ours
        again = opened(ours.to_tiktoken(tmp_path / "again.tiktoken"), tmp_path)
        assert again._mergeable_ranks == mergeable

        @given(texts(END, "<|endofprompt|>"))
        def check(text: str) -> None:
            assert ours.encode(text) == ids_of(theirs, text) == ids_of(again, text)

        check()


class TestDivisions:
    @examples(1.5)
    @given(ranks(), st.text("ab ", max_size=14))
    def test_neighbours_that_join_to_a_token_are_always_the_same_two(
        self, given_ranks: dict[bytes, int], text: str
    ) -> None:
        expected = last_divisions(given_ranks)
        parts = [text.encode()[at : at + 1] for at in range(len(text))]
        while True:
            joined = [(given_ranks.get(left + right), left, right) for left, right in pairwise(parts)]
            for rank, left, right in joined:
                assert rank is None or expected[left + right] == (left, right)
            found = [(rank, at) for at, (rank, _, _) in enumerate(joined) if rank is not None]
            if not found:
                break
            at = min(found)[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]


class TestWriting:
    @pytest.mark.parametrize("name", [*ONE_SPLIT, "none"])
    def test_trained_vocabularies(self, tmp_path: Path, name: str) -> None:
        base = Tokenizer.from_huggingface(trained()).vocabulary
        tokens = (*base.tokens, b"", END.encode())
        vocabulary = Vocabulary(tokens, base.merges, {END: 421}, None if name == "none" else name, "ids")
        ours = Tokenizer(vocabulary)
        snippet = ours.to_tiktoken(tmp_path / "ours.tiktoken")
        beside = json.loads((tmp_path / "ours.tiktoken.json").read_text())
        assert beside["python"] == snippet.split("\n")
        theirs = opened(snippet, tmp_path)
        again = Tokenizer.from_tiktoken(tmp_path / "ours.tiktoken")
        assert (again.pattern, again.special_tokens) == (ours.pattern, ours.special_tokens)

        @examples(0.4)
        @given(texts(END))
        def check(text: str) -> None:
            assert ids_of(theirs, text) == ours.encode(text) == again.encode(text)

        check()

    def test_an_isolating_split_keeps_what_lies_between(self, tmp_path: Path) -> None:
        ranks = trained_ranks()
        ours = Tokenizer.from_tiktoken(ranks, [Split(r"\p{L}+|'(?:s|t)")], {END: 500})
        theirs = opened(ours.to_tiktoken(tmp_path / "ours.tiktoken"), tmp_path)
        for text in SAMPLES:
            assert ids_of(theirs, text + END + text) == ours.encode(text + END + text)

    @examples(1)
    @given(ranks(), st.data())
    def test_writes_what_gives_the_same_ids_or_refuses(
        self, given_ranks: dict[bytes, int], data: st.DataObject
    ) -> None:
        """Whatever merges: of those that are written, tiktoken makes the same of every text."""
        base = Vocabulary.from_ranks(given_ranks, pattern=None)
        rows = base.merges.tolist()
        kept = data.draw(st.lists(st.sampled_from(rows), unique_by=tuple)) if rows else []
        kept = sorted(kept, key=lambda row: row[2]) if data.draw(st.booleans()) else kept
        whole = data.draw(st.booleans())
        tokens = base.tokens
        ours = Tokenizer(Vocabulary(tokens, np.array(kept, np.int32).reshape(-1, 3), pattern=None, whole_tokens=whole))
        with tempfile.TemporaryDirectory() as folder:
            try:
                theirs = opened(ours.to_tiktoken(Path(folder) / "x.tiktoken"), Path(folder))
            except VocabularyError:
                return
        for _ in range(3):
            text = data.draw(st.text("ab ", max_size=12))
            assert ids_of(theirs, text) == ours.encode(text)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"tokens": (b"bc", b"ab"), "merges": [[97, 98, 257], [98, 99, 256]]}, "merge 1 makes id 256 after id 257"),
            ({"tokens": (b"abc",)}, "merges never make id 256, b'abc'"),
            ({"tokens": (b"ab",)}, "id 256, b'ab', would be made of b'a' and b'b', and no merge does so"),
            (
                {"tokens": (b"ab", b"bc", b"abc"), "merges": [[97, 98, 256], [98, 99, 257], [97, 257, 258]]},
                "id 258, b'abc', would be made of b'ab' and b'c'",
            ),
            ({"normalizer": (("nfc",),)}, "it has a normalizer"),
            ({"template": ((1,), ())}, "it has a template"),
            ({"pattern": "deepseek"}, "its pattern is a sequence of splits"),
            ({"pattern": (Split(r"\s", "removed"),)}, "removed"),
            ({"pattern": r"a$|[\s\S]"}, "'$'"),
            ({"tokens": (b"<a>", b"<a>b"), "special_tokens": {"<a>": 256, "<a>b": 257}}, "it may take either"),
            ({"tokens": (b"a", b"<")}, "ids 97 and 256 both spell b'a'"),
            (
                {"tokens": (b"<a>",), "special_tokens": {"<a>": 256}, "added_rules": {"<a>": {"lstrip"}}},
                "follows the rule 'lstrip'",
            ),
            (
                {"tokens": (b"<a>", b">b"), "special_tokens": {"<a>": 256, ">b": 257}}
                | {"added_rules": {"<a>": {"normalized"}}},
                "may overlap",
            ),
            ({"tokens": (b"ab",), "merges": [[97, 98, 256]], "special_tokens": {"ab": 256}}, "takes part in merges"),
        ],
    )
    def test_refuses_before_it_writes(self, tmp_path: Path, fields: dict[str, Any], message: str) -> None:
        rest = dict(fields)
        tokens = (*BYTES, *rest.pop("tokens", ()))
        merges = np.array(rest.pop("merges", []), np.int32).reshape(-1, 3)
        tokenizer = Tokenizer(Vocabulary(tokens, merges, **rest))
        with pytest.raises(VocabularyError) as caught:
            tokenizer.to_tiktoken(tmp_path / "x.tiktoken")
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


def test_the_corpus_is_known_to_all() -> None:
    assert all(map(known, CORPUS))
