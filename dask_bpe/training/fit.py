"""From counts of pre-tokens to a vocabulary: the merge loop of byte-level BPE.

The algorithm is that of Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with
Subword Units": merge the most frequent pair of neighbours, again and again. `kernels.merge` describes the
index that makes a merge cost as much as the text that it changes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.io.work_folder import WorkFolder
from dask_bpe.kernels import merge
from dask_bpe.pretokenize import SpecialTokens
from dask_bpe.progress import JobState, Progress, watch
from dask_bpe.progress.job_state import N_MERGES
from dask_bpe.training.alphabet import check_alphabet
from dask_bpe.training.beginning import Beginning, of_nothing, of_vocabulary
from dask_bpe.training.checkpoints import MergeCheckpoints
from dask_bpe.training.margins import next_is_certain
from dask_bpe.training.merger import MergeLog, Merger, first_pairs, n_positions
from dask_bpe.training.numbering import Layout
from dask_bpe.training.weighting import in_units
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
    n_given : so many merges, the first ones, were not chosen by their counts: those of the vocabulary that was
        extended, or those that make characters of bytes.
    stop : why it ended: "vocab_size", or "exhausted" when no pair was left that the rules allow.
    n_proved : so many merges, from the first on, are proved to be those of a training with the pre-tokens that the
        counts have dropped; all of them if none were.
    """

    vocabulary: Vocabulary
    log: MergeLog
    n_given: int
    stop: str
    n_proved: int


def fit(
    counts: PretokenCounts,
    vocab_size: int,
    *,
    special_tokens: Sequence[str] | None = None,
    ties: str | None = None,
    min_frequency: int = 1,
    max_token_length: int | None = None,
    alphabet: str = "bytes",
    min_character_count: int = 1,
    special_tokens_at: str = "after_bytes",
    byte_order: str = "value",
    extend: Vocabulary | None = None,
    unit: int = 1,
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
    ties : which of several most frequent pairs is merged; None is that of `extend`, else "bytes". "bytes": the
        greatest pair, compared as byte strings. "ids": the smallest pair of ids where the bytes have their values for
        ids; `rustbpe` does so (it counts in 32 bits, and goes astray beyond). "huggingface": as the trainer of HF
        `tokenizers`, the smallest pair where the bytes have the ids of GPT-2. "first": the pair that occurs first in
        the corpus, as in `minbpe`.
    min_frequency : a pair that occurs less often is not merged.
    max_token_length : longest token in bytes; None is no limit. (HF's limit of n is n - 1 here, since it is the
        first length that is refused; two bytes it always allows.)
    alphabet : what merges begin with: "bytes", or the "characters" of the corpus, which are tokens before anything is
        learned; see `alphabet` for what becomes of rare ones, and of bytes that are no character.
    min_character_count : a character that occurs less often in the pre-tokens is left to its bytes.
    special_tokens_at : where the ids of the special tokens are: at the "start", "after_bytes", or at the "end",
        after the merges.
    byte_order : the order of the 256 ids of the bytes: that of their "value", or that of "gpt2", by the characters
        that stand for them in its files.
    extend : a vocabulary to go on from. It keeps all its ids, special tokens, pattern and merges, which come first; new
        ids follow after its last one. Extending a vocabulary with the counts that it was trained on is training the
        larger one at once; only special tokens at the "end" then stay where they are, and new ids follow them.
    unit : what an occurrence of weight 1 counts as in `counts`: `min_frequency` and `min_character_count` are in
        occurrences, see `weighting.in_units`.
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
    if ties is None:
        ties = "bytes" if extend is None else extend.ties
    specials = SpecialTokens(counts.special_tokens if special_tokens is None else special_tokens).tokens
    check_rules(
        vocab_size, specials, ties, min_frequency, max_token_length, alphabet, min_character_count, special_tokens_at,
        byte_order, extend,
    )  # fmt: skip
    min_frequency, min_character_count = in_units(min_frequency, unit), in_units(min_character_count, unit)
    if extend is None:
        layout = Layout(specials, special_tokens_at, byte_order)
        begin = of_nothing(counts, vocab_size, layout, alphabet, min_character_count, max_token_length)
    else:
        begin = of_vocabulary(counts, vocab_size, extend, None if special_tokens is None else specials)
    rules = {"ties": ties, "min_frequency": min_frequency, "max_token_length": max_token_length}
    checkpoints = None
    if work_folder is not None:
        checkpoints = MergeCheckpoints(work_folder, {**begin.digest(), **rules}, checkpoint_seconds)
    loop = _Loop(begin, ties, min_frequency, max_token_length, checkpoints)
    with watch("train", repr(counts), progress) as job:
        state = _merge_all(loop, job)
    if checkpoints is not None:
        checkpoints.remove()
    return _result(loop, begin, state)


def _result(loop: _Loop, begin: Beginning, state: int) -> TrainingResult:
    """What the loop has learned; `state` is what its last step returned."""
    log = loop.merger.log(begin.numbering)
    log = replace(log, tokens_after=log.tokens_after + begin.n_apart)
    stop = "exhausted" if state == merge.EXHAUSTED else "vocab_size"
    return TrainingResult(loop.merger.vocabulary(begin.numbering), log, len(begin.given), stop, loop.n_proved)


def _merge_all(loop: _Loop, job: JobState) -> int:
    """Make all merges that are wanted and allowed; what the last step returned."""
    merger, state, told, due = loop.merger, merge.DONE, 0, 0.0
    job.start("merging", merger.wanted, "merges")
    job.advance("merging", merger.n_merges)
    while state == merge.DONE and not merger.complete:
        before = merger.n_merges
        state = loop.step()
        job.advance("merging", merger.n_merges - before)
        if time.monotonic() >= due:
            told, due = _tell(merger, told, job), time.monotonic() + _SECONDS_PER_CALL
    _tell(merger, told, job)
    job.finish("merging")
    return state


def _tell(merger: Merger, told: int, job: JobState) -> int:
    """Tell what was merged after the first `told` merges; how many there are now."""
    made = merger.n_merges
    if made > told:
        counts, tokens_left = merger.counts_and_tokens_left(told, made)
        job.merged(told + 1, counts, tokens_left, merger.halves(max(told, made - N_MERGES), made))
    return made


class _Loop:
    """The merge loop with what goes on beside it: states that are kept, and the proof that merges are the same."""

    def __init__(
        self,
        begin: Beginning,
        ties: str,
        min_frequency: int,
        max_token_length: int | None,
        checkpoints: MergeCheckpoints | None,
    ) -> None:
        counts, n_symbols = begin.counts, begin.n_symbols
        found = checkpoints.load(n_symbols - 256) if checkpoints is not None else None
        state = None if found is None else found.arrays
        self.merger = Merger(counts, n_symbols, ties, min_frequency, max_token_length, state, begin.given)
        self._dropped, self._min_frequency = counts.dropped, min_frequency
        if found is None:
            self._proving = self._dropped is not None and begin.given_are_certain
            self._proved = len(begin.given) if begin.given_are_certain else 0
        else:
            self._proving, self._proved = found.proving, found.n_proved
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
    ties: str | None,
    min_frequency: int,
    max_token_length: int | None,
    alphabet: str = "bytes",
    min_character_count: int = 1,
    special_tokens_at: str = "after_bytes",
    byte_order: str = "value",
    extend: Vocabulary | None = None,
) -> None:
    """Refuse rules that can't be trained by, before any work.

    Raises
    ------
    ParameterError
    """
    n_special = len(SpecialTokens(special_tokens).tokens)
    if ties is not None and ties not in TIE_RULES:
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
    check_alphabet(alphabet, min_character_count)
    if extend is not None:
        _check_extension(vocab_size, extend, alphabet, special_tokens_at, byte_order)


def _check_extension(vocab_size: int, base: Vocabulary, alphabet: str, special_tokens_at: str, byte_order: str) -> None:
    if (alphabet, special_tokens_at, byte_order) != ("bytes", "after_bytes", "value"):
        raise ParameterError(
            "alphabet, special_tokens_at and byte_order are those of the vocabulary to extend: leave them out"
        )
    if vocab_size < len(base):
        raise ParameterError(
            f"vocabulary size {vocab_size} is less than the {len(base)} ids of the vocabulary to extend:"
            " `shrink` makes smaller ones"
        )
