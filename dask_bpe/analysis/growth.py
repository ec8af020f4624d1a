"""How the distinct pre-tokens of a corpus grow with it, from its counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.usage import n_bytes_of
from dask_bpe.counts import PretokenCounts

Float64s = npt.NDArray[np.float64]

_PER_OCTAVE = 2
_LEAST_PRETOKENS = 1000


@dataclass(frozen=True, eq=False)
class Growth:
    """Distinct pre-tokens in random parts of a corpus.

    Attributes
    ----------
    n_bytes : float64[n], bytes of a part, as expected; ascending, the whole corpus last.
    distinct : float64[n], distinct pre-tokens of it, as expected.
    """

    n_bytes: Float64s
    distinct: Float64s

    @property
    def exponent(self) -> float:
        """The b of Heaps' law, distinct ~ n ** b, at the end: over the last doubling. NaN for a tiny corpus."""
        if len(self.n_bytes) <= _PER_OCTAVE or not self.distinct[-1 - _PER_OCTAVE]:
            return float("nan")
        growth = self.distinct[-1] / self.distinct[-1 - _PER_OCTAVE]
        return float(np.log(growth) / np.log(self.n_bytes[-1] / self.n_bytes[-1 - _PER_OCTAVE]))


def growth_of(counts: PretokenCounts) -> Growth:
    """What is expected of parts of a half, a quarter, ... of all pre-tokens, each kept or left by chance.

    Exact, and no sample: of a pre-token that occurs c times one is kept with probability 1 - (1 - p) ** c (binomial
    interpolation; Baayen 2001, "Word Frequency Distributions", section 2.6). A part in the order of the text has fewer
    distinct ones, for words come in clusters.
    """
    times, numbers = np.unique(counts.counts, return_counts=True)
    halvings = max(int(np.log2(max(counts.total / _LEAST_PRETOKENS, 1))), 0)
    shares = 2.0 ** (-np.arange(halvings * _PER_OCTAVE, -1, -1) / _PER_OCTAVE)
    missed = np.exp(times[:, None] * np.log1p(-shares[:-1])[None, :])
    distinct = np.append((numbers[:, None] * (1 - missed)).sum(axis=0), float(len(counts)))
    return Growth(shares * n_bytes_of(counts), distinct)
