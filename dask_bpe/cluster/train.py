"""Text to a tokenizer: count on the cluster, merge here."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dask_bpe.cluster import schedule
from dask_bpe.cluster.blocks import Errors
from dask_bpe.cluster.count import Source, count_pretokens
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError
from dask_bpe.pretokenize import PatternSpec, get_pattern
from dask_bpe.progress import Progress
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.training import MergeLog, check_rules, fit

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, eq=False)
class TrainingReport:
    """What a training read, learned and spent; `Tokenizer.training` of the tokenizer that it made.

    Attributes
    ----------
    n_bytes, n_documents, n_invalid, n_unmatched : the text: bytes, documents, invalid UTF-8 sequences mended, bytes
        that the pattern leaves unmatched (text with such bytes cannot be encoded).
    n_pretokens, n_distinct : pre-tokens in the text, and distinct ones.
    n_merges : merges made.
    seconds : by stage: "counting" (absent when counts were given) and "merging".
    longest_token : bytes of the longest token that was learned.
    peak_memory : largest resident size of this process so far, in bytes.
    stop : "vocab_size", or "exhausted" when no pair was left that the rules allow.
    log : a row per merge.
    """

    n_bytes: int
    n_documents: int
    n_invalid: int
    n_unmatched: int
    n_pretokens: int
    n_distinct: int
    n_merges: int
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
    errors: Errors = "replace",
    block_bytes: int | None = None,
    max_bytes: int | None = None,
    split_every: int = 8,
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
    errors, block_bytes, max_bytes, split_every, client : how the text is read, see `count_pretokens`.
    progress : told of the stages "counting" and "merging".

    Returns
    -------
    Tokenizer, whose attribute `training` is a `TrainingReport`. It is the same for any partitioning of the
    text and any cluster.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
    """
    check_rules(vocab_size, special_tokens, ties, min_frequency, max_token_length, special_tokens_at, byte_order)
    seconds: dict[str, float] = {}
    if isinstance(source, PretokenCounts):
        counts = _with_rules(source, special_tokens, pattern)
    else:
        began = time.perf_counter()
        counts = count_pretokens(
            source,
            pattern=pattern,
            special_tokens=special_tokens,
            errors=errors,
            block_bytes=block_bytes,
            max_bytes=max_bytes,
            split_every=split_every,
            client=client,
            progress=progress,
        )
        seconds["counting"] = time.perf_counter() - began
    began = time.perf_counter()
    result = fit(
        counts,
        vocab_size,
        ties=ties,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        special_tokens_at=special_tokens_at,
        byte_order=byte_order,
        progress=progress,
    )
    seconds["merging"] = time.perf_counter() - began
    learned = [result.vocabulary.tokens[token] for token in result.log.token.tolist()]
    report = TrainingReport(
        n_bytes=counts.n_bytes,
        n_documents=counts.n_documents,
        n_invalid=counts.n_invalid,
        n_unmatched=counts.n_unmatched,
        n_pretokens=counts.total,
        n_distinct=len(counts),
        n_merges=len(result.log),
        seconds=seconds,
        longest_token=max(learned, key=len, default=b""),
        peak_memory=schedule.peak_memory(),
        stop=result.stop,
        log=result.log,
    )
    tokenizer = Tokenizer(result.vocabulary)
    tokenizer.training = report
    return tokenizer


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
