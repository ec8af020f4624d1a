"""The ids of tokens, special tokens and merges that are given by their bytes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.pretokenize import SpecialTokens
from dask_bpe.vocabulary.consistency import check_bytes, no_bytes, shown

# A larger id is taken for a mistake: every id below it costs memory, be it a token or not.
_LARGEST_ID = (1 << 26) - 1


def tokens_and_special_ids(
    vocab: Mapping[int, bytes], special_tokens: Sequence[str] | Mapping[str, int], gaps: bool
) -> tuple[list[bytes], dict[str, int], dict[bytes, int]]:
    """The bytes of ids 0, 1, 2, ...; the id of every special token; and the id that bytes stand for in a merge.

    As `Vocabulary.from_tokens` describes them, which raises what this raises.
    """
    tokens = _with_gaps(vocab) if gaps else _contiguous(vocab)
    if not isinstance(special_tokens, Mapping):
        specials, lowest = _find_specials(tokens, SpecialTokens(special_tokens))
        return tokens, specials, lowest
    known = {index: token for index, token in enumerate(tokens) if token}
    known = _with_specials(known, special_tokens)
    tokens = _with_gaps(known) if gaps else _contiguous(known)
    return tokens, dict(special_tokens), lowest_ids(tokens, special_tokens.values())


def tokens_of_ranks(ranks: Mapping[bytes, int], special_tokens: Mapping[str, int]) -> list[bytes]:
    """The bytes of ids 0, 1, 2, ..., which are the ranks of tokens and the ids of special tokens.

    Raises VocabularyError as `Vocabulary.from_ranks`.
    """
    if not isinstance(special_tokens, Mapping):
        raise ParameterError(
            f"special_tokens is {str(special_tokens)[:60]}: a mapping of text to id was expected, for ranks leave"
            " the ids of special tokens open"
        )
    tokens: dict[int, bytes] = {}
    for token, rank in ranks.items():
        index = as_id(rank, token)
        if index in tokens:
            raise VocabularyError(
                f"rank {index} is given to {shown(tokens[index])} and to {shown(token)}: each needs its own"
            )
        tokens[index] = token
    for text, special in special_tokens.items():
        index = as_id(special, text)
        if index in tokens:
            raise VocabularyError(
                f"special token {text!r} has id {index}, which is the rank of {shown(tokens[index])}: "
                "leave one of them out, or give it an id of its own"
            )
    return _with_gaps(_with_specials(tokens, special_tokens))


def as_id(value: object, whose: object) -> int:
    """`value` as an id; VocabularyError, naming the token or the text of the special token, if it is none."""
    if type(value) is int and 0 <= value <= _LARGEST_ID:
        return value
    try:
        index = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        index = -1
    if not 0 <= index <= _LARGEST_ID:
        name = f"special token {whose!r}" if isinstance(whose, str) else repr(whose)[:60]
        raise VocabularyError(f"{name} has id {value!r}: a whole number from 0 to {_LARGEST_ID} was expected")
    return index


def lowest_ids(tokens: Sequence[bytes], special_ids: Iterable[int]) -> dict[bytes, int]:
    """The lowest id of bytes, that of a special token only if there is no other."""
    reserved = set(special_ids)
    lowest = {tokens[index]: index for index in sorted(reserved, reverse=True)}
    lowest.update((tokens[index], index) for index in reversed(range(len(tokens))) if index not in reserved)
    return lowest


def merge_ids(lowest: Mapping[bytes, int], merges: Sequence[tuple[bytes, bytes]]) -> npt.NDArray[np.int32]:
    """The merges by the ids of left, right and product, int32[m, 3]. Raises VocabularyError where there is none."""
    try:
        lefts = [lowest[left] for left, _ in merges]
        rights = [lowest[right] for _, right in merges]
        products = [lowest[left + right] for left, right in merges]
    except KeyError:
        rank, (left, right) = next(
            (rank, pair)
            for rank, pair in enumerate(merges)
            if not (pair[0] in lowest and pair[1] in lowest and pair[0] + pair[1] in lowest)
        )
        unknown = next(token for token in (left, right, left + right) if token not in lowest)
        raise VocabularyError(
            f"merge {rank} joins {shown(left)} and {shown(right)}, and no id spells {shown(unknown)}"
        ) from None
    return np.array([lefts, rights, products], np.int32).T


def _with_gaps(vocab: Mapping[int, bytes]) -> list[bytes]:
    """The bytes of ids 0, 1, 2, ... up to the largest, b"" for those that are not in `vocab`."""
    tokens = [b""] * (max((as_id(index, token) for index, token in vocab.items()), default=-1) + 1)
    for index, token in vocab.items():
        if not isinstance(token, bytes) or not token:
            raise no_bytes(index, token)
        tokens[index] = token
    return tokens


def _contiguous(vocab: Mapping[int, bytes]) -> list[bytes]:
    ids = range(len(vocab))
    missing = next((index for index in ids if index not in vocab), None)
    if missing is not None:
        stranger = next(key for key in vocab if key not in ids)
        raise VocabularyError(
            f"id {missing} is missing while there is {stranger!r}; "
            f"the {len(vocab)} ids must be the integers 0 to {len(vocab) - 1}"
        )
    tokens = [vocab[index] for index in ids]
    check_bytes(tokens)
    return tokens


def _with_specials(tokens: Mapping[int, bytes], special_tokens: Mapping[str, int]) -> dict[int, bytes]:
    """The tokens, and the special tokens at their ids where nothing is."""
    checked = SpecialTokens(tuple(special_tokens))
    found = dict(tokens)
    for text, token in zip(checked.tokens, checked.encoded, strict=True):
        index = as_id(special_tokens[text], text)
        found.setdefault(index, token)
    return found


def _find_specials(tokens: list[bytes], checked: SpecialTokens) -> tuple[dict[str, int], dict[bytes, int]]:
    """Ids of special tokens, new ones appended to `tokens`; and the lowest ids of bytes, special ones last."""
    lowest = dict(zip(reversed(tokens), reversed(range(len(tokens))), strict=True))
    highest = dict(zip(tokens, range(len(tokens)), strict=True))
    specials: dict[str, int] = {}
    for text, token in zip(checked.tokens, checked.encoded, strict=True):
        if token not in lowest:
            lowest[token] = highest[token] = len(tokens)
            tokens.append(token)
        special = lowest[token]
        if special < highest[token]:
            another = tokens.index(token, special + 1)
            if len(token) == 1:
                special = another
            else:
                lowest[token] = another
        specials[text] = special
    return specials, lowest
