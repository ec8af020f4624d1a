"""Questions about vocabularies and corpora: text is counted on the cluster, the answers come from the counts.

Wherever a source is asked for it may be text, as `count_pretokens` takes it, or counts that were made before; with
counts there is no pass over the text at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, cast

from dask_bpe.analysis.coverage import Coverage, held_out_coverage
from dask_bpe.analysis.curve import Curve, cut_curve, train_curve
from dask_bpe.analysis.description import VocabularyDescription, describe_tokens
from dask_bpe.analysis.lab import SIZES, LabTexts, measure_lab
from dask_bpe.analysis.lab_report import lab_report
from dask_bpe.analysis.report import VocabularyEvidence, corpus_evidence, report
from dask_bpe.analysis.trace import MergeTrace, retrace, train_trace
from dask_bpe.analysis.usage import TokenUsage, token_usage
from dask_bpe.cluster.count import Source, count_pretokens
from dask_bpe.cluster.count_special import count_special_tokens
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.pages import Document
from dask_bpe.pretokenize import PatternSpec
from dask_bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    from distributed import Client

    from dask_bpe.cluster.contents import Errors, OnError
    from dask_bpe.io.inputs import InputFormat
    from dask_bpe.progress import Progress

TextOrCounts: TypeAlias = Source | PretokenCounts


class Reading(TypedDict, total=False):
    """How text is read: arguments of `count_pretokens`, with its defaults."""

    input_format: InputFormat | None
    errors: Errors
    on_error: OnError
    max_bad: int
    block_bytes: int | None
    max_bytes: int | None
    memory_per_worker: int | None
    client: Client | None
    progress: Progress | None


def vocab_curve(
    source: TextOrCounts | Mapping[str, TextOrCounts],
    sizes: Iterable[int] | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    pattern: PatternSpec = "gpt2",
    special_tokens: Sequence[str] = (),
    ties: str = "bytes",
    min_frequency: int = 1,
    max_token_length: int | None = None,
    **reading: Unpack[Reading],
) -> Curve:
    """How many tokens a corpus has under vocabularies of several sizes, from one training or one tokenizer.

    Parameters
    ----------
    source : text or counts; or several of them by name. They are trained on together, and each is told apart.
    sizes : ids in all. May be left out with a `tokenizer`: all doublings of 256 are told then.
    tokenizer : tell what its first merges do, instead of training. It brings pattern and special tokens.
    pattern, special_tokens, ties, min_frequency, max_token_length : of the training, as `train` takes them.
    reading : how text is read, as `count_pretokens` takes it.

    Returns
    -------
    Curve: for every size exactly the tokens of a training of that size.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
    """
    if tokenizer is not None:
        return cut_curve(tokenizer.vocabulary, _by_name(source, *_cuts(tokenizer), reading), sizes)
    if sizes is None:
        raise ParameterError("no sizes: give those of the vocabularies, such as [1024, 2048, 4096]")
    return train_curve(
        _by_name(source, pattern, special_tokens, reading),
        sizes,
        special_tokens=special_tokens or None,
        ties=ties,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        progress=reading.get("progress"),
    )


def trace_merges(
    source: TextOrCounts,
    vocab_size: int | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    pattern: PatternSpec = "gpt2",
    special_tokens: Sequence[str] = (),
    ties: str = "bytes",
    min_frequency: int = 1,
    max_token_length: int | None = None,
    **reading: Unpack[Reading],
) -> MergeTrace:
    """The merges of a training one by one: what was joined, how often it stood there, how many tokens were left.

    Parameters
    ----------
    source : text or counts.
    vocab_size : ids in all, of a training that is made here.
    tokenizer : trace the training of this tokenizer instead, from the text or counts that it was trained on.
    pattern, special_tokens, ties, min_frequency, max_token_length : of the training, as `train` takes them. A tokenizer
        knows the first three.
    reading : how text is read, as `count_pretokens` takes it.

    Raises
    ------
    InputError, ParameterError, PatternError, ClusterError
        ParameterError also when the tokenizer was trained on something else.
    """
    rules: dict[str, Any] = {"min_frequency": min_frequency, "max_token_length": max_token_length}
    rules["progress"] = reading.get("progress")
    if tokenizer is not None:
        return retrace(tokenizer.vocabulary, _counts(source, *_cuts(tokenizer), reading), **rules)
    if vocab_size is None:
        raise ParameterError("give the vocab_size of a training, or the tokenizer that it made")
    counts = _counts(source, pattern, special_tokens, reading)
    return train_trace(counts, vocab_size, special_tokens=special_tokens or None, ties=ties, **rules)


def describe_vocabulary(
    tokenizer: Tokenizer,
    source: TextOrCounts | None = None,
    *,
    n_longest: int = 20,
    rare: int = 100,
    **reading: Unpack[Reading],
) -> VocabularyDescription:
    """What the tokens of a vocabulary are: whole characters or parts, letters of which script, which are odd.

    Parameters
    ----------
    source : text or counts of a corpus: which tokens it uses never or hardly. In files and bags the special tokens in
        it are found too, by a second pass.
    n_longest : how many of the longest tokens are named.
    rare : tokens used less often than that are listed.
    reading : how text is read, as `count_pretokens` takes it.

    Raises
    ------
    InputError, ParameterError, ClusterError
        ParameterError also for counts that another pattern has cut, and a tokenizer that normalizes text.
    """
    counts = special = None
    if source is not None:
        counts = _counts(source, *_cuts(tokenizer), reading)
        if can_be_read_again(source):
            special = count_special_tokens(cast("Source", source), tokenizer, **_of_special(reading))
    return describe_tokens(tokenizer.vocabulary, counts, special_in_text=special, n_longest=n_longest, rare=rare)


def measure_usage(tokenizer: Tokenizer, source: TextOrCounts, **reading: Unpack[Reading]) -> TokenUsage:
    """How often a corpus uses each token of a vocabulary.

    Parameters
    ----------
    source : text or counts.
    reading : how text is read, as `count_pretokens` takes it.

    Raises
    ------
    InputError, ParameterError, ClusterError
        ParameterError also for counts that another pattern has cut, and a tokenizer that normalizes text.
    """
    return token_usage(tokenizer.vocabulary, _counts(source, *_cuts(tokenizer), reading))


def measure_coverage(
    tokenizer: Tokenizer, training: TextOrCounts, held_out: TextOrCounts, **reading: Unpack[Reading]
) -> Coverage:
    """Held-out text under a vocabulary: what it costs, and which of its characters and pre-tokens training never met.

    Parameters
    ----------
    training, held_out : text or counts.
    reading : how text is read, as `count_pretokens` takes it.

    Raises
    ------
    InputError, ParameterError, ClusterError
        ParameterError also for counts that another pattern has cut, and a tokenizer that normalizes text.
    """
    cuts = _cuts(tokenizer)
    return held_out_coverage(tokenizer.vocabulary, _counts(training, *cuts, reading), _counts(held_out, *cuts, reading))


def report_vocabulary(
    tokenizer: Tokenizer,
    corpora: Mapping[str, TextOrCounts],
    *,
    name: str = "",
    rare: int = 100,
    **reading: Unpack[Reading],
) -> Document:
    """A report on a vocabulary and the corpora that it is looked at with, to be saved as HTML, Markdown or JSON.

    Parameters
    ----------
    corpora : text or counts, by the name that they have in the report. One after the other is counted, and its counts
        are then given up.
    name : of the vocabulary.
    rare : tokens used less often than that are called rare.
    reading : how text is read, as `count_pretokens` takes it.

    Raises
    ------
    InputError, ParameterError, ClusterError
        ParameterError also for counts that another pattern has cut, and a tokenizer that normalizes text.
    """
    if not corpora:
        raise ParameterError("no corpora: give the text of at least one, by a name")
    whole_number("rare", rare)
    vocabulary, cuts = tokenizer.vocabulary, _cuts(tokenizer)
    found = []
    for corpus, source in corpora.items():
        special = None
        if can_be_read_again(source):
            special = count_special_tokens(cast("Source", source), tokenizer, **_of_special(reading))
        found.append(corpus_evidence(corpus, vocabulary, _counts(source, *cuts, reading), special))
    return report(VocabularyEvidence(name, vocabulary, found, rare))


def report_lab(
    one: TextOrCounts, other: TextOrCounts, sizes: Sequence[int] = SIZES, **reading: Unpack[Reading]
) -> Document:
    """The report of the teaching lab on two texts, Korean and English: a vocabulary from both, one from the English.

    Parameters
    ----------
    one, other : text or counts of whole documents (``pattern=None``). The one with more Hangul is called ko; if neither
        has any, the first.
    sizes : ids in all, of the curve; the largest is that of the vocabularies.
    reading : how text is read, as `count_pretokens` takes it.

    Returns
    -------
    Document, whose `data` are the figures under the names of the lab.

    Raises
    ------
    InputError, ParameterError, ClusterError
    """
    texts = LabTexts.of(_counts(one, None, (), reading), _counts(other, None, (), reading))
    return lab_report(measure_lab(texts, sizes))


def can_be_read_again(source: TextOrCounts) -> bool:
    """Whether a source is text that stays: files, a bag or a column of a data frame."""
    return isinstance(source, str | os.PathLike | list | tuple) or hasattr(source, "dask")


def _cuts(tokenizer: Tokenizer) -> tuple[PatternSpec, Sequence[str]]:
    return tokenizer.pattern, tuple(tokenizer.special_tokens)


def _counts(
    source: TextOrCounts, pattern: PatternSpec, special_tokens: Sequence[str], reading: Reading
) -> PretokenCounts:
    if isinstance(source, PretokenCounts):
        return source
    return count_pretokens(source, pattern=pattern, special_tokens=special_tokens, **reading)


def _by_name(
    source: TextOrCounts | Mapping[str, TextOrCounts],
    pattern: PatternSpec,
    special_tokens: Sequence[str],
    reading: Reading,
) -> PretokenCounts | dict[str, PretokenCounts]:
    if isinstance(source, Mapping):
        return {name: _counts(part, pattern, special_tokens, reading) for name, part in source.items()}
    return _counts(source, pattern, special_tokens, reading)


def _of_special(reading: Reading) -> dict[str, Any]:
    """Those of the arguments that `count_special_tokens` takes."""
    names = ("input_format", "errors", "block_bytes", "client", "progress")
    return {name: value for name, value in reading.items() if name in names}
