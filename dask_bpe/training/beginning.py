"""What the merge loop begins with: the bytes, the characters of the corpus, or a vocabulary that is there already."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError
from dask_bpe.training.alphabet import character_merges
from dask_bpe.training.extending import Extension, check_extension
from dask_bpe.training.merger import NO_MERGES
from dask_bpe.training.numbering import Layout, Numbering
from dask_bpe.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Beginning:
    """What the merge loop begins with.

    Attributes
    ----------
    counts : the pre-tokens to merge in.
    given : int64[k, 2], the merges that come first, as `Merger` takes them.
    given_are_certain : whether they would be the same if the counts had dropped nothing.
    n_new : merges to learn after them, at most.
    numbering : what makes a vocabulary of it all.
    n_apart : pre-tokens that are a token each, whatever is merged, and not among the counts.
    """

    counts: PretokenCounts
    given: npt.NDArray[np.int64]
    given_are_certain: bool
    n_new: int
    numbering: Numbering
    n_apart: int = 0

    @property
    def n_symbols(self) -> int:
        """Symbols at the end. Every merge shortens a pre-token: a small corpus can't fill a large vocabulary."""
        return 256 + len(self.given) + min(self.n_new, 1 + len(self.counts.strings.values))

    def digest(self) -> dict[str, Any]:
        """What a state of the merge loop belongs to, beside the rules; JSON values."""
        dropped = self.counts.dropped
        given = {"given": hashlib.sha256(self.given.tobytes()).hexdigest()} if len(self.given) else {}
        return {
            "counts": self.counts.digest(),
            "dropped": None if dropped is None else [dropped.n_distinct, dropped.n_occurrences],
            **given,
        }


def of_nothing(
    counts: PretokenCounts,
    vocab_size: int,
    layout: Layout,
    alphabet: str,
    min_character_count: int,
    max_token_length: int | None,
) -> Beginning:
    """The beginning of a new vocabulary. Raises ParameterError when it cannot hold its alphabet."""
    given = NO_MERGES
    if alphabet == "characters":
        given = character_merges(counts, min_character_count, max_token_length)
    least = 256 + len(layout.special_tokens) + len(given)
    if vocab_size < least:
        raise ParameterError(
            f"vocabulary size {vocab_size} cannot hold the 256 bytes, {len(layout.special_tokens)} special tokens and"
            f" {len(given)} tokens that make characters: give at least {least}, or a larger min_character_count"
        )
    return Beginning(counts, given, alphabet == "bytes", vocab_size - least, layout)


def of_vocabulary(
    counts: PretokenCounts, vocab_size: int, base: Vocabulary, special_tokens: tuple[str, ...] | None
) -> Beginning:
    """The beginning of a vocabulary that goes on from another one; `special_tokens` as `fit` takes them.

    Raises
    ------
    ParameterError
        The text is cut in another way than that vocabulary does.
    VocabularyError
        It cannot be extended, see `Extension.of`.
    """
    check_extension(base, counts.special_tokens if special_tokens is None else special_tokens, counts.pattern)
    numbering = Extension.of(base)
    mergeable, n_apart = numbering.set_whole_apart(counts)
    return Beginning(mergeable, numbering.given, True, vocab_size - len(base), numbering, n_apart)
