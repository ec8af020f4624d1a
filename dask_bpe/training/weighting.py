"""Several corpora counted as one, each with a weight of its own: so that no large language learns all the merges.

A weight is a fraction. All counts are multiplied by whole numbers, the weights times their common denominator: nothing
is rounded, nothing becomes 0, and the result is the same on any machine. An occurrence of weight 1 then counts as much
as that denominator, which is called the unit.

A temperature T weighs by size. Let source i have n_i bytes of text: its share of the whole becomes p_i ~ n_i ** (1/T).
T = 1 leaves shares as they are, a high T makes them equal. This is the sampling of Arivazhagan et al. (2019),
"Massively Multilingual Neural Machine Translation in the Wild"; others name the exponent 1/T: 0.7 for multilingual BERT
(Devlin, 2018), 0.3 for XLM-R (Conneau et al., 2020) and mT5 (Xue et al., 2021), which are T = 1.43 and T = 3.33. So
source i weighs n_i ** (1/T - 1), divided by the weight of the largest source, so that all are 1 or more, and rounded to
thousandths (half to even).
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.errors import ParameterError

Weight = int | float | str | Fraction

# ln and exp of `decimal` are correctly rounded, on every machine; those of floats are not.
_PRECISE = decimal.Context(prec=50, rounding=decimal.ROUND_HALF_EVEN)
_THOUSANDTH = decimal.Decimal("0.001")


@dataclass(frozen=True, eq=False)
class Mixture:
    """Counts of several sources together.

    Attributes
    ----------
    counts : the sum, in which every source has its weight; totals such as `n_bytes` are those of the text itself.
    unit : what an occurrence of weight 1 counts as.
    weights : by name of the source.
    """

    counts: PretokenCounts
    unit: int = 1
    weights: Mapping[str, Fraction] = field(default_factory=lambda: MappingProxyType({}))

    def at_least(self, count: int) -> Mixture:
        """Without the pre-tokens that occur less often than `count` times, an occurrence of weight 1 being one."""
        return replace(self, counts=self.counts.at_least(in_units(count, self.unit)))


def in_units(least: int, unit: int) -> int:
    """A least number of occurrences as a least count. 1 is no limit: what occurs at a weight below 1 does occur."""
    return 1 if least == 1 else least * unit


def mix(
    parts: Mapping[str, PretokenCounts],
    *,
    weights: Mapping[str, Weight] | None = None,
    temperature: Weight | None = None,
) -> Mixture:
    """Add up the counts of several sources, one after the other as they stand, each times its weight.

    Parameters
    ----------
    parts : the counts by the name of the source.
    weights : by name: an occurrence there counts as that many. 1 where a name is missing. A float means what it is
        printed as: 0.1 is a tenth; "1/3" is a third.
    temperature : weigh by size instead.

    Raises
    ------
    ParameterError
        There are no sources; they were not cut in the same way; a weight is not above 0, names no source, or is so fine
        that the counts exceed 64 bits.
    """
    fractions = find_weights({name: part.n_bytes for name, part in parts.items()}, weights, temperature)
    unit = math.lcm(*(weight.denominator for weight in fractions.values()))
    factors = {name: int(weight * unit) for name, weight in fractions.items()}
    volume = sum(_volume(part) * factors[name] for name, part in parts.items())
    if volume >= 2.0**62:
        raise ParameterError(
            f"with these weights the counts add up to {volume:.1e} bytes, more than 64 bits can count: their common"
            f" denominator is {unit}; give weights with fewer digits"
        )
    after, weighted = 0, []
    for name, part in parts.items():
        ranked, factor = part.ranked(), factors[name]
        dropped = None if part.dropped is None else part.dropped.times(factor)
        first = ranked.first + after
        weighted.append(replace(ranked, counts=ranked.counts * factor, first=first, dropped=dropped))
        after += len(part)
    return Mixture(combine(weighted), unit, MappingProxyType(fractions))


def find_weights(
    sizes: Mapping[str, int], weights: Mapping[str, Weight] | None = None, temperature: Weight | None = None
) -> dict[str, Fraction]:
    """The weight of every source, of which `sizes` are the bytes. Raises ParameterError, see `mix`."""
    check_weights(sizes, weights, temperature)
    if temperature is not None:
        return _by_temperature(sizes, _fraction("temperature", temperature))
    given = {name: _fraction(f"the weight of {name!r}", weight) for name, weight in (weights or {}).items()}
    return {name: given.get(name, Fraction(1)) for name in sizes}


def check_weights(
    names: Mapping[str, object] | None, weights: Mapping[str, Weight] | None, temperature: Weight | None
) -> None:
    """Refuse weights that these sources can't have; None: there is one only. Raises ParameterError."""
    if names is None:
        if weights is not None or temperature is not None:
            raise ParameterError("weights and temperature are about several sources: give a mapping of names to them")
        return
    if not names:
        raise ParameterError("there are no sources: name one at least")
    if temperature is not None:
        if weights is not None:
            raise ParameterError("both weights and a temperature are given: one of them says how sources are weighed")
        if _fraction("temperature", temperature) < 1:
            raise ParameterError(
                f"temperature is {temperature!r}: 1 or more was expected; the exponent alpha that others give is 1/T"
            )
    if not isinstance(weights, Mapping | None):
        raise ParameterError(f"weights is {weights!r}: a mapping of the names of sources to numbers was expected")
    for name, weight in (weights or {}).items():
        if name not in names:
            raise ParameterError(f"{name!r} has a weight and is no source: sources are {', '.join(map(repr, names))}")
        _fraction(f"the weight of {name!r}", weight)


def _fraction(name: str, value: Weight) -> Fraction:
    """The value, exactly; a float as it is printed."""
    try:
        number = Fraction(str(value)) if not isinstance(value, bool) else Fraction(0)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(f"{name} is {value!r}: a number was expected, such as 3, 0.5 or '1/3'") from None
    if number <= 0:
        raise ParameterError(f"{name} is {value!r}: more than 0 was expected")
    return number


def _by_temperature(sizes: Mapping[str, int], temperature: Fraction) -> dict[str, Fraction]:
    empty = next((name for name, size in sizes.items() if size < 1), None)
    if empty is not None:
        raise ParameterError(f"source {empty!r} has no text, so that a temperature gives it no weight: leave it out")
    exponent = _PRECISE.divide(decimal.Decimal(temperature.denominator), decimal.Decimal(temperature.numerator))
    power = _PRECISE.subtract(exponent, decimal.Decimal(1))
    logarithms = {name: _PRECISE.multiply(power, _PRECISE.ln(size)) for name, size in sizes.items()}
    least = min(logarithms.values())
    return {
        name: Fraction(_PRECISE.quantize(_PRECISE.exp(_PRECISE.subtract(logarithm, least)), _THOUSANDTH))
        for name, logarithm in logarithms.items()
    }


def _volume(counts: PretokenCounts) -> float:
    """Bytes of all pre-tokens, repeats included; a float does not overflow."""
    return float(np.dot(np.diff(counts.strings.offsets).astype(np.float64), counts.counts))
