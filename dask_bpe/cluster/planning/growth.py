"""How the distinct pre-tokens of a text grow with its size: Heaps' law, fitted to a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.heaps import HEAPS_EXPONENT

# Fewer tell no exponent: that of web text is taken.
_LEAST_POINTS = 3


@dataclass(frozen=True)
class Growth:
    """So many of something in the first `n` bytes of text: ``scale * n ** exponent``.

    Attributes
    ----------
    scale, exponent : of the law.
    residual : how far the points lie from it: the root of the mean square of the relative errors.
    points : (bytes, number) that were measured.
    """

    scale: float
    exponent: float
    residual: float
    points: tuple[tuple[int, int], ...]

    @classmethod
    def fit(cls, points: Sequence[tuple[int, int]]) -> Growth:
        """The law by least squares on the logarithms, which weighs each point alike.

        From fewer than three points of different sizes only the scale is taken; the exponent is then `HEAPS_EXPONENT`.
        """
        known = tuple((n, number) for n, number in points if n > 0 and number > 0)
        if not known:
            return cls(0.0, HEAPS_EXPONENT, 0.0, ())
        x, y = np.log(np.array(known, np.float64).T)
        if len(set(x.tolist())) < _LEAST_POINTS:
            exponent = HEAPS_EXPONENT
        else:
            exponent = float(np.dot(x - x.mean(), y - y.mean()) / np.dot(x - x.mean(), x - x.mean()))
        exponent = min(max(exponent, 0.0), 1.0)
        level = float((y - exponent * x).mean())
        residual = float(np.sqrt(np.mean(np.expm1(y - exponent * x - level) ** 2)))
        return cls(float(np.exp(level)), exponent, residual, known)

    def at(self, n_bytes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The number in so many bytes, never more than those. float64 of the same shape."""
        n = np.asarray(n_bytes, np.float64)
        number: npt.NDArray[np.float64] = np.minimum(n, self.scale * n**self.exponent)
        return number

    def of(self, n_bytes: Any) -> float:
        """The number in one size of text."""
        return float(self.at(float(n_bytes)))
