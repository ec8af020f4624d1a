"""The characters of a corpus and how often each occurs, from its counts."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.legible import brief
from dask_bpe.counts import PretokenCounts
from dask_bpe.encoder import slices
from dask_bpe.errors import InputError

Int64s = npt.NDArray[np.int64]


def character_counts(counts: PretokenCounts) -> Int64s:
    """How often each character occurs: int64[0x110000], by code point.

    Raises InputError when a pre-token is not UTF-8, which of text that was read here none is.
    """
    found = np.zeros(sys.maxunicode + 1, np.int64)
    values, bounds = counts.strings.values, counts.strings.offsets
    for first, last in slices(bounds[:-1], bounds[1:]):
        part = values[bounds[first] : bounds[last]]
        begins = np.flatnonzero((part & 0xC0) != 0x80)
        try:
            points = np.frombuffer(part.tobytes().decode().encode("utf-32-le"), np.uint32)
        except UnicodeDecodeError as error:
            raise InputError(f"a pre-token is not UTF-8 ({error.reason}): its characters cannot be counted") from None
        owners = np.searchsorted(bounds[first + 1 : last + 1] - bounds[first], begins, side="right")
        np.add.at(found, points, counts.counts[first:last][owners])
    return found


def describe_character(point: int) -> str:
    """A character, its code point and its name: "가 U+AC00 HANGUL SYLLABLE GA"."""
    character = chr(point)
    return f"{brief(character.encode())} U+{point:04X} {unicodedata.name(character, '(no name)')}"
