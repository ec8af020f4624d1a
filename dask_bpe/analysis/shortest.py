"""The least number of tokens that a vocabulary can spell a text with, beside what its merges make of it.

Within a pre-token, as merges are. By dynamic programming over its bytes, as PathPiece does (Schmidt et al.,
Tokenization Is More Than Compression, 2024); that merges do not find the least is measured in Uzan et al., Greed is All
You Need: An Evaluation of Tokenizer Inference Methods (2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dask_bpe.analysis.legible import legible
from dask_bpe.analysis.table import Table, Tabular, Value
from dask_bpe.counts import PretokenCounts
from dask_bpe.encoder import Encoder
from dask_bpe.errors import ParameterError
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.vocabulary import Vocabulary


class ShortestEncoder:
    """Spells pre-tokens with as few tokens as there can be; special tokens are not used."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        specials = set(vocabulary.special_tokens.values())
        tokens = vocabulary.tokens
        self._ids = {
            tokens[index]: index for index in reversed(range(len(tokens))) if tokens[index] and index not in specials
        }
        for byte, index in enumerate(vocabulary.byte_ids.tolist()):
            self._ids.setdefault(bytes((byte,)), index)
        # Lengths of the tokens that begin with two bytes, the longest first: most pairs of bytes begin few.
        lengths: dict[bytes, set[int]] = {}
        for token in self._ids:
            if len(token) > 1:
                lengths.setdefault(token[:2], set()).add(len(token))
        self._lengths = {start: sorted(several, reverse=True) for start, several in lengths.items()}

    def encode(self, pretoken: bytes) -> list[int]:
        """Ids of the fewest tokens that spell a pre-token; of several such ways the one whose first token is the
        longest, then its second, and so on."""
        n = len(pretoken)
        # least[i] : tokens that the bytes from i on need. step[i] : length of the first of them.
        least, step = [0] * (n + 1), [1] * n
        for at in reversed(range(n)):
            least[at] = least[at + 1] + 1
            for length in reversed(self._lengths.get(pretoken[at : at + 2], ())):
                end = at + length
                if end <= n and least[end] + 1 <= least[at] and pretoken[at:end] in self._ids:
                    least[at], step[at] = least[end] + 1, length
        ids, at = [], 0
        while at < n:
            ids.append(self._ids[pretoken[at : at + step[at]]])
            at += step[at]
        return ids

    def count(self, pretoken: bytes, by_merging: int) -> int:
        """How many tokens `encode` gives; `by_merging`, how many merging gives, saves most of the work."""
        if by_merging <= 1 or pretoken in self._ids:
            return min(by_merging, 1)
        return by_merging if by_merging == 2 else len(self.encode(pretoken))


@lru_cache(maxsize=4)
def shortest_encoder_of(vocabulary: Vocabulary) -> ShortestEncoder:
    """The one of this process for a vocabulary."""
    return ShortestEncoder(vocabulary)


def encode_shortest(tokenizer: Tokenizer, pretokens: Sequence[bytes]) -> list[list[int]]:
    """Ids of the fewest tokens that spell each pre-token; special tokens are not used.

    Of several such ways the one whose first token is the longest, then its second, and so on. By dynamic programming
    over the bytes, in time linear in their number, as PathPiece (Schmidt et al., Tokenization Is More Than
    Compression, 2024).

    Parameters
    ----------
    pretokens : each is spelled by itself, whatever the tokenizer's pattern and normalizer.
    """
    encoder = shortest_encoder_of(tokenizer.vocabulary)
    return [encoder.encode(pretoken) for pretoken in pretokens]


@dataclass(frozen=True)
class Difference:
    """A pre-token that could be spelled with fewer tokens."""

    pretoken: bytes
    count: int
    by_merging: int
    least: int

    @property
    def saved(self) -> int:
        """Tokens that all its occurrences would save."""
        return (self.by_merging - self.least) * self.count


@dataclass(frozen=True)
class ShortestTotals(Tabular):
    """A corpus encoded by merging, and as short as can be.

    Attributes
    ----------
    n_pretokens, n_tokens, n_least : pre-tokens; tokens by merging; the least number of tokens.
    n_longer : pre-tokens that merging spells with more tokens than need be.
    differences : those of them that would save most, most first.
    """

    n_pretokens: int
    n_tokens: int
    n_least: int
    n_longer: int
    differences: tuple[Difference, ...]

    @property
    def saved(self) -> float:
        """Share of the tokens that the least number saves."""
        return (self.n_tokens - self.n_least) / self.n_tokens if self.n_tokens else 0.0

    def tables(self) -> tuple[Table, ...]:
        """The differences, and the sums of all."""
        rows: list[dict[str, Value]] = [
            {
                "pretoken": legible(one.pretoken),
                "count": one.count,
                "tokens": one.by_merging,
                "least": one.least,
                "saved": one.saved,
            }
            for one in self.differences
        ]
        totals: dict[str, Value] = {
            "pretokens": self.n_pretokens,
            "tokens": self.n_tokens,
            "least": self.n_least,
            "saved": self.saved,
            "pretokens_longer": self.n_longer,
        }
        columns = ("pretoken", "count", "tokens", "least", "saved")
        return Table.of("differences", rows, columns), Table.of("totals", [totals], formats={"saved": ".2%"})


def count_shortest(tokenizer: Tokenizer, counts: PretokenCounts, most: int = 20) -> ShortestTotals:
    """How many tokens of a corpus would be saved by the shortest encoding, from its counts.

    Parameters
    ----------
    tokenizer : with the pattern that cut the counts.
    counts : the pre-tokens of the corpus.
    most : differences to name.

    Raises
    ------
    ParameterError
        The counts were cut by another pattern; the tokenizer normalizes text.
    """
    vocabulary = tokenizer.vocabulary
    if vocabulary.normalizer or counts.pattern != vocabulary.pattern:
        raise ParameterError(
            f"counts of pattern {counts.pattern!r} are not what a tokenizer of pattern {vocabulary.pattern!r}"
            f"{' and a normalizer' if vocabulary.normalizer else ''} cuts: count with its own"
        )
    offsets = counts.strings.offsets
    whole = Encoder.of(replace(vocabulary, pattern=None))
    _, bounds = whole.encode_segments(counts.strings.values, offsets[:-1], offsets[1:])
    by_merging = np.diff(bounds)
    shortest = shortest_encoder_of(vocabulary)
    least = by_merging.copy()
    for at in np.flatnonzero(by_merging > 1).tolist():
        least[at] = shortest.count(counts.strings[at], int(by_merging[at]))
    saved = (by_merging - least) * counts.counts
    order = np.argsort(-saved, kind="stable")[: min(most, int(np.count_nonzero(saved)))]
    return ShortestTotals(
        n_pretokens=int(counts.counts.sum()),
        n_tokens=int((by_merging * counts.counts).sum()),
        n_least=int((least * counts.counts).sum()),
        n_longer=int(counts.counts[saved > 0].sum()),
        differences=tuple(
            Difference(counts.strings[at], int(counts.counts[at]), int(by_merging[at]), int(least[at]))
            for at in order.tolist()
        ),
    )
