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

# Where the special tokens stand among the ids, and the order of those of the single bytes.
PLACES = ("start", "after_bytes", "end")
BYTE_ORDERS = ("value", "gpt2")


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
    special_tokens_at: str = "after_bytes",
    byte_order: str = "value",
    progress: Progress | None = None,
) -> TrainingResult:
    """Learn a vocabulary from counts: its ids are the bytes, then the special tokens, then the merges.

    Parameters
    ----------
    counts : pre-tokens of the corpus.
    vocab_size : ids in all; fewer when no pair is left to merge, which is a normal end.
    special_tokens : those of the vocabulary, in the order of their ids; None: those that `counts` were cut at.
    ties : which of several most frequent pairs is merged. "bytes": the greatest pair, compared as byte
        strings. "ids": the smallest pair of ids where the bytes have their values for ids; `rustbpe` does so
        (it counts in 32 bits, and goes astray beyond). "huggingface": as the trainer of HF `tokenizers`, the
        smallest pair where the bytes have the ids of GPT-2. "first": the pair that occurs first in the corpus,
        as in `minbpe`.
    min_frequency : a pair that occurs less often is not merged.
    max_token_length : longest token in bytes; None is no limit. (HF's limit of n is n - 1 here, since it is the
        first length that is refused; two bytes it always allows.)
    special_tokens_at : where the ids of the special tokens are: at the "start", "after_bytes", or at the "end",
        after the merges.
    byte_order : the order of the 256 ids of the bytes: that of their "value", or that of "gpt2", by the characters
        that stand for them in its files.

    Neither of the last two changes what is merged. With ``ties="huggingface", special_tokens_at="start",
    byte_order="gpt2"`` the vocabulary is, id by id, that of HF's trainer for `ByteLevel` with its whole alphabet.

    Raises
    ------
    ParameterError
        For a rule that is not known, or a number that is out of range.
    """
    view = progress or Progress()
    specials = SpecialTokens(counts.special_tokens if special_tokens is None else special_tokens).tokens
    check_rules(vocab_size, specials, ties, min_frequency, max_token_length, special_tokens_at, byte_order)
    # Every merge shortens a pre-token: a small corpus can't fill a large vocabulary.
    n_symbols = min(vocab_size - len(specials), 257 + len(counts.strings.values))
    merger = Merger(counts, n_symbols, ties, min_frequency, max_token_length)
    view.start("merging", merger.wanted, "merges")
    state = merge.DONE
    while state == merge.DONE and not merger.complete:
        before = merger.n_merges
        state = merger.advance(_MERGES_PER_CALL)
        view.advance("merging", merger.n_merges - before)
    view.finish("merging")
    layout = Layout(specials, special_tokens_at, byte_order)
    stop = "exhausted" if state == merge.EXHAUSTED else "vocab_size"
    return TrainingResult(merger.vocabulary(layout), merger.log(layout), stop)


def check_rules(
    vocab_size: int,
    special_tokens: Sequence[str],
    ties: str,
    min_frequency: int,
    max_token_length: int | None,
    special_tokens_at: str = "after_bytes",
    byte_order: str = "value",
) -> None:
    """Refuse rules that can't be trained by, before any work.

    Raises
    ------
    ParameterError
    """
    n_special = len(SpecialTokens(special_tokens).tokens)
    if ties not in TIE_RULES:
        raise ParameterError(f"unknown tie rule {ties!r}: known are {', '.join(TIE_RULES)}")
    if special_tokens_at not in PLACES:
        raise ParameterError(f"special_tokens_at is {special_tokens_at!r}: known are {', '.join(PLACES)}")
    if byte_order not in BYTE_ORDERS:
        raise ParameterError(f"byte_order is {byte_order!r}: known are {', '.join(BYTE_ORDERS)}")
    whole_number("vocab_size", vocab_size, -(1 << 31))
    if vocab_size < 256 + n_special:
        raise ParameterError(
            f"vocabulary size {vocab_size} cannot hold the 256 bytes and {n_special} special tokens:"
            f" give at least {256 + n_special}"
        )
    whole_number("min_frequency", min_frequency)
    if max_token_length is not None:
        whole_number("max_token_length", max_token_length)


@dataclass(frozen=True)
class Layout:
    """Which id every symbol of the merge loop gets; see `fit`."""

    special_tokens: tuple[str, ...]
    special_tokens_at: str
    byte_order: str

    def ids(self, n_symbols: int) -> npt.NDArray[np.int32]:
        """The id of each of so many symbols. int32[n_symbols], ascending but for the bytes."""
        ids = np.arange(n_symbols, dtype=np.int32)
        if self.byte_order == "gpt2":
            ids[list(CHARACTER_OF_BYTE)] = np.arange(256)
        ids[ids >= self.first_special(n_symbols)] += len(self.special_tokens)
        return ids

    def first_special(self, n_symbols: int) -> int:
        """The id of the first special token."""
        return {"start": 0, "after_bytes": 256, "end": n_symbols}[self.special_tokens_at]


class Merger:
    """The state of the merge loop. `advance` makes some merges; in between it can be looked at and kept.

    Its symbols are the bytes, then the products of the merges, `n_symbols` at the end; a `Layout` makes ids of them.
    The arrays are those of `kernels.merge`; when the kernel needs a larger one, it is made here.
    """

    def __init__(
        self,
        counts: PretokenCounts,
        n_symbols: int,
        ties: str,
        min_frequency: int,
        max_token_length: int | None,
    ) -> None:
        self._pattern, self._ties = counts.pattern, ties
        self._n_symbols = n_symbols
        self.wanted = n_symbols - 256
        numbers = self._numbers = np.zeros(candidates.N_NUMBERS, np.int64)
        numbers[candidates.TIES] = {"bytes": candidates.GREATEST_BYTES, "first": candidates.FIRST_PLACE}.get(
            ties, candidates.LEAST_ORDER
        )
        numbers[candidates.MIN_COUNT] = min_frequency
        numbers[candidates.MAX_LENGTH] = np.iinfo(np.int64).max if max_token_length is None else max_token_length
        numbers[candidates.TOKENS] = 256
        self._make_tokens(n_symbols)
        self._lay_out(counts)

    def _make_tokens(self, n_symbols: int) -> None:
        self._tokens = np.zeros((n_symbols + 1, 4), np.int64)
        self._spelling = np.zeros(1 << 16, np.uint8)
        merge.spell_bytes(self._tokens, self._spelling)
        self._tokens[256, candidates.SPELLING] = 256
        self._tokens[:, candidates.ORDER] = np.arange(n_symbols + 1)
        if self._ties == "huggingface":
            # Its alphabet is sorted by the characters that stand for the bytes.
            self._tokens[list(CHARACTER_OF_BYTE), candidates.ORDER] = np.arange(256)
        self._notes = np.zeros((2 * (n_symbols + 1), 3), np.int64)
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
        # A pair for six to twelve bytes of the distinct pre-tokens of real text. What is not touched takes no memory;
        # to make these arrays larger step by step took a tenth of a training.
        n_pairs = 1 << max(17, (len(strings.values) // 8).bit_length())
        self._pairs = np.empty((n_pairs, 4), np.int64)
        self._heap = np.empty((2 * n_pairs, 3), np.int64)
        self._slots = np.full(4 * n_pairs, -1, np.int32)
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
        """Whether there are all the symbols that were asked for."""
        return int(self._numbers[candidates.TOKENS]) >= self._n_symbols

    def advance(self, n_merges: int) -> int:
        """Make up to `n_merges` merges; returns `kernels.merge.DONE`, or EXHAUSTED when no pair is left."""
        goal = self.n_merges + n_merges
        if goal > len(self._log):
            self._log = _enlarged(self._log, max(goal, 2 * len(self._log)))
        room = np.empty(4, np.int64)
        while True:
            state = int(
                merge.merge_pairs(
                    self._n_symbols, goal - self.n_merges, room, self._numbers, self._symbols, self._word_of,
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

    def log(self, layout: Layout) -> MergeLog:
        """The merges so far."""
        rows = self._log[: self.n_merges]
        left, right, token = np.ascontiguousarray(layout.ids(256 + self.n_merges)[rows[:, :3].T])
        return MergeLog(left, right, token, rows[:, 3].copy(), rows[:, 4].copy())

    def vocabulary(self, layout: Layout) -> Vocabulary:
        """The vocabulary as it is now."""
        n = 256 + self.n_merges
        spelling, at = self._spelling.tobytes(), self._tokens[: n + 1, candidates.SPELLING].tolist()
        ids, first_special = layout.ids(n), layout.first_special(n)
        tokens = [b""] * (n + len(layout.special_tokens))
        for symbol, index in enumerate(ids.tolist()):
            tokens[index] = spelling[at[symbol] : at[symbol + 1]]
        specials = {text: first_special + k for k, text in enumerate(layout.special_tokens)}
        for text, index in specials.items():
            tokens[index] = text.encode()
        return Vocabulary(
            tokens=tuple(tokens),
            merges=ids[self._log[: self.n_merges, :3]],
            special_tokens=specials,
            pattern=self._pattern,
            ties=self._ties,
        )


def _enlarged(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    larger = np.empty((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
