"""A smaller vocabulary: the same one without what it learned last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.vocabulary import Vocabulary


def shrink(vocabulary: Vocabulary, vocab_size: int) -> Vocabulary:
    """The vocabulary without the tokens that its last merges make, so that `vocab_size` ids are left.

    Of a vocabulary that `train` made it is the one that a training to that size makes, id by id. Ids above one that
    goes move down: special tokens at the end do, and all others stay what they are.

    Tokens go in the reverse order of the first merge that makes each, and with them all merges that they take part in.
    Bytes, special tokens and tokens that no merge makes stay.

    Raises
    ------
    ParameterError
        `vocab_size` is larger than the vocabulary, or too small for what has to stay.
    """
    whole_number("vocab_size", vocab_size)
    if vocab_size > len(vocabulary):
        raise ParameterError(
            f"vocabulary size {vocab_size} is more than the {len(vocabulary)} ids there are: `extend` adds more"
        )
    kept_always = {*vocabulary.special_tokens.values(), *vocabulary.byte_ids.tolist(), *sum(vocabulary.template, ())}
    made, first = np.unique(vocabulary.merges[:, 2], return_index=True)
    by_rank = [token for token in made[np.argsort(first)].tolist() if token not in kept_always]
    n_gone = len(vocabulary) - vocab_size
    if n_gone > len(by_rank):
        raise ParameterError(
            f"vocabulary size {vocab_size} is too small: without all that its {len(by_rank)} merges make,"
            f" {len(vocabulary) - len(by_rank)} of the {len(vocabulary)} ids are left"
        )
    gone = np.zeros(len(vocabulary), bool)
    gone[by_rank[len(by_rank) - n_gone :]] = True
    return _without(vocabulary, gone)


def _without(vocabulary: Vocabulary, gone: npt.NDArray[np.bool_]) -> Vocabulary:
    """The vocabulary without some ids. gone : bool[n], an entry per id."""
    if not gone.any():
        return vocabulary
    ids = (np.cumsum(~gone) - 1).astype(np.int32)
    merges = vocabulary.merges[~gone[vocabulary.merges].any(axis=1)]
    before, after = (tuple(int(ids[index]) for index in part) for part in vocabulary.template)
    return replace(
        vocabulary,
        tokens=tuple(token for token, goes in zip(vocabulary.tokens, gone.tolist(), strict=True) if not goes),
        merges=ids[merges] if vocabulary.ranks == "merges" else merges[:0],
        special_tokens={text: int(ids[index]) for text, index in vocabulary.special_tokens.items()},
        template=(before, after),
    )
