"""What is in a vocabulary, and how a corpus uses it: every figure told one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from small_texts import counted, counts_of
from strategies import tied_counts

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer, Vocabulary
from dask_bpe.analysis.description import describe_tokens
from dask_bpe.analysis.oddities import duplicates, is_mojibake, mojibake, unreachable
from dask_bpe.analysis.token_kinds import shape_of
from dask_bpe.analysis.usage import token_usage
from dask_bpe.errors import ParameterError
from dask_bpe.training.fit import fit

BYTES = tuple(bytes([i]) for i in range(256))


@pytest.mark.parametrize("name", ["en", "zh", "ko", "mixed"])
def test_uses_are_those_of_the_oracle(name: str) -> None:
    trained = reference.train(counted("mixed"), 400)
    usage = token_usage(fit(counts_of("mixed"), 400).vocabulary, counts_of(name))
    uses: Counter[int] = Counter()
    whole = n_bytes = n_characters = 0
    for pretoken, n in counted(name).items():
        ids = reference.encode_pretoken(pretoken, trained)
        uses.update({i: ids.count(i) * n for i in set(ids)})
        whole += n * (len(ids) == 1)
        n_bytes += n * len(pretoken)
        n_characters += n * len(pretoken.decode())
    assert usage.uses.tolist() == [uses[i] for i in range(400)]
    assert usage.n_tokens == uses.total()
    assert (usage.n_whole, usage.n_pretokens) == (whole, sum(counted(name).values()))
    assert (usage.n_bytes, usage.n_characters) == (n_bytes, n_characters)
    assert usage.ranked().tolist() == [i for i, _ in sorted(uses.items(), key=lambda item: (-item[1], item[0]))]
    in_vocabulary, in_corpus = usage.lengths()
    for length in range(1, len(in_corpus)):
        ids = [i for i in range(400) if len(trained.tokens[i]) == length]
        assert (in_vocabulary[length], in_corpus[length]) == (len(ids), sum(uses[i] for i in ids))


@given(tied_counts(), tied_counts(), st.integers(0, 20))
def test_uses_of_random_counts(one: dict[bytes, int], other: dict[bytes, int], n_merges: int) -> None:
    trained = reference.train(one, 256 + n_merges)
    usage = token_usage(
        fit(PretokenCounts.from_mapping(one), 256 + n_merges).vocabulary, PretokenCounts.from_mapping(other)
    )
    uses: Counter[int] = Counter()
    for pretoken, n in other.items():
        for i in reference.encode_pretoken(pretoken, trained):
            uses[i] += n
    assert dict(enumerate(usage.uses.tolist())) == {i: uses[i] for i in range(len(usage.vocabulary))}


def test_pretokens_are_not_cut_again() -> None:
    """Alone, this one would be cut in two: look-ahead kept it whole in its text."""
    vocabulary = Vocabulary(BYTES, np.empty((0, 3), np.int32), pattern=r"\s+(?=x)|[^\s]|\s")
    counts = PretokenCounts.from_mapping({"  ": 3}, pattern=vocabulary.pattern)
    assert token_usage(vocabulary, counts).uses[32] == 6
    assert token_usage(vocabulary, counts).n_whole == 0


def test_a_normalizer_is_refused() -> None:
    vocabulary = Vocabulary(BYTES, np.empty((0, 3), np.int32), normalizer=(("nfc",),))
    with pytest.raises(ParameterError, match=r"normalizes text \(nfc\)"):
        token_usage(vocabulary, counts_of("en"))


def test_special_tokens_are_not_among_the_unused() -> None:
    counts = PretokenCounts.from_mapping({"ab": 5, "cd": 1}, special_tokens=["<|x|>"])
    usage = token_usage(fit(counts, 300).vocabulary, counts)
    assert 256 not in usage.used_less_than(1).tolist()
    assert usage.used_less_than(1).tolist() == list(range(256))
    assert usage.used_less_than(2).tolist() == [*range(256), 258]
    assert usage.lengths()[0].tolist() == [0, 256, 2]


def test_shapes_and_the_first_of_each() -> None:
    vocabulary = fit(counts_of("mixed"), 420).vocabulary
    table = describe_tokens(vocabulary).tables()[0]
    learned = [vocabulary.tokens[i] for i in range(256, 420)]
    assert table.name == "shapes"
    for row in table.records():
        same = [k for k, token in enumerate(learned) if shape_of(token) == row["shape"]]
        assert (row["tokens"], row["share"], row["first_rank"]) == (len(same), len(same) / len(learned), same[0])
    assert sum(row["tokens"] for row in table.records()) == len(learned)


def test_longest_tokens() -> None:
    vocabulary = fit(counts_of("en"), 400).vocabulary
    table = describe_tokens(vocabulary, counts_of("en"), n_longest=7).tables()[2]
    expected = sorted(range(256, 400), key=lambda i: (-len(vocabulary.tokens[i]), i))[:7]
    assert table.columns["id"] == expected
    assert table.columns["bytes"] == [len(vocabulary.tokens[i]) for i in expected]
    assert table.columns["uses"] == [int(token_usage(vocabulary, counts_of("en")).uses[i]) for i in expected]


def test_tokens_that_cannot_be_reached() -> None:
    tokens = (*BYTES, b"ab", b"bc", b"abc", b"zz", b"<|x|>")
    merges = np.array([[97, 98, 256], [98, 99, 257], [97, 257, 258]], np.int32)
    vocabulary = Vocabulary(tokens, merges, {"<|x|>": 260})
    expected = [i for i in range(260) if Tokenizer(vocabulary).encode_ordinary(tokens[i]) != [i]]
    assert unreachable(vocabulary).tolist() == expected == [258, 259]
    assert unreachable(fit(counts_of("mixed"), 500).vocabulary).tolist() == []


def test_tokens_that_are_there_twice() -> None:
    tokens = (*BYTES, b"ab", b"abc", b"ab", b"bc", b"abc", b"abc")
    merges = np.array([[97, 98, 256], [256, 99, 257], [98, 99, 259], [97, 259, 260]], np.int32)
    assert duplicates(Vocabulary(tokens, merges)).tolist() == [256, 257, 258, 260, 261]


@pytest.mark.parametrize("text", ["é", "’", "“ ”", "😀", "слово", "日本", "naïve café"])
def test_text_that_was_read_wrongly_is_mojibake(text: str) -> None:
    assert not is_mojibake(text)
    once = text.encode().decode("latin-1")
    assert is_mojibake(once)
    assert is_mojibake(once.encode().decode("latin-1"))
    assert is_mojibake(text.encode().decode("cp1252", "ignore"))


@pytest.mark.parametrize(
    "text",
    ["NÃO", "Ânimo", "été", "«été»", "Spaß", "»Spaß«", "à côté", "ÄÖÜ", "5 °C", "São", "Ñandú", "Þórr", "I’m", ""],
)
def test_real_text_is_no_mojibake(text: str) -> None:
    assert not is_mojibake(text)


def test_mojibake_among_tokens() -> None:
    tokens = (*BYTES, "Ã".encode(), "ÃÂ".encode(), "été".encode(), b" \xc3\x83\xc2\xa9\xc3")
    vocabulary = Vocabulary(tokens, np.empty((0, 3), np.int32))
    assert mojibake(vocabulary).tolist() == [257, 259]


def test_odd_tokens_with_a_corpus() -> None:
    vocabulary = fit(counts_of("mixed"), 450).vocabulary
    described = describe_tokens(vocabulary, counts_of("en"), rare=3)
    uses = token_usage(vocabulary, counts_of("en")).uses
    by_name = {oddity.name: oddity.ids.tolist() for oddity in described.oddities}
    assert by_name["unused"] == [i for i in range(256, 450) if uses[i] == 0]
    assert by_name["rare"] == [i for i in range(256, 450) if uses[i] < 3]
    listed = described.tables()[3].records()
    assert [row["id"] for row in listed if row["oddity"] == "rare"] == by_name["rare"]
    assert described.shown()[3].columns["tokens"] == [len(ids) for ids in by_name.values()]


def test_special_tokens_in_text_are_counted() -> None:
    tokenizer = dask_bpe.train(counts_of("en"), 300, special_tokens=["<|x|>", "<|y|>", "<|x|><|y|>"])
    texts = ["a <|x|> b <|y|>", "<|x|><|y|>", "none", "<|x|>"]
    described = dask_bpe.describe_vocabulary(tokenizer, texts_bag(texts))
    assert described.special_in_text == {"<|x|>": 2, "<|y|>": 1, "<|x|><|y|>": 1}
    assert described.tables()[-1].columns["occurrences"] == [2, 1, 1]
    assert dask_bpe.describe_vocabulary(tokenizer, counts_of("en")).special_in_text is None


def texts_bag(texts: list[str]) -> object:
    import dask.bag

    return dask.bag.from_sequence(texts, npartitions=2)
