"""What a notebook shows of a result: its numbers, and a small plot where that says more. Nothing is read for it that
would take long; without matplotlib the numbers stand alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dask_bpe.pages.cells import format_bytes, format_seconds, literal
from dask_bpe.pages.document import Facts, Table, Value
from dask_bpe.pages.html import render_output
from dask_bpe.pages.plot import Axis, Plot, Series

if TYPE_CHECKING:
    from dask_bpe.cluster.encode import EncodeReport
    from dask_bpe.cluster.planning.plan import Plan
    from dask_bpe.cluster.train import TrainingReport
    from dask_bpe.cluster.verify import VerifyReport
    from dask_bpe.counts import PretokenCounts
    from dask_bpe.io.manifest import Manifest
    from dask_bpe.io.reader import TokenCorpus
    from dask_bpe.io.reshape import ReshapeReport
    from dask_bpe.training.merger import MergeLog
    from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]
Row = tuple[str, Value]

_LONGEST, _MOST_FREQUENT, _SHARDS = 4, 8, 8
# Counts up to this are tallied, those above sorted: there are few.
_TALLIED = 1 << 16
_BARS = 24


def of_vocabulary(vocabulary: Vocabulary) -> str:
    """Sizes and rules, and how long the tokens are."""
    special = set(vocabulary.special_tokens.values())
    learned = [(len(token), -index) for index, token in enumerate(vocabulary.tokens) if index not in special]
    top = sorted(learned, reverse=True)[:_LONGEST]
    rows: list[Row] = [
        ("ids", len(vocabulary)),
        ("merges", len(vocabulary.merges)),
        ("special tokens", ", ".join(list(vocabulary.special_tokens)[:_LONGEST]) or "none"),
        ("pattern", _pattern(vocabulary.pattern)),
        ("ties", vocabulary.ties),
        ("id type", str(vocabulary.dtype)),
        ("longest tokens", ", ".join(literal(vocabulary.tokens[-index], 16) for _, index in top)),
        ("fingerprint", vocabulary.fingerprint()[:16]),
    ]
    lengths = np.array([length for length, _ in learned], np.int64)
    return render_output("Vocabulary", [Facts(rows), lengths_of("tokens", "bytes of a token", lengths)])


def of_counts(counts: PretokenCounts) -> str:
    """Sizes, the most frequent pre-tokens, and their count against their rank."""
    rows: list[Row] = [
        ("distinct pre-tokens", len(counts)),
        ("pre-tokens", counts.total),
        ("text", format_bytes(counts.n_bytes)),
        ("documents", counts.n_documents),
        *([("documents not read", counts.n_quarantined)] if counts.n_quarantined else []),
        ("pattern", _pattern(counts.pattern)),
    ]
    most = min(_MOST_FREQUENT, len(counts))
    top = np.argpartition(-counts.counts, most - 1)[:most] if most else np.empty(0, np.int64)
    top = top[np.argsort(-counts.counts[top], kind="stable")]
    table = Table(
        ("pre-token", "count"), [(literal(counts.strings[at]), int(counts.counts[at])) for at in top.tolist()]
    )
    ranks, values = rank_frequency(counts.counts)
    plot = Plot("points", Axis("rank", log=True), Axis("count of a pre-token", log=True), [Series("", ranks, values)])
    return render_output("Counts of pre-tokens", [Facts(rows), table, plot])


def of_training(report: TrainingReport) -> str:
    """What was read, learned and spent; pair counts and bytes per token over the merges."""
    rows: list[Row] = [
        ("text", format_bytes(report.n_bytes)),
        ("documents", report.n_documents),
        *([("documents not read", report.n_quarantined)] if report.n_quarantined else []),
        ("pre-tokens", report.n_pretokens),
        ("distinct pre-tokens", report.n_distinct),
        *([("dropped as rare", report.n_dropped)] if report.n_dropped else []),
        ("merges", report.n_merges),
        ("stopped", report.stop),
        *((stage, format_seconds(spent)) for stage, spent in report.seconds.items()),
        ("longest token", literal(report.longest_token)),
        ("peak memory", format_bytes(report.peak_memory)),
    ]
    return render_output("Training", [Facts(rows), pair_counts(report.log), *_tokens_left(report.log)])


def of_merge_log(log: MergeLog) -> str:
    """First and last merge, and the count of the pair against its rank."""
    rows: list[Row] = [("merges", len(log))]
    if len(log):
        rows += [
            ("count of the first pair", int(log.count[0])),
            ("count of the last pair", int(log.count[-1])),
            ("tokens after the first merge", int(log.tokens_after[0])),
            ("tokens after the last merge", int(log.tokens_after[-1])),
        ]
    return render_output("Merges", [Facts(rows), pair_counts(log), *_tokens_left(log)])


def of_encoding(report: EncodeReport) -> str:
    """What was read, written and spent."""
    speed = report.n_bytes / 1e6 / report.seconds if report.seconds else None
    rows: list[Row] = [
        ("folder", report.path),
        ("text", format_bytes(report.n_bytes)),
        ("documents", report.n_documents),
        ("documents not read", report.n_quarantined),
        ("tokens", report.n_tokens),
        ("bytes per token", report.n_bytes / report.n_tokens if report.n_tokens else None),
        ("largest id", report.max_id),
        ("shards", f"{report.n_shards:,} of {report.dtype}"),
        ("time", format_seconds(report.seconds)),
        ("MB/s", speed),
        ("peak memory", format_bytes(report.peak_memory)),
        *([("partitions done before", report.n_resumed)] if report.n_resumed else []),
    ]
    return render_output("Encoded corpus", [Facts(rows)])


def of_corpus(corpus: TokenCorpus, lengths: Int64s, sampled: bool) -> str:
    """What the manifest says, and how many tokens documents have: all of them, or those of a sample."""
    what = "documents of a sample" if sampled else "documents"
    return render_output(
        "Encoded corpus",
        [Facts([("folder", corpus.path), *_manifest_rows(corpus.manifest)]), *_document_lengths(what, lengths)],
    )


def of_manifest(manifest: Manifest) -> str:
    """What it says of the text and the shards."""
    shards = manifest.shards[:_SHARDS]
    more = len(manifest.shards) - len(shards)
    table = Table(
        ("shard", "tokens", "documents", "largest id", "bytes"),
        [(shard.name, shard.tokens, shard.documents, shard.max_id, shard.bytes) for shard in shards],
        f"The first {len(shards)} of {len(manifest.shards):,} shards" if more else "",
    )
    return render_output("Manifest", [Facts(_manifest_rows(manifest)), table])


def of_verification(report: VerifyReport) -> str:
    """What was found to be right."""
    rows: list[Row] = [
        ("folder", report.path),
        ("shards", report.n_shards),
        ("documents", report.n_documents),
        ("tokens", report.n_tokens),
        ("text compared", format_bytes(report.n_bytes) if report.n_bytes else "none"),
        *([("places mended", report.n_invalid)] if report.n_invalid else []),
        *([("documents not read", report.n_quarantined)] if report.n_quarantined else []),
        ("time", format_seconds(report.seconds)),
    ]
    return render_output("Verified: whole", [Facts(rows)])


def of_reshaping(report: ReshapeReport) -> str:
    """What was written and spent."""
    rows: list[Row] = [
        ("folder", report.path),
        ("layout", report.layout),
        ("documents", report.n_documents),
        ("tokens", report.n_tokens),
        ("shards", f"{report.n_shards:,} of {report.dtype}"),
        ("size", format_bytes(report.n_bytes)),
        ("time", format_seconds(report.seconds)),
    ]
    return render_output("Reshaped corpus", [Facts(rows)])


def of_plan(plan: Plan) -> str:
    """What the jobs will take, and their time over the number of workers."""
    forecast = plan.forecast
    rows: list[Row] = [
        ("files", plan.files),
        ("text", format_bytes(plan.text_bytes)),
        ("partitions", plan.partitions),
        ("distinct pre-tokens", f"about {plan.distinct:,}"),
        ("memory of a worker", format_bytes(plan.worker_memory)),
        ("memory of the driver", format_bytes(plan.driver_memory)),
        ("tokens", plan.tokens),
        ("output", format_bytes(plan.output_bytes)),
        (f"time on {forecast.workers:,} workers", format_seconds(forecast.total)),
        ("bound by", forecast.bound),
    ]
    stages = ("total", "counting", "reducing", "merging", "encoding")
    series = [
        Series(name, *_positive([row.workers for row in plan.rows], [getattr(row, name) for row in plan.rows]))
        for name in stages
    ]
    plot = Plot(
        "line", Axis("workers", log=True), Axis("time", "s", log=True), series, "Time over the number of workers"
    )
    return render_output("Plan", [Facts(rows), plot])


def lengths_of(things: str, label: str, lengths: Int64s) -> Plot:
    """How many things have which length; the last bar holds all longer ones."""
    clipped = np.minimum(lengths, _BARS)
    tally = np.bincount(clipped, minlength=_BARS + 1) if len(clipped) else np.zeros(_BARS + 1, np.int64)
    last = int(np.flatnonzero(tally)[-1]) if tally.any() else 1
    caption = f"Lengths; {_BARS} stands for all from there on" if last == _BARS else "Lengths"
    return Plot("bars", Axis(label), Axis(things), [Series("", range(last + 1), tally[: last + 1])], caption)


def pair_counts(log: MergeLog) -> Plot:
    """Occurrences of the pair that was merged against its rank."""
    ranks = np.arange(1, len(log) + 1)
    return Plot(
        "points",
        Axis("rank of the merge", log=True),
        Axis("count of its pair", log=True),
        [Series("", ranks, log.count)],
        "How often the merged pair occurred",
    )


def rank_frequency(counts: Int64s) -> tuple[Int64s, Int64s]:
    """Ranks and counts where the count changes: at how many things, the most frequent first, it is still as large.

    Linear in the number of things, whatever it is. int64[n], int64[n], of as many as there are different counts.
    """
    large = np.sort(counts[counts >= _TALLIED])[::-1]
    tally = np.bincount(counts[counts < _TALLIED], minlength=1)
    values = np.flatnonzero(tally)[::-1]
    values = values[values > 0]
    ranks = len(large) + np.cumsum(tally[values])
    return np.concatenate([np.arange(1, len(large) + 1), ranks]), np.concatenate([large, values])


def _tokens_left(log: MergeLog) -> list[Plot]:
    if not len(log):
        return []
    x = np.arange(1, len(log) + 1)
    scale, unit = next(((s, u) for s, u in ((1e9, "billions"), (1e6, "millions")) if log.tokens_after[0] >= s), (1, ""))
    return [
        Plot(
            "line",
            Axis("merges"),
            Axis("tokens of the corpus", unit),
            [Series("", x, log.tokens_after / scale)],
            "Tokens that are left of the corpus",
        )
    ]


def _document_lengths(what: str, lengths: Int64s) -> list[Plot]:
    """Documents by their number of tokens, in steps that double."""
    if not len(lengths):
        return []
    steps = np.bincount(np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64))
    first = int(np.flatnonzero(steps)[0])
    names = [f"up to {1 << step:,}" for step in range(first, len(steps))]
    return [Plot("bars", Axis("tokens"), Axis(what), [Series("", names, steps[first:])], "Tokens of a document")]


def _manifest_rows(manifest: Manifest) -> list[Row]:
    text = manifest.text
    return [
        ("text", format_bytes(text["bytes"])),
        ("documents", manifest.documents),
        *([("documents not read", text["quarantined"])] if text["quarantined"] else []),
        ("tokens", manifest.tokens),
        ("bytes per token", text["bytes"] / manifest.tokens if manifest.tokens else None),
        ("largest id", f"{manifest.max_id:,} of {manifest.vocab_size:,}"),
        ("shards", f"{len(manifest.shards):,}, {manifest.format}, {manifest.dtype}"),
        ("size", format_bytes(manifest.bytes)),
        ("vocabulary", manifest.vocabulary[:16]),
    ]


def _pattern(pattern: Any) -> str:
    text = "none" if pattern is None else str(pattern)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _positive(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Of points those that a logarithmic axis has."""
    kept = [(a, b) for a, b in zip(x, y, strict=True) if b > 0]
    return [a for a, _ in kept], [b for _, b in kept]
