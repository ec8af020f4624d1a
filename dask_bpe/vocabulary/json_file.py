"""The file of a vocabulary: one JSON object, a field a line, ASCII, the same bytes for the same vocabulary.

    format, version   "dask_bpe.vocabulary", 1; 2 if there is a field of the second table
    sha256            `Vocabulary.fingerprint`, the checksum of all that follows
    pattern, ties     how text is split; how ties were broken in training
    special_tokens    {text: id} in the order given
    tokens            base64 of the bytes of ids 0, 1, 2, ...; "" for an id that no token has
    merges            [left id, right id, resulting id] in rank order; not there if `ranks` is "tokens"

and before the tokens, where they are not what they are by default (what each means: `Vocabulary`):

    normalizer        [[step, argument, ...], ...]
    added_rules       {text: [rule, ...]}
    template          [[id, ...], [id, ...]]
    whole_tokens      true
    ranks             "tokens"

A pattern that is a sequence of splits is a list of [regex, behavior, invert].
"""

from __future__ import annotations

import binascii
import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from dask_bpe.errors import VocabularyError
from dask_bpe.io import paths
from dask_bpe.pretokenize import PatternSpec
from dask_bpe.pretokenize.patterns import pattern_from_json, pattern_to_json

if TYPE_CHECKING:
    from dask_bpe.vocabulary import Vocabulary

FORMAT = "dask_bpe.vocabulary"
# A file has the lowest version that says all: plain vocabularies are read by every release.
PLAIN_VERSION, VERSION = 1, 2

# In the order in which they stand in a file.
_EXTRA = ("normalizer", "added_rules", "template", "whole_tokens", "ranks")


def to_json(vocabulary: Vocabulary) -> str:
    """The text of the file."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": _version_of(vocabulary),
        "sha256": vocabulary.fingerprint(),
        "pattern": pattern_to_json(vocabulary.pattern),
        "ties": vocabulary.ties,
        "special_tokens": dict(vocabulary.special_tokens),
        **extra_fields(vocabulary),
    }
    lines = [f'"{name}":{json.dumps(value, separators=(",", ":"))}' for name, value in fields.items()]
    # Not by way of lists: of 50,000 merges they took 0.1 s, most of it collecting garbage.
    texts = [binascii.b2a_base64(token, newline=False).decode() for token in vocabulary.tokens]
    lines.append(f'"tokens":{orjson.dumps(texts).decode()}')
    if vocabulary.ranks == "merges":
        lines.append(f'"merges":{orjson.dumps(vocabulary.merges, option=orjson.OPT_SERIALIZE_NUMPY).decode()}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def extra_fields(vocabulary: Vocabulary) -> dict[str, Any]:
    """The fields that plain vocabularies do without, where they are not the default: as JSON has them."""
    added = vocabulary.added_rules
    extra = {
        "normalizer": [list(step) for step in vocabulary.normalizer],
        "added_rules": {text: sorted(added[text]) for text in vocabulary.special_tokens if text in added},
        "template": [list(ids) for ids in vocabulary.template] if any(vocabulary.template) else [],
        "whole_tokens": vocabulary.whole_tokens,
        "ranks": "" if vocabulary.ranks == "merges" else vocabulary.ranks,
    }
    return {name: extra[name] for name in _EXTRA if extra[name]}


def _version_of(vocabulary: Vocabulary) -> int:
    plain = not extra_fields(vocabulary) and not isinstance(vocabulary.pattern, tuple) and all(vocabulary.tokens)
    return PLAIN_VERSION if plain else VERSION


def from_json(text: str | bytes, kind: type[Vocabulary]) -> Vocabulary:
    """The vocabulary, of class `kind`, of a file's text. Raises VocabularyError as `Vocabulary.from_json`."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"not a vocabulary: not JSON ({error}); was it cut short?") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise VocabularyError(f'not a vocabulary: "format" is not "{FORMAT}"')
    if fields.get("version") not in (PLAIN_VERSION, VERSION):
        raise VocabularyError(
            f"vocabulary of version {fields.get('version')!r}, and this dask_bpe reads {PLAIN_VERSION} "
            f"to {VERSION}: a newer release may read it"
        )
    vocabulary = _of_fields(fields, kind)
    if vocabulary.fingerprint() != fields.get("sha256") or _version_of(vocabulary) != fields["version"]:
        raise VocabularyError(
            "damaged vocabulary: its contents do not match its checksum; it was changed or cut after it was written"
        )
    return vocabulary


def _of_fields(fields: dict[str, Any], kind: type[Vocabulary]) -> Vocabulary:
    try:
        pattern = _pattern_of(fields["pattern"])
        ties, specials = fields["ties"], dict(fields["special_tokens"])
        extra = {name: fields[name] for name in _EXTRA if name in fields}
        tokens = tuple(binascii.a2b_base64(token, strict_mode=True) for token in fields["tokens"])
        merges = np.array([] if extra.get("ranks") == "tokens" else fields["merges"], np.int32)
        return kind(tokens, merges, specials, pattern, ties, **extra)
    except KeyError as error:
        raise VocabularyError(f"damaged vocabulary: field {error} is missing") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise VocabularyError(f"damaged vocabulary: {error}") from None


def _pattern_of(value: Any) -> PatternSpec:
    if not (value is None or isinstance(value, str | list)):
        raise TypeError(f"pattern is {value!r}")
    return pattern_from_json(value) if isinstance(value, list) else value


def read_file(path: str | PathLike[str]) -> bytes:
    """The bytes of a file that belongs to a vocabulary; VocabularyError if they cannot be read."""
    try:
        with paths.open_to_read(paths.normalise(path)) as file:
            return bytes(file.read())
    except OSError as error:
        raise VocabularyError(f"cannot read the file: {paths.one_line(error)}") from None
