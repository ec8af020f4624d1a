"""The sources of a training that has several, each counted by itself; `training.weighting` says how they are mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from dask_bpe.cluster.count import Source, count_within
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import IncompleteError, ParameterError
from dask_bpe.io.work_folder import WorkFolder, open_work_folder
from dask_bpe.pretokenize import PatternSpec, get_pattern
from dask_bpe.progress import JobState


def count_sources(
    sources: Mapping[str, Source | PretokenCounts],
    folder: WorkFolder | None,
    job: JobState,
    *,
    overwrite: bool,
    special_tokens: Sequence[str],
    pattern: PatternSpec,
    **reading: Any,
) -> dict[str, PretokenCounts]:
    """The counts of every source, as part of a job. `reading` are the other options of `count_within`.

    With a work folder, source number k keeps its counts in its folder ``source-00k``: other weights need no other pass.

    Raises
    ------
    InputError, OutputError, ParameterError, VocabularyError, ClusterError
    IncompleteError
        Partitions of some sources failed for good; with a work folder the others are counted.
    """
    parts: dict[str, PretokenCounts] = {}
    incomplete: list[IncompleteError] = []
    for number, (name, source) in enumerate(sources.items()):
        if isinstance(source, PretokenCounts):
            parts[name] = with_rules(source, special_tokens, pattern)
        else:
            place = None if folder is None else folder / f"source-{number:03d}"
            with nullcontext() if place is None else open_work_folder(place, overwrite=overwrite) as own:
                try:
                    parts[name] = count_within(
                        source, own, job, special_tokens=special_tokens, pattern=pattern, min_count=1, **reading
                    )
                except IncompleteError as error:
                    if own is None:
                        raise
                    incomplete.append(error)
    if incomplete:
        more = f". So it is with {len(incomplete) - 1} more sources" if len(incomplete) > 1 else ""
        raise IncompleteError(f"{incomplete[0]}{more}")
    return parts


def with_rules(counts: PretokenCounts, special_tokens: Sequence[str], pattern: PatternSpec) -> PretokenCounts:
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
