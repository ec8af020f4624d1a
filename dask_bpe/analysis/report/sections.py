"""The report on a vocabulary: cost, use, what its tokens are, how text grows, and what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dask_bpe.analysis.curve import CurvePoint, curve_plot
from dask_bpe.analysis.report.evidence import VocabularyEvidence
from dask_bpe.analysis.report.findings import findings
from dask_bpe.analysis.shown import page_table
from dask_bpe.analysis.usage import frequency_plot
from dask_bpe.pages import Axis, Block, Document, Facts, Plot, Points, Section, Series, Table, Text

_ALL = "all together"
_MOST_LENGTH = 20
_BINS, _MOST_KINDS = 24, 6
_LINES_OF_TABLE = 15


def report(evidence: VocabularyEvidence) -> Document:
    """The report as a document: HTML, Markdown or JSON."""
    found = findings(evidence)
    total = evidence.total
    lead = (
        f"{len(evidence.vocabulary):,} ids looked at with {total.n_bytes / 1e6:,.1f} MB of text:"
        f" {total.n_tokens:,} tokens."
    )
    sections = [
        Section("What was looked at", list(_about(evidence))),
        Section("Size and cost", list(_size(evidence))),
        Section("Corpora", list(_corpora(evidence))),
        Section("Use of the tokens", list(_use(evidence))),
        Section("What the tokens are", list(_kinds(evidence))),
        Section("Odd tokens", list(_odd(evidence))),
        Section("Growth of the text", list(_growth(evidence))),
        Section("Findings", [Points(found)]),
    ]
    return Document(f"Vocabulary {evidence.name}", lead, sections, _data(evidence, found))


def _about(evidence: VocabularyEvidence) -> Iterator[Block]:
    vocabulary = evidence.vocabulary
    specials = list(vocabulary.special_tokens)
    yield Facts(
        [
            ("ids", len(vocabulary)),
            ("merges", len(vocabulary.merges) if vocabulary.ranks == "merges" else None),
            ("special tokens", ", ".join(specials[:5]) + (f" and {len(specials) - 5} more" if specials[5:] else "")),
            ("pattern", str(vocabulary.pattern)),
            ("fingerprint", vocabulary.fingerprint()),
        ]
    )
    yield Text(
        "Figures are those of all of the text, counted by distinct pre-tokens and encoded; nothing is a sample."
        " Bytes and characters are those of the pre-tokens; special tokens are between them and not counted."
    )


def _size(evidence: VocabularyEvidence) -> Iterator[Block]:
    lines = [(corpus.name, corpus.points) for corpus in evidence.corpora]
    if len(lines) > 1:
        lines.append((_ALL, evidence.points))
    yield curve_plot(lines)
    yield Table(
        ["ids", "tokens", "bytes per token", "characters per token", "fewer tokens than at the size before, %"],
        [
            [point.vocab_size, point.n_tokens, point.bytes_per_token, point.characters_per_token, gain]
            for point, gain in zip(evidence.doublings, _gains(evidence.doublings), strict=True)
        ],
        "Each doubling and its gain",
    )


def _gains(points: Sequence[CurvePoint]) -> list[float | None]:
    """By how many percent the tokens became fewer from one size to the next."""
    steps = [100 * (a.n_tokens - b.n_tokens) / a.n_tokens if a.n_tokens else None for a, b in pairwise(points)]
    return [None, *steps]


def _corpora(evidence: VocabularyEvidence) -> Iterator[Block]:
    corpora = evidence.corpora
    if len(corpora) > 1:
        yield Plot(
            "bars",
            Axis("corpus"),
            Axis("tokens per character"),
            [Series("", [corpus.name for corpus in corpora], [corpus.tokens_per_character for corpus in corpora])],
            "What a character costs in each corpus.",
        )
    first = corpora[0].tokens_per_character
    yield Table(
        [
            *("corpus", "MB", "distinct pre-tokens", "tokens", "bytes per token", "tokens per character"),
            f"relative to {corpora[0].name}",
            "pre-tokens whole, %",
        ],
        [
            [
                corpus.name,
                corpus.usage.n_bytes / 1e6,
                corpus.n_distinct,
                corpus.usage.n_tokens,
                corpus.bytes_per_token,
                corpus.tokens_per_character,
                corpus.tokens_per_character / first if first else None,
                100 * corpus.usage.n_whole / max(corpus.usage.n_pretokens, 1),
            ]
            for corpus in corpora
        ],
        "Cost by corpus",
    )
    if len(corpora) > 1:
        yield Text(
            "Corpora differ in what they say: only parallel texts tell what a language costs (dask-bpe languages)."
        )


def _use(evidence: VocabularyEvidence) -> Iterator[Block]:
    in_vocabulary, in_corpus = (_clipped(lengths) for lengths in evidence.total.lengths())
    places = list(range(1, len(in_vocabulary) + 1))
    yield Plot(
        "bars",
        Axis("length of a token", f"bytes ({_MOST_LENGTH}: that many or more)"),
        Axis("share", "%"),
        [
            Series("of the vocabulary", places, _percent(in_vocabulary)),
            Series("of the text", places, _percent(in_corpus)),
        ],
        "Lengths of tokens: in the vocabulary, and as the text uses them.",
    )
    yield frequency_plot({corpus.name: corpus.usage for corpus in evidence.corpora})
    yield page_table(evidence.total.shown()[0], _LINES_OF_TABLE)


def _clipped(lengths: Any) -> Any:
    """Numbers of tokens of 1, 2, ... bytes, those of many bytes together at the end."""
    short = lengths[1 : _MOST_LENGTH + 1].copy()
    if len(lengths) > _MOST_LENGTH + 1:
        short[-1] += lengths[_MOST_LENGTH + 1 :].sum()
    return short


def _percent(numbers: Any) -> list[float]:
    return (100 * numbers / max(int(numbers.sum()), 1)).tolist()  # type: ignore[no-any-return]


def _kinds(evidence: VocabularyEvidence) -> Iterator[Block]:
    described = evidence.description
    contents = described.kinds.contents
    if len(contents) >= _BINS:
        yield _kinds_by_rank(contents)
    shapes, found, longest = described.tables()[:3]
    yield page_table(shapes)
    yield page_table(found, _LINES_OF_TABLE)
    yield page_table(longest, _LINES_OF_TABLE)


def _kinds_by_rank(contents: Sequence[str]) -> Plot:
    """The share of each kind of content among the merges of a stretch of ranks."""
    most = [name for name, _ in Counter(contents).most_common(_MOST_KINDS)]
    edges = np.linspace(0, len(contents), _BINS + 1).astype(int)
    stretches = [Counter(contents[a:b]) for a, b in pairwise(edges.tolist())]
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()

    def percent(number: int, stretch: Counter[str]) -> float:
        return 100 * number / stretch.total()

    series = [Series(name, middles, [percent(stretch[name], stretch) for stretch in stretches]) for name in most]
    others = [percent(stretch.total() - sum(stretch[name] for name in most), stretch) for stretch in stretches]
    if any(others):
        series.append(Series("others", middles, others))
    return Plot("area", Axis("rank of the merge"), Axis("share of merges", "%"), series, "What was learned when.")


def _odd(evidence: VocabularyEvidence) -> Iterator[Block]:
    tables = {table.name: table for table in evidence.description.shown()}
    yield page_table(tables["odd_tokens"])
    if "special_tokens_in_text" in tables:
        yield page_table(tables["special_tokens_in_text"], _LINES_OF_TABLE)


def _growth(evidence: VocabularyEvidence) -> Iterator[Block]:
    yield Plot(
        "line",
        Axis("text", "MB", log=True),
        Axis("distinct pre-tokens", log=True),
        [Series(corpus.name, corpus.growth.n_bytes / 1e6, corpus.growth.distinct) for corpus in evidence.corpora],
        "Distinct pre-tokens of random parts of each corpus, as expected exactly from the counts; in the order of the"
        " text there are fewer, for words come in clusters.",
    )


def _data(evidence: VocabularyEvidence, found: Sequence[str]) -> dict[str, Any]:
    """All figures for programs."""
    return {
        "vocabulary": evidence.name,
        "fingerprint": evidence.vocabulary.fingerprint(),
        "vocab_size": len(evidence.vocabulary),
        "findings": list(found),
        "curve": [
            {"source": p.source, "vocab_size": p.vocab_size, "tokens": p.n_tokens, "bytes": p.n_bytes,
             "characters": p.n_characters}
            for points in (*(corpus.points for corpus in evidence.corpora), evidence.points)
            for p in points
        ],
        "corpora": [
            {
                "name": corpus.name,
                "documents": corpus.n_documents,
                "bytes": corpus.usage.n_bytes,
                "characters": corpus.usage.n_characters,
                "pretokens": corpus.usage.n_pretokens,
                "distinct_pretokens": corpus.n_distinct,
                "one_token_pretokens": corpus.usage.n_whole,
                "tokens": corpus.usage.n_tokens,
                "invalid": corpus.n_invalid,
                "growth": {"bytes": corpus.growth.n_bytes.tolist(), "distinct": corpus.growth.distinct.tolist()},
            }
            for corpus in evidence.corpora
        ],
        "description": evidence.description.to_dict(),
    }  # fmt: skip
