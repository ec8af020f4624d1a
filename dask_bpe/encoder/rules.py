"""The merges of a vocabulary, and the tokens that a pre-token may be as a whole, as kernels look them up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.encoder.arrays import make_scratch
from dask_bpe.kernels import encode as kernels
from dask_bpe.kernels import memory, merging, seams, table
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]


def rules_of(vocabulary: Vocabulary) -> kernels.Rules:
    """What `kernels.encode` asks of a vocabulary."""
    merges = np.ascontiguousarray(vocabulary.merges, np.int64)
    by_token = vocabulary.ranks == "tokens"
    ranks = np.ascontiguousarray(merges[:, 2]) if by_token else np.arange(len(merges), dtype=np.int64)
    byte_ids = np.ascontiguousarray(vocabulary.byte_ids, np.uint32)
    pairs = _pairs(merges, ranks)
    tokens = Ragged.from_list(vocabulary.tokens)
    whole: dict[bytes, int] = {}
    if by_token or vocabulary.whole_tokens:
        merges, ranks = _last_merges(tokens, byte_ids, pairs)
        pairs = _pairs(merges, ranks)
    if vocabulary.whole_tokens:
        # Only tokens that merging does not make are looked up: of most vocabularies none, of others a few hundred.
        # What merging makes of a token is not its id where ranks contradict each other or merges are missing.
        made = set(merges[:, 2].tolist())
        whole = {token: index for token, index in _whole_candidates(vocabulary).items() if index not in made}
    return kernels.Rules(
        byte_ids,
        pairs,
        np.diff(tokens.offsets).astype(np.uint32),
        _crossed(tokens, merges),
        *_whole_table(list(whole), np.array(list(whole.values()), np.int64)),
    )


def _pairs(merges: Int64s, ranks: Int64s) -> npt.NDArray[np.uint64]:
    """The table of `merging.fill_pairs`."""
    size = (2 << max(4, (2 * len(merges)).bit_length())) + merging.FILTER_WORDS
    pairs: npt.NDArray[np.uint64] = memory.zeros(size)
    merging.fill_pairs(merges, ranks, pairs)
    return pairs


def _last_merges(tokens: Ragged, byte_ids: Ids, pairs: npt.NDArray[np.uint64]) -> tuple[Int64s, Int64s]:
    """The merges that ever take place, and their ranks; see `merging.find_last_merges`."""
    merges, ranks = np.empty((len(tokens), 3), np.int64), np.empty(len(tokens), np.int64)
    scratch = make_scratch(int(np.diff(tokens.offsets).max()))
    n = merging.find_last_merges(tokens.values, tokens.offsets, byte_ids, pairs, scratch, merges, ranks)
    return merges[:n], ranks[:n]


def _crossed(tokens: Ragged, merges: Int64s) -> npt.NDArray[np.uint64]:
    """The filter of `kernels.seams` for all tokens that merges make."""
    made = np.unique(merges[:, 2])
    # 20 to 40 bits a token, of which one in ten is set; half of that lost a fifth of the seams.
    crossed: npt.NDArray[np.uint64] = memory.zeros(1 << (40 * len(made) // 64).bit_length())
    seams.fill_crossed(tokens.values, tokens.offsets, made, crossed)
    return crossed


def _whole_candidates(vocabulary: Vocabulary) -> dict[bytes, int]:
    """The tokens of two bytes or more that a pre-token may be: special ones only if a merge makes them too."""
    reserved = set(vocabulary.special_tokens.values()).difference(vocabulary.merges[:, 2].tolist())
    candidates: dict[bytes, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        if len(token) > 1 and index not in reserved:
            candidates.setdefault(token, index)
    return candidates


def _whole_table(tokens: list[bytes], token_ids: Int64s) -> tuple[Any, ...]:
    """The four arrays of `kernels.encode` in which whole tokens are looked up."""
    texts = Ragged.from_list(tokens)
    n = len(texts)
    index = memory.zeros(1 << (2 * n).bit_length() if n else 1)
    entries = memory.zeros(table.WIDTH * max(n, 1))
    values, offsets = np.empty(len(texts.values) + 8, np.uint8), np.zeros(n + 1, np.int64)
    if n:
        kernels.fill_whole(
            texts.values, texts.offsets, token_ids, index, entries, values, offsets, np.zeros(4, np.int64)
        )
    return index, entries, values, offsets
