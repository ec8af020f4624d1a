"""Text to a tokenizer: count on the cluster, merge here."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_bpe import machine
from dask_bpe.cluster import schedule
from dask_bpe.cluster.contents import Errors, OnError
from dask_bpe.cluster.count import Source, count_within, figures_of, named
from dask_bpe.cluster.memory import fit_in
from dask_bpe.cluster.recorded import recorded
from dask_bpe.cluster.sources import count_sources, with_rules
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.work_folder import open_work_folder
from dask_bpe.monitor import automatic
from dask_bpe.pretokenize import PatternSpec
from dask_bpe.progress import JobState, Progress, Snapshot, watch
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.training.extending import check_extension
from dask_bpe.training.fit import TrainingResult, check_rules, fit, merge_memory
from dask_bpe.training.merger import MergeLog
from dask_bpe.training.weighting import Mixture, Weight, check_weights, mix

if TYPE_CHECKING:
    from distributed import Client

    from dask_bpe.pages import Document


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
    n_given : so many of them, the first ones, are those of the tokenizer that was extended, or make the characters.
    n_proved : so many merges, from the first on, are proved to be those of a training that drops no pre-token: all
        `n_merges` if none was dropped. Those after them may be others.
    seconds : by stage: "counting" (absent when counts were given) and "merging".
    longest_token : bytes of the longest token that was learned.
    peak_memory : largest resident size of this process so far, in bytes.
    stop : "vocab_size", or "exhausted" when no pair was left that the rules allow.
    log : a row per merge.
    weights : of a training on several sources, by name.
    unit : what an occurrence of weight 1 counts as in `n_pretokens`, `n_dropped` and the log; 1 if weights are whole.
    run : the last snapshot of the job.
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
    n_given: int
    n_proved: int
    seconds: dict[str, float]
    longest_token: bytes
    peak_memory: int
    stop: str
    log: MergeLog
    weights: Mapping[str, Fraction]
    unit: int
    run: Snapshot = field(repr=False)

    @classmethod
    def of(cls, mixture: Mixture, result: TrainingResult, seconds: dict[str, float], run: Snapshot) -> TrainingReport:
        """The report of what was made of these counts."""
        counts, dropped = mixture.counts, mixture.counts.dropped
        learned = [result.vocabulary.tokens[token] for token in result.log.token.tolist()]
        return cls(
            n_bytes=counts.n_bytes,
            n_documents=counts.n_documents,
            n_invalid=counts.n_invalid,
            n_quarantined=counts.n_quarantined,
            n_unmatched=counts.n_unmatched,
            n_pretokens=counts.total,
            n_distinct=len(counts),
            n_dropped=dropped.n_occurrences if dropped else 0,
            n_dropped_distinct=dropped.n_distinct if dropped else 0,
            n_merges=len(result.log),
            n_given=result.n_given,
            n_proved=result.n_proved,
            seconds=seconds,
            longest_token=max(learned, key=len, default=b""),
            peak_memory=machine.peak_memory(),
            stop=result.stop,
            log=result.log,
            weights=mixture.weights,
            unit=mixture.unit,
            run=run,
        )

    def report(self) -> Document:
        """How the training went, and what would have been faster."""
        from dask_bpe import run_report

        return run_report.report(run_report.Evidence("", [self.run]))

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_training

        return of_training(self)


def train(
    source: Source | PretokenCounts | Mapping[str, Source | PretokenCounts],
    vocab_size: int,
    *,
    weights: Mapping[str, Weight] | None = None,
    temperature: Weight | None = None,
    special_tokens: Sequence[str] = (),
    pattern: PatternSpec = "gpt2",
    ties: str | None = None,
    min_frequency: int = 1,
    max_token_length: int | None = None,
    alphabet: str = "bytes",
    min_character_count: int = 1,
    special_tokens_at: str = "after_bytes",
    byte_order: str = "value",
    extend: Tokenizer | None = None,
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
    source : text, as `count_pretokens` takes it, or counts that were made before; or several of these by name, which
        are read one after the other.
    weights, temperature : how much several sources weigh, see `training.weighting`: an occurrence counts as often as
        `weights` say (1 where they don't), or as the sizes of the sources say. All rules count so: what occurs once in
        a source of weight 3 reaches a `min_frequency` or `min_count` of 3.
    vocab_size : ids in all: 256 bytes, the special tokens, the merges.
    special_tokens : texts that are one id each and never merged. Counts know their own. (HF's trainer does count
        the text of a special token where it finds it; to compare, give it the documents without them.)
    pattern : how text is split: "gpt2", a regular expression, or None for whole documents. Counts know their own.
    ties, min_frequency, max_token_length, alphabet, min_character_count : rules of the merges, see `training.fit`.
    extend : a tokenizer to go on from: its ids stay what they are, new ones follow; pattern, special tokens and, unless
        `ties` says another, tie rule are its own. One with a normalizer is refused. To keep its first merges only,
        extend what `Tokenizer.shrink` makes of it.
    special_tokens_at, byte_order : the order of the ids, see there too.
    input_format, errors, on_error, max_bad, block_bytes, max_bytes, split_every, memory_per_worker, client : how the
        text is read, see `count_pretokens`. Of several sources each has its own `max_bad` and `max_bytes`.
    min_count : pre-tokens that occur less often are dropped. The report says how many merges that cannot have changed.
    work_dir, overwrite : a folder that keeps what is done, see `count_pretokens`, and the state of the merges too: the
        same call goes on where an interrupted one stopped, and ends with the same tokenizer, byte for byte. Counts
        that are given need it for the merges only.
    checkpoint_seconds : from one state of the merges in `work_dir` to the next.
    driver_memory : bytes that the merges may take in this process; by default the memory of the machine, or the limit
        of the control group. More than that is refused before the first merge.
    progress : told of the job, see `encode_corpus`; its stages are those of `count_pretokens`, and "merging".

    Returns
    -------
    Tokenizer, whose attribute `training` is a `TrainingReport`. It is the same for any partitioning of the
    text and any cluster.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
    OutputError, VocabularyError
        About `work_dir`: it cannot be used, another job works in it or was begun in it; a file in it was damaged. The
        latter also when `extend` cannot be gone on with exactly.
    IncompleteError
        Partitions failed for good, see `count_pretokens`.
    """
    base = None if extend is None else extend.vocabulary
    if ties is None:
        ties = "bytes" if base is None else base.ties
    rules: dict[str, Any] = {
        "ties": ties,
        "min_frequency": min_frequency,
        "max_token_length": max_token_length,
        "alphabet": alphabet,
        "min_character_count": min_character_count,
        "special_tokens_at": special_tokens_at,
        "byte_order": byte_order,
        "extend": base,
    }
    check_rules(vocab_size, special_tokens, **rules)
    if base is not None:
        special_tokens = special_tokens or tuple(base.special_tokens)
        pattern = base.pattern if pattern == "gpt2" else pattern
        check_extension(base, special_tokens, pattern)
    whole_number("min_count", min_count)
    if not checkpoint_seconds >= 0:
        raise ParameterError(f"checkpoint_seconds is {checkpoint_seconds!r}: 0 or more was expected")
    check_weights(source if isinstance(source, Mapping) else None, weights, temperature)
    memory = machine.memory_limit() if driver_memory is None else whole_number("driver_memory", driver_memory)
    seconds = dict[str, float]()
    reading: dict[str, Any] = {
        "pattern": pattern,
        "special_tokens": special_tokens,
        "input_format": input_format,
        "errors": errors,
        "on_error": on_error,
        "max_bad": max_bad,
        "block_bytes": block_bytes,
        "max_bytes": max_bytes,
        "split_every": split_every,
        "memory_per_worker": memory_per_worker,
        "client": client,
    }
    whole = nullcontext() if work_dir is None else open_work_folder(work_dir, overwrite=overwrite)
    with (
        watch("train", _named(source), progress or automatic()) as job,
        whole as folder,
        nullcontext() if folder is None else recorded(job, folder.path),
    ):
        began = time.perf_counter()
        if isinstance(source, PretokenCounts):
            mixture = Mixture(with_rules(source, special_tokens, pattern).at_least(min_count))
            schedule.show_anywhere(job, client)
        elif isinstance(source, Mapping):
            parts = count_sources(source, folder, job, overwrite=overwrite, **reading)
            mixture = mix(parts, weights=weights, temperature=temperature).at_least(min_count)
        else:
            mixture = Mixture(count_within(source, folder, job, min_count=min_count, **reading))
        job.settle(figures_of(mixture.counts))
        if not isinstance(source, PretokenCounts):
            seconds["counting"] = time.perf_counter() - began
        began = time.perf_counter()
        _say_memory(mixture.counts, vocab_size, ties, memory, job)
        result = fit(
            mixture.counts,
            vocab_size,
            **rules,
            unit=mixture.unit,
            work_folder=folder,
            checkpoint_seconds=checkpoint_seconds,
            progress=job,
        )
        seconds["merging"] = time.perf_counter() - began
    tokenizer = Tokenizer(result.vocabulary)
    tokenizer.training = TrainingReport.of(mixture, result, seconds, job.snapshot())
    return tokenizer


def _named(source: Source | PretokenCounts | Mapping[str, Source | PretokenCounts]) -> str:
    """What is trained on, in a few words."""
    if isinstance(source, Mapping):
        return ", ".join(source)
    return repr(source) if isinstance(source, PretokenCounts) else named(source)


def _say_memory(counts: PretokenCounts, vocab_size: int, ties: str, limit: int, job: JobState) -> None:
    """Say what the merges will take, and refuse what the machine has not. Raises ParameterError."""
    needed = merge_memory(counts, vocab_size, ties)
    fit_in(f"merging {len(counts):,} distinct pre-tokens of {len(counts.strings.values):,} bytes", needed, limit)
    if needed >= _WORTH_SAYING:
        job.say(f"merging takes about {needed / 1e9:.1f} GB of memory, of {limit / 1e9:.1f} GB")


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
