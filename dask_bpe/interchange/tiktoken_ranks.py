"""tiktoken: a file of ranks (``base64 rank`` a line), and what it leaves out, the pattern and the special tokens.

Our own export puts both beside the ranks, in a JSON file of the same name with ``.json`` after it; ranks that
OpenAI has published are known by their checksum. The rank of a token is its id.
"""

from __future__ import annotations

import binascii
import hashlib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from dask_bpe.errors import BpeError, ParameterError, VocabularyError
from dask_bpe.interchange import dialects
from dask_bpe.interchange.expressible import check_plain, check_ranks, ordinary_tokens, prefix_of_another, refused
from dask_bpe.io.atomic import atomic_write
from dask_bpe.pretokenize import PATTERNS, PatternSpec, get_pattern
from dask_bpe.vocabulary import Vocabulary
from dask_bpe.vocabulary.json_file import read_file

FORMAT = "dask_bpe.tiktoken"
_NAME = "tiktoken"
_END = "<|endoftext|>"

# tiktoken_ext/openai_public.py: SHA-256 of the file of ranks, its pattern and its special tokens.
_PUBLISHED: dict[str, tuple[str, dict[str, int]]] = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": ("gpt2", {_END: 50256}),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": ("gpt2", {_END: 50256}),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": (
        "cl100k",
        {
            _END: 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": (
        "o200k",
        {_END: 199999, "<|endofprompt|>": 200018},
    ),
}


def read_tiktoken(
    ranks: Any,
    pattern: PatternSpec = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Vocabulary:
    """The vocabulary of a file of ranks, a mapping of bytes to rank, or a `tiktoken.Encoding`.

    Parameters
    ----------
    ranks : path, mapping of bytes to rank, or `tiktoken.Encoding`, which comes with everything.
    pattern : name, regular expression as tiktoken's ``pat_str``, sequence of splits, or "none". None: what stands
        beside the file, or what its checksum says.
    special_tokens : text -> id; None as for `pattern`.

    Raises
    ------
    VocabularyError
        The file is damaged; a rank is given twice; the pattern may mean something else here.
    ParameterError
        No pattern is given, and none is known.
    """
    if hasattr(ranks, "_mergeable_ranks"):
        if pattern is not None or special_tokens is not None:
            raise ParameterError("a tiktoken.Encoding comes with its pattern and special tokens; leave them out")
        return _of_encoding(ranks)
    if isinstance(ranks, Mapping):
        if pattern is None:
            raise _no_pattern("ranks")
        return Vocabulary.from_ranks(ranks, special_tokens or {}, pattern=_pattern(pattern))
    if not isinstance(ranks, str | PathLike):
        raise ParameterError(f"ranks is {str(ranks)[:60]}: a path, a mapping or a tiktoken.Encoding was expected")
    try:
        return _of_file(ranks, pattern, special_tokens)
    except VocabularyError as error:
        raise VocabularyError(f"{ranks}: {error}") from None


def _of_encoding(encoding: Any) -> Vocabulary:
    specials = dict(encoding._special_tokens)
    if pair := prefix_of_another(specials):
        raise VocabularyError(
            f"special token {pair[0]!r} is how {pair[1]!r} begins: tiktoken does not say which of them it takes"
        )
    return Vocabulary.from_ranks(encoding._mergeable_ranks, specials, pattern=_pattern(encoding._pat_str))


def _of_file(path: str | PathLike[str], pattern: PatternSpec, special_tokens: Mapping[str, int] | None) -> Vocabulary:
    data = read_file(path)
    ranks = _parsed_ranks(data)
    known = _beside(path) or _PUBLISHED.get(hashlib.sha256(data).hexdigest())
    if pattern is None:
        if known is None:
            raise _no_pattern(str(path))
        pattern = known[0]
    if special_tokens is None:
        special_tokens = known[1] if known else {}
    return Vocabulary.from_ranks(ranks, special_tokens, pattern=_pattern(pattern))


def _no_pattern(name: str) -> ParameterError:
    return ParameterError(
        f'{name}: ranks do not say how text is split; give pattern, a name such as "cl100k", the pat_str, or "none"'
    )


def _pattern(pattern: PatternSpec) -> PatternSpec:
    if not isinstance(pattern, str) or pattern in PATTERNS:
        return get_pattern(pattern).spec
    return dialects.plain_regex(dialects.read_pattern(pattern, "rust"))


def _parsed_ranks(data: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            encoded, rank = line.split()
            token, index = binascii.a2b_base64(encoded, strict_mode=True), int(rank)
        except ValueError:
            raise VocabularyError(f"line {number}: {line[:60]!r} is not a token in base64 and its rank") from None
        if ranks.setdefault(token, index) != index:
            raise VocabularyError(f"line {number}: the token {token[:40]!r} is there before, with rank {ranks[token]}")
    return ranks


def _beside(path: str | PathLike[str]) -> tuple[str, dict[str, int]] | None:
    """The pattern and the special tokens in the file that an export put beside the ranks."""
    file = Path(f"{path}.json")
    if not file.is_file():
        return None
    try:
        content = json.loads(read_file(file))
        if content["format"] != FORMAT:
            return None
        pattern, specials = content["pat_str"], dict(content["special_tokens"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise VocabularyError(f"{file.name} beside it is damaged: {error!r}") from None
    return pattern, specials


def write_tiktoken(vocabulary: Vocabulary, path: str | PathLike[str]) -> str:
    """Write a file of ranks and, beside it, ``<path>.json`` with pattern and special tokens.

    Returns the two lines of Python that make a `tiktoken.Encoding` of them, which the JSON file holds too.

    Raises
    ------
    VocabularyError
        Before anything is written, if tiktoken would give other ids: merges in another order than that of ids, a
        normalizer, a sequence of splits, ...
    """
    check_plain(vocabulary, _NAME)
    if pair := prefix_of_another(vocabulary.special_tokens):
        raise refused(_NAME, f"the special token {pair[0]!r} is how {pair[1]!r} begins, and it may take either")
    ranks = ordinary_tokens(vocabulary, _NAME)
    check_ranks(vocabulary, ranks, _NAME)
    name = Path(path).name
    content = {
        "format": FORMAT,
        "name": name.removesuffix(".tiktoken"),
        "pat_str": pattern_for(vocabulary, _NAME),
        "special_tokens": dict(vocabulary.special_tokens),
    }
    lines = [
        f"import base64, json, pathlib, tiktoken; beside = json.loads(pathlib.Path({name + '.json'!r}).read_text())",
        "encoding = tiktoken.Encoding(beside['name'], pat_str=beside['pat_str'], "
        "mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in "
        f"map(str.split, pathlib.Path({name!r}).read_text().splitlines())}}, "
        "special_tokens=beside['special_tokens'])",
    ]
    text = json.dumps(content | {"python": lines}, indent=2).encode()
    with atomic_write(path) as file, atomic_write(f"{path}.json") as beside:
        for token, index in sorted(ranks.items(), key=lambda item: item[1]):
            file.write(binascii.b2a_base64(token, newline=False) + b" %d\n" % index)
        beside.write(text + b"\n")
    return "\n".join(lines)


def pattern_for(vocabulary: Vocabulary, name: str, dialect: dialects.Dialect = "rust") -> str:
    """The pattern as one regular expression whose matches are the pre-tokens."""
    splits = get_pattern(vocabulary.pattern).splits
    if not splits:
        return dialects.WHOLE_TEXT
    if len(splits) > 1:
        raise refused(name, "its pattern is a sequence of splits, and there is place for one regular expression")
    split = splits[0]
    if split.behavior not in ("matches", "isolated") or split.invert:
        raise refused(name, f"its pattern does more than to split: {split.behavior}{', inverted' * split.invert}")
    try:
        expression = dialects.write_pattern(split.regex, dialect)
    except BpeError as error:
        raise refused(name, str(error)) from None
    # What lies between the matches of an isolating split is a piece too.
    return expression if split.behavior == "matches" else rf"{expression}|(?:(?!{expression})[\s\S])+"
