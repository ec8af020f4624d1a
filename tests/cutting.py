"""Text cut by the scanner and by the oracle, and what patterns tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
import regex
from reference import NAMED, Step
from strategies import CODE_POINTS

from dask_bpe.pretokenize import Scanner, Split, get_pattern

Int64s = npt.NDArray[np.int64]

NAMES = list(NAMED)
# What runs are made of.
RUNS = [
    *" a.1'\n\t/_é中あ😀\u00a0\u3000\u2028\u0301½\u200b\udc80",
    "\r\n",
    " \n",
    "a ",
    "A",
    "Aa",
    "a1",
    ". ",
    "'s",
    "\U0010ffff",
]
# Steps that are easy to put in a sequence.
SIMPLE = [
    r"\s",
    r"\s+",
    "a",
    "ab",
    r"\p{N}{1,3}",
    r"[^\s\p{L}]+",
    r"\p{P}",
    r" ?\p{L}+",
    r"\p{Lu}\p{Ll}*",
    "[.'-]",
    r"\s+(?!\S)|\s",
]

# The compiled cut is the same with or without a warning; where warnings are not the subject they are put aside.
quietly = pytest.mark.filterwarnings("ignore::dask_bpe.errors.PatternWarning")
# Random patterns would leave a file each in the folder where the classes of code points are kept.
random_patterns = pytest.mark.usefixtures("no_cache_folder")


def spec_of(steps: Sequence[Step]) -> Any:
    """The steps as `pattern` takes them. What could be a misspelt name is not taken as a regular expression."""
    if len(steps) == 1 and steps[0][1:] == ("matches", False) and not regex.fullmatch(r"[\w.-]+", steps[0][0]):
        return steps[0][0]
    return [Split(*step) for step in steps]


def scanned(spec: Any, documents: Sequence[bytes], *, keep_all: bool = False) -> tuple[Int64s, Int64s]:
    """What the scanner makes of the documents as segments of one text: spans int64[2, n], and the end of each
    document among them, int64[n_documents]."""
    ends = np.cumsum([len(document) for document in documents], dtype=np.int64)
    segments = np.array((np.r_[np.int64(0), ends][:-1], ends), np.int64)
    text = np.frombuffer(b"".join(documents), np.uint8)
    spans, stops, n, segment = [np.empty((2, 0), np.int64)], [np.empty(0, np.int64)], 0, 0
    for batch in Scanner(get_pattern(spec), keep_all=keep_all).scan(text, segments):
        assert batch.first == segment
        spans.append(batch.spans[:, : batch.n_spans].copy())
        stops.append(batch.stops[batch.first : batch.last] + n)
        n, segment = n + batch.n_spans, batch.last
    assert segment == len(documents)
    return np.concatenate(spans, axis=1), np.concatenate(stops)


def expected(steps: Sequence[Step], documents: Sequence[bytes]) -> tuple[Int64s, Int64s]:
    """The same by the oracle."""
    spans: list[tuple[int, int]] = []
    stops, base = [], 0
    for document in documents:
        spans += [(base + start, base + end) for start, end in reference.byte_spans(document, steps)]
        stops.append(len(spans))
        base += len(document)
    return np.array(spans, np.int64).reshape(-1, 2).T, np.array(stops, np.int64)


def assert_scanned(steps: Sequence[Step], documents: Sequence[bytes], spec: Any = None) -> None:
    """The pre-tokens are the oracle's, in order; if not, those of the first document that is cut wrongly are shown."""
    spec = spec_of(steps) if spec is None else spec
    spans, stops = scanned(spec, documents)
    right, ends = expected(steps, documents)
    if np.array_equal(spans, right) and np.array_equal(stops, ends):
        return
    for document in documents:
        pieces = [document[start:end] for start, end in scanned(spec, [document])[0].T.tolist()]
        text = reference.characters(document)
        assert pieces == reference.split_sequence(text, steps), f"in {text if len(text) < 200 else text[:200]!a}"
    assert stops.tolist() == ends.tolist(), "only as segments of one text"
    assert spans.tolist() == right.tolist(), "only as segments of one text"


def count(texts: Iterable[str], steps: Sequence[Step]) -> dict[bytes, int]:
    """How often each pre-token occurs, by the oracle."""
    counts: dict[bytes, int] = {}
    for text in texts:
        for piece in reference.split_sequence(text, steps):
            counts[piece] = counts.get(piece, 0) + 1
    return counts


def encoded(texts: Iterable[str]) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in texts]


@cache
def representatives(name: str) -> list[str]:
    """One code point of every class that a named pattern tells apart, of CODE_POINTS."""
    return list({membership(name, point): point for point in reversed(CODE_POINTS)}.values())


@cache
def atoms(name: str) -> list[regex.Pattern[str]]:
    """All that matches one code point in a named pattern. Where it ignores case at all, it does for each letter."""
    whole = " ".join(step for step, _, _ in NAMED[name])
    symbols = regex.sub(r"\(\?i?[:!]|\{\d+(,\d+)?\}", "", whole)
    found = regex.findall(r"\[\^?(?:\\[pP]\{\w+\}|\\.|[^\\\]])+\]|\\[pP]\{\w+\}|\\?[^()|?*+$]", symbols)
    ignore = regex.IGNORECASE if "(?i:" in whole else 0
    return [regex.compile(atom, ignore if atom in "'sdmtrevl" or "sdmt" in atom else 0) for atom in sorted(set(found))]


def membership(name: str, point: str) -> int:
    """A bit for each atom of a pattern that a code point matches: its class."""
    return sum(1 << i for i, atom in enumerate(atoms(name)) if atom.fullmatch(point))


def within_time(expressions: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether `regex` gets through: some patterns take exponential time on some texts."""
    try:
        for expression, text in product(expressions, texts):
            list(regex.compile(expression).finditer(text, timeout=0.2))
    except TimeoutError:
        return False
    return True
