"""What a command says at its end: lines for people, or one JSON object for machines, from the same facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from dask_bpe.pages.cells import literal

if TYPE_CHECKING:
    from dask_bpe import EncodeReport, ReshapeReport, Tokenizer, VerifyReport
    from dask_bpe.io.layouts.record import LayoutRecord
    from dask_bpe.io.reader import TokenCorpus

# Special tokens that are named.
_SHOWN = 5


@dataclass(frozen=True)
class Summary:
    """A headline, rows of label and text, and the same as data."""

    headline: str
    rows: list[tuple[str, str]]
    facts: dict[str, Any]


def show(summary: Summary, as_json: bool) -> None:
    """Print it to standard output."""
    if as_json:
        click.echo(json.dumps(summary.facts, ensure_ascii=False))
        return
    click.echo(summary.headline)
    width = max((len(label) for label, _ in summary.rows), default=0)
    for label, text in summary.rows:
        click.echo(f"  {label:<{width}}  {text}")


def of_training(tokenizer: Tokenizer, out: str, measured: Mapping[str, float]) -> Summary:
    """What was read, learned and spent; `measured` are seconds of stages that ran outside the training."""
    report = tokenizer.training
    assert report is not None, "the tokenizer comes from train()"
    seconds = {**report.seconds, **measured}
    total = sum(seconds.values())
    rows = [
        (
            "text",
            f"{report.n_bytes / 1e6:,.1f} MB, {report.n_documents:,} documents{_invalid(report.n_invalid)}",
        ),
        (
            "pre-tokens",
            f"{report.n_pretokens:,}, {report.n_distinct:,} of them distinct{_unmatched(report.n_unmatched)}",
        ),
        ("merges", f"{report.n_merges:,} (stopped: {report.stop})"),
    ]
    if report.n_given:
        rows.append(("given", f"the first {report.n_given:,} merges: the tokenizer extended, or characters"))
    if report.weights:
        rows.append(("weights", ", ".join(f"{name} {float(weight):g}" for name, weight in report.weights.items())))
    if report.n_dropped:
        rows.insert(2, ("dropped", f"{report.n_dropped:,}, {report.n_dropped_distinct:,} of them distinct"))
        rows.append(("proved", f"the first {report.n_proved:,} merges are the same without anything dropped"))
    speeds = {"counting": f", {_speed(report.n_bytes, seconds.get('counting'))}"}
    for stage, spent in seconds.items():
        rows.append((stage, f"{spent:.2f} s ({_share(spent, total)}){speeds.get(stage, '')}"))
    longest = report.longest_token
    rows += [
        ("peak memory", f"{report.peak_memory / 1e6:,.0f} MB"),
        ("longest token", f"{literal(longest)} ({len(longest)} bytes)"),
    ]
    facts = {
        "vocabulary": out,
        "vocab_size": tokenizer.vocab_size,
        "bytes": report.n_bytes,
        "documents": report.n_documents,
        "invalid": report.n_invalid,
        "unmatched_bytes": report.n_unmatched,
        "pretokens": report.n_pretokens,
        "distinct_pretokens": report.n_distinct,
        "dropped_pretokens": report.n_dropped,
        "dropped_distinct_pretokens": report.n_dropped_distinct,
        "merges": report.n_merges,
        "given_merges": report.n_given,
        "weights": {name: str(weight) for name, weight in report.weights.items()},
        "weight_unit": report.unit,
        "proved_merges": report.n_proved,
        "stop": report.stop,
        "seconds": seconds,
        "bytes_per_second": report.n_bytes / total if total else None,
        "peak_memory_bytes": report.peak_memory,
        "longest_token": {"text": longest.decode(errors="replace"), "bytes": len(longest)},
        "fingerprint": tokenizer.vocabulary.fingerprint(),
    }
    speed = _speed(report.n_bytes, total)
    return Summary(f"{out}: {tokenizer.vocab_size:,} ids in {total:.2f} s, {speed}", rows, facts)


def of_encoding(report: EncodeReport, shard_format: str) -> Summary:
    """What was read, written and spent."""
    speed = _speed(report.n_bytes, report.seconds)
    per_token = report.n_bytes / report.n_tokens if report.n_tokens else 0.0
    rows = [
        (
            "text",
            f"{report.n_bytes / 1e6:,.1f} MB, {report.n_documents:,} documents{_invalid(report.n_invalid)}",
        ),
        *([("not read", _quarantined(report))] if report.n_quarantined else []),
        *([("gone on with", f"{report.n_resumed:,} partitions were done before")] if report.n_resumed else []),
        ("tokens", f"{report.n_tokens:,}, {per_token:.2f} bytes each; largest id {report.max_id:,}"),
        ("shards", f"{report.n_shards:,} ({shard_format}, {report.dtype})"),
        ("encoding", f"{report.seconds:.2f} s, {speed}"),
        ("peak memory", f"{report.peak_memory / 1e6:,.0f} MB"),
    ]
    facts = {
        "path": str(report.path),
        "format": shard_format,
        "dtype": str(report.dtype),
        "bytes": report.n_bytes,
        "documents": report.n_documents,
        "invalid": report.n_invalid,
        "quarantined": report.n_quarantined,
        "resumed": report.n_resumed,
        "tokens": report.n_tokens,
        "max_id": report.max_id,
        "shards": report.n_shards,
        "seconds": report.seconds,
        "bytes_per_second": report.n_bytes / report.seconds if report.seconds else None,
        "peak_memory_bytes": report.peak_memory,
    }
    return Summary(f"{report.path}: {report.n_tokens:,} tokens in {report.seconds:.2f} s, {speed}", rows, facts)


def of_verification(report: VerifyReport) -> Summary:
    """What was found to be right."""
    rows = [
        ("documents", f"{report.n_documents:,}"),
        ("tokens", f"{report.n_tokens:,} in {report.n_shards:,} shards"),
        (
            "text",
            f"{report.n_bytes / 1e6:,.1f} MB compared, all equal{_mended(report.n_invalid)}"
            if report.n_bytes
            else "not compared (--roundtrip)",
        ),
        ("not read", f"{report.n_quarantined:,} documents, listed in quarantine.jsonl"),
        ("seconds", f"{report.seconds:.2f}"),
    ]
    facts = {**asdict(report), "right": True}
    return Summary(
        f"{report.path}: whole", [row for row in rows if row[0] != "not read" or report.n_quarantined], facts
    )


def of_layout(path: str, layout: LayoutRecord) -> Summary:
    """What was found to be right in a folder that `reshape` wrote."""
    rows = [
        ("layout", f"{layout.layout}, {layout.dtype}"),
        ("documents", f"{layout.documents:,}"),
        ("tokens", f"{layout.tokens:,} in {len(layout.files):,} files"),
    ]
    facts = {
        "path": path,
        "layout": layout.layout,
        "dtype": layout.dtype,
        "documents": layout.documents,
        "tokens": layout.tokens,
        "files": len(layout.files),
        "fingerprint": layout.vocabulary,
        "right": True,
    }
    return Summary(f"{path}: whole", rows, facts)


def _mended(count: int) -> str:
    return f"; {count:,} places were not UTF-8 and mended first" if count else ""


def of_reshaping(report: ReshapeReport) -> Summary:
    """What was written and spent."""
    lacking = f"; {report.n_lacking:,} came without the separator" if report.n_lacking else ""
    speed = f"{report.n_tokens / 1e6 / report.seconds:,.1f} M tokens/s" if report.seconds else "no time measured"
    rows = [
        ("documents", f"{report.n_documents:,}{lacking}"),
        ("tokens", f"{report.n_tokens:,}; largest id {report.max_id:,}"),
        ("shards", f"{report.n_shards:,} ({report.layout}, {report.dtype}), {report.n_bytes / 1e6:,.1f} MB"),
        ("reshaping", f"{report.seconds:.2f} s, {speed}"),
    ]
    facts = {
        "path": report.path,
        "layout": report.layout,
        "dtype": report.dtype,
        "documents": report.n_documents,
        "lacking_separator": report.n_lacking,
        "tokens": report.n_tokens,
        "max_id": report.max_id,
        "shards": report.n_shards,
        "bytes": report.n_bytes,
        "seconds": report.seconds,
    }
    return Summary(f"{report.path}: {report.layout}, {report.n_tokens:,} tokens in {report.seconds:.2f} s", rows, facts)


def of_tokenizer(tokenizer: Tokenizer, path: str, longest: int = 5) -> Summary:
    """What a vocabulary holds, with its `longest` longest tokens."""
    from dask_bpe.pretokenize.patterns import pattern_to_json

    vocabulary = tokenizer.vocabulary
    pattern = pattern_to_json(vocabulary.pattern)
    specials = dict(vocabulary.special_tokens)
    reserved = set(specials.values())
    learned = [(token, index) for index, token in enumerate(vocabulary.tokens) if token and index not in reserved]
    top = sorted(learned, key=lambda item: (-len(item[0]), item[1]))[:longest]
    rows = [
        (
            "size",
            f"{len(vocabulary):,} ids: {len(vocabulary.merges):,} merges, {len(specials)} special tokens",
        ),
        ("special tokens", _named(specials)),
        ("pattern", pattern if isinstance(pattern, str) else json.dumps(pattern) if pattern else "none"),
        ("ties", vocabulary.ties),
        ("id type", str(vocabulary.dtype)),
        ("fingerprint", vocabulary.fingerprint()),
        ("longest tokens", ", ".join(f"{literal(token)} ({len(token)} bytes)" for token, _ in top)),
    ]
    facts = {
        "vocabulary": path,
        "vocab_size": len(vocabulary),
        "merges": len(vocabulary.merges),
        "special_tokens": specials,
        "pattern": pattern,
        "ties": vocabulary.ties,
        "dtype": str(vocabulary.dtype),
        "fingerprint": vocabulary.fingerprint(),
        "longest_tokens": [
            {"id": index, "text": token.decode(errors="replace"), "bytes": len(token)} for token, index in top
        ],
    }
    return Summary(f"{path}: a vocabulary", rows, facts)


def of_corpus(corpus: TokenCorpus, verified: bool) -> Summary:
    """What a folder of shards holds; `verified` when every checksum has just been found right."""
    manifest = corpus.manifest
    rows = [
        ("documents", f"{corpus.n_documents:,}"),
        ("tokens", f"{corpus.n_tokens:,}; largest id {manifest.max_id:,} of {manifest.vocab_size:,}"),
        (
            "shards",
            f"{len(corpus.shards):,} ({manifest.format}, {manifest.dtype}), {manifest.bytes / 1e6:,.1f} MB",
        ),
        ("vocabulary", manifest.vocabulary),
        ("options", ", ".join(f"{name} = {value}" for name, value in manifest.options.items()) or "none"),
        ("checksums", "right" if verified else "not looked at (--verify)"),
    ]
    facts = {
        "path": corpus.path,
        "format": manifest.format,
        "dtype": manifest.dtype,
        "documents": corpus.n_documents,
        "tokens": corpus.n_tokens,
        "max_id": manifest.max_id,
        "vocab_size": manifest.vocab_size,
        "bytes": manifest.bytes,
        "shards": [shard.name for shard in corpus.shards],
        "fingerprint": manifest.vocabulary,
        "options": dict(manifest.options),
        "verified": verified,
    }
    return Summary(f"{corpus.path}: an encoded corpus", rows, facts)


def _quarantined(report: EncodeReport) -> str:
    what = "document" if report.n_quarantined == 1 else "documents"
    return f"{report.n_quarantined:,} {what}, listed in quarantine.jsonl"


def _named(special_tokens: Mapping[str, int]) -> str:
    """The first special tokens and their ids; published vocabularies have hundreds."""
    shown = [f"{text} = {index}" for text, index in islice(special_tokens.items(), _SHOWN)]
    more = len(special_tokens) - len(shown)
    return ", ".join(shown + [f"and {more:,} more"] * (more > 0)) or "none"


def _unmatched(count: int) -> str:
    return f"; {count:,} bytes that the pattern leaves unmatched, so their text cannot be encoded" if count else ""


def _invalid(sequences: int) -> str:
    return f"; not UTF-8: {sequences:,} places" if sequences else ""


def _share(spent: float, total: float) -> str:
    return f"{spent / total:.0%}" if total else "0%"


def _speed(n_bytes: int, seconds: float | None) -> str:
    return f"{n_bytes / 1e6 / seconds:,.1f} MB/s" if seconds else "no time measured"
