"""What a report on a vocabulary found, in plain words, each sentence with its figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.report.evidence import CorpusEvidence, VocabularyEvidence
from dask_bpe.analysis.token_kinds import CROSSING, PARTIAL, is_script


def findings(evidence: VocabularyEvidence) -> list[str]:
    """The sentences, what costs most first, then what is odd."""
    return [*_cost(evidence), *_use(evidence), *_tokens(evidence), *_oddities(evidence), *_growth(evidence)]


def share(part: float, whole: float) -> str:
    """A share in percent, 100 only if it is all: `3.1 %`, `42 %`, `99.97 %`."""
    percent = 100 * part / whole
    if percent < 10:
        return f"{percent:.2g} %"
    return f"{percent:.0f} %" if percent < 99 or part == whole else f"{math.floor(100 * percent) / 100:.2f} %"


def _cost(evidence: VocabularyEvidence) -> Iterator[str]:
    total = evidence.total
    if not total.n_tokens:
        yield "The corpora hold no text."
        return
    yield (
        f"A token stands for {total.n_bytes / total.n_tokens:.2f} bytes, or"
        f" {total.n_characters / total.n_tokens:.2f} characters, on average."
    )
    steps = evidence.doublings
    if len(steps) > 1:
        before, last = steps[-2:]
        yield (
            f"The growth from {before.vocab_size:,} to {last.vocab_size:,} ids took away"
            f" {share(before.n_tokens - last.n_tokens, before.n_tokens)} of the tokens."
        )
    corpora = [corpus for corpus in evidence.corpora if corpus.usage.n_tokens]
    if len(corpora) > 1:
        cheap, dear = (choose(corpora, key=_cost_of) for choose in (min, max))
        yield (
            f"A character costs most in {dear.name}, {dear.tokens_per_character:.3f} tokens, and least in {cheap.name},"
            f" {cheap.tokens_per_character:.3f}: {dear.tokens_per_character / cheap.tokens_per_character:.1f} times"
            " as much."
        )


def _cost_of(corpus: CorpusEvidence) -> float:
    return corpus.tokens_per_character


def _use(evidence: VocabularyEvidence) -> Iterator[str]:
    total = evidence.total
    if not total.n_tokens:
        return
    yield f"{share(total.n_whole, total.n_pretokens)} of all pre-tokens are one token."
    ranked = np.cumsum(total.uses[total.ranked()])
    half = int(np.searchsorted(ranked, total.n_tokens / 2)) + 1
    yield f"Half of all tokens of the corpora are occurrences of only {half:,} of the {len(ranked):,} that are used."
    single = int(total.uses[evidence.vocabulary.byte_ids[128:]].sum())
    if single:
        yield (
            f"{share(single, total.n_bytes)} of the bytes are parts of characters beyond ASCII that are a token each,"
            " since no merge put them together."
        )


def _tokens(evidence: VocabularyEvidence) -> Iterator[str]:
    kinds = evidence.description.kinds
    if not len(kinds.ids):
        return
    shapes, n = Counter(kinds.shapes), len(kinds.ids)
    broken = shapes[PARTIAL] + shapes[CROSSING]
    if broken:
        yield f"{share(broken, n)} of the learned tokens ({broken:,}) begin or end within a character."
    scripts = [(found, number) for found, number in Counter(kinds.contents).most_common() if is_script(found)]
    if scripts:
        named = ", ".join(f"{name} {share(number, n)}" for name, number in scripts[:3])
        has = "script has" if len(scripts) == 1 else "scripts have"
        yield f"{len(scripts):,} {has} letters among the learned tokens; the most: {named}."


def _oddities(evidence: VocabularyEvidence) -> Iterator[str]:
    described = evidence.description
    n = len(described.kinds.ids)
    by_name = {oddity.name: oddity for oddity in described.oddities}
    unused, rare = len(by_name["unused"]), len(by_name["rare"])
    if n:
        yield f"{share(unused, n)} of the learned tokens ({unused:,}) never occur in the corpora."
        yield f"{share(rare, n)} of them ({rare:,}) occur less than {evidence.rare:,} times."
    for name, words in (
        ("unreachable", "can never be reached by merging: their bytes are encoded by other ids"),
        ("duplicate", "spell bytes that another id spells too"),
        ("mojibake", "look like UTF-8 that was read in a wrong encoding"),
    ):
        ids = by_name[name].ids.tolist()
        if ids:
            longest = max(ids, key=lambda index: len(described.vocabulary.tokens[index]))
            yield f"{len(ids):,} tokens {words}; the longest: {brief(described.vocabulary.tokens[longest])}"
    for text, number in (evidence.special_in_text or {}).items():
        if number:
            yield f"The special token {text} stands {number:,} times in the corpora."


def _growth(evidence: VocabularyEvidence) -> Iterator[str]:
    for corpus in evidence.corpora:
        exponent = corpus.growth.exponent
        if not math.isnan(exponent):
            yield (
                f"Twice as much text like {corpus.name} would have about {2**exponent:.2f} times as many distinct"
                f" pre-tokens (Heaps' exponent {exponent:.2f})."
            )
