"""The course's pair of JSON files: `vocab` is ``{"0": [72], ...}``, `merges` is ``[[[104], [101]], ...]``.

`vocab` maps every id, as a decimal string, to the values of its bytes; `merges` lists pairs of byte
lists in rank order. Neither says which ids are special tokens or how text is split: the reader must.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any

from dask_bpe.errors import VocabularyError
from dask_bpe.interchange.expressible import check_no_gaps, check_plain, check_read_back, check_whole_tokens
from dask_bpe.io.atomic import atomic_write
from dask_bpe.vocabulary import Vocabulary
from dask_bpe.vocabulary.json_file import read_file


def read_pair(
    vocab_path: str | PathLike[str],
    merges_path: str | PathLike[str],
    special_tokens: Sequence[str] = (),
    *,
    pattern: str | None = "gpt2",
    ties: str = "bytes",
) -> Vocabulary:
    """The vocabulary in the two files; special tokens that are not in it get the next ids.

    Raises VocabularyError, naming the file and the place, if one of them is missing, damaged or does not
    fit the other.
    """
    vocab = _read(vocab_path, _parse_vocab)
    merges = _read(merges_path, _parse_merges)
    try:
        return Vocabulary.from_tokens(vocab, merges, special_tokens, pattern=pattern, ties=ties)
    except VocabularyError as error:
        raise VocabularyError(f"{vocab_path} with {merges_path}: {error}") from None


def write_pair(vocabulary: Vocabulary, vocab_path: str | PathLike[str], merges_path: str | PathLike[str]) -> None:
    """Write the two files, each whole or not at all.

    Raises VocabularyError, before it writes, if `read_pair` would not give the same ids back: the format
    knows merges by their bytes, so two ids with the same bytes cannot both take part in merges.
    """
    _check_expressible(vocabulary)
    vocab = {str(index): list(token) for index, token in enumerate(vocabulary.tokens)}
    merges = [[list(left), list(right)] for left, right in vocabulary.merge_bytes()]
    with atomic_write(vocab_path) as vocab_file, atomic_write(merges_path) as merges_file:
        vocab_file.write(json.dumps(vocab, separators=(",", ":")).encode("ascii") + b"\n")
        merges_file.write(json.dumps(merges, separators=(",", ":")).encode("ascii") + b"\n")


def _check_expressible(vocabulary: Vocabulary) -> None:
    name = "the pair of JSON files"
    check_plain(vocabulary, name)
    check_no_gaps(vocabulary, name)
    check_whole_tokens(vocabulary, name)
    names = list(vocabulary.special_tokens)
    check_read_back(
        vocabulary, Vocabulary.from_tokens(vocabulary.to_dict(), vocabulary.merge_bytes(), names, pattern=None)
    )


def _read(path: str | PathLike[str], parse: Any) -> Any:
    try:
        return parse(read_file(path))
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path}: not JSON ({error}); was it cut short?") from None
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from None


def _parse_vocab(data: bytes) -> dict[int, bytes]:
    content = json.loads(data, object_pairs_hook=list)
    vocab: dict[int, bytes] = {}
    if not isinstance(content, list) or not all(isinstance(item, tuple) for item in content):
        raise VocabularyError('an object {"0": [72], ...} of id and bytes was expected')
    for key, values in content:
        if not (key.isascii() and key.isdecimal()) or int(key) in vocab:
            raise VocabularyError(f"key {key!r} is not an id, or the same id again")
        vocab[int(key)] = _bytes(values, f"id {key}")
    return vocab


def _parse_merges(data: bytes) -> list[tuple[bytes, bytes]]:
    content = json.loads(data)
    if not isinstance(content, list):
        raise VocabularyError("a list [[[104], [101]], ...] of pairs of bytes was expected")
    merges = []
    for rank, pair in enumerate(content):
        if not isinstance(pair, list) or len(pair) != 2:
            raise VocabularyError(f"merge {rank} is not a pair")
        merges.append((_bytes(pair[0], f"merge {rank}"), _bytes(pair[1], f"merge {rank}")))
    return merges


def _bytes(values: Any, place: str) -> bytes:
    try:
        if isinstance(values, list):
            return bytes(values)
    except (TypeError, ValueError):
        pass
    raise VocabularyError(f"{place}: {str(values)[:60]} is not a list of byte values from 0 to 255")
