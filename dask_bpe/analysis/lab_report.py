"""The report of the lab: what was measured, how tokens fell, why one language pays more, what bytes keep whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import regex

from dask_bpe.analysis.characters import character_counts
from dask_bpe.analysis.curve import CurvePoint, train_curve
from dask_bpe.analysis.lab import EN, KO, RULES, Lab
from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.token_kinds import CHARACTER, CHARACTERS, CROSSING, PARTIAL, TokenKinds
from dask_bpe.analysis.usage import n_bytes_of
from dask_bpe.count_table import CountTable
from dask_bpe.counts import PretokenCounts
from dask_bpe.pages import Axis, Block, Document, Plot, Points, Section, Series, Table, Text
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.vocabulary import Vocabulary

# Splits that the same training is made with, from none on.
_SPLITS = ("none", "punctuation", "gpt2")
_EXAMPLE = 12
_SPACE_INSIDE = regex.compile(rb"\S\s+\S|\S\s+$")


def lab_report(lab: Lab) -> Document:
    """The report as a document of four sections; its data are the figures of `Lab.to_dict`."""
    figures = lab.to_dict()
    lead = (
        f"Under one vocabulary of {len(lab.shared):,} ids for both, a character costs"
        f" {figures['ko_tokens_shared'] / figures['ko_chars']:.2f} tokens in the text called ko and"
        f" {figures['en_tokens_shared'] / figures['en_chars']:.2f} in the one called en."
    )
    sections = [
        Section("What was measured", list(_measured(lab, figures))),
        Section("How tokens fell as the vocabulary grew", list(_fell(lab))),
        Section("Why one language pays more", list(_pays(lab, figures))),
        Section("What bytes keep whole", list(_whole(lab, figures))),
    ]
    return Document("Two texts, two vocabularies", lead, sections, figures)


def _measured(lab: Lab, figures: dict[str, Any]) -> Iterator[Block]:
    texts = lab.texts
    if texts.named_by == "order":
        yield Text("Neither text has Hangul: the one given first is called ko, the second en.")
    else:
        which = "second" if texts.swapped else "first"
        yield Text(f"The text with the larger share of Hangul, the {which} one given, is called ko, the other en.")
    yield Text(
        "Merges are learned within whole texts, without splitting first; of equally frequent pairs the one with the"
        " smallest ids is merged; a pair that occurs once is not."
    )
    yield Table(
        ["text", "characters", "bytes", "bytes per character", "distinct characters"],
        [
            [
                name,
                figures[f"{name}_chars"],
                figures[f"{name}_bytes"],
                figures[f"{name}_bytes"] / figures[f"{name}_chars"],
                int(np.count_nonzero(character_counts(counts))),
            ]
            for name, counts in ((KO, texts.ko), (EN, texts.en))
        ],
        "The texts",
    )
    yield Table(
        ["vocabulary", "ids", "rules learned", "ko tokens", "en tokens"],
        [
            ["shared, from both", len(lab.shared), figures["shared_rules"], figures["ko_tokens_shared"],
             figures["en_tokens_shared"]],
            ["en only", len(lab.en_only), figures["en_only_rules"], figures["ko_tokens_en_only"],
             figures["en_tokens_en_only"]],
        ],
        f"The vocabularies: {lab.vocab_size:,} ids were asked for",
    )  # fmt: skip


def _fell(lab: Lab) -> Iterator[Block]:
    ko, en = lab.shared_curve.of(KO), lab.shared_curve.of(EN)
    yield Plot(
        "line",
        Axis("size of the shared vocabulary", "ids"),
        Axis("bytes per token"),
        [_series(KO, ko), _series(EN, en)],
        "Bytes that a token stands for, by the size of the shared vocabulary.",
    )
    yield Table(
        ["ids", "rules", "ko tokens", "en tokens", "ko bytes per token", "en bytes per token"],
        [
            [a.vocab_size, a.n_merges, a.n_tokens, b.n_tokens, a.bytes_per_token, b.bytes_per_token]
            for a, b in zip(ko, en, strict=True)
        ],
        "Each size by its own rules",
    )
    yield Text(
        f"From {ko[0].vocab_size:,} to {ko[-1].vocab_size:,} ids the tokens fell by {_fall(ko)} in ko and by"
        f" {_fall(en)} in en. Every rule puts one token in the place of two, and the most frequent pairs come first:"
        " so the first rules save most."
    )
    yield Table(
        ["split first by", "rules", "ko tokens", "en tokens", "tokens with white space inside", "longest token"],
        [_split_row(lab, pattern) for pattern in _SPLITS],
        "What splitting the texts first would change: no rule crosses a cut",
    )


def _series(name: str, points: tuple[CurvePoint, ...]) -> Series:
    return Series(name, [point.vocab_size for point in points], [point.bytes_per_token for point in points])


def _fall(points: tuple[CurvePoint, ...]) -> str:
    first, last = points[0].n_tokens, points[-1].n_tokens
    return f"{(first - last) / first:.1%}"


def _split_row(lab: Lab, pattern: str) -> list[str | int]:
    parts = {name: split_counts(counts, pattern) for name, counts in ((KO, lab.texts.ko), (EN, lab.texts.en))}
    curve = train_curve(parts, [lab.vocab_size], **RULES)
    learned = [curve.vocabulary.tokens[i] for i in curve.vocabulary.merges[:, 2].tolist()]
    inside = sum(_SPACE_INSIDE.search(token) is not None for token in learned)
    tokens = [curve.of(name)[0].n_tokens for name in (KO, EN)]
    return [pattern, len(learned), *tokens, inside, brief(max(learned, key=len, default=b""))]


def split_counts(counts: PretokenCounts, pattern: str) -> PretokenCounts:
    """Counts of whole documents as counts of what a pattern makes of them."""
    bounds = counts.strings.offsets
    segments = np.repeat(np.array((bounds[:-1], bounds[1:])), counts.counts, axis=1)
    table = CountTable()
    table.add_segments(counts.strings.values, np.ascontiguousarray(segments), Scanner(get_pattern(pattern)), 0)
    return PretokenCounts.from_table(table, pattern=get_pattern(pattern).spec, n_bytes=n_bytes_of(counts)).ranked()


def _pays(lab: Lab, figures: dict[str, Any]) -> Iterator[Block]:
    per_character = {
        name: [
            figures[f"{name}_{of}"] / figures[f"{name}_chars"] for of in ("bytes", "tokens_shared", "tokens_en_only")
        ]
        for name in (KO, EN)
    }
    yield Table(
        ["text", "bytes", "tokens, shared vocabulary", "tokens, vocabulary of en only"],
        [[name, *values] for name, values in per_character.items()],
        "Of one character",
    )
    ko, en = per_character[KO], per_character[EN]
    kinds = TokenKinds.of(lab.shared)
    contents = Counter(kinds.contents)
    most = ", ".join(f"{name} {number:,}" for name, number in contents.most_common(4))
    alone = figures["ko_tokens_en_only"]
    yield Points(
        [
            f"A character of ko is {ko[0]:.2f} bytes, one of en {en[0]:.2f}: before any rule ko pays"
            f" {ko[0] / en[0]:.2f} times as much for a character.",
            f"The shared vocabulary spends its {len(kinds.ids):,} rules on what is frequent; by content: {most}."
            f" After them ko pays {ko[1] / en[1]:.2f} times as much.",
            f"With rules of en only, ko has {alone:,} tokens for {figures['ko_bytes']:,} bytes: a token of it stands"
            f" for {figures['ko_bytes'] / alone:.2f} bytes, one of en for"
            f" {figures['en_bytes'] / figures['en_tokens_en_only']:.2f}. ko pays {ko[2] / en[2]:.2f} times as much.",
            f"Of en the shared vocabulary makes {figures['en_tokens_shared']:,} tokens instead of"
            f" {figures['en_tokens_en_only']:,}: {figures['en_tokens_shared'] / figures['en_tokens_en_only'] - 1:+.1%}"
            " for the room that ko takes.",
        ]
    )


def _whole(lab: Lab, figures: dict[str, Any]) -> Iterator[Block]:
    answer = "give both texts back byte for byte" if lab.roundtrip_ok else "do NOT give both texts back"
    yield Text(
        f"Both vocabularies {answer}. Every byte is a token, so no character is unknown: the vocabulary of en only"
        f" encodes ko too, at {figures['ko_tokens_en_only'] / figures['ko_chars']:.2f} tokens per character."
    )
    yield Table(
        ["vocabulary", "whole character", "several characters", "part of a character", "across a boundary"],
        [_shapes("shared", lab.shared), _shapes("en only", lab.en_only)],
        "What the rules became",
    )
    start = _beginning(lab.texts.ko)
    yield Table(
        ["vocabulary", "tokens"],
        [["shared", segmentation(lab.shared, start)], ["en only", segmentation(lab.en_only, start)]],
        f"The text called ko begins with {brief(start)}",
    )


def _shapes(name: str, vocabulary: Vocabulary) -> list[str | int]:
    shapes = Counter(TokenKinds.of(vocabulary).shapes)
    return [name, *(shapes[shape] for shape in (CHARACTER, CHARACTERS, PARTIAL, CROSSING))]


def _beginning(counts: PretokenCounts) -> bytes:
    """The first characters of the document that comes first."""
    text = counts.strings[int(np.argmin(counts.first))].decode("utf-8", "replace")
    return text.lstrip()[:_EXAMPLE].encode()


def segmentation(vocabulary: Vocabulary, text: bytes) -> str:
    """The tokens of a text, parts of characters in hexadecimal: `자 | [e5 b8] | [82]`."""
    tokenizer = Tokenizer(vocabulary)
    return " | ".join(brief(vocabulary.tokens[index]) for index in tokenizer.encode_ordinary(text))
