"""Tokenizers compared on corpora: the answer of `dask_bpe.compare`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dask_bpe.analysis.measure import Amount, Cost
from dask_bpe.analysis.table import Table, Tabular, Value

DEFINITIONS = (
    "A word is a run of letters and marks; in scripts without spaces that is a phrase. A single-token word lies in one"
    " token, all others are continued words. Relative: tokens, to those of the first tokenizer."
)
_SHARES = {"relative": ",.3f", "single_token_words": ".1%", "continued_words": ".1%"}


@dataclass(frozen=True)
class Pair:
    """What a corpus costs with a tokenizer, and with the first one."""

    tokenizer: str
    corpus: str
    amount: Amount
    cost: Cost
    first: Cost

    @property
    def bytes_per_token(self) -> float | None:
        """None where there are no tokens, as of all ratios."""
        return ratio(self.amount.n_bytes, self.cost.n_tokens)

    @property
    def characters_per_token(self) -> float | None:
        """Code points for a token."""
        return ratio(self.amount.n_characters, self.cost.n_tokens)

    @property
    def relative(self) -> float | None:
        """Tokens for one of the first tokenizer."""
        return ratio(self.cost.n_tokens, self.first.n_tokens)

    @property
    def single_token_words(self) -> float | None:
        """Share of words that lie in one token."""
        return ratio(self.cost.n_single, self.cost.n_words)

    @property
    def continued_words(self) -> float | None:
        """Share of words that several tokens are needed for."""
        return ratio(self.cost.n_words - self.cost.n_single, self.cost.n_words)

    @property
    def tokens_per_word(self) -> float | None:
        """The mean number of tokens that a word lies in."""
        return ratio(self.cost.n_word_tokens, self.cost.n_words)


def ratio(one: int, other: int) -> float | None:
    """One number for one of the other; None for none."""
    return one / other if other else None


@dataclass(frozen=True)
class Comparison(Tabular):
    """Every tokenizer on every corpus.

    Attributes
    ----------
    pairs : corpus by corpus, the tokenizers in the order given.
    contexts : the lengths of `Cost.n_over`.
    notes : what was read, if not all.
    """

    pairs: tuple[Pair, ...]
    contexts: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """One table, a row a pair."""
        rows = [
            {
                "tokenizer": pair.tokenizer,
                "corpus": pair.corpus,
                "bytes": pair.amount.n_bytes,
                "characters": pair.amount.n_characters,
                "documents": pair.amount.n_documents,
                "words": pair.cost.n_words,
                **self._row(pair),
            }
            for pair in self.pairs
        ]
        return (Table.of("pairs", rows, notes=(*self.notes, DEFINITIONS), formats=_SHARES),)

    def to_dict(self) -> dict[str, Any]:
        """The pairs, and what was read."""
        return super().to_dict() | {"notes": list(self.notes)}

    def shown(self) -> tuple[Table, ...]:
        """A table for each corpus."""
        return tuple(self._shown())

    def _shown(self) -> Iterator[Table]:
        corpora = list(dict.fromkeys(pair.corpus for pair in self.pairs))
        for corpus in corpora:
            pairs = [pair for pair in self.pairs if pair.corpus == corpus]
            amount, words = pairs[0].amount, pairs[0].cost.n_words
            title = (
                f"{corpus}: {amount.n_bytes:,} bytes, {amount.n_characters:,} characters,"
                f" {amount.n_documents:,} document{'s' * (amount.n_documents != 1)}, {words:,} words"
            )
            # It is what single-token words leave of 1, and a terminal of 80 columns has no room for it.
            rows = [{"tokenizer": pair.tokenizer, **self._row(pair)} for pair in pairs]
            for row in rows:
                del row["continued_words"]
            notes = (*self.notes, DEFINITIONS) if corpus == corpora[-1] else ()
            yield Table.of(corpus, rows, title=title, notes=notes, formats=_SHARES)

    def _row(self, pair: Pair) -> dict[str, Value]:
        return {
            "tokens": pair.cost.n_tokens,
            "bytes_per_token": pair.bytes_per_token,
            "characters_per_token": pair.characters_per_token,
            "relative": pair.relative,
            "single_token_words": pair.single_token_words,
            "continued_words": pair.continued_words,
            "tokens_per_word": pair.tokens_per_word,
            **{f"over_{length}": n for length, n in zip(self.contexts, pair.cost.n_over, strict=True)},
        }
