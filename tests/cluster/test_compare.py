"""compare and compare_languages: every figure against a count by hand, whatever the partitions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import dask.bag as db
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reference
import strategies
import tiktoken
import tokenizers
from conftest import bundled
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st
from naive_measure import Naive, measured

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.analysis.compare import Comparison, Pair
from dask_bpe.analysis.languages import LanguageCost
from dask_bpe.analysis.measure import Amount, Cost, Meter, Part, join
from dask_bpe.cluster.compare import compare, compare_languages
from dask_bpe.errors import InputError, ParameterError
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

END = "<|endoftext|>"
CONTEXTS = (16, 64)


@pytest.fixture(scope="module")
def documents(alice: str, poems: str) -> list[str]:
    """English, Chinese, Korean and a mixture; one document is much longer than the others, one is empty."""
    korean = next(row["text"] for row in declaration() if row["lang"] == "ko")
    lines = [line for line in alice[:4000].split("\n") if line]
    return [
        *lines[:20],
        poems[:1500],
        korean,
        "",
        alice[4000:30_000],
        "a 1,000 날씨 天氣 don't naïve\n\n  x",
        *lines[20:40],
    ]


@pytest.fixture(scope="module")
def models(alice: str, poems: str) -> dict[str, Tokenizer]:
    """Tokenizers of three patterns, one of which has no pattern, and one that normalizes."""
    texts = [alice, poems]
    gpt2 = dask_bpe.train(iter(texts), 600, special_tokens=[END])
    plain = gpt2.vocabulary
    forms = Vocabulary(plain.tokens, plain.merges, plain.special_tokens, "gpt2", normalizer=(("nfd",), ("lowercase",)))
    return {
        "gpt2": gpt2,
        "o200k": dask_bpe.train(iter(texts), 500, pattern="o200k"),
        "whole": Tokenizer(Vocabulary(plain.tokens, plain.merges, plain.special_tokens, None)),
        "forms": Tokenizer(forms),
    }


def declaration() -> list[dict[str, str]]:
    return [json.loads(line) for line in bundled("udhr.jsonl").splitlines()]


def tokens_of(tokenizer: Tokenizer) -> Callable[[str], list[bytes]]:
    return lambda text: [tokenizer.token_bytes(index) for index in tokenizer.encode_ordinary(text)]


def figures(row: Pair | LanguageCost) -> Naive:
    return Naive(**vars(row.amount), **vars(row.cost))


def of(comparison: Comparison) -> dict[tuple[str, str], Naive]:
    return {(pair.tokenizer, pair.corpus): figures(pair) for pair in comparison.pairs}


def as_text(path: Path, documents: list[str]) -> Path:
    path.write_text(END.join(documents) + END, encoding="utf-8")
    return path


def as_jsonl(path: Path, documents: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": document}) + "\n" for document in documents), encoding="utf-8")
    return path


def as_parquet(path: Path, documents: list[str]) -> Path:
    pq.write_table(pa.table({"text": documents}), path, row_group_size=7)
    return path


def as_gzip(path: Path, documents: list[str]) -> Path:
    path.write_bytes(gzip.compress((END.join(documents) + END).encode()))
    return path


@pytest.mark.parametrize("block_bytes", [None, 1000, 10_000])
def test_every_figure_is_what_counting_by_hand_gives(
    tmp_path: Path, documents: list[str], models: dict[str, Tokenizer], block_bytes: int | None
) -> None:
    chosen = {name: models[name] for name in ("gpt2", "o200k")}
    found = compare(chosen, as_text(tmp_path / "t.txt", documents), contexts=CONTEXTS, block_bytes=block_bytes)
    for name, tokenizer in chosen.items():
        assert of(found)[name, "t.txt"] == measured(documents, tokens_of(tokenizer), CONTEXTS)


@pytest.mark.parametrize("block_bytes", [None, 5000])
def test_tokenizers_that_no_text_may_be_cut_for(
    tmp_path: Path, documents: list[str], models: dict[str, Tokenizer], block_bytes: int | None
) -> None:
    found = compare(models, as_text(tmp_path / "t.txt", documents), contexts=CONTEXTS, block_bytes=block_bytes)
    for name, tokenizer in models.items():
        assert of(found)[name, "t.txt"] == measured(documents, tokens_of(tokenizer), CONTEXTS), name


@pytest.mark.parametrize(
    ("write", "name"),
    [(as_jsonl, "t.jsonl"), (as_parquet, "t.parquet"), (as_gzip, "t.txt.gz"), (as_text, "t.txt")],
)
def test_all_formats_give_the_same(
    tmp_path: Path,
    documents: list[str],
    models: dict[str, Tokenizer],
    write: Callable[[Path, list[str]], Path],
    name: str,
) -> None:
    path = write(tmp_path / name, documents)
    found = compare({"gpt2": models["gpt2"]}, [path], contexts=CONTEXTS, block_bytes=3000)
    assert of(found)["gpt2", name] == measured(documents, tokens_of(models["gpt2"]), CONTEXTS)


def test_bags_and_iterables_and_a_cluster(
    tmp_path: Path, documents: list[str], models: dict[str, Tokenizer], client: Client
) -> None:
    tokenizer = models["gpt2"]
    expected = measured(documents, tokens_of(tokenizer), CONTEXTS)
    sources = {
        "bag": db.from_sequence(documents, npartitions=3),
        "iterable": iter(documents),
        "file": as_text(tmp_path / "t.txt", documents),
    }
    found = compare({"t": tokenizer}, sources, contexts=CONTEXTS, block_bytes=2000, client=client)
    assert [pair.corpus for pair in found.pairs] == ["bag", "iterable", "file"]
    assert set(map(repr, of(found).values())) == {repr(expected)}


def test_hugging_face_counts_as_many_tokens(tmp_path: Path, documents: list[str], models: dict[str, Tokenizer]) -> None:
    models["gpt2"].to_huggingface(tmp_path / "gpt2")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "gpt2" / "tokenizer.json"))
    found = compare(tmp_path / "gpt2", as_text(tmp_path / "t.txt", documents))
    assert found.pairs[0].tokenizer == "gpt2"
    assert found.pairs[0].cost.n_tokens == sum(len(theirs.encode(text).ids) for text in documents)


def test_tiktoken_counts_as_many_tokens_with_the_vocabulary_of_gpt2(
    gpt2_files: tuple[Path, Path], alice: str, poems: str
) -> None:
    tokenizer = Tokenizer.from_gpt2(*gpt2_files)
    ranks = {token: index for index, token in enumerate(tokenizer.vocabulary.tokens[:-1])}
    theirs = tiktoken.Encoding("gpt2", pat_str=reference.GPT2, mergeable_ranks=ranks, special_tokens={})
    corpora = {"en": [alice], "zh": poems.splitlines(), **{row["lang"]: [row["text"]] for row in declaration()[-9:]}}
    found = compare({"gpt2": tokenizer}, {name: iter(texts) for name, texts in corpora.items()})
    for pair in found.pairs:
        texts = corpora[pair.corpus]
        assert pair.cost.n_tokens == sum(len(theirs.encode_ordinary(text)) for text in texts)
        assert figures(pair) == measured(
            texts,
            lambda text: [theirs.decode_single_token_bytes(i) for i in theirs.encode_ordinary(text)],
            (2048, 8192),
        )


def test_ratios(documents: list[str], models: dict[str, Tokenizer]) -> None:
    found = compare({"a": models["gpt2"], "b": models["o200k"]}, {"c": iter(documents)}, contexts=[64])
    one, other = (measured(documents, tokens_of(models[name]), [64]) for name in ("gpt2", "o200k"))
    row = found.tables()[0].records()[1]
    assert row == {
        "tokenizer": "b",
        "corpus": "c",
        "bytes": other.n_bytes,
        "characters": other.n_characters,
        "documents": other.n_documents,
        "words": other.n_words,
        "tokens": other.n_tokens,
        "bytes_per_token": other.n_bytes / other.n_tokens,
        "characters_per_token": other.n_characters / other.n_tokens,
        "relative": other.n_tokens / one.n_tokens,
        "single_token_words": other.n_single / other.n_words,
        "continued_words": (other.n_words - other.n_single) / other.n_words,
        "tokens_per_word": other.n_word_tokens / other.n_words,
        "over_64": other.n_over[0],
    }
    assert found.to_frame()["tokens"].tolist() == [one.n_tokens, other.n_tokens]
    assert len(found.shown()) == 1
    assert "c: " in found.shown()[0].title


def test_a_sample_is_spread_and_the_same_every_time(tmp_path: Path, alice: str, models: dict[str, Tokenizer]) -> None:
    path = as_text(tmp_path / "t.txt", [line for line in (alice * 20).split("\n") if line])
    whole = compare({"t": models["gpt2"]}, path)
    size = path.stat().st_size
    found = compare({"t": models["gpt2"]}, path, sample=size // 4)
    again = compare({"t": models["gpt2"]}, path, sample=size // 4)
    assert found == again
    (pair,), (all_of_it,) = found.pairs, whole.pairs
    assert pair.amount.n_bytes + pair.amount.n_documents * len(END) == pytest.approx(size / 4, rel=0.05)
    assert pair.bytes_per_token == pytest.approx(all_of_it.bytes_per_token, rel=0.05)
    assert found.notes[0].startswith("A sample: ")
    assert compare({"t": models["gpt2"]}, path, sample=10 * size) == whole


def test_what_cannot_be_read_is_said(tmp_path: Path, models: dict[str, Tokenizer]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "one two"}\n{"nothing": 1}\n')
    found = compare({"t": models["gpt2"]}, path)
    assert found.pairs[0].amount.n_documents == 1
    assert "Could not be read: " in found.notes[0]
    assert "t.jsonl at 20" in found.notes[0]


def test_mistakes_are_one_line(tmp_path: Path, models: dict[str, Tokenizer]) -> None:
    (tmp_path / "empty.txt").write_text(END)
    with pytest.raises(InputError, match=r"empty\.txt holds no text"):
        compare(models["gpt2"], tmp_path / "empty.txt")
    with pytest.raises(ParameterError, match="no tokenizer is given"):
        compare([], tmp_path / "empty.txt")
    with pytest.raises(ParameterError, match="no corpus is given"):
        compare(models["gpt2"], [])
    with pytest.raises(ParameterError, match="a context length is 0"):
        compare(models["gpt2"], tmp_path / "empty.txt", contexts=[0])


def test_the_bundled_languages(models: dict[str, Tokenizer]) -> None:
    found = compare_languages(models, reference="zh")
    rows = declaration()
    assert len(rows) >= 12
    assert [row.language for row in found.rows[: len(rows)]] == [row["lang"] for row in rows]
    tokens = {name: {row["lang"]: len(model.encode(row["text"])) for row in rows} for name, model in models.items()}
    for row in found.rows:
        text = next(one["text"] for one in rows if one["lang"] == row.language)
        assert row.cost.n_tokens == tokens[row.tokenizer][row.language]
        assert (row.amount.n_bytes, row.amount.n_characters) == (len(text.encode()), len(text))
        assert row.relative == tokens[row.tokenizer][row.language] / tokens[row.tokenizer]["zh"]
        assert row.tokens_per_character == row.cost.n_tokens / len(text)
    assert [table.name for table in found.shown()] == ["languages"]
    (table,) = found.shown()
    assert sorted(table.columns["gpt2: tokens"]) == table.columns["gpt2: tokens"]


def test_languages_in_a_folder_or_a_mapping(tmp_path: Path, models: dict[str, Tokenizer]) -> None:
    texts = {row["lang"]: row["text"] for row in declaration()[:3]}
    for language, text in texts.items():
        (tmp_path / f"{language}.txt").write_text(text, encoding="utf-8")
    expected = {language: len(models["gpt2"].encode(text)) for language, text in texts.items()}
    for source in (texts, tmp_path, str(tmp_path)):
        found = compare_languages(models["gpt2"], source)
        assert {row.language: row.cost.n_tokens for row in found.rows} == expected


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_languages_that_documents_name(tmp_path: Path, models: dict[str, Tokenizer], suffix: str) -> None:
    """Each language in several documents, which are mixed."""
    by_language = {row["lang"]: row["text"].split("\n") for row in declaration()[:3]}
    rows = [
        {"of": language, "body": line}
        for lines in zip(*by_language.values(), strict=False)
        for language, line in zip(by_language, lines, strict=True)
    ]
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet", row_group_size=4)
    else:
        (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    how = dask_bpe.InputFormat(id_field="of", field="body")
    found = compare_languages(models["gpt2"], tmp_path / f"t.{suffix}", input_format=how)
    for row in found.rows:
        lines = [one["body"] for one in rows if one["of"] == row.language]
        assert figures(row) == measured(lines, tokens_of(models["gpt2"]))


def test_mistakes_about_languages(tmp_path: Path, models: dict[str, Tokenizer]) -> None:
    with pytest.raises(InputError, match="no text in 'xx' to compare with: languages are en, fr"):
        compare_languages(models["gpt2"], {"en": "one", "fr": "un"}, reference="xx")
    with pytest.raises(InputError, match="there is no text in fr"):
        compare_languages(models["gpt2"], {"en": "one", "fr": ""})
    (tmp_path / "t.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(InputError, match=r"no text in any language.*t\.jsonl at 0"):
        compare_languages(models["gpt2"], tmp_path / "t.jsonl")


@given(
    texts=st.lists(strategies.text(6), min_size=1, max_size=5),
    also=st.sampled_from(["o200k", "whole", "forms"]),
    places=st.lists(st.integers(0, 5), max_size=3),
)
def test_parts_of_a_corpus_add_up_to_all_of_it(
    models: dict[str, Tokenizer], texts: list[str], also: str, places: list[int]
) -> None:
    chosen = [models["gpt2"], models[also]]
    bounds = [0, *sorted(min(place, len(texts)) for place in places), len(texts)]
    parts = []
    for start, stop in pairwise(bounds):
        meter = Meter(chosen, CONTEXTS)
        pieces = Ragged.from_list(text.encode() for text in texts[start:stop])
        segments = np.stack((pieces.offsets[:-1], pieces.offsets[1:]))
        meter.add(pieces.values, segments, np.ones(stop - start, np.bool_))
        parts.append(meter.part())
    amount, costs = join(parts, 2, CONTEXTS)
    for tokenizer, cost in zip(chosen, costs, strict=True):
        assert Naive(**vars(amount), **vars(cost)) == measured(texts, tokens_of(tokenizer), CONTEXTS)


def test_documents_that_go_through_several_parts() -> None:
    def part(n: int, **edges: object) -> Part:
        return Part(Amount(n), (Cost(n, n_over=(0, 0)),), **edges)  # type: ignore[arg-type]

    parts = [
        part(5, tail=(5,)),
        part(20, head=(20,), through=True),
        part(9, head=(2,), tail=(7,)),
        part(50, head=(50,)),
        part(100, tail=(100,)),
    ]
    amount, (cost,) = join(parts, 1, (16, 60))
    # Documents of 27, 57 and 100 tokens.
    assert (amount.n_documents, cost.n_over, cost.n_tokens) == (3, (3, 1), 184)


def test_a_field_that_is_no_language_is_refused(
    tmp_path: Path, models: dict[str, Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dask_bpe.cluster.measure_partition._MOST_GROUPS", 5)
    (tmp_path / "t.jsonl").write_text("".join(f'{{"text": "one", "lang": "{n}"}}\n' for n in range(6)))
    with pytest.raises(InputError, match="lang names more than 5 groups of documents"):
        compare_languages(models["gpt2"], tmp_path / "t.jsonl")


def test_of_many_things_that_cannot_be_read_the_first_are_named(tmp_path: Path, models: dict[str, Tokenizer]) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "one"}\n' + '{"nothing": 1}\n' * 5)
    (note,) = compare(models["gpt2"], tmp_path / "t.jsonl", block_bytes=20).notes
    assert note.startswith("Could not be read: ")
    assert note.count("t.jsonl at ") == 3
    assert note.endswith("; and 2 more")
