"""What was left out of counts because it is rare, and how much any pair of tokens can have lost by that."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import whole_number
from dask_bpe.kernels import byte_pairs
from dask_bpe.ragged import Ragged

_N_PAIRS = 1 << 16


@dataclass(frozen=True, eq=False)
class Dropped:
    """Pre-tokens that were left out.

    Attributes
    ----------
    min_count : they occurred less often than this.
    n_distinct, n_occurrences : how many they were, and how often they occurred together.
    pairs : int64[65536], how often each pair of bytes stands in them, at first << 8 | second.
    """

    min_count: int
    n_distinct: int
    n_occurrences: int
    pairs: npt.NDArray[np.int64]

    @classmethod
    def of(cls, strings: Ragged, counts: npt.NDArray[np.int64], min_count: int) -> Dropped:
        """A record of these strings with their counts."""
        pairs = np.zeros(_N_PAIRS, np.int64)
        byte_pairs.add_byte_pairs(strings.values, strings.offsets, counts, pairs)
        return cls(min_count, len(counts), int(counts.sum()), pairs)

    def __add__(self, other: Dropped) -> Dropped:
        """What was dropped here and there; a string that was dropped in both counts twice among the distinct."""
        return Dropped(
            max(self.min_count, other.min_count),
            self.n_distinct + other.n_distinct,
            self.n_occurrences + other.n_occurrences,
            self.pairs + other.pairs,
        )

    def times(self, factor: int) -> Dropped:
        """The record of a corpus that is repeated so often."""
        return Dropped(
            self.min_count * factor, self.n_distinct, self.n_occurrences * factor, self.pairs * np.int64(factor)
        )

    @property
    def most(self) -> int:
        """No pair of tokens occurred more often than this in what was dropped."""
        return int(self.pairs.max())

    def bound(self, spelling: bytes) -> int:
        """No pair of tokens that spells this together, two bytes or more, occurred more often in what was dropped.

        Wherever the pair stands, each pair of bytes in its spelling stands too, and no two places share one.
        """
        return int(min(self.pairs[first << 8 | second] for first, second in pairwise(spelling)))

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values: of the pairs only those that occur."""
        (found,) = np.nonzero(self.pairs)
        return {
            "min_count": self.min_count,
            "distinct": self.n_distinct,
            "occurrences": self.n_occurrences,
            "pairs": [found.tolist(), self.pairs[found].tolist()],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Dropped:
        """What `to_json` gave. Raises KeyError, TypeError, ValueError or IndexError for anything else."""
        pairs = np.zeros(_N_PAIRS, np.int64)
        found, counts = data["pairs"]
        pairs[np.array(found, np.int64)] = np.array(counts, np.int64)
        min_count, distinct, occurrences = (
            whole_number(key, data[key], 0) for key in ("min_count", "distinct", "occurrences")
        )
        return cls(min_count, distinct, occurrences, pairs)
