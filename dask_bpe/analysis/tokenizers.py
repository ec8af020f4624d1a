"""The tokenizers that a question is about, under the names that they have in its answer."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dask_bpe.errors import ParameterError
from dask_bpe.interchange.formats import PAIRS, read_any
from dask_bpe.tokenizer import Tokenizer

# Of tiktoken, tokenizers and transformers, which need not be installed, any object.
Given: TypeAlias = Tokenizer | str | os.PathLike[str] | Any
# Names of files that say nothing of whose they are; their folder does.
_PLAIN = {"tokenizer.json", "vocabulary.json", *(name for pair in PAIRS.values() for name in pair)}


def load_tokenizers(given: Given | Sequence[Given] | Mapping[str, Given]) -> dict[str, Tokenizer]:
    """Tokenizers by name.

    Parameters
    ----------
    given : one or several: a `Tokenizer`; a file or folder of any format that `convert` reads; a name in tiktoken, as
        "cl100k_base"; a `tiktoken.Encoding`, a `tokenizers.Tokenizer`, a fast tokenizer of transformers. A mapping says
        the names; else they are those of the files.

    Raises
    ------
    ParameterError
        There is none, or what is none.
    VocabularyError
        A file cannot be read, or does not show what it is.
    """
    if isinstance(given, Mapping):
        named = dict(given)
    else:
        several = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        named = dict(zip(_names(several), several, strict=True))
    if not named:
        raise ParameterError("no tokenizer is given: one or more were expected")
    return {name: _load(one) for name, one in named.items()}


def _load(given: Given) -> Tokenizer:
    if isinstance(given, Tokenizer):
        return given
    if hasattr(given, "_mergeable_ranks"):
        return Tokenizer.from_tiktoken(given)
    if hasattr(given, "to_str") or hasattr(given, "backend_tokenizer"):
        return Tokenizer.from_huggingface(given)
    if not isinstance(given, str | os.PathLike):
        raise ParameterError(
            f"a tokenizer is of type {type(given).__name__}: a Tokenizer, a file or a name was expected"
        )
    return Tokenizer(read_any(os.fspath(given)))


def _names(given: Sequence[Given]) -> list[str]:
    """Short names where they differ, else the whole paths, numbered where even these are equal."""
    names = [_short(one) if isinstance(one, str | os.PathLike) else "tokenizer" for one in given]
    often = Counter(names)
    names = [
        os.fspath(one) if often[name] > 1 and isinstance(one, str | os.PathLike) else name
        for name, one in zip(names, given, strict=True)
    ]
    often, seen = Counter(names), Counter[str]()
    for at, name in enumerate(names):
        seen[name] += 1
        if often[name] > 1:
            names[at] = f"{name} {seen[name]}"
    return names


def _short(given: str | os.PathLike[str]) -> str:
    path = Path(given)
    if path.name in _PLAIN and path.parent.name:
        return path.parent.name
    return path.name if path.is_dir() else path.stem
