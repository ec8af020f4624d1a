"""From counts of pre-tokens to a vocabulary: the merge loop of byte-level BPE.

The algorithm is that of Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with
Subword Units": merge the most frequent pair of neighbours, again and again. `kernels.merge` describes the
index that makes a merge cost as much as the text that it changes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.io.work_folder import WorkFolder
from dask_bpe.kernels import merge
from dask_bpe.merge_checkpoints import MergeCheckpoints
from dask_bpe.merge_margins import next_is_certain
from dask_bpe.merger import Layout, MergeLog, Merger, first_pairs, n_positions
from dask_bpe.pretokenize import SpecialTokens
from dask_bpe.progress import Progress
from dask_bpe.vocabulary import TIE_RULES, Vocabulary

# A call of the kernel makes more merges than the one before while it takes less than this, up to the most: the first
# merges change most of the text, and with a hundred million pre-tokens take a second each.
_SECONDS_PER_CALL = 0.2
_FIRST_CALL, _LARGEST_CALL = 8, 512

# Where the special tokens stand among the ids, and the order of those of the single bytes.
PLACES = ("start", "after_bytes", "end")
BYTE_ORDERS = ("value", "gpt2")


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What `fit` learned.

    Attributes
    ----------
    vocabulary : the tokens and merges.
    log : a row per merge.
    stop : why it ended: "vocab_size", or "exhausted" when no pair was left that the rules allow.
    n_proved : so many merges, from the first on, are proved to be those of a training with the pre-tokens that the
        counts have dropped; all of them if none were.
    """

    vocabulary: Vocabulary
    log: MergeLog
    stop: str
    n_proved: int


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
    work_folder: WorkFolder | None = None,
    checkpoint_seconds: float = 300.0,
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

    work_folder, checkpoint_seconds : where the state of the loop is kept while it runs, and how often it is written; a
        state of the same counts and rules that is there is gone on from. It is deleted at the end.

    Neither `special_tokens_at` nor `byte_order` changes what is merged. With ``ties="huggingface",
    special_tokens_at="start", byte_order="gpt2"`` the vocabulary is, id by id, that of HF's trainer for `ByteLevel`
    with its whole alphabet.

    Raises
    ------
    ParameterError
        For a rule that is not known, or a number that is out of range.
    OutputError
        When a state cannot be written or read.
    """
    view = progress or Progress()
    specials = SpecialTokens(counts.special_tokens if special_tokens is None else special_tokens).tokens
    check_rules(vocab_size, specials, ties, min_frequency, max_token_length, special_tokens_at, byte_order)
    # Every merge shortens a pre-token: a small corpus can't fill a large vocabulary.
    n_symbols = min(vocab_size - len(specials), 257 + len(counts.strings.values))
    rules = {"ties": ties, "min_frequency": min_frequency, "max_token_length": max_token_length}
    checkpoints = None
    if work_folder is not None:
        dropped = None if counts.dropped is None else [counts.dropped.n_distinct, counts.dropped.n_occurrences]
        belongs = {"counts": counts.digest(), "dropped": dropped, **rules}
        checkpoints = MergeCheckpoints(work_folder, belongs, checkpoint_seconds)
    loop = _Loop(counts, n_symbols, ties, min_frequency, max_token_length, checkpoints)
    merger = loop.merger
    view.start("merging", merger.wanted, "merges")
    view.advance("merging", merger.n_merges)
    state = merge.DONE
    while state == merge.DONE and not merger.complete:
        before = merger.n_merges
        state = loop.step()
        view.advance("merging", merger.n_merges - before)
    view.finish("merging")
    if checkpoints is not None:
        checkpoints.remove()
    layout = Layout(specials, special_tokens_at, byte_order)
    stop = "exhausted" if state == merge.EXHAUSTED else "vocab_size"
    return TrainingResult(merger.vocabulary(layout), merger.log(layout), stop, loop.n_proved)


class _Loop:
    """The merge loop with what goes on beside it: states that are kept, and the proof that merges are the same."""

    def __init__(
        self,
        counts: PretokenCounts,
        n_symbols: int,
        ties: str,
        min_frequency: int,
        max_token_length: int | None,
        checkpoints: MergeCheckpoints | None,
    ) -> None:
        found = checkpoints.load(n_symbols - 256) if checkpoints is not None else None
        state = None if found is None else found.arrays
        self.merger = Merger(counts, n_symbols, ties, min_frequency, max_token_length, state)
        self._dropped, self._min_frequency = counts.dropped, min_frequency
        self._proved = 0 if found is None else found.n_proved
        self._proving = self._dropped is not None if found is None else found.proving
        self._checkpoints = checkpoints
        self._per_call = _FIRST_CALL

    @property
    def n_proved(self) -> int:
        """Merges that are proved to be the same without anything dropped."""
        return self.merger.n_merges if self._dropped is None else self._proved

    def step(self) -> int:
        """Make some merges; returns what `Merger.advance` does."""
        began = time.perf_counter()
        if self._proving and self._dropped is not None:
            self._proving = next_is_certain(self.merger, self._dropped, self._min_frequency)
        before = self.merger.n_merges
        state = self.merger.advance(1 if self._proving else self._per_call)
        if self._proving:
            self._proved += self.merger.n_merges - before
        elif time.perf_counter() - began < _SECONDS_PER_CALL:
            self._per_call = min(2 * self._per_call, _LARGEST_CALL)
        if self._checkpoints is not None and state == merge.DONE and self._checkpoints.due():
            self._checkpoints.save(self.merger, self._proved, self._proving)
        return state


def merge_memory(counts: PretokenCounts, vocab_size: int, ties: str = "bytes") -> int:
    """Bytes of memory that `fit` takes beside the counts: within a fifth of what is measured on real text."""
    return merge_memory_of(len(counts), len(counts.strings.values), vocab_size, ties)


def merge_memory_of(n_strings: int, n_bytes: int, vocab_size: int, ties: str = "bytes") -> int:
    """The same for so many distinct pre-tokens of so many bytes together.

    A symbol and the number of its word, 4 bytes each; 16 for each slot for a pair; 4 for the places of pairs and 4 for
    their records, by byte of the distinct pre-tokens. Then the larger of what is there for a time only: places twice
    while they are made compact, and at the end a token and its merge in the loop and in the vocabulary.
    """
    in_order = n_bytes + 16 * n_strings if ties == "first" else 0
    n_symbols = min(vocab_size, n_bytes)
    index = 8 * n_positions(n_strings, n_bytes) + 16 * first_pairs(n_bytes) + 8 * n_bytes
    return index + in_order + max(4 * n_bytes, 950 * n_symbols) + (1 << 20)


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
