"""Text to a tokenizer: count on the cluster, merge here."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dask_bpe.cluster import schedule
from dask_bpe.cluster.contents import Errors, OnError
from dask_bpe.cluster.count import Source, count_within
from dask_bpe.cluster.memory import fit_in, machine_memory
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.work_folder import open_work_folder
from dask_bpe.merger import MergeLog
from dask_bpe.pretokenize import PatternSpec, get_pattern
from dask_bpe.progress import Progress
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.training import check_rules, fit, merge_memory

if TYPE_CHECKING:
    from distributed import Client


# Below it nobody asks what the merges take.
_WORTH_SAYING = 1 << 30


@dataclass(frozen=True, eq=False)
class TrainingReport:
    """What a training read, learned and spent; `Tokenizer.training` of the tokenizer that it made.

    Attributes
    ----------
    n_bytes, n_documents, n_invalid, n_quarantined, n_unmatched : the text: bytes, documents, invalid UTF-8 sequences
        mended, documents that could not be read, bytes that the pattern leaves unmatched (text with such bytes cannot
        be encoded).
    n_pretokens, n_distinct : pre-tokens that were trained on, and distinct ones.
    n_dropped, n_dropped_distinct : the rarer ones that were not, and distinct ones.
    n_merges : merges made.
    n_proved : so many merges, from the first on, are proved to be those of a training that drops no pre-token: all
        `n_merges` if none was dropped. Those after them may be others.
    seconds : by stage: "counting" (absent when counts were given) and "merging".
    longest_token : bytes of the longest token that was learned.
    peak_memory : largest resident size of this process so far, in bytes.
    stop : "vocab_size", or "exhausted" when no pair was left that the rules allow.
    log : a row per merge.
    """

    n_bytes: int
    n_documents: int
    n_invalid: int
    n_quarantined: int
    n_unmatched: int
    n_pretokens: int
    n_distinct: int
    n_dropped: int
    n_dropped_distinct: int
    n_merges: int
    n_proved: int
    seconds: dict[str, float]
    longest_token: bytes
    peak_memory: int
    stop: str
    log: MergeLog


def train(
    source: Source | PretokenCounts,
    vocab_size: int,
    *,
    special_tokens: Sequence[str] = (),
    pattern: PatternSpec = "gpt2",
    ties: str = "bytes",
    min_frequency: int = 1,
    max_token_length: int | None = None,
    special_tokens_at: str = "after_bytes",
    byte_order: str = "value",
    input_format: InputFormat | None = None,
    errors: Errors = "replace",
    on_error: OnError = "quarantine",
    max_bad: int = 1000,
    block_bytes: int | None = None,
    max_bytes: int | None = None,
    split_every: int = 8,
    min_count: int = 1,
    work_dir: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    checkpoint_seconds: float = 300.0,
    memory_per_worker: int | None = None,
    driver_memory: int | None = None,
    client: Client | None = None,
    progress: Progress | None = None,
) -> Tokenizer:
    """Train a byte-level BPE tokenizer.

    Parameters
    ----------
    source : text, as `count_pretokens` takes it, or counts that were made before.
    vocab_size : ids in all: 256 bytes, the special tokens, the merges.
    special_tokens : texts that are one id each and never merged. Counts know their own. (HF's trainer does count
        the text of a special token where it finds it; to compare, give it the documents without them.)
    pattern : how text is split: "gpt2", a regular expression, or None for whole documents. Counts know their own.
    ties, min_frequency, max_token_length : rules of the merges, see `training.fit`.
    special_tokens_at, byte_order : the order of the ids, see there too.
    input_format, errors, on_error, max_bad, block_bytes, max_bytes, split_every, memory_per_worker, client : how the
        text is read, see `count_pretokens`.
    min_count : pre-tokens that occur less often are dropped. The report says how many merges that cannot have changed.
    work_dir, overwrite : a folder that keeps what is done, see `count_pretokens`, and the state of the merges too: the
        same call goes on where an interrupted one stopped, and ends with the same tokenizer, byte for byte. Counts
        that are given need it for the merges only.
    checkpoint_seconds : from one state of the merges in `work_dir` to the next.
    driver_memory : bytes that the merges may take in this process; by default the memory of the machine, or the limit
        of the control group. More than that is refused before the first merge.
    progress : told of the stages "counting" and "merging".

    Returns
    -------
    Tokenizer, whose attribute `training` is a `TrainingReport`. It is the same for any partitioning of the
    text and any cluster.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
    OutputError, VocabularyError
        About `work_dir`: it cannot be used, another job works in it or was begun in it; a file in it was damaged.
    """
    check_rules(vocab_size, special_tokens, ties, min_frequency, max_token_length, special_tokens_at, byte_order)
    whole_number("min_count", min_count)
    if not checkpoint_seconds >= 0:
        raise ParameterError(f"checkpoint_seconds is {checkpoint_seconds!r}: 0 or more was expected")
    memory = machine_memory() if driver_memory is None else whole_number("driver_memory", driver_memory)
    view, seconds = progress or Progress(), dict[str, float]()
    with nullcontext() if work_dir is None else open_work_folder(work_dir, overwrite=overwrite) as folder:
        if isinstance(source, PretokenCounts):
            counts = _with_rules(source, special_tokens, pattern).at_least(min_count)
        else:
            began = time.perf_counter()
            counts = count_within(
                source,
                folder,
                pattern=pattern,
                special_tokens=special_tokens,
                input_format=input_format,
                errors=errors,
                on_error=on_error,
                max_bad=max_bad,
                block_bytes=block_bytes,
                max_bytes=max_bytes,
                split_every=split_every,
                min_count=min_count,
                memory_per_worker=memory_per_worker,
                client=client,
                progress=view,
            )
            seconds["counting"] = time.perf_counter() - began
        began = time.perf_counter()
        _say_memory(counts, merge_memory(counts, vocab_size, ties), memory, view)
        result = fit(
            counts,
            vocab_size,
            ties=ties,
            min_frequency=min_frequency,
            max_token_length=max_token_length,
            special_tokens_at=special_tokens_at,
            byte_order=byte_order,
            work_folder=folder,
            checkpoint_seconds=checkpoint_seconds,
            progress=view,
        )
        seconds["merging"] = time.perf_counter() - began
    learned = [result.vocabulary.tokens[token] for token in result.log.token.tolist()]
    report = TrainingReport(
        n_bytes=counts.n_bytes,
        n_documents=counts.n_documents,
        n_invalid=counts.n_invalid,
        n_quarantined=counts.n_quarantined,
        n_unmatched=counts.n_unmatched,
        n_pretokens=counts.total,
        n_distinct=len(counts),
        n_dropped=counts.dropped.n_occurrences if counts.dropped else 0,
        n_dropped_distinct=counts.dropped.n_distinct if counts.dropped else 0,
        n_merges=len(result.log),
        n_proved=result.n_proved,
        seconds=seconds,
        longest_token=max(learned, key=len, default=b""),
        peak_memory=schedule.peak_memory(),
        stop=result.stop,
        log=result.log,
    )
    tokenizer = Tokenizer(result.vocabulary)
    tokenizer.training = report
    return tokenizer


def _say_memory(counts: PretokenCounts, needed: int, limit: int, progress: Progress) -> None:
    """Say what the merges will take, and refuse what the machine has not. Raises ParameterError."""
    fit_in(f"merging {len(counts):,} distinct pre-tokens of {len(counts.strings.values):,} bytes", needed, limit)
    if needed >= _WORTH_SAYING:
        progress.say(f"merging takes about {needed / 1e9:.1f} GB of memory, of {limit / 1e9:.1f} GB")


def _with_rules(counts: PretokenCounts, special_tokens: Sequence[str], pattern: PatternSpec) -> PretokenCounts:
    """Counts as they are, or with special tokens that they don't name themselves."""
    if special_tokens and tuple(special_tokens) != counts.special_tokens:
        if counts.special_tokens:
            raise ParameterError(
                f"the counts were cut at the special tokens {list(counts.special_tokens)}, not at"
                f" {list(special_tokens)}: give the same ones or none, or count again"
            )
        counts = replace(counts, special_tokens=tuple(special_tokens))
    if pattern != "gpt2" and get_pattern(pattern) != get_pattern(counts.pattern):
        raise ParameterError(f"the counts were cut by the pattern {counts.pattern!r}, not by {pattern!r}: count again")
    return counts


def train_bpe(
    input_path: str | os.PathLike[str],
    vocab_size: int,
    special_tokens: Sequence[str],
    max_bytes: int | None = None,
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train on one file: the interface of Stanford's CS336.

    Parameters
    ----------
    input_path : a text file.
    vocab_size : ids in all: 256 bytes, then the special tokens, then the merges.
    special_tokens : texts that are one id each and are never merged.
    max_bytes : use only so many bytes of the file's beginning.

    Returns
    -------
    vocab : id -> bytes.
    merges : pairs of bytes in the order in which they were merged; of equally frequent pairs the greatest.

    Raises
    ------
    InputError, ParameterError
    """
    tokenizer = train(Path(input_path), vocab_size, special_tokens=special_tokens, max_bytes=max_bytes)
    return tokenizer.vocabulary.to_dict(), tokenizer.vocabulary.merge_bytes()
