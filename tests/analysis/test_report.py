"""Reports: every figure told again by hand, pages that are whole, and what the lab asks for."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import reference
from click.testing import CliRunner
from hypothesis import given
from small_texts import counted, counts_of, n_tokens, texts
from strategies import tied_counts

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer
from dask_bpe.analysis.curve import train_curve
from dask_bpe.analysis.growth import growth_of
from dask_bpe.analysis.lab import LabTexts, measure_lab
from dask_bpe.analysis.lab_report import segmentation, split_counts
from dask_bpe.analysis.report import VocabularyEvidence, corpus_evidence, report
from dask_bpe.analysis.report.findings import findings, share
from dask_bpe.analysis.token_kinds import contents_of, is_script, shape_of
from dask_bpe.analysis.trace import train_trace
from dask_bpe.analysis.usage import token_usage
from dask_bpe.cli import main
from dask_bpe.errors import InputError, ParameterError
from dask_bpe.training.fit import fit

_KEYS = """
vocab_size ko_chars ko_bytes en_chars en_bytes shared_rules en_only_rules ko_tokens_shared en_tokens_shared
ko_tokens_en_only en_tokens_en_only ko_bytes_per_token en_bytes_per_token curve roundtrip_ok
"""
LAB_KEYS = _KEYS.split()


def evidence(*names: str, vocab_size: int = 500) -> VocabularyEvidence:
    """Of a vocabulary that was trained on the mixed text."""
    vocabulary = fit(counts_of("mixed"), vocab_size).vocabulary
    return VocabularyEvidence(
        "v", vocabulary, [corpus_evidence(name, vocabulary, counts_of(name)) for name in names], 3
    )


@given(tied_counts())
def test_growth_is_what_is_expected_of_parts(counts: dict[bytes, int]) -> None:
    times = 700
    growth = growth_of(PretokenCounts.from_mapping({p: n * times for p, n in counts.items()}))
    n_bytes = sum(times * n * len(p) for p, n in counts.items())
    assert growth.n_bytes[-1] == n_bytes
    for part, distinct in zip(growth.n_bytes, growth.distinct, strict=True):
        kept = part / n_bytes
        assert distinct == pytest.approx(sum(1 - (1 - kept) ** (n * times) for n in counts.values()))
    assert (np.diff(growth.distinct) >= 0).all()


def test_growth_of_words_that_all_differ_is_linear() -> None:
    growth = growth_of(PretokenCounts.from_mapping({f"{i:05}": 1 for i in range(8000)}))
    assert growth.exponent == pytest.approx(1)
    assert np.isnan(growth_of(PretokenCounts.from_mapping({"a": 1})).exponent)


def test_evidence_of_each_corpus_and_of_all() -> None:
    found = evidence("en", "ko")
    trained = {point.vocab_size: reference.train(counted("mixed"), point.vocab_size) for point in found.doublings}
    for size, point in zip(trained, found.doublings, strict=True):
        assert point.n_tokens == sum(n_tokens(counted(name), trained[size]) for name in ("en", "ko"))
    assert [point.vocab_size for point in found.doublings] == [256, 500]
    for corpus in found.corpora:
        n_bytes = sum(n * len(p) for p, n in counted(corpus.name).items())
        assert corpus.bytes_per_token == n_bytes / n_tokens(counted(corpus.name), trained[500])
        assert corpus.n_distinct == len(counted(corpus.name))
    assert found.total.n_tokens == sum(corpus.usage.n_tokens for corpus in found.corpora)
    assert (found.total.uses == found.corpora[0].usage.uses + found.corpora[1].usage.uses).all()


def test_findings_have_their_figures() -> None:
    found = evidence("en", "zh")
    trained = reference.train(counted("mixed"), 500)
    uses: Counter[int] = Counter()
    characters = n_bytes = whole = pretokens = 0
    for name in ("en", "zh"):
        for pretoken, n in counted(name).items():
            ids = reference.encode_pretoken(pretoken, trained)
            for i in ids:
                uses[i] += n
            characters += n * len(pretoken.decode())
            n_bytes += n * len(pretoken)
            whole += n * (len(ids) == 1)
            pretokens += n
    learned = [trained.tokens[i] for i in range(256, 500)]
    unused = [i for i in range(256, 500) if not uses[i]]
    rare = [i for i in range(256, 500) if uses[i] < 3]
    broken = [token for token in learned if shape_of(token) in ("partial", "crossing")]
    scripts = Counter(content for content in contents_of(learned) if is_script(content)).most_common()
    most = ", ".join(f"{name} {share(number, 244)}" for name, number in scripts[:3])
    half = at = 0
    for _, n in uses.most_common():
        half, at = half + n, at + 1
        if half >= uses.total() / 2:
            break
    text = "\n".join(findings(found))
    for expected in (
        f"A token stands for {n_bytes / uses.total():.2f} bytes, or {characters / uses.total():.2f} characters",
        f"{share(whole, pretokens)} of all pre-tokens are one token",
        f"occurrences of only {at} of the {len(uses)} that are used",
        f"{share(len(unused), 244)} of the learned tokens ({len(unused)}) never occur in the corpora",
        f"({len(rare)}) occur less than 3 times",
        f"{share(len(broken), 244)} of the learned tokens ({len(broken)}) begin or end within a character",
        f"{len(scripts)} scripts have letters among the learned tokens; the most: {most}.",
        "A character costs most in zh",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (31, 1000, "3.1 %"),
        (1, 3, "33 %"),
        (0, 5, "0 %"),
        (1, 2000, "0.05 %"),
        (1, 1, "100 %"),
        (1999, 2000, "99.95 %"),
        (99_999_999, 100_000_000, "99.99 %"),
    ],
)
def test_shares(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


def test_the_page_is_whole_and_asks_no_network() -> None:
    page = report(evidence("en", "zh", "ko")).to_html()
    assert page.count("<svg") == 6
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?!#)|@import|url\((?!#)""", page)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_tokens_are_no_html() -> None:
    counts = PretokenCounts.from_mapping({"<script>alert(1)</script>": 50, "<b>": 20})
    vocabulary = fit(counts, 400).vocabulary
    found = VocabularyEvidence("<i>", vocabulary, [corpus_evidence("<u>", vocabulary, counts)])
    page = report(found).to_html()
    assert "<script>alert" not in page
    assert "<u>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_json_has_all_figures() -> None:
    found = evidence("en", "ko")
    data = json.loads(report(found).to_json())["data"]
    assert data["findings"] == findings(found)
    assert [corpus["tokens"] for corpus in data["corpora"]] == [c.usage.n_tokens for c in found.corpora]
    assert data["description"] == found.description.to_dict()
    assert {row["tokens"] for row in data["curve"] if row["vocab_size"] == 500} == {
        *(corpus.usage.n_tokens for corpus in found.corpora),
        found.total.n_tokens,
    }


def test_a_corpus_without_text_and_a_vocabulary_without_merges() -> None:
    vocabulary = fit(PretokenCounts.from_mapping({}), 256).vocabulary
    found = VocabularyEvidence(
        "bytes", vocabulary, [corpus_evidence("none", vocabulary, PretokenCounts.from_mapping({}))]
    )
    assert findings(found) == ["The corpora hold no text."]
    assert "The corpora hold no text." in report(found).to_markdown()
    assert "<html" in report(found).to_html()


def test_report_of_text_in_files(tmp_path: Path) -> None:
    for name in ("en", "ko"):
        (tmp_path / f"{name}.txt").write_text(texts()[name] + "<|end|>", encoding="utf-8")
    counts_of("zh").to_parquet(tmp_path / "zh.parquet")
    tokenizer = dask_bpe.train(counts_of("mixed"), 400, special_tokens=["<|end|>"])
    tokenizer.save(tmp_path / "v.json")
    arguments = ["report", *(str(tmp_path / name) for name in ("v.json", "en.txt", "ko.txt", "zh.parquet"))]
    done = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.json", "report.md"]
    data = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["data"]
    assert [corpus["name"] for corpus in data["corpora"]] == ["en", "ko", "zh"]
    assert data["description"]["special_tokens_in_text"] == [{"special_token": "<|end|>", "occurrences": 2}]
    for corpus, name in zip(data["corpora"], ("en", "ko", "zh"), strict=True):
        assert corpus["tokens"] == sum(n * len(tokenizer.encode(p)) for p, n in counted(name).items())
    again = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "out")])
    assert (again.exit_code, "--force to replace" in again.stderr) == (2, True)


@pytest.mark.parametrize("plots", [True, False])
def test_a_notebook_shows_answers_with_plots_where_it_can(plots: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dask_bpe.pages.html.has_matplotlib", lambda: plots)
    vocabulary = fit(counts_of("en"), 400).vocabulary
    curve = train_curve({"<en>": counts_of("en"), "ko": counts_of("ko")}, [300, 400])
    for answer, figure in (
        (curve, curve.points[0].n_tokens),
        (token_usage(vocabulary, counts_of("en")), token_usage(vocabulary, counts_of("en")).uses.max()),
        (train_trace(counts_of("en"), 400), train_trace(counts_of("en"), 400).log.count[0]),
    ):
        page = answer._repr_html_()
        assert f"{figure:,}" in page
        assert ("<svg" in page) == plots
        assert "<en>" not in page
        assert len(page) < 60_000


def lab_texts() -> tuple[str, str]:
    return texts()["ko"][:400], texts()["en"][:700]


def test_the_lab_has_exactly_its_keys_and_its_figures(tmp_path: Path) -> None:
    ko, en = lab_texts()
    (tmp_path / "a.txt").write_text(ko, encoding="utf-8")
    (tmp_path / "b.txt").write_text(en, encoding="utf-8")
    arguments = ["report", "--lab", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "-o", str(tmp_path / "lab")]
    done = CliRunner().invoke(main, [*arguments, "--sizes", "256,270,300"])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "lab" / "token_report.json").read_text(encoding="utf-8"))
    assert list(found) == LAB_KEYS
    trained = {
        size: reference.train({ko.encode(): 1, en.encode(): 1}, size, ties="ids", min_frequency=2, pattern=None)
        for size in (256, 270, 300)
    }
    alone = reference.train({en.encode(): 1}, 300, ties="ids", min_frequency=2, pattern=None)

    def tokens(text: str, vocabulary: reference.Trained) -> int:
        return len(reference.encode_pretoken(text.encode(), vocabulary))

    assert found["vocab_size"] == 300
    assert (found["ko_chars"], found["ko_bytes"]) == (len(ko), len(ko.encode()))
    assert (found["en_chars"], found["en_bytes"]) == (len(en), len(en.encode()))
    assert (found["shared_rules"], found["en_only_rules"]) == (len(trained[300].merges), len(alone.merges))
    assert (found["ko_tokens_shared"], found["en_tokens_shared"]) == (
        tokens(ko, trained[300]),
        tokens(en, trained[300]),
    )
    assert (found["ko_tokens_en_only"], found["en_tokens_en_only"]) == (tokens(ko, alone), tokens(en, alone))
    assert found["ko_bytes_per_token"] == len(ko.encode()) / tokens(ko, trained[300])
    assert found["en_bytes_per_token"] == len(en.encode()) / tokens(en, trained[300])
    assert [(row["vocab_size"], row["ko_tokens"], row["en_tokens"]) for row in found["curve"]] == [
        (size, tokens(ko, trained[size]), tokens(en, trained[size])) for size in trained
    ]
    assert found["roundtrip_ok"] is True
    markdown = (tmp_path / "lab" / "token_report.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", markdown, re.MULTILINE) == [
        "What was measured",
        "How tokens fell as the vocabulary grew",
        "Why one language pays more",
        "What bytes keep whole",
    ]


def whole(text: str) -> PretokenCounts:
    return PretokenCounts.from_mapping({text: 1}, pattern=None)


def test_the_lab_finds_out_which_text_is_korean() -> None:
    ko, en = map(whole, lab_texts())
    for pair, swapped in (((ko, en), False), ((en, ko), True)):
        found = LabTexts.of(*pair)
        assert (found.ko, found.en, found.named_by, found.swapped) == (ko, en, "scripts", swapped)
    poems = whole(texts()["zh"])
    found = LabTexts.of(poems, en)
    assert (found.ko, found.en, found.named_by, found.swapped) == (poems, en, "order", False)
    assert "is called ko, the second en" in dask_bpe.report_lab(poems, en, [256, 260]).to_markdown()
    assert dask_bpe.report_lab(en, ko, [260]).data == dask_bpe.report_lab(ko, en, [260]).data


def test_a_round_trip_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tokenizer, "decode_bytes", lambda self, ids: b"something else")
    assert measure_lab(LabTexts.of(*map(whole, lab_texts())), [256]).roundtrip_ok is False


def test_the_lab_refuses_what_is_no_pair_of_whole_texts(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="takes whole texts"):
        LabTexts.of(counts_of("ko"), counts_of("en"))
    with pytest.raises(InputError, match="is empty"):
        LabTexts.of(PretokenCounts.from_mapping({}, pattern=None), whole("a"))
    done = CliRunner().invoke(main, ["report", "--lab", "a.txt"])
    assert (done.exit_code, "about two texts: 1 are given" in done.stderr) == (2, True)


@pytest.mark.parametrize("pattern", ["punctuation", "gpt2", "none"])
def test_documents_are_split_as_text_is(pattern: str) -> None:
    documents = [*lab_texts(), "a b, c\n", "a b, c\n"]
    given = PretokenCounts.from_mapping(Counter(documents), pattern=None)
    assert (
        split_counts(given, pattern).to_dict() == dask_bpe.count_pretokens(iter(documents), pattern=pattern).to_dict()
    )


def test_a_segmentation_shows_parts_of_characters() -> None:
    vocabulary = fit(PretokenCounts.from_mapping({"가": 2}), 257).vocabulary
    assert segmentation(vocabulary, "가 a".encode()) == "[ea b0] | [80] | · | a" or (
        segmentation(vocabulary, "가 a".encode()) == "[ea] | [b0 80] | · | a"
    )
