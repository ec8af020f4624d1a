"""Which id every symbol of the merge loop gets: its symbols are the bytes by value, then the products of the merges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dask_bpe.interchange.gpt2 import CHARACTER_OF_BYTE
from dask_bpe.pretokenize import PatternSpec
from dask_bpe.vocabulary import Vocabulary

Ids = npt.NDArray[np.int32]


class Numbering(Protocol):
    """What makes a vocabulary of what the merge loop has learned."""

    def ids(self, n_symbols: int) -> Ids:
        """The id of each of so many symbols. int32[n_symbols]."""

    def vocabulary(self, tokens: list[bytes], merges: Ids, pattern: PatternSpec, ties: str) -> Vocabulary:
        """The vocabulary of symbols that spell `tokens`, learned by `merges`, int32[m, 3], which are ids already."""


@dataclass(frozen=True)
class Layout:
    """The numbering of a new vocabulary; see `training.fit`."""

    special_tokens: tuple[str, ...]
    special_tokens_at: str
    byte_order: str

    def ids(self, n_symbols: int) -> Ids:
        """The id of each of so many symbols. int32[n_symbols], ascending but for the bytes."""
        ids = np.arange(n_symbols, dtype=np.int32)
        if self.byte_order == "gpt2":
            ids[list(CHARACTER_OF_BYTE)] = np.arange(256)
        ids[ids >= self._first_special(n_symbols)] += len(self.special_tokens)
        return ids

    def _first_special(self, n_symbols: int) -> int:
        return {"start": 0, "after_bytes": 256, "end": n_symbols}[self.special_tokens_at]

    def vocabulary(self, tokens: list[bytes], merges: Ids, pattern: PatternSpec, ties: str) -> Vocabulary:
        """The special tokens, where they belong, and everything else in the order of the symbols."""
        n = len(tokens)
        spelled = [b""] * (n + len(self.special_tokens))
        for index, token in zip(self.ids(n).tolist(), tokens, strict=True):
            spelled[index] = token
        specials = {text: self._first_special(n) + k for k, text in enumerate(self.special_tokens)}
        for text, index in specials.items():
            spelled[index] = text.encode()
        return Vocabulary(tuple(spelled), merges, specials, pattern, ties)
