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

from dask_bpe.kernels.utf8 import LETTER, NUMBER, OTHER, SPACE

_N_CODE_POINTS = sys.maxunicode + 1
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


@lru_cache(maxsize=16)
def partition(questions: tuple[str, ...]) -> Partition | None:
    """The coarsest partition of all code points by expressions that match one code point each; None if it has more
    than 120 classes.

    Asking takes up to 0.1 s a question, so the answer is kept in the user's cache folder, under the version of
    `regex`. Where that folder cannot be written, it is asked again in every process.
    """
    questions = (*questions, _ASCII)
    key = hashlib.sha256("\0".join(questions).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    kept = _cache_folder() / f"classes-{key}-{regex.__version__}-{sys.version_info.minor}.npz"
    found = _load(kept, len(questions))
    if found is None:
        found = _ask(questions)
        _keep(kept, *found)
    classes, members = found
    if members.shape[1] > 120:
        return None
    return Partition(classes.astype(np.uint8), members[:-1], members[-1])


@cache
def code_point_classes() -> npt.NDArray[np.uint8]:
    """Letters, numbers, white space and others as the kernel for GPT-2's pattern numbers them: uint8[0x110000]."""
    found = partition((r"\p{L}", r"\p{N}", r"\s"))
    assert found is not None
    numbers = np.array([OTHER, LETTER, NUMBER, SPACE], np.uint8)
    which = numbers[(found.members * np.array([[1], [2], [3]])).sum(axis=0)]
    classes: npt.NDArray[np.uint8] = which[found.classes]
    return classes


def _ask(questions: tuple[str, ...]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]:
    """uint16[0x110000] and bool[n_questions, n_classes]."""
    everything = "".join(map(chr, range(_N_CODE_POINTS)))
    classes = np.zeros(_N_CODE_POINTS, np.uint16)
    members = np.zeros((0, 1), np.bool_)
    for question in questions:
        yes = np.zeros(_N_CODE_POINTS, np.uint16)
        # Without the quantifier there would be a match per code point.
        for match in regex.finditer(f"(?:{_unversioned(question)})+", everything, _version(question)):
            yes[match.start() : match.end()] = 1
        found, classes_ = np.unique(2 * classes + yes, return_inverse=True)
        classes = classes_.astype(np.uint16)
        members = np.vstack([members[:, found // 2], (found % 2).astype(np.bool_)])
    return classes, members


def _version(question: str) -> int:
    return int(regex.V1 if question.startswith("(?V1)") else regex.V0)


def _unversioned(question: str) -> str:
    return question.removeprefix("(?V0)").removeprefix("(?V1)")


def _load(kept: Path, n_questions: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]] | None:
    try:
        with np.load(kept) as stored:
            classes, members = stored["classes"], stored["members"]
    except (OSError, ValueError, KeyError):
        return None
    if classes.shape != (_N_CODE_POINTS,) or members.ndim != 2 or len(members) != n_questions:
        return None
    return (classes, members) if int(classes.max()) < members.shape[1] else None


def _keep(kept: Path, classes: npt.NDArray[np.uint16], members: npt.NDArray[np.bool_]) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".npz", delete=False) as file:
            np.savez(file, classes=classes, members=members)
        Path(file.name).replace(kept)
    except OSError:
        return  # a cache that cannot be written only costs time


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dask_bpe"
