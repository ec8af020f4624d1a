"""The classes of code points, asked of the `regex` package itself: Unicode versions can't drift apart."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from dask_bpe.kernels import blocks
from dask_bpe.kernels.utf8 import LETTER, NUMBER, OTHER, SPACE

_N_CODE_POINTS = sys.maxunicode + 1
_MOST_CLASSES = 120
_ASCII = "[\x00-\x7f]"


class Partition(NamedTuple):
    """Code points that no question tells apart are one class.

    classes : uint8[0x110000], the class of each code point.
    members : bool[n_questions, n_classes], whether the answer for a class is yes.
    narrow : bool[n_classes], whether the class is one of ASCII: its characters are one byte long.
    """

    classes: npt.NDArray[np.uint8]
    members: npt.NDArray[np.bool_]
    narrow: npt.NDArray[np.bool_]


class _Runs(NamedTuple):
    """A partition as it is kept: code points ``edges[i]..edges[i + 1]`` are of class ``which[i]``.

    edges : int64[n + 1].   which : int64[n].   members : bool[n_questions, n_classes].
    """

    edges: npt.NDArray[np.int64]
    which: npt.NDArray[np.int64]
    members: npt.NDArray[np.bool_]


@lru_cache(maxsize=16)
def partition(questions: tuple[str, ...]) -> Partition | None:
    """The coarsest partition of all code points by expressions that match one code point each; None if it has too
    many.

    Asking takes up to 0.1 s a question, so the answers are kept in the user's cache folder, under the version of
    `regex`. Where that folder cannot be written, they are asked for again in every process.
    """
    questions = (*questions, _ASCII)
    key = hashlib.sha256("\0".join(questions).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    kept = _cache_folder() / f"classes-{key}-{regex.__version__}-{sys.version_info.minor}.npz"
    found = _load(kept, len(questions))
    if found is None:
        found = _divide(questions)
        _keep(kept, found)
    edges, which, members = found
    if members.shape[1] > _MOST_CLASSES:
        return None
    classes = np.repeat(which.astype(np.uint8), np.diff(edges))
    return Partition(classes, members[:-1], members[-1])


@cache
def code_point_classes() -> npt.NDArray[np.uint8]:
    """Letters, numbers, white space and others as the kernel for GPT-2's pattern numbers them: uint8[0x110000 + 8].

    Behind the last code point there is room for the eight bytes that a vector reads.
    """
    found = partition((r"\p{L}", r"\p{N}", r"\s"))
    assert found is not None
    numbers = np.array([OTHER, LETTER, NUMBER, SPACE], np.uint8)
    which = numbers[(found.members * np.array([[1], [2], [3]])).sum(axis=0)]
    classes: npt.NDArray[np.uint8] = np.append(which[found.classes], np.zeros(8, np.uint8))
    return classes


# What each pattern that is cut by masks of characters asks, and the bits of `kernels.blocks` that a yes means.
_NUMBERS, _SPACES = (r"\p{N}", blocks.NUMBER), (r"\s", blocks.SPACE)
_SINGLES = (r"\p{N}", blocks.SINGLE)
_MARKED = ((r"[\r\n]", blocks.NEWLINE), (" ", blocks.BLANK), ("'", blocks.QUOTE))
_LLAMA3 = ((r"\p{L}", blocks.LOWER), _NUMBERS, _SPACES, *_MARKED)
_CASES = (
    (r"\p{Ll}", blocks.LOWER),
    (r"[\p{Lu}\p{Lt}]", blocks.UPPER),
    (r"[\p{Lm}\p{Lo}]", blocks.LOWER | blocks.UPPER),
    (r"\p{M}", blocks.MARK),
)
BITS = {
    "cl100k": _LLAMA3,
    "llama3": _LLAMA3,
    "olmo": _LLAMA3,
    "qwen2": ((r"\p{L}", blocks.LOWER), _SINGLES, _SPACES, *_MARKED),
    "qwen3.5": ((r"[\p{L}\p{M}]", blocks.LOWER), _SINGLES, _SPACES, *_MARKED),
    "o200k": (*_CASES, _NUMBERS, _SPACES, *_MARKED, ("/", blocks.NEWLINE)),
}
# The white space at the end of a text is one pre-token, as if a newline followed.
_TAKES_THE_END = ("cl100k",)


@cache
def code_point_bits(name: str) -> npt.NDArray[np.uint8]:
    """What `kernels.blocks` reads of each code point and of the end of the text for a pattern: uint8[0x110000 + 8]."""
    questions, values = zip(*BITS[name], strict=True)
    found = partition(questions)
    assert found is not None
    which = (found.members * np.array(values)[:, None]).sum(axis=0).astype(np.uint8)
    bits: npt.NDArray[np.uint8] = np.append(which[found.classes], np.zeros(8, np.uint8))
    bits[blocks.END] = blocks.SPACE | (blocks.NEWLINE if name in _TAKES_THE_END else 0)
    return bits


def _divide(questions: tuple[str, ...]) -> _Runs:
    answers = [_ask(question) for question in questions]
    edges = np.unique(np.concatenate([np.array([0, _N_CODE_POINTS]), *answers]))
    # After an odd number of edges one is inside.
    inside = np.array([np.searchsorted(answer, edges[:-1], side="right") % 2 == 1 for answer in answers])
    members, which = np.unique(inside, axis=1, return_inverse=True)
    return _Runs(edges, which.ravel().astype(np.int64), members)


@lru_cache(maxsize=1)
def _everything() -> str:
    return "".join(map(chr, range(_N_CODE_POINTS)))


@lru_cache(maxsize=1024)
def _ask(question: str) -> npt.NDArray[np.int64]:
    """Where the runs of code points for which the answer is yes begin and end, one after the other."""
    # Without the quantifier there would be a match per code point.
    runs = regex.finditer(f"(?:{_unversioned(question)})+", _everything(), _version(question))
    return np.array([edge for run in runs for edge in run.span()], np.int64)


def _version(question: str) -> int:
    return int(regex.V1 if question.startswith("(?V1)") else regex.V0)


def _unversioned(question: str) -> str:
    return question.removeprefix("(?V0)").removeprefix("(?V1)")


def _load(kept: Path, n_questions: int) -> _Runs | None:
    try:
        with np.load(kept) as stored:
            runs = _Runs(stored["edges"], stored["which"], stored["members"])
    except (OSError, ValueError, KeyError):
        return None
    fits = runs.members.ndim == 2 and len(runs.members) == n_questions and len(runs.edges) == len(runs.which) + 1
    return runs if fits and runs.edges[-1] == _N_CODE_POINTS else None


def _keep(kept: Path, runs: _Runs) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".npz", delete=False) as file:
            np.savez(file, **runs._asdict())
        Path(file.name).replace(kept)
    except OSError:
        return  # a cache that cannot be written only costs time


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dask_bpe"
