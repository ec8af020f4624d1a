"""The formats that tokenizers come in: which one a file or folder has, and reading it by that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dask_bpe.errors import ParameterError, VocabularyError

# The readers are imported when they are needed: a command line that only names the formats does not wait for them.
if TYPE_CHECKING:
    from dask_bpe.pretokenize import PatternSpec
    from dask_bpe.vocabulary import Vocabulary

FORMATS = ("dask_bpe", "huggingface", "tiktoken", "gpt2", "minbpe", "course")
# Those that do not say which tokens are special and how text is split.
BARE = ("tiktoken", "gpt2", "course")
PAIRS = {"gpt2": ("vocab.json", "merges.txt"), "course": ("vocab.json", "merges.json")}
_BY_SUFFIX = {".tiktoken": "tiktoken", ".model": "minbpe"}
_END = "<|endoftext|>"


def recognise(source: str) -> str | None:
    """The format of a file or folder, by its name and what it holds; None if that does not show it.

    Raises
    ------
    VocabularyError
        The file cannot be read.
    """
    path = Path(source)
    if path.is_dir():
        names = {file.name for file in path.iterdir()}
        if "tokenizer.json" in names:
            return "huggingface"
        found = [kind for kind, pair in PAIRS.items() if names.issuperset(pair)]
        return found[0] if len(found) == 1 else None
    if path.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[path.suffix]
    from dask_bpe.vocabulary.json_file import FORMAT, read_file

    try:
        content = json.loads(read_file(source))
    except (ValueError, RecursionError):
        return None
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None
    if isinstance(content, dict) and content.get("format") == FORMAT:
        return "dask_bpe"
    return "huggingface" if isinstance(content, dict) and isinstance(content.get("model"), dict) else None


def read_as(
    kind: str,
    source: str,
    pattern: PatternSpec = None,
    special_tokens: Mapping[str, int | None] = MappingProxyType({}),
) -> Vocabulary:
    """The vocabulary in a file or folder of a format.

    Parameters
    ----------
    kind : one of `FORMATS`.
    pattern, special_tokens : how text is split, and the special tokens with their ids (None: what they have there, or
        the next ones), for the formats in `BARE`, which do not say it.

    Raises
    ------
    VocabularyError, ParameterError, PatternError
    """
    if kind == "tiktoken":
        return _read_ranks(source, pattern, special_tokens)
    if kind in PAIRS:
        return _read_pair(kind, source, pattern, special_tokens)
    if kind == "huggingface":
        from dask_bpe.interchange.huggingface_read import read_huggingface

        return read_huggingface(source)
    if kind == "minbpe":
        from dask_bpe.interchange.minbpe_model import read_minbpe

        return read_minbpe(source)
    from dask_bpe.vocabulary import Vocabulary

    return Vocabulary.load(source)


def read_any(source: str) -> Vocabulary:
    """The vocabulary in a file or folder of any format, or of that name in tiktoken, as "cl100k_base".

    Raises
    ------
    VocabularyError, ParameterError
        One line that says what to give instead.
    """
    if "://" not in source and not Path(source).exists():
        return _named(source)
    kind = recognise(source)
    if kind is None:
        raise VocabularyError(
            f"{source} does not show what tokenizer it is: give a vocabulary file, a tokenizer.json, ranks in"
            " NAME.tiktoken, a minbpe NAME.model, or a folder with vocab.json and merges.txt"
        )
    return read_as(kind, source, special_tokens={_END: None} if kind == "gpt2" else {})


def _named(name: str) -> Vocabulary:
    """The encoding of a name in tiktoken, which has it in its cache or gets it."""
    way_out = f"give the file of it, such as {Path(name).name}.tiktoken"
    try:
        import tiktoken
    except ImportError:
        raise VocabularyError(
            f"{name}: there is no such file, and tiktoken, which may know the name, is not installed: {way_out}"
        ) from None
    if name not in tiktoken.list_encoding_names():
        raise VocabularyError(f"{name}: there is no such file, and tiktoken knows no encoding of this name")
    try:
        encoding = tiktoken.get_encoding(name)
    except (OSError, ValueError) as error:
        raise VocabularyError(f"{name}: tiktoken cannot load it here ({type(error).__name__}): {way_out}") from None
    from dask_bpe.interchange.tiktoken_ranks import read_tiktoken

    return read_tiktoken(encoding)


def _read_ranks(source: str, pattern: PatternSpec, special_tokens: Mapping[str, int | None]) -> Vocabulary:
    from dask_bpe.interchange.tiktoken_ranks import read_tiktoken

    if not special_tokens:
        return read_tiktoken(source, pattern)
    missing = next((text for text, index in special_tokens.items() if index is None), None)
    if missing is not None:
        raise ParameterError(f"ranks leave the ids of special tokens open: write --special-token '{missing}=ID'")
    return read_tiktoken(source, pattern, {text: int(index or 0) for text, index in special_tokens.items()})


def _read_pair(kind: str, source: str, pattern: PatternSpec, special_tokens: Mapping[str, int | None]) -> Vocabulary:
    """From a folder with the two files of a kind."""
    from dask_bpe.interchange.course_json import read_pair
    from dask_bpe.interchange.gpt2 import read_gpt2
    from dask_bpe.pretokenize import get_pattern

    first, second = PAIRS[kind]
    folder = Path(source) if Path(source).is_dir() else Path(source).parent
    how: dict[str, Any] = {"pattern": get_pattern("gpt2" if pattern is None else pattern).spec}
    if kind == "course":
        how["ties"] = "ids"
    reader: Callable[..., Vocabulary] = read_pair if kind == "course" else read_gpt2
    vocabulary = reader(folder / first, folder / second, list(special_tokens), **how)
    for text, index in special_tokens.items():
        if index is not None and vocabulary.special_tokens[text] != index:
            raise ParameterError(
                f"special token {text!r} has id {vocabulary.special_tokens[text]} in {source}, not {index}"
            )
    return vocabulary
