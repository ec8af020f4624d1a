"""All that a report on a vocabulary is made of: figures of each corpus, gathered one corpus at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dask_bpe.analysis.curve import ALL, CurvePoint, cut_curve, doublings, is_cumulative, n_reserved
from dask_bpe.analysis.description import VocabularyDescription, description_of
from dask_bpe.analysis.growth import Growth, growth_of
from dask_bpe.analysis.token_kinds import learned_tokens
from dask_bpe.analysis.usage import TokenUsage, token_usage
from dask_bpe.counts import PretokenCounts
from dask_bpe.vocabulary import Vocabulary

_PER_OCTAVE = 4


@dataclass(frozen=True, eq=False)
class CorpusEvidence:
    """What is known of a corpus under a vocabulary. No part of it is as large as the counts.

    Attributes
    ----------
    name : of the corpus.
    usage : how it uses the tokens.
    points : its tokens under the vocabulary cut to smaller sizes, ascending.
    growth : of its distinct pre-tokens.
    n_distinct, n_documents, n_invalid : distinct pre-tokens, documents, invalid UTF-8 sequences mended.
    special_in_text : occurrences of special tokens; None if that was not looked for.
    """

    name: str
    usage: TokenUsage
    points: tuple[CurvePoint, ...]
    growth: Growth
    n_distinct: int
    n_documents: int
    n_invalid: int
    special_in_text: Mapping[str, int] | None

    @property
    def bytes_per_token(self) -> float:
        """NaN for a corpus without text."""
        return self.usage.n_bytes / self.usage.n_tokens if self.usage.n_tokens else float("nan")

    @property
    def tokens_per_character(self) -> float:
        """NaN for a corpus without text."""
        return self.usage.n_tokens / self.usage.n_characters if self.usage.n_characters else float("nan")


@dataclass(frozen=True, eq=False)
class VocabularyEvidence:
    """A vocabulary and what is known of the corpora that it is looked at with.

    Attributes
    ----------
    name : of the vocabulary.
    vocabulary : that one.
    corpora : at least one.
    rare : tokens used less often than that are called rare.
    """

    name: str
    vocabulary: Vocabulary
    corpora: Sequence[CorpusEvidence]
    rare: int = 100

    @cached_property
    def total(self) -> TokenUsage:
        """The usage of all corpora together."""
        parts = [corpus.usage for corpus in self.corpora]
        numbers = np.sum([(p.n_pretokens, p.n_whole, p.n_bytes, p.n_characters) for p in parts], axis=0).tolist()
        return TokenUsage(self.vocabulary, np.sum([part.uses for part in parts], axis=0), *numbers)

    @cached_property
    def points(self) -> tuple[CurvePoint, ...]:
        """The curve of all corpora together."""
        return tuple(
            CurvePoint(
                ALL,
                same[0].vocab_size,
                same[0].n_merges,
                sum(point.n_tokens for point in same),
                sum(point.n_bytes for point in same),
                sum(point.n_characters for point in same),
            )
            for same in zip(*(corpus.points for corpus in self.corpora), strict=True)
        )

    @cached_property
    def doublings(self) -> tuple[CurvePoint, ...]:
        """Those points of it that are doublings of 256 ids, and the whole."""
        last = self.points[-1].vocab_size
        sizes = {*doublings(last, n_reserved(self.vocabulary)), last}
        return tuple(point for point in self.points if point.vocab_size in sizes)

    @cached_property
    def description(self) -> VocabularyDescription:
        """What the tokens are."""
        return description_of(self.vocabulary, self.total, special_in_text=self.special_in_text, rare=self.rare)

    @property
    def special_in_text(self) -> dict[str, int] | None:
        """Special tokens in all corpora; None if that was looked for in none."""
        found = [corpus.special_in_text for corpus in self.corpora if corpus.special_in_text is not None]
        if not found:
            return None
        return {text: sum(part.get(text, 0) for part in found) for text in self.vocabulary.special_tokens}


def corpus_evidence(
    name: str, vocabulary: Vocabulary, counts: PretokenCounts, special_in_text: Mapping[str, int] | None = None
) -> CorpusEvidence:
    """Everything about one corpus; afterwards its counts are not needed any more. Raises as `token_usage`."""
    usage = token_usage(vocabulary, counts)
    curve = cut_curve(vocabulary, {name: counts}, _sizes(vocabulary), uses={name: usage.uses})
    return CorpusEvidence(
        name,
        usage,
        curve.points,
        growth_of(counts),
        len(counts),
        counts.n_documents,
        counts.n_invalid,
        special_in_text,
    )


def _sizes(vocabulary: Vocabulary) -> list[int]:
    """Doublings; and sizes between them where they cost nothing."""
    n_special = n_reserved(vocabulary)
    whole = 256 + n_special + len(learned_tokens(vocabulary))
    sizes = set(doublings(whole, n_special))
    if is_cumulative(vocabulary):
        between = [round(256 * 2 ** (k / _PER_OCTAVE)) for k in range(64 * _PER_OCTAVE)]
        sizes |= {size for size in between if 256 + n_special <= size < whole}
    return sorted(sizes)
