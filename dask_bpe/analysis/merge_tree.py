"""Which merges build a token of its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from dask_bpe.vocabulary import Vocabulary


@dataclass(frozen=True)
class MergeTree:
    """A token and the two that were merged into it; a byte has neither.

    Attributes
    ----------
    id, token : the id, and its bytes.
    rank : of the merge; None of a byte.
    left, right : what was merged.
    """

    id: int
    token: bytes
    rank: int | None = None
    left: MergeTree | None = None
    right: MergeTree | None = None

    @property
    def parts(self) -> tuple[MergeTree, ...]:
        """What was merged: two, or nothing."""
        return () if self.left is None or self.right is None else (self.left, self.right)

    def merges(self) -> Iterator[MergeTree]:
        """All merges in it, those within the parts first."""
        for part in self.parts:
            yield from part.merges()
        if self.parts:
            yield self


class MergeRules:
    """The merges of a vocabulary, asked for one by one."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def _by_pair(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Rank and resulting id of each pair of ids; of one that is there twice the last."""
        rows = self._vocabulary.merges.tolist()
        return {(left, right): (rank, product) for rank, (left, right, product) in enumerate(rows)}

    @cached_property
    def _by_bytes(self) -> dict[bytes, int]:
        """The lowest id of bytes, special tokens left out."""
        specials = set(self._vocabulary.special_tokens.values())
        tokens = self._vocabulary.tokens
        return {tokens[index]: index for index in reversed(range(len(tokens))) if index not in specials}

    def find(self, left: int, right: int) -> tuple[int, int] | None:
        """Rank and resulting id of the merge of two neighbours, if there is one."""
        if self._vocabulary.ranks == "merges":
            return self._by_pair.get((left, right))
        tokens = self._vocabulary.tokens
        product = self._by_bytes.get(tokens[left] + tokens[right])
        return None if product is None else (product, product)

    def merge(self, data: bytes) -> list[MergeTree]:
        """What becomes of bytes: the merge of the lowest rank first, the leftmost of equal ones, until none is left.

        Quadratic: for bytes of a token or a word. A token of an encoding is built by the merges that its bytes alone
        undergo (see `kernels.merging`).
        """
        byte_ids = self._vocabulary.byte_ids
        row = [MergeTree(int(byte_ids[byte]), bytes((byte,))) for byte in data]
        while True:
            found = [
                (merge[0], at, merge[1])
                for at, (left, right) in enumerate(pairwise(row))
                if (merge := self.find(left.id, right.id)) is not None
            ]
            if not found:
                return row
            rank, at, product = min(found)
            left, right = row[at : at + 2]
            row[at : at + 2] = [MergeTree(product, left.token + right.token, rank, left, right)]

    def tree(self, index: int) -> MergeTree | None:
        """How the token of an id is built; None if its bytes do not merge into it: a special token, or one that is
        taken as a whole."""
        row = self.merge(self._vocabulary.tokens[index])
        return row[0] if len(row) == 1 and row[0].id == index else None
