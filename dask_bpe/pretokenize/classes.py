"""The class of every code point, asked of the `regex` package itself: Unicode versions can't drift apart."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import regex

from dask_bpe.kernels.utf8 import LETTER, NUMBER, SPACE

_N_CODE_POINTS = sys.maxunicode + 1
_EXPRESSIONS = ((LETTER, r"\p{L}+"), (NUMBER, r"\p{N}+"), (SPACE, r"\s+"))


@cache
def code_point_classes() -> npt.NDArray[np.uint8]:
    """Class of each code point (see `kernels.utf8`): uint8[0x110000].

    Asking takes 0.2 s, so the answer is kept in the user's cache folder, under the version of `regex`.
    Where that folder cannot be written, it is asked again in every process.
    """
    kept = _cache_folder() / f"classes-{regex.__version__}-{sys.version_info.minor}.npy"
    try:
        classes: npt.NDArray[np.uint8] = np.load(kept)
        if classes.shape == (_N_CODE_POINTS,) and classes.dtype == np.uint8:
            return classes
    except (OSError, ValueError):
        pass
    classes = _ask_regex()
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".npy", delete=False) as file:
            np.save(file, classes)
        Path(file.name).replace(kept)
    except OSError:
        return classes
    return classes


def _ask_regex() -> npt.NDArray[np.uint8]:
    classes = np.zeros(_N_CODE_POINTS, np.uint8)
    everything = "".join(map(chr, range(_N_CODE_POINTS)))
    for value, expression in _EXPRESSIONS:
        for match in regex.finditer(expression, everything):
            classes[match.start() : match.end()] = value
    return classes


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dask_bpe"
