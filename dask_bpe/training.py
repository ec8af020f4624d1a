"""From counts of pre-tokens to a vocabulary: the merge loop of byte-level BPE.

The algorithm is that of Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with
Subword Units": merge the most frequent pair of neighbours, again and again. `kernels.merge` describes the
index that makes a merge cost as much as the text that it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.interchange.gpt2 import CHARACTER_OF_BYTE
from dask_bpe.kernels import candidates, merge
from dask_bpe.pretokenize import SpecialTokens
from dask_bpe.progress import Progress
from dask_bpe.vocabulary import TIE_RULES, Vocabulary

_MERGES_PER_CALL = 512


@dataclass(frozen=True, eq=False)
class MergeLog:
    """A row per merge, in the order in which they were made.

    Attributes
    ----------
    left, right : int32[n], ids of the halves.
    token : int32[n], id that the pair became.
    count : int64[n], occurrences of the pair in the corpus; overlapping ones count.
    tokens_after : int64[n], tokens of the corpus after the merge.
    """

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    token: npt.NDArray[np.int32]
    count: npt.NDArray[np.int64]
    tokens_after: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.left)

    def trace(self, vocabulary: Vocabulary) -> str:
        """The log to read, a line per merge: its number, the halves, the count and the tokens left."""
        rows = zip(
            self.left.tolist(),
            self.right.tolist(),
            self.count.tolist(),
            self.tokens_after.tolist(),
            strict=True,
        )
        return "\n".join(
            f"{number}: {vocabulary.tokens[left]!r} + {vocabulary.tokens[right]!r} x {count:,}: {after:,} tokens"
            for number, (left, right, count, after) in enumerate(rows, 1)
        )


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What `fit` learned.

    Attributes
    ----------
    vocabulary : the tokens and merges.
    log : a row per merge.
    stop : why it ended: "vocab_size", or "exhausted" when no pair was left that the rules allow.
    """

    vocabulary: Vocabulary
    log: MergeLog
    stop: str


def fit(
    counts: PretokenCounts,
    vocab_size: int,
    *,
    special_tokens: Sequence[str] | None = None,
    ties: str = "bytes",
    min_frequency: int = 1,
    max_token_length: int | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Learn a vocabulary from counts: ids 0-255 are the bytes, then the special tokens, then the merges.

    Parameters
    ----------
    counts : pre-tokens of the corpus.
    vocab_size : ids in all; fewer when no pair is left to merge, which is a normal end.
    special_tokens : those of the vocabulary, in the order of their ids; None: those that `counts` were cut at.
    ties : which of several most frequent pairs is merged. "bytes": the greatest pair, compared as byte
        strings. "ids": the smallest pair of ids. "huggingface": as the trainer of HF `tokenizers`, the
        smallest pair in its order of ids. "first": the pair that occurs first in the corpus.
    min_frequency : a pair that occurs less often is not merged.
    max_token_length : longest token in bytes; None is no limit.

    Raises
    ------
    ParameterError
        For a rule that is not known, or a number that is out of range.
    """
    view = progress or Progress()
    specials = SpecialTokens(counts.special_tokens if special_tokens is None else special_tokens).tokens
    check_rules(vocab_size, specials, ties, min_frequency, max_token_length)
    # Every merge shortens a pre-token: a small corpus can't fill a large vocabulary.
    vocab_size = min(vocab_size, 257 + len(specials) + len(counts.strings.values))
    merger = Merger(counts, vocab_size, specials, ties, min_frequency, max_token_length)
    view.start("merging", merger.wanted, "merges")
    state = merge.DONE
    while state == merge.DONE and not merger.complete:
        before = merger.n_merges
        state = merger.advance(_MERGES_PER_CALL)
        view.advance("merging", merger.n_merges - before)
    view.finish("merging")
    return TrainingResult(merger.vocabulary(), merger.log(), "exhausted" if state == merge.EXHAUSTED else "vocab_size")


def check_rules(
    vocab_size: int,
    special_tokens: Sequence[str],
    ties: str,
    min_frequency: int,
    max_token_length: int | None,
) -> None:
    """Refuse rules that can't be trained by, before any work.

    Raises
    ------
    ParameterError
    """
    n_special = len(SpecialTokens(special_tokens).tokens)
    if ties not in TIE_RULES:
        raise ParameterError(f"unknown tie rule {ties!r}: known are {', '.join(TIE_RULES)}")
    whole_number("vocab_size", vocab_size, -(1 << 31))
    if vocab_size < 256 + n_special:
        raise ParameterError(
            f"vocabulary size {vocab_size} cannot hold the 256 bytes and {n_special} special tokens:"
            f" give at least {256 + n_special}"
        )
    whole_number("min_frequency", min_frequency)
    if max_token_length is not None:
        whole_number("max_token_length", max_token_length)


class Merger:
    """The state of the merge loop. `advance` makes some merges; in between it can be looked at and kept.

    The arrays are those of `kernels.merge`; when the kernel needs a larger one, it is made here.
    """

    def __init__(
        self,
        counts: PretokenCounts,
        vocab_size: int,
        special_tokens: tuple[str, ...],
        ties: str,
        min_frequency: int,
        max_token_length: int | None,
    ) -> None:
        self._pattern, self._ties, self._specials = counts.pattern, ties, special_tokens
        self._vocab_size = vocab_size
        self._first_merged = 256 + len(self._specials)
        self.wanted = vocab_size - self._first_merged
        numbers = self._numbers = np.zeros(candidates.N_NUMBERS, np.int64)
        numbers[candidates.TIES] = {"bytes": candidates.GREATEST_BYTES, "first": candidates.FIRST_PLACE}.get(
            ties, candidates.LEAST_ORDER
        )
        numbers[candidates.MIN_COUNT] = min_frequency
        numbers[candidates.MAX_LENGTH] = np.iinfo(np.int64).max if max_token_length is None else max_token_length
        numbers[candidates.TOKENS] = self._first_merged
        self._make_tokens(vocab_size)
        self._lay_out(counts)

    def _make_tokens(self, vocab_size: int) -> None:
        self._tokens = np.zeros((vocab_size + 1, 4), np.int64)
        self._spelling = np.zeros(1 << 16, np.uint8)
        merge.spell_bytes(self._tokens, self._spelling)
        self._tokens[self._first_merged, candidates.SPELLING] = 256
        self._tokens[:, candidates.ORDER] = np.arange(vocab_size + 1)
        if self._ties == "huggingface":
            # Its alphabet is sorted by the characters that stand for the bytes.
            self._tokens[list(CHARACTER_OF_BYTE), candidates.ORDER] = np.arange(256)
        self._notes = np.zeros((2 * (vocab_size + 1), 3), np.int64)
        self._born = np.empty((0, 2), np.int64)
        self._log = np.empty((1024, 5), np.int64)

    def _lay_out(self, counts: PretokenCounts) -> None:
        strings, self._weights = counts.strings, counts.counts
        if self._ties == "first":
            # Then the order of positions is the order of the corpus.
            in_order = counts.in_order_of_first()
            strings, self._weights = in_order.strings, in_order.counts
        n = len(strings.values) + len(strings) + 1
        if float(np.dot(np.diff(strings.offsets).astype(np.float64), self._weights)) >= 2.0**62:
            raise ParameterError("the counts add up to more bytes than 64 bits can count: divide them all by a number")
        if n >= 1 << 32:
            raise ParameterError(
                f"{len(strings):,} distinct pre-tokens of {len(strings.values):,} bytes are more than the merge"
                " loop can index (4 GiB): drop rare ones with `counts.at_least(2)`"
            )
        self._symbols, self._word_of = np.empty(n, np.int32), np.zeros(n, np.int32)
        self._numbers[candidates.CORPUS] = merge.lay_out_words(
            strings.values, strings.offsets, self._weights, self._symbols, self._word_of
        )
        self._pairs = np.empty((1 << 17, 4), np.int64)
        self._heap = np.empty((1 << 18, 3), np.int64)
        self._slots = np.full(1 << 19, -1, np.int32)
        self._places = np.empty(len(strings.values) + len(strings.values) // 2 + 1024, np.uint32)
        merge.index_pairs(
            self._numbers, self._symbols, self._word_of, self._weights, self._pairs, self._slots, self._places,
            np.zeros((65536, 2), np.int64),
        )  # fmt: skip
        # Above every count: the heap is empty, the first look for a pair fills it.
        self._numbers[candidates.THRESHOLD] = np.iinfo(np.int64).max

    @property
    def n_merges(self) -> int:
        """Merges made so far."""
        return int(self._numbers[candidates.MERGES])

    @property
    def complete(self) -> bool:
        """Whether the vocabulary has all the ids that were asked for."""
        return int(self._numbers[candidates.TOKENS]) >= self._vocab_size

    def advance(self, n_merges: int) -> int:
        """Make up to `n_merges` merges; returns `kernels.merge.DONE`, or EXHAUSTED when no pair is left."""
        goal = self.n_merges + n_merges
        if goal > len(self._log):
            self._log = _enlarged(self._log, max(goal, 2 * len(self._log)))
        room = np.empty(4, np.int64)
        while True:
            state = int(
                merge.merge_pairs(
                    self._vocab_size, goal - self.n_merges, room, self._numbers, self._symbols, self._word_of,
                    self._weights, self._tokens, self._spelling, self._pairs, self._slots,
                    self._places, self._heap, self._notes, self._born, self._log,
                )
            )  # fmt: skip
            if state in (merge.DONE, merge.EXHAUSTED):
                return state
            self._grow(state)

    def _grow(self, lacking: int) -> None:
        n_pairs = int(self._numbers[candidates.PAIRS])
        if lacking == merge.MORE_PAIRS:
            self._pairs = _enlarged(self._pairs, 2 * len(self._pairs))
            self._heap = _enlarged(self._heap, 2 * len(self._heap))
            self._slots = np.full(4 * len(self._pairs), -1, np.int32)
            merge.rebuild_slots(n_pairs, self._pairs, self._slots)
        elif lacking == merge.MORE_PLACES:
            # What is dead is dropped first; only if much is alive the array grows.
            alive = self._pairs[:n_pairs]
            alive = alive[alive[:, candidates.COUNT] > 0]
            needed = int((alive[:, candidates.END] - alive[:, candidates.BEGIN]).sum())
            longest = int((alive[:, candidates.END] - alive[:, candidates.BEGIN]).max(initial=0))
            places = np.empty(needed + needed // 2 + 8 * longest + 1024, np.uint32)
            self._numbers[candidates.PLACES] = merge.compact_places(n_pairs, self._pairs, self._places, places)
            self._places = places
        elif lacking == merge.MORE_BORN:
            lengths = self._pairs[:n_pairs, candidates.END] - self._pairs[:n_pairs, candidates.BEGIN]
            self._born = np.empty((2 * max(1024, int(lengths.max())), 2), np.int64)
        else:
            more = max(len(self._spelling), 2 * int(self._tokens[:, candidates.LENGTH].max()))
            self._spelling = _enlarged(self._spelling, len(self._spelling) + more)

    def log(self) -> MergeLog:
        """The merges so far."""
        rows = self._log[: self.n_merges]
        left, right, token = (np.ascontiguousarray(rows[:, k], np.int32) for k in range(3))
        return MergeLog(left, right, token, rows[:, 3].copy(), rows[:, 4].copy())

    def vocabulary(self) -> Vocabulary:
        """The vocabulary as it is now."""
        n = int(self._numbers[candidates.TOKENS])
        spelling, at = self._spelling.tobytes(), self._tokens[: n + 1, candidates.SPELLING].tolist()
        tokens = [spelling[k : k + 1] for k in range(256)]
        tokens += [text.encode() for text in self._specials]
        tokens += [spelling[at[k] : at[k + 1]] for k in range(self._first_merged, n)]
        return Vocabulary(
            tokens=tuple(tokens),
            merges=np.ascontiguousarray(self._log[: self.n_merges, :3], np.int32),
            special_tokens={text: 256 + k for k, text in enumerate(self._specials)},
            pattern=self._pattern,
            ties=self._ties,
        )


def _enlarged(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    larger = np.empty((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
