"""Trainings of another kind: the teaching lab's, splitting by punctuation, and what the command line makes of all."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import reference
import regex
import strategies
from click.testing import CliRunner, Result
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.cli import main

ENDOFTEXT = "<|endoftext|>"


def lab(text: str, n_merges: int) -> tuple[dict[tuple[int, int], int], list[int]]:
    """What one writes in a first lesson: one list of ids, no pre-tokens, the smallest of the most frequent pairs, and
    an end where no pair occurs twice. The merges, and the ids that are left of the text."""
    ids, merges = list(text.encode()), dict[tuple[int, int], int]()
    while len(merges) < n_merges:
        counts = Counter(pairwise(ids))
        most = max(counts.values(), default=0)
        if most < 2:
            break
        pair = min(pair for pair, count in counts.items() if count == most)
        merges[pair] = 256 + len(merges)
        ids = reference.merged(ids, pair, merges[pair])
    return merges, ids


@given(text=st.one_of(strategies.tied_text(60), strategies.text(20)).filter(bool), n_merges=st.integers(0, 40))
@example("abcabc", 40)
@example("aaaaaaa", 40)
@example("abcdefg", 40)
def test_the_lab(text: str, n_merges: int) -> None:
    tokenizer = dask_bpe.train(iter([text]), 256 + n_merges, pattern=None, ties="ids", min_frequency=2)
    merges, ids = lab(text, n_merges)
    assert [tuple(row) for row in tokenizer.vocabulary.merges.tolist()] == [(*pair, i) for pair, i in merges.items()]
    assert tokenizer.encode(text) == ids
    report = tokenizer.training
    assert report is not None
    assert report.stop == ("vocab_size" if len(merges) == n_merges else "exhausted")
    assert report.log.tokens_after.tolist()[-1:] == [len(ids)] * bool(merges)


def test_the_lab_on_real_texts(alice: str, poems: str) -> None:
    for text in (alice[:1500], poems[:400], alice[:500] + poems[:200]):
        tokenizer = dask_bpe.train(iter([text]), 10_000, pattern=None, ties="ids", min_frequency=2)
        merges, ids = lab(text, 10_000)
        assert tokenizer.vocab_size == 256 + len(merges) < 10_000
        assert tokenizer.encode(text) == ids
        assert max(Counter(pairwise(ids)).values()) == 1, "it ended because no pair was left that occurs twice"


@given(texts=st.lists(strategies.text(20), min_size=1, max_size=3), n_merges=st.integers(0, 40))
@examples(0.5)
def test_splitting_by_punctuation_is_the_oracle(texts: list[str], n_merges: int) -> None:
    texts = [*texts, "a"]
    tokenizer = dask_bpe.train(iter(texts), 256 + n_merges, pattern="punctuation")
    expected = reference.train(reference.count(texts, reference.PUNCTUATION), 256 + n_merges)
    assert tokenizer.vocabulary.merge_bytes() == expected.merge_bytes


def test_what_is_split_first_is_not_learned_together(alice: str, poems: str) -> None:
    """Punctuation and newlines: in a token with other text if nothing is split, alone if they are split off first."""
    text = alice[:20_000] + poems[:2_000]
    whole = dask_bpe.train(iter([text]), 1200, pattern=None)
    split = dask_bpe.train(iter([text]), 1200, pattern="punctuation")

    def crossing(tokenizer: Tokenizer) -> set[str]:
        """Tokens of whole characters that hold punctuation or a newline, and more."""
        tokens = [token.decode("utf-8", "surrogateescape") for token in tokenizer.vocabulary.tokens[256:]]
        return {token for token in tokens if len(token) > 1 and regex.search(r"[\r\n]|\p{P}", token)}

    assert crossing(split) == set()
    assert {", ", "\n\n", "," + "\n"} & crossing(whole)
    assert len(crossing(whole)) > 50
    # Words are learned together in both.
    assert any(" the " in token.decode("utf-8", "ignore") for token in split.vocabulary.tokens)
    # Each is better on the text as it cuts it: what is forbidden to merge costs tokens.
    assert whole.count_tokens(text) < split.count_tokens(text)


# The command line.


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def sources(tmp_path: Path, corpus: list[str]) -> dict[str, Path]:
    paths = {"en": tmp_path / "en.txt", "zh": tmp_path / "zh.txt"}
    paths["en"].write_text(ENDOFTEXT.join(corpus[:100]), encoding="utf-8", newline="")
    paths["zh"].write_text(ENDOFTEXT.join(corpus[100:]), encoding="utf-8", newline="")
    return paths


def test_train_on_sources(tmp_path: Path, sources: dict[str, Path]) -> None:
    out = tmp_path / "mixed.json"
    given_sources = [f"--source=en={sources['en']}", f"--source=zh={sources['zh']}", "--special-token", ENDOFTEXT]
    done = run("train", *given_sources, "--weight", "zh=2.5", "--vocab-size", 400, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    expected = dask_bpe.train(sources, 400, weights={"zh": 2.5}, special_tokens=[ENDOFTEXT])
    assert Tokenizer.load(out) == expected
    facts = json.loads(done.stdout)
    assert (facts["weights"], facts["weight_unit"]) == ({"en": "1", "zh": "5/2"}, 2)
    done = run("train", *given_sources, "--temperature", "10/3", "--vocab-size", 400, "--out", out, "--force")
    assert done.exit_code == 0, done.output
    assert "weights" in done.stdout
    assert Tokenizer.load(out) == dask_bpe.train(sources, 400, temperature="10/3", special_tokens=[ENDOFTEXT])


def test_extend_and_alphabet(tmp_path: Path, sources: dict[str, Path]) -> None:
    base, larger, lettered = (tmp_path / f"{name}.json" for name in ("base", "larger", "lettered"))
    rules = ["--special-token", ENDOFTEXT, "--ties", "ids", "--pattern", "cl100k"]
    assert run("train", sources["en"], *rules, "--vocab-size", 300, "--out", base).exit_code == 0
    counts = tmp_path / "counts.parquet"
    extend = ["--extend", base, "--vocab-size", 360, "--out", larger]
    done = run("train", sources["en"], *extend, "--save-counts", counts)
    assert done.exit_code == 0, done.output
    assert "the first 43 merges" in done.stdout
    whole = dask_bpe.train(sources["en"], 360, special_tokens=[ENDOFTEXT], ties="ids", pattern="cl100k")
    assert Tokenizer.load(larger) == whole
    assert run("train", "--from-counts", counts, *extend, "--force").exit_code == 0
    assert Tokenizer.load(larger) == whole
    alphabet = ["--alphabet", "characters", "--min-character-count", 2]
    done = run("train", sources["zh"], *alphabet, "--vocab-size", 900, "--out", lettered, "--special-token", ENDOFTEXT)
    assert done.exit_code == 0, done.output
    assert Tokenizer.load(lettered) == dask_bpe.train(
        sources["zh"], 900, alphabet="characters", min_character_count=2, special_tokens=[ENDOFTEXT]
    )


def test_bad_options_are_one_line_before_any_work(tmp_path: Path, sources: dict[str, Path]) -> None:
    base, out = tmp_path / "base.json", tmp_path / "out.json"
    dask_bpe.train(sources["en"], 300, special_tokens=[ENDOFTEXT]).save(base)
    en = sources["en"]
    for arguments, message in (
        ([en, f"--source=en={en}"], "Give SOURCE, or --source NAME=PATH, or --from-counts"),
        ([f"--source={en}"], "NAME=VALUE was expected"),
        ([f"--source=en={en}", "--weight", "en"], "--weight is 'en': NAME=VALUE was expected"),
        ([f"--source=en={en}", "--weight", "ko=2"], "'ko' has a weight and is no source"),
        ([f"--source=en={en}", "--weight", "en=-1"], "more than 0 was expected"),
        ([f"--source=en={en}", "--temperature", "0.3"], "temperature is '0.3': 1 or more was expected"),
        ([f"--source=en={en}", "--save-counts", tmp_path / "c"], "--save-counts keeps the counts of one source"),
        ([en, "--temperature", "2"], "give a mapping of names"),
        ([en, "--alphabet", "letters"], "known are bytes, characters"),
        ([en, "--min-character-count", "2"], 'is about the alphabet "characters"'),
        ([en, "--extend", base, "--alphabet", "characters"], "leave them out"),
        ([en, "--extend", base, "--special-token", "<|x|>"], "an extension keeps its own"),
        ([en, "--extend", base, "--pattern", "cl100k"], "an extension keeps its own"),
        ([en, "--extend", tmp_path / "none.json"], "none.json: cannot read the file"),
    ):
        done = run("train", *arguments, "--vocab-size", 400, "--out", out)
        assert done.exit_code == 2, (arguments, done.output)
        assert done.stdout == ""
        last = done.stderr.splitlines()[-1]
        assert last.startswith("Error: ")
        assert message in last
        assert not out.exists()
