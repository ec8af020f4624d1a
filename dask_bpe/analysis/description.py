"""What is in a vocabulary: what its merges became, what came first, what is long, what is odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.oddities import Oddity, oddities_of
from dask_bpe.analysis.table import Table, Tabular
from dask_bpe.analysis.token_kinds import SHAPES, TokenKinds, whole_characters
from dask_bpe.analysis.usage import TokenUsage, token_usage
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import whole_number
from dask_bpe.vocabulary import Vocabulary

_EXAMPLES = 5


@dataclass(frozen=True, eq=False)
class VocabularyDescription(Tabular):
    """What the tokens of a vocabulary are.

    Attributes
    ----------
    vocabulary : that one.
    kinds : shape and content of the learned tokens.
    longest : int64[n], ids of the longest ones.
    oddities : odd tokens, by kind.
    usage : how a corpus uses the tokens; None without one.
    special_in_text : how often the text of each special token stands in the corpus; None without one.
    """

    vocabulary: Vocabulary
    kinds: TokenKinds
    longest: npt.NDArray[np.int64]
    oddities: tuple[Oddity, ...]
    usage: TokenUsage | None = None
    special_in_text: Mapping[str, int] | None = None

    def tables(self) -> tuple[Table, ...]:
        """Shapes, contents, longest tokens, odd ones, and special tokens met in the text."""
        tables = [
            self._kinds("shapes", "shape", self.kinds.shapes, "What merges became"),
            self._kinds("contents", "content", self.kinds.contents, "What is in them"),
            self._tokens("longest", self.longest.tolist(), "Longest tokens"),
            self._odd(),
        ]
        if self.special_in_text is not None:
            columns: dict[str, Any] = {
                "special_token": list(self.special_in_text),
                "occurrences": list(self.special_in_text.values()),
            }
            tables.append(Table("special_tokens_in_text", columns, title="Special tokens in the text"))
        return tuple(tables)

    def shown(self) -> tuple[Table, ...]:
        """The same with examples of odd tokens instead of all."""
        return tuple(self._odd_kinds() if table.name == "odd_tokens" else table for table in self.tables())

    def _kinds(self, name: str, label: str, labels: Sequence[str], title: str) -> Table:
        """How many tokens have each label, and the first learned of them."""
        numbers, ids = Counter(labels), self.kinds.ids.tolist()
        first: dict[str, int] = {}
        for rank, found in enumerate(labels):
            first.setdefault(found, rank)
        order = (
            [shape for shape in SHAPES if shape in first] if label == "shape" else [k for k, _ in numbers.most_common()]
        )
        columns: dict[str, Any] = {
            label: order,
            "tokens": [numbers[found] for found in order],
            "share": [numbers[found] / len(labels) for found in order],
            "first_rank": [first[found] for found in order],
            "first_learned": [brief(self.vocabulary.tokens[ids[first[found]]]) for found in order],
        }
        return Table(name, columns, title=f"{title}: {len(labels):,} learned tokens", formats={"share": ".1%"})

    def _tokens(self, name: str, ids: list[int], title: str) -> Table:
        tokens = self.vocabulary.tokens
        columns: dict[str, Any] = {
            "id": ids,
            "token": [brief(tokens[index]) for index in ids],
            "bytes": [len(tokens[index]) for index in ids],
            "characters": [len(whole_characters(tokens[index])) for index in ids],
        }
        if self.usage is not None:
            columns["uses"] = self.usage.uses[ids].tolist()
        return Table(name, columns, title=title, formats={"id": "d"})

    def _odd(self) -> Table:
        odd = [(oddity.name, index) for oddity in self.oddities for index in oddity.ids.tolist()]
        table = self._tokens("odd_tokens", [index for _, index in odd], "Odd tokens")
        return replace(table, columns={"oddity": [name for name, _ in odd], **table.columns})

    def _odd_kinds(self) -> Table:
        tokens, n = self.vocabulary.tokens, sum(map(bool, self.vocabulary.tokens))
        columns: dict[str, Any] = {
            "oddity": [oddity.name for oddity in self.oddities],
            "tokens": [len(oddity) for oddity in self.oddities],
            "share": [len(oddity) / n for oddity in self.oddities],
            "meaning": [oddity.meaning for oddity in self.oddities],
            "the_longest": [
                "  ".join(
                    brief(tokens[i]) for i in sorted(oddity.ids.tolist(), key=lambda i: -len(tokens[i]))[:_EXAMPLES]
                )
                for oddity in self.oddities
            ],
        }
        return Table("odd_tokens", columns, title="Odd tokens", formats={"share": ".2%"})


def describe_tokens(
    vocabulary: Vocabulary,
    counts: PretokenCounts | None = None,
    *,
    special_in_text: Mapping[str, int] | None = None,
    n_longest: int = 20,
    rare: int = 100,
) -> VocabularyDescription:
    """What the tokens of a vocabulary are and, with the counts of a corpus, which it hardly uses.

    Parameters
    ----------
    counts : of a corpus, cut by the pattern of the vocabulary.
    special_in_text : what was found in the same corpus, for the record.
    n_longest : how many of the longest tokens are named.
    rare : tokens used less often than that are listed.

    Raises
    ------
    ParameterError
        The counts were cut otherwise, see `token_usage`; a number is not one.
    """
    whole_number("n_longest", n_longest, 0)
    whole_number("rare", rare)
    usage = None if counts is None else token_usage(vocabulary, counts)
    return description_of(vocabulary, usage, special_in_text=special_in_text, n_longest=n_longest, rare=rare)


def description_of(
    vocabulary: Vocabulary,
    usage: TokenUsage | None,
    *,
    special_in_text: Mapping[str, int] | None = None,
    n_longest: int = 20,
    rare: int = 100,
) -> VocabularyDescription:
    """The same from a usage that is known."""
    kinds = TokenKinds.of(vocabulary)
    by_length = sorted(kinds.ids.tolist(), key=lambda index: (-len(vocabulary.tokens[index]), index))
    longest = np.array(by_length[:n_longest], np.int64)
    odd = oddities_of(vocabulary, usage, rare)
    return VocabularyDescription(vocabulary, kinds, longest, odd, usage, special_in_text)
