"""`dask-bpe train`: text, or counts saved before, to a vocabulary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import Input, Work, input_options, new_file, work_options

if TYPE_CHECKING:
    import dask_bpe


@click.command("train")
@input_options
@click.option("--vocab-size", type=int, required=True, help="Ids in all: 256 bytes, special tokens, merges.")
@click.option("-o", "--out", metavar="FILE", required=True, help="The vocabulary (JSON).")
@click.option(
    "--special-token",
    "special_tokens",
    metavar="TEXT",
    multiple=True,
    help="A text that is one id and never merged, such as '<|endoftext|>'. May be given many times.",
)
@click.option("--pattern", metavar="NAME|REGEX|none", help="How text is split into pre-tokens.  [default: gpt2]")
@click.option(
    "--ties",
    metavar="bytes|ids|huggingface|first",
    help="Which of equally frequent pairs is merged.  [default: bytes]",
)
@click.option("--min-frequency", type=int, default=1, show_default=True, help="Stop at pairs rarer than this.")
@click.option("--max-token-length", type=int, help="No token of more bytes than this.")
@click.option(
    "--alphabet",
    metavar="bytes|characters",
    default="bytes",
    show_default=True,
    help="What merges begin with: bytes, or the characters of the text.",
)
@click.option(
    "--min-character-count",
    type=int,
    default=1,
    show_default=True,
    help="Leave rarer characters to their bytes.",
)
@click.option(
    "--special-tokens-at",
    metavar="start|after_bytes|end",
    default="after_bytes",
    show_default=True,
    help="Where the ids of the special tokens are.",
)
@click.option(
    "--byte-order",
    metavar="value|gpt2",
    default="value",
    show_default=True,
    help="Order of the 256 ids of the bytes.",
)
@click.option("--extend", metavar="FILE", help="Go on from this vocabulary: its ids stay, new ones follow.")
@click.option(
    "--source",
    "named",
    metavar="NAME=PATH",
    multiple=True,
    help="One of several sources instead of SOURCE; the same name may be given many times.",
)
@click.option(
    "--weight",
    "weights",
    metavar="NAME=NUMBER",
    multiple=True,
    help="How often an occurrence in this source counts: 3, 0.5, 1/3.  [default: 1]",
)
@click.option(
    "--temperature",
    metavar="T",
    help="Weigh sources by size: shares become n ** (1/T), equal for a large T. (An exponent alpha is 1/T.)",
)
@click.option("--save-counts", metavar="FILE", help="Keep the counted pre-tokens (Parquet).")
@click.option("--from-counts", metavar="FILE", help="Train from counts saved before, without the text.")
@click.option("--min-count", type=int, default=1, show_default=True, help="Drop pre-tokens that occur less often.")
@click.option("--work-dir", metavar="DIR", help="Keep what is done here, and go on from it when run again.")
@click.option("--overwrite", is_flag=True, help="Start again in a --work-dir in which something was begun.")
@click.option(
    "--on-error",
    type=click.Choice(["quarantine", "raise"]),
    default="quarantine",
    show_default=True,
    help="About documents that cannot be read: leave them out (a --work-dir lists them in quarantine.jsonl), or stop.",
)
@click.option("--max-bad", type=int, default=1000, show_default=True, help="Stop at more such documents than this.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@work_options
def command(
    corpus: Input,
    vocab_size: int,
    out: str,
    special_tokens: tuple[str, ...],
    pattern: str | None,
    extend: str | None,
    named: tuple[str, ...],
    weights: tuple[str, ...],
    temperature: str | None,
    save_counts: str | None,
    from_counts: str | None,
    force: bool,
    min_count: int,
    work_dir: str | None,
    overwrite: bool,
    on_error: str,
    max_bad: int,
    work: Work,
    **rules: Any,
) -> None:
    """Train a vocabulary on text.

    SOURCE: files, folders, globs, URLs: text, JSONL, Parquet, Arrow, WARC, plain or compressed. Documents of text are
    what stands between special tokens. Without
    --scheduler or --cluster the work runs on the threads of this process.

    \b
    Examples:
      dask-bpe train corpus/ --vocab-size 32000 --special-token '<|endoftext|>' --out vocabulary.json
      dask-bpe train 'logs/*.txt' --vocab-size 8000 --save-counts counts.parquet --out small.json
      dask-bpe train --from-counts counts.parquet --vocab-size 16000 --out larger.json
      dask-bpe train --source en=en/ --source ko=ko.jsonl --temperature 3.33 --vocab-size 32000 --out both.json
      dask-bpe train medicine/ --extend vocabulary.json --vocab-size 40000 --out medical.json
      dask-bpe train corpus/ --vocab-size 32000 --work-dir work/ --min-count 2 --scheduler tcp://host:8786 --out v.json
    """
    if sum(map(bool, (corpus.source or corpus.files_from, named, from_counts))) != 1:
        raise click.UsageError("Give SOURCE, or --source NAME=PATH, or --from-counts: text, or what was counted in it.")
    if save_counts and named:
        raise click.UsageError("--save-counts keeps the counts of one source: save those of each by itself.")
    sources: dict[str, list[str]] = {}
    for name, path in _named("--source", named):
        sources.setdefault(name, []).append(path)
    weighed: dict[str, Any] = {"weights": dict(_named("--weight", weights)) or None, "temperature": temperature}
    for path in filter(None, (out, save_counts)):
        new_file(path, force)
    if save_counts == out:
        raise click.UsageError("--out and --save-counts name the same file.")

    import dask_bpe
    from dask_bpe.errors import whole_number
    from dask_bpe.training.fit import check_rules
    from dask_bpe.training.weighting import check_weights

    base = None if extend is None else dask_bpe.Tokenizer.load(extend)
    check_rules(vocab_size, special_tokens, **rules, extend=None if base is None else base.vocabulary)
    check_weights(sources or None, **weighed)
    whole_number("min_count", min_count)
    if overwrite and work_dir is None:
        raise click.UsageError("--overwrite is about a --work-dir, and none is given.")

    began = time.perf_counter()
    with work.begin() as (client, progress):
        options: dict[str, Any] = {
            "special_tokens": special_tokens or tuple(base.special_tokens if base else ()),
            "pattern": pattern or (base.pattern if base else "gpt2"),
            "errors": work.errors,
            "block_bytes": work.block_bytes,
            "min_count": min_count,
            "work_dir": work_dir,
            "overwrite": overwrite,
            "input_format": corpus.format(),
            "on_error": on_error,
            "max_bad": max_bad,
            "memory_per_worker": work.memory_per_worker,
            "client": client,
            "progress": progress,
        }
        source: list[str] | dict[str, list[str]] | dask_bpe.PretokenCounts
        if from_counts:
            source = dask_bpe.PretokenCounts.from_parquet(from_counts)
            options["pattern"] = source.pattern if pattern is None else pattern
            options["special_tokens"] = special_tokens or source.special_tokens
        else:
            source = sources or corpus.paths()
        if save_counts and not from_counts:
            source = dask_bpe.count_pretokens(corpus.paths(), **options)
            source.to_parquet(save_counts)
            options["overwrite"] = False  # what is there now was made just before
        counted = time.perf_counter() - began
        tokenizer = dask_bpe.train(source, vocab_size, extend=base, **weighed, **rules, **options)
    tokenizer.save(out)
    if not work.quiet:
        # The report of a training from counts knows nothing of the time that counting took.
        seconds = {"counting": counted} if save_counts and not from_counts else {}
        summary.show(summary.of_training(tokenizer, out, seconds), work.as_json)


def _named(option: str, given: tuple[str, ...]) -> list[tuple[str, str]]:
    """The names and values of ``NAME=VALUE``. Raises click.UsageError."""
    pairs = [text.partition("=") for text in given]
    for (name, _, value), text in zip(pairs, given, strict=True):
        if not name or not value:
            raise click.UsageError(f"{option} is {text!r}: NAME=VALUE was expected.")
    return [(name, value) for name, _, value in pairs]
