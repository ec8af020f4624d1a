"""What a notebook shows of results: their numbers, computed here once more in the simplest way."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dask_bpe
from dask_bpe.pages.cells import format_bytes, format_seconds, literal
from dask_bpe.pages.outputs import lengths_of, rank_frequency

TEXT = str(files("dask_bpe") / "data/alice.txt")
SPECIAL = "<b>&end</b>"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("outputs")
    tokenizer = dask_bpe.train(TEXT, 700, special_tokens=[SPECIAL])
    report = dask_bpe.encode_corpus(TEXT, tokenizer, folder / "tokens", shard_tokens=20_000, block_bytes=60_000)
    yield {
        "tokenizer": tokenizer,
        "vocabulary": tokenizer.vocabulary,
        "counts": dask_bpe.count_pretokens(TEXT),
        "training": tokenizer.training,
        "log": tokenizer.training.log,
        "encoding": report,
        "corpus": dask_bpe.open_tokens(folder / "tokens"),
        "manifest": dask_bpe.open_tokens(folder / "tokens").manifest,
        "verification": dask_bpe.verify_corpus(folder / "tokens"),
        "plan": dask_bpe.plan_corpus(TEXT, tokenizer=tokenizer),
        "reshaping": dask_bpe.reshape(folder / "tokens", folder / "nanogpt", "nanogpt"),
    }


def facts(page: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page, re.S))


def test_all_results_are_shown_small_and_escaped(results: dict[str, Any]) -> None:
    for name, result in results.items():
        page = result._repr_html_()
        assert len(page) < 30_000, name
        assert SPECIAL not in page and "<script" not in page, name
        assert "\n" not in repr(result) and len(repr(result)) < 1000, name


def test_numbers_of_vocabulary_and_training(results: dict[str, Any]) -> None:
    vocabulary = facts(results["tokenizer"]._repr_html_())
    assert vocabulary == facts(results["vocabulary"]._repr_html_())
    assert vocabulary["ids"] == "700" and vocabulary["merges"] == "443"
    assert vocabulary["special tokens"] == "&lt;b&gt;&amp;end&lt;/b&gt;"
    training, log = facts(results["training"]._repr_html_()), facts(results["log"]._repr_html_())
    assert training["text"] == format_bytes(Path(TEXT).stat().st_size)
    assert training["merges"] == log["merges"] == "443"
    assert log["tokens after the last merge"] == f"{results['log'].tokens_after.tolist()[-1]:,}"


def test_numbers_of_the_encoded_corpus(results: dict[str, Any]) -> None:
    tokens = np.concatenate([results["corpus"].documents[i] for i in range(results["corpus"].n_documents)])
    for name in ("encoding", "corpus", "manifest", "verification", "reshaping"):
        shown = facts(results[name]._repr_html_())
        assert shown["tokens"] == f"{len(tokens):,}", name
        assert shown["documents"] == "1", name
    assert facts(results["encoding"]._repr_html_())["largest id"] == f"{tokens.max():,}"


def test_numbers_of_a_plan(results: dict[str, Any]) -> None:
    plan, shown = results["plan"], facts(results["plan"]._repr_html_())
    assert shown["tokens"] == f"{plan.tokens:,}" and shown["bound by"] == plan.forecast.bound
    assert shown["text"] == format_bytes(Path(TEXT).stat().st_size)


def test_numbers_of_counts(results: dict[str, Any]) -> None:
    counts = results["counts"]
    page = counts._repr_html_()
    assert facts(page)["pre-tokens"] == f"{sum(counts.to_dict().values()):,}"
    most = sorted(counts.to_dict().values(), reverse=True)[:8]
    assert [int(n.replace(",", "")) for n in re.findall(r'<td class="number">([\d,]+)</td>', page)] == most


def test_without_matplotlib_the_numbers_stand_alone(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with_plots = {name: facts(result._repr_html_()) for name, result in results.items()}
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name, result in results.items():
        page = result._repr_html_()
        assert "<svg" not in page and facts(page) == with_plots[name]


def test_a_document_over_several_shards_has_the_length_of_all_its_tokens(results: dict[str, Any]) -> None:
    corpus = results["corpus"]
    assert len(corpus.shards) > 1
    assert [corpus._documents.length(i) for i in range(corpus.n_documents)] == [len(d) for d in corpus.documents]


@given(st.lists(st.integers(1, 200_000), max_size=60))
def test_rank_frequency_is_that_of_the_sorted_counts(counts: list[int]) -> None:
    ranks, values = rank_frequency(np.array(counts, np.int64))
    ordered = sorted(counts, reverse=True)
    assert {int(value) for value in values} == set(counts)
    for rank, value in zip(ranks.tolist(), values.tolist(), strict=True):
        assert ordered[rank - 1] == value
    assert ranks.tolist() == sorted(set(ranks.tolist()))


@given(st.lists(st.integers(0, 40), max_size=60))
def test_lengths_are_tallied(lengths: list[int]) -> None:
    (series,) = lengths_of("tokens", "bytes", np.array(lengths, np.int64)).series
    tally = Counter(min(length, 24) for length in lengths)
    assert {x: int(y) for x, y in zip(series.x, series.y, strict=True) if y} == tally


def test_an_empty_log_and_counts_of_a_million_are_shown() -> None:
    log = dask_bpe.train(iter(["a"]), 300).training.log
    assert len(log) == 0 and facts(log._repr_html_()) == {"merges": "0"}
    many = dask_bpe.PretokenCounts.from_mapping({f"{i}".encode(): i % 1000 + 1 for i in range(100_000)}, pattern=None)
    page = many._repr_html_()
    assert len(page) < 30_000 and facts(page)["distinct pre-tokens"] == "100,000"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.123, "0.1 s"), (12.34, "12.3 s"), (187.4, "3 min 07 s"), (7500, "2 h 05 min"), (270_000, "3 d 03 h")],
)
def test_seconds(seconds: float, shown: str) -> None:
    assert format_seconds(seconds) == shown


def test_literals_and_bytes() -> None:
    assert (
        literal(b" the") == "' the'"
        and literal(b"\xe5\xb8") == r"b'\xe5\xb8'"
        and literal(b"a" * 99, 8) == "'aaaaaaa..."
    )
    assert format_bytes(999) == "999 B" and format_bytes(12_345_678) == "12.3 MB"
