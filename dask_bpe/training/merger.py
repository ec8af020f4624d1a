"""The merge loop of byte-level BPE as a state: made of counts, advanced by some merges, looked at, kept.

`kernels.merge` describes the index that makes a merge cost as much as the text that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError
from dask_bpe.interchange.gpt2 import CHARACTER_OF_BYTE
from dask_bpe.kernels import candidates, merge
from dask_bpe.training.numbering import Numbering
from dask_bpe.vocabulary import Vocabulary

State = dict[str, npt.NDArray[Any]]

NO_MERGES = np.empty((0, 2), np.int64)
_MOST = np.iinfo(np.int64).max


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

    def __repr__(self) -> str:
        return f"MergeLog({len(self):,} merges)"

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_merge_log

        return of_merge_log(self)

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


class Merger:
    """The state of the merge loop. `advance` makes some merges; in between it can be looked at and kept.

    Its symbols are the bytes, then the products of the merges, `n_symbols` at the end; a `Numbering` makes ids of them.
    The arrays are those of `kernels.merge`; when the kernel needs a larger one, it is made here.
    """

    def __init__(
        self,
        counts: PretokenCounts,
        n_symbols: int,
        ties: str,
        min_frequency: int,
        max_token_length: int | None,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
        given: npt.NDArray[np.int64] = NO_MERGES,
    ) -> None:
        """Begin, or go on from what `state` gave for the same counts and rules; `n_symbols` may be another.

        given : int64[k, 2], pairs of symbols that are merged before all others, whatever the rules say. Symbol 256 is
            the product of the first of them, 257 that of the second, and so on.
        """
        self._pattern, self._ties = counts.pattern, ties
        self._n_symbols = n_symbols
        self.wanted = n_symbols - 256
        numbers = self._numbers = np.zeros(candidates.N_NUMBERS, np.int64)
        numbers[candidates.TIES] = {"bytes": candidates.GREATEST_BYTES, "first": candidates.FIRST_PLACE}.get(
            ties, candidates.LEAST_ORDER
        )
        longest = _MOST if max_token_length is None else max_token_length
        numbers[candidates.MIN_COUNT], numbers[candidates.MAX_LENGTH] = min_frequency, longest
        numbers[candidates.TOKENS] = 256
        self._make_tokens(n_symbols)
        self._lay_out(counts)
        if state is not None:
            self._restore(state)
        elif len(given):
            self._merge_given(given)
        else:
            self._index()

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
        n = n_positions(len(strings), len(strings.values))
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
        self._make_room(first_pairs(len(strings.values)), first_places(len(strings.values)))

    def _make_room(self, n_pairs: int, n_places: int) -> None:
        self._pairs = np.empty((n_pairs, 4), np.int64)
        self._heap = np.empty((2 * n_pairs, 3), np.int64)
        self._slots = np.full(4 * n_pairs, -1, np.int32)
        self._places = np.empty(n_places, np.uint32)

    def _index(self) -> None:
        merge.index_pairs(
            self._numbers, self._symbols, self._word_of, self._weights, self._pairs, self._slots, self._places,
            np.zeros((65536, 2), np.int64),
        )  # fmt: skip
        # Above every count: the heap is empty, the first look for a pair fills it.
        self._numbers[candidates.THRESHOLD] = _MOST

    def _merge_given(self, given: npt.NDArray[np.int64]) -> None:
        """Make these merges under no rule, then drop the records of the pairs that the rules leave out."""
        numbers = self._numbers
        rules = numbers[[candidates.MIN_COUNT, candidates.MAX_LENGTH]]
        numbers[candidates.MIN_COUNT], numbers[candidates.MAX_LENGTH] = 1, _MOST
        self._index()
        self._log = _enlarged(self._log, max(len(self._log), len(given)))
        self._run(merge.merge_given, given)
        numbers[candidates.MIN_COUNT], numbers[candidates.MAX_LENGTH] = rules
        pairs = self._pairs[: numbers[candidates.PAIRS]]
        lengths = self._tokens[:, candidates.LENGTH]
        joined = lengths[pairs[:, candidates.KEY] >> 32] + lengths[pairs[:, candidates.KEY] & candidates.LOW]
        kept = pairs[(pairs[:, candidates.COUNT] >= rules[0]) & (joined <= rules[1])]
        numbers[candidates.PAIRS] = len(kept)
        self._pairs[: len(kept)] = kept
        self._slots.fill(-1)
        merge.rebuild_slots(len(kept), self._pairs, self._slots)

    def state(self) -> State:
        """All that the merges so far have made: arrays to go on from, views of this object's own."""
        numbers = self._numbers
        n_tokens = int(numbers[candidates.TOKENS])
        return {
            "numbers": numbers,
            "symbols": self._symbols,
            "tokens": self._tokens[: n_tokens + 1],
            "spelling": self._spelling[: self._tokens[n_tokens, candidates.SPELLING]],
            "pairs": self._pairs[: numbers[candidates.PAIRS]],
            "places": self._places[: numbers[candidates.PLACES]],
            "heap": self._heap[: numbers[candidates.HEAP]],
            "log": self._log[: self.n_merges],
        }

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        n_pairs, n_places = len(self._pairs), len(self._places)
        while n_pairs < len(state["pairs"]) or 2 * n_pairs < len(state["heap"]):
            n_pairs *= 2
        self._make_room(n_pairs, max(n_places, len(state["places"])))
        self._spelling = _enlarged(self._spelling, max(len(self._spelling), len(state["spelling"])))
        self._log = _enlarged(self._log, max(len(self._log), len(state["log"])))
        self._numbers[:] = state["numbers"]
        self._symbols[:] = state["symbols"]
        for name in ("tokens", "spelling", "pairs", "places", "heap", "log"):
            getattr(self, f"_{name}")[: len(state[name])] = state[name]
        merge.rebuild_slots(len(state["pairs"]), self._pairs, self._slots)

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
        return self._run(merge.merge_pairs, self._n_symbols, goal)

    def _run(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """Call a kernel again and again, with larger arrays where it lacks room, until it is DONE or EXHAUSTED."""
        room = np.empty(4, np.int64)
        while True:
            state = int(
                kernel(
                    *arguments, room, self._numbers, self._symbols, self._word_of, self._weights, self._tokens,
                    self._spelling, self._pairs, self._slots, self._places, self._heap, self._notes, self._born,
                    self._log,
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

    def pair_counts(self) -> npt.NDArray[np.int64]:
        """How often each pair that has a record occurs now, int64[n]; too rare or too long ones may lack one."""
        return self._pairs[: self._numbers[candidates.PAIRS], candidates.COUNT]

    def spelling_of(self, pair: int) -> bytes:
        """The bytes of both halves of a pair of `pair_counts`."""
        key = int(self._pairs[pair, candidates.KEY])
        return self._bytes_of(key >> 32) + self._bytes_of(key & candidates.LOW)

    def _bytes_of(self, symbol: int) -> bytes:
        begin, length = self._tokens[symbol, [candidates.SPELLING, candidates.LENGTH]].tolist()
        return self._spelling[begin : begin + length].tobytes()

    def counts_and_tokens_left(self, start: int, stop: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Of the merges from `start` to `stop`, int64[n]: occurrences of the pair, tokens of the corpus afterwards."""
        counts, tokens_left = self._log[start:stop, 3:5].T.copy()
        return counts, tokens_left

    def halves(self, start: int, stop: int) -> list[tuple[bytes, bytes, int]]:
        """Of the merges from `start` to `stop`: the bytes of both halves, and occurrences of the pair."""
        return [
            (self._bytes_of(left), self._bytes_of(right), count)
            for left, right, count in self._log[start:stop, [0, 1, 3]].tolist()
        ]

    def log(self, numbering: Numbering) -> MergeLog:
        """The merges so far."""
        rows = self._log[: self.n_merges]
        left, right, token = np.ascontiguousarray(numbering.ids(256 + self.n_merges)[rows[:, :3].T])
        return MergeLog(left, right, token, rows[:, 3].copy(), rows[:, 4].copy())

    def vocabulary(self, numbering: Numbering) -> Vocabulary:
        """The vocabulary as it is now."""
        n = 256 + self.n_merges
        spelling, at = self._spelling.tobytes(), self._tokens[: n + 1, candidates.SPELLING].tolist()
        tokens = [spelling[begin:end] for begin, end in pairwise(at)]
        merges = numbering.ids(n)[self._log[: self.n_merges, :3]]
        return numbering.vocabulary(tokens, merges, self._pattern, self._ties)


def n_positions(n_strings: int, n_bytes: int) -> int:
    """Symbols of the array in which so many strings lie, sentinels included."""
    return n_bytes + n_strings + 1


def first_pairs(n_bytes: int) -> int:
    """Pairs for which there is room at first: one for six to twelve bytes of the distinct pre-tokens of real text.

    What is not touched takes no memory; to make the arrays larger step by step took a tenth of a training.
    """
    return 1 << max(17, (n_bytes // 8).bit_length())


def first_places(n_bytes: int) -> int:
    """Places of pairs for which there is room at first."""
    return n_bytes + n_bytes // 2 + 1024


def _enlarged(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    larger = np.empty((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
