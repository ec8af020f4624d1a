"""The trace of merges: what each joined, counted by the oracle."""

from __future__ import annotations

import pytest
import reference
from small_texts import counted, counts_of

import dask_bpe
from dask_bpe import PretokenCounts, Vocabulary
from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.trace import MergeTrace, retrace, train_trace
from dask_bpe.errors import ParameterError
from dask_bpe.training.fit import fit
from dask_bpe.vocabulary import TIE_RULES

LAB = PretokenCounts.from_mapping({"slow": 4, "slower": 2, "lowest": 3, "newest": 3})


def rows(trace: MergeTrace) -> list[tuple[object, ...]]:
    return list(zip(*trace.tables()[0].columns.values(), strict=True))


def test_the_words_of_the_lab() -> None:
    trace = train_trace(LAB, 1000, ties="ids")
    merged = trace.tables()[0].columns["merged"]
    counts, after = trace.log.count.tolist(), trace.log.tokens_after.tolist()
    assert list(zip(merged, counts, after, strict=True))[:5] == [
        ("lo", 9, 55),
        ("low", 9, 46),
        ("es", 6, 40),
        ("slow", 6, 34),
        ("est", 6, 28),
    ]
    assert (len(trace), after[-1], trace.n_before) == (11, 12, 64)


@pytest.mark.parametrize("ties", TIE_RULES)
@pytest.mark.parametrize("name", ["en", "zh", "ko", "mixed"])
def test_every_row_is_the_oracles(name: str, ties: str) -> None:
    trained = reference.train(counted(name), 320, ties=ties)
    trace = train_trace(counts_of(name), 320, ties=ties)
    spelled = [brief(token) for token in trained.tokens]
    assert rows(trace) == [
        (rank, spelled[left], spelled[right], spelled[product], product, count, after)
        for rank, ((left, right, product), (*_, count, after)) in enumerate(
            zip(trained.merges, trained.log, strict=True)
        )
    ]


@pytest.mark.parametrize("ties", TIE_RULES)
@pytest.mark.parametrize("at", ["start", "after_bytes", "end"])
def test_the_training_of_a_tokenizer_is_found_again(ties: str, at: str) -> None:
    counts = PretokenCounts.from_mapping(counted("mixed"), special_tokens=["<|x|>"])
    tokenizer = dask_bpe.train(counts, 330, ties=ties, special_tokens_at=at)
    trace = dask_bpe.trace_merges(counts, tokenizer=tokenizer)
    assert tokenizer.training is not None
    assert trace.log.count.tolist() == tokenizer.training.log.count.tolist()
    assert trace.log.tokens_after.tolist() == tokenizer.training.log.tokens_after.tolist()
    assert trace.log.token.tolist() == tokenizer.training.log.token.tolist()


def test_other_text_is_refused_with_the_merge_that_differs() -> None:
    vocabulary = fit(counts_of("ko"), 300).vocabulary
    with pytest.raises(
        ParameterError, match=r"merge 0 of the vocabulary joins .* and a training on these counts .*: it"
    ):
        retrace(vocabulary, counts_of("en"))


def test_a_vocabulary_that_learned_more_than_the_text_gives_is_refused() -> None:
    shorter = train_trace(LAB, 1000, ties="ids").vocabulary
    tokens = {**shorter.to_dict(), len(shorter): b"ne"}
    longer = Vocabulary.from_tokens(tokens, [*shorter.merge_bytes(), (b"n", b"e")], ties="ids")
    with pytest.raises(ParameterError, match=r"merge 11 .* joins n and e, and .* these counts nothing"):
        retrace(longer, LAB)


def test_parts_of_a_trace() -> None:
    trace = train_trace(LAB, 1000, ties="ids")
    assert trace.head(3).ranks.tolist() == [0, 1, 2]
    assert trace.tail(2).ranks.tolist() == [9, 10]
    assert trace.tail(0).ranks.tolist() == trace.head(0).ranks.tolist() == []
    assert trace.around("est", 1).ranks.tolist() == [3, 4, 5]
    assert trace.around(b"lo").ranks.tolist() == list(range(11))
    assert trace.about("low").ranks.tolist() == [1, 3, 7]
    assert trace.at_least(6).ranks.tolist() == [0, 1, 2, 3, 4]
    assert trace.at_least(6).tail(1).ranks.tolist() == [4]
    with pytest.raises(ParameterError, match="none of the 11 merges makes 'q'"):
        trace.around("q")
    with pytest.raises(ParameterError, match="vocab_size of a training, or the tokenizer"):
        dask_bpe.trace_merges(LAB)


def test_of_many_merges_the_ends_are_shown() -> None:
    trace = train_trace(counts_of("en"), 400)
    (shown,) = trace.shown()
    assert shown.columns["rank"] == [*range(20), *range(124, 144)]
    assert len(trace.tables()[0]) == 144
