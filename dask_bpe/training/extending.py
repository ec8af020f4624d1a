"""A vocabulary that goes on from another one: its merges come first, its ids stay, new ones follow after the last.

Training makes merges one after the other in all of the text, encoding makes the lowest one that it finds. The two agree
where no merge makes a part of an earlier one. What is more, every token comes about in one way only, as
`interchange.divisions` says: of several merges that make the same one, all but that of its own bytes are idle.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.pretokenize import PatternSpec, get_pattern
from dask_bpe.training.numbering import Ids
from dask_bpe.vocabulary import Vocabulary
from dask_bpe.vocabulary.consistency import shown

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Extension:
    """The numbering of a vocabulary that goes on from `base`.

    Attributes
    ----------
    base : the vocabulary to go on from.
    merges : int32[k, 3], those of its merges that make a token, in rank order: left, right and resulting id.
    """

    base: Vocabulary
    merges: Ids

    @classmethod
    def of(cls, base: Vocabulary) -> Extension:
        """Raises VocabularyError where the new merges would not be those of the encoder: `base` changes the text before
        it splits it, a merge needs a later one, or one of its ranks is that of a token which no merge makes."""
        if base.normalizer:
            raise VocabularyError(
                "a vocabulary with a normalizer cannot be extended: training counts the text as it stands"
            )
        return cls(base, _effective(base))

    @property
    def given(self) -> npt.NDArray[np.int64]:
        """The same merges as `Merger` takes them, int64[k, 2]."""
        symbols = np.full(len(self.base), -1, np.int64)
        symbols[self.base.byte_ids] = np.arange(256)
        symbols[self.merges[:, 2]] = 256 + np.arange(len(self.merges))
        return np.ascontiguousarray(symbols[self.merges[:, :2]])

    def ids(self, n_symbols: int) -> Ids:
        """The id of each of so many symbols: those of `base`, then the ones after its last. int32[n_symbols]."""
        known = np.concatenate((self.base.byte_ids, self.merges[:, 2]))[:n_symbols]
        new = len(self.base) + np.arange(n_symbols - len(known), dtype=np.int32)
        return np.concatenate((known, new)).astype(np.int32)

    def vocabulary(self, tokens: list[bytes], merges: Ids, pattern: PatternSpec, ties: str) -> Vocabulary:
        """`base` with the new tokens and merges; all else is as it was there."""
        n_known = len(self.merges)
        spelled = self.base.tokens + tuple(tokens[256 + n_known :])
        if self.base.ranks == "tokens":
            return replace(self.base, tokens=spelled, merges=np.empty((0, 3), np.int32), ties=ties)
        return replace(
            self.base, tokens=spelled, merges=np.concatenate((self.base.merges, merges[n_known:])), ties=ties
        )

    def set_whole_apart(self, counts: PretokenCounts) -> tuple[PretokenCounts, int]:
        """The counts without the pre-tokens that become a token without merging, and how often those occur."""
        if not self.base.whole_tokens:
            return counts, 0
        special = set(self.base.special_tokens.values())
        found = (_row(counts, token) for index, token in enumerate(self.base.tokens) if token and index not in special)
        rows = sorted({row for row in found if row is not None})
        whole = np.zeros(len(counts), bool)
        whole[rows] = True
        return counts.take(np.flatnonzero(~whole)), int(counts.counts[whole].sum())


def check_extension(base: Vocabulary, special_tokens: Sequence[str], pattern: PatternSpec) -> None:
    """Refuse to extend `base` on text that is cut by these, before any work.

    Raises
    ------
    ParameterError
        They are not those of `base`.
    VocabularyError
        It cannot be extended, see `Extension.of`.
    """
    if set(special_tokens) != set(base.special_tokens):
        raise ParameterError(
            f"the vocabulary to extend has the special tokens {list(base.special_tokens)}, and the text is cut at"
            f" {list(special_tokens)}: an extension keeps its own"
        )
    if get_pattern(pattern) != get_pattern(base.pattern):
        raise ParameterError(
            f"the vocabulary to extend has the pattern {base.pattern!r}, and the text is cut by {pattern!r}:"
            " an extension keeps its own"
        )
    Extension.of(base)


def _row(counts: PretokenCounts, token: bytes) -> int | None:
    """Which of the pre-tokens this is."""
    values, offsets = counts.strings.values, counts.strings.offsets
    at = bisect_left(range(len(counts)), token, key=lambda k: values[offsets[k] : offsets[k + 1]].tobytes())
    return at if at < len(counts) and values[offsets[at] : offsets[at + 1]].tobytes() == token else None


@lru_cache(maxsize=1)  # it takes seconds for published vocabularies, and is asked for before the text is counted
def _effective(base: Vocabulary) -> Ids:
    """The merges that make a token: one for each, none whose parts no merge makes. int32[k, 3], in rank order."""
    rows = base.merges.tolist()
    ranks = {(left, right): rank for rank, (left, right, _) in enumerate(rows)}
    ways = np.bincount(base.merges[:, 2], minlength=len(base))
    last: dict[int, int] = {}  # the rank of the merge that makes a token, -1 if none does
    for left, right, token in rows:
        if token not in last:
            own = (left, right) if ways[token] == 1 else _last_pair(base, token, ranks, rows)
            last[token] = -1 if own is None else ranks[own]
    made = set(base.byte_ids.tolist())
    effective = []
    for rank, (left, right, token) in enumerate(rows):
        if last.get(token) != rank:
            continue
        if left in made and right in made:
            made.add(token)
            effective.append((left, right, token))
            continue
        for part in (left, right):
            if last.get(part, -1) > rank:
                raise VocabularyError(
                    f"merge {rank} makes {shown(base.tokens[token])} of {shown(base.tokens[part])}, which merge"
                    f" {last[part]} makes: a vocabulary can be extended if merges come after those of their parts"
                )
    if base.ranks == "tokens":
        _check_all_made(base, made)
    return np.array(effective, np.int32).reshape(-1, 3)


def _check_all_made(base: Vocabulary, made: set[int]) -> None:
    """Refuse ranks of tokens that no merge makes: of a new token and another one they could be made, before any."""
    made = made.union(base.special_tokens.values())
    stray = next((index for index, token in enumerate(base.tokens) if token and index not in made), None)
    if stray is not None:
        raise VocabularyError(
            f"no merge makes id {stray}, {shown(base.tokens[stray])}, and those of new tokens might: where ranks are"
            " those of tokens, a vocabulary can be extended if all of them are made by merges"
        )


def _last_pair(base: Vocabulary, token: int, ranks: dict[Pair, int], rows: list[list[int]]) -> Pair | None:
    """The two ids that merge last when the bytes of a token are merged alone, or None if they end up otherwise."""
    ids = base.byte_ids[np.frombuffer(base.tokens[token], np.uint8)].tolist()
    found = [ranks.get((ids[at], ids[at + 1])) for at in range(len(ids) - 1)]
    while len(ids) > 2:
        best = min((rank for rank in found if rank is not None), default=None)
        if best is None:
            return None
        at = found.index(best)
        ids[at : at + 2] = [rows[best][2]]
        del found[at]
        for place in (at - 1, at):
            if 0 <= place < len(found):
                found[place] = ranks.get((ids[place], ids[place + 1]))
    return (ids[0], ids[1]) if found and found[0] is not None else None
