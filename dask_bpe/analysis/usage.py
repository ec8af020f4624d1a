"""How often a corpus uses each token, from its counts: every distinct pre-token is encoded once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.shown import output
from dask_bpe.analysis.table import Table, Tabular
from dask_bpe.counts import PretokenCounts
from dask_bpe.encoder import SLICE_BYTES, Encoder, slices
from dask_bpe.errors import ParameterError
from dask_bpe.pages import Axis, Plot, Series
from dask_bpe.pretokenize import get_pattern
from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]

_SHOWN = 20


@dataclass(frozen=True, eq=False)
class TokenUsage(Tabular):
    """How often a corpus uses each token of a vocabulary. Special tokens are not counted: they are between the text.

    Attributes
    ----------
    vocabulary : whose tokens they are.
    uses : int64[n_ids], occurrences of each token.
    n_pretokens : pre-tokens of the corpus, repeats included.
    n_whole : those that are one token.
    n_bytes, n_characters : of all pre-tokens.
    """

    vocabulary: Vocabulary
    uses: Int64s
    n_pretokens: int
    n_whole: int
    n_bytes: int
    n_characters: int

    @property
    def n_tokens(self) -> int:
        """Tokens of the corpus."""
        return int(self.uses.sum())

    def ranked(self) -> Int64s:
        """Ids of the tokens that are used, the most frequent first, the lower id first among equals. int64[n]."""
        order = np.argsort(-self.uses, kind="stable")
        return order[: np.count_nonzero(self.uses)]

    def used_less_than(self, times: int) -> Int64s:
        """Ids of the tokens that the corpus uses less often than that, special ones left out. int64[n]."""
        special = set(self.vocabulary.special_tokens.values())
        rare = np.flatnonzero(self.uses < times).tolist()
        kept = [index for index in rare if self.vocabulary.tokens[index] and index not in special]
        return np.array(kept, np.int64)

    def lengths(self) -> tuple[Int64s, Int64s]:
        """Tokens of the vocabulary, and tokens of the corpus, of 0, 1, 2, ... bytes. int64[longest + 1] each."""
        lengths = np.array([len(token) for token in self.vocabulary.tokens], np.int64)
        lengths[list(self.vocabulary.special_tokens.values())] = 0
        in_corpus = np.zeros(int(lengths.max()) + 1, np.int64)
        np.add.at(in_corpus, lengths, self.uses)
        in_vocabulary = np.bincount(lengths, minlength=len(in_corpus))
        in_vocabulary[0] = 0  # special tokens, and ids that no token has
        return in_vocabulary, in_corpus

    def tables(self) -> tuple[Table, ...]:
        """The tokens by their frequency."""
        return (self._table(self.ranked()),)

    def shown(self) -> tuple[Table, ...]:
        """The most frequent tokens."""
        return (self._table(self.ranked()[:_SHOWN]),)

    def _repr_html_(self) -> str:
        return output("Use of tokens", self, [frequency_plot({"": self})])

    def _table(self, ids: Int64s) -> Table:
        total = max(self.n_tokens, 1)
        columns = {
            "rank": list(range(1, len(ids) + 1)),
            "id": ids.tolist(),
            "token": [brief(self.vocabulary.tokens[index]) for index in ids.tolist()],
            "uses": self.uses[ids].tolist(),
            "share": (self.uses[ids] / total).tolist(),
        }
        title = f"{self.n_tokens:,} tokens of a corpus, {np.count_nonzero(self.uses):,} distinct"
        return Table("usage", columns, title=title, formats={"id": "d", "share": ".3%"})


def frequency_plot(usages: Mapping[str, TokenUsage]) -> Plot:
    """Occurrences by rank, a line for each corpus by its name."""
    return Plot(
        "line",
        Axis("rank of the token", log=True),
        Axis("occurrences", log=True),
        [
            Series(name, np.arange(1, len(ranked) + 1), usage.uses[ranked])
            for name, usage in usages.items()
            for ranked in [usage.ranked()]
        ],
        "How often the tokens are used, the most frequent first.",
    )


def token_usage(vocabulary: Vocabulary, counts: PretokenCounts) -> TokenUsage:
    """How often each token stands in the corpus of the counts.

    Takes about 2 us for each distinct pre-token, and memory for the counts and one megabyte of text.

    Raises
    ------
    ParameterError
        The counts were cut by another pattern, or the vocabulary normalizes text before it is cut.
    """
    check_same_cuts(vocabulary, counts)
    uses, n_whole = np.zeros(len(vocabulary), np.int64), 0
    for first, last, ids, offsets in encode_pretokens(vocabulary, counts):
        weights, lengths = counts.counts[first:last], np.diff(offsets)
        np.add.at(uses, ids, np.repeat(weights, lengths))
        n_whole += int(weights[lengths == 1].sum())
    return TokenUsage(vocabulary, uses, counts.total, n_whole, n_bytes_of(counts), n_characters_of(counts))


def encode_pretokens(
    vocabulary: Vocabulary, counts: PretokenCounts
) -> Iterator[tuple[int, int, npt.NDArray[np.uint32], Int64s]]:
    """The tokens of each distinct pre-token, some thousands at a time.

    Yields first, last, ids and offsets: pre-token ``first + k`` is ``ids[offsets[k]:offsets[k + 1]]``, for k below
    ``last - first``. The next ones write over `ids`.
    """
    # Not cut again: alone, a pre-token may be cut where look-ahead kept it whole in the text.
    encoder = Encoder(replace(vocabulary, pattern=None, normalizer=()))
    text, bounds = counts.strings.values, counts.strings.offsets
    out = np.empty(2 * SLICE_BYTES, np.uint32)
    for first, last in slices(bounds[:-1], bounds[1:]):
        ids, offsets = encoder.encode_segments(text, bounds[first:last], bounds[first + 1 : last + 1], out=out)
        yield first, last, ids, offsets


def check_same_cuts(vocabulary: Vocabulary, counts: PretokenCounts) -> None:
    """Refuse counts from which the tokens of the corpus do not follow. Raises ParameterError."""
    if get_pattern(counts.pattern) != get_pattern(vocabulary.pattern):
        raise ParameterError(
            f"the counts were cut by the pattern {counts.pattern!r} and the vocabulary cuts by {vocabulary.pattern!r}:"
            " count the text with the pattern of the vocabulary"
        )
    if vocabulary.normalizer:
        steps = ", ".join(step[0] for step in vocabulary.normalizer)
        raise ParameterError(
            f"the vocabulary normalizes text ({steps}) before it is cut, and counts hold text as it is:"
            " its tokens cannot be told from counts"
        )


def n_bytes_of(counts: PretokenCounts) -> int:
    """Bytes of all pre-tokens, repeats included."""
    return int(np.dot(np.diff(counts.strings.offsets), counts.counts))


def n_characters_of(counts: PretokenCounts) -> int:
    """Characters of all pre-tokens, repeats included: the bytes that are not later ones of a character."""
    if not len(counts):
        return 0
    begins = (counts.strings.values & 0xC0) != 0x80
    return int(np.dot(np.add.reduceat(begins, counts.strings.offsets[:-1], dtype=np.int64), counts.counts))
