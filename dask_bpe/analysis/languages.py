"""What the same text costs in several languages: the answer of `dask_bpe.compare_languages`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from dask_bpe.analysis.compare import ratio
from dask_bpe.analysis.measure import Amount, Cost
from dask_bpe.analysis.table import Table, Tabular, Value

# What `declaration` gives.
DECLARATION = "Text: the Universal Declaration of Human Rights, articles 1 to 10."
_NOTE = "Relative: tokens, to those of the text in the language {}."


def declaration() -> dict[str, str]:
    """The same text by language (BCP 47): what comes with the package, see ``data/README.md``."""
    lines = (files("dask_bpe") / "data" / "udhr.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["lang"]: row["text"] for row in map(json.loads, lines)}


@dataclass(frozen=True)
class LanguageCost:
    """What the text in a language costs with a tokenizer, and what it costs in the language of reference."""

    tokenizer: str
    language: str
    amount: Amount
    cost: Cost
    reference: Cost

    @property
    def relative(self) -> float | None:
        """Tokens for one of the reference: the "premium" of Petrov et al., Language Model Tokenizers Introduce
        Unfairness Between Languages (NeurIPS 2023). None if that has none."""
        return ratio(self.cost.n_tokens, self.reference.n_tokens)

    @property
    def tokens_per_character(self) -> float | None:
        """Tokens for a code point."""
        return ratio(self.cost.n_tokens, self.amount.n_characters)

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes for a token."""
        return ratio(self.amount.n_bytes, self.cost.n_tokens)


@dataclass(frozen=True)
class LanguageCosts(Tabular):
    """Every tokenizer on every language.

    Attributes
    ----------
    rows : tokenizer by tokenizer, the languages in the order of the text.
    reference : the language that the others are compared with.
    notes : what the text is.
    """

    rows: tuple[LanguageCost, ...]
    reference: str
    notes: tuple[str, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """One table, a row for each tokenizer and language."""
        rows = [
            {
                "tokenizer": row.tokenizer,
                "language": row.language,
                "bytes": row.amount.n_bytes,
                "characters": row.amount.n_characters,
                "tokens": row.cost.n_tokens,
                "relative": row.relative,
                "tokens_per_character": row.tokens_per_character,
                "bytes_per_token": row.bytes_per_token,
            }
            for row in self.rows
        ]
        return (Table.of("languages", rows, notes=(*self.notes, _NOTE.format(self.reference))),)

    def to_dict(self) -> dict[str, Any]:
        """The rows, what they are relative to, and what was read."""
        return super().to_dict() | {"reference": self.reference, "notes": list(self.notes)}

    def shown(self) -> tuple[Table, ...]:
        """The figures of one tokenizer, or of several beside each other; the cheapest language of the first on top."""
        names = list(dict.fromkeys(row.tokenizer for row in self.rows))
        notes = (*self.notes, _NOTE.format(self.reference))
        return (Table.of("languages", self._beside(names), notes=notes),)

    def _beside(self, names: list[str]) -> Iterator[dict[str, Value]]:
        by_language: dict[str, list[LanguageCost]] = {}
        for row in self.rows:
            by_language.setdefault(row.language, []).append(row)
        for language, rows in sorted(by_language.items(), key=lambda item: item[1][0].cost.n_tokens):
            amount = rows[0].amount
            shown: dict[str, Value] = {
                "language": language,
                "bytes": amount.n_bytes,
                "characters": amount.n_characters,
            }
            for name, row in zip(names, rows, strict=True):
                before = f"{name}: " if len(names) > 1 else ""
                shown |= {f"{before}tokens": row.cost.n_tokens, f"{before}relative": row.relative}
                if not before:
                    shown["tokens_per_character"] = row.tokens_per_character
            yield shown
