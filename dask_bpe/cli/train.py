"""`dask-bpe train`: text, or counts saved before, to a vocabulary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import Work, new_file, work_options

if TYPE_CHECKING:
    import dask_bpe


@click.command("train")
@click.argument("source", nargs=-1)
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
    default="bytes",
    show_default=True,
    help="Which of equally frequent pairs is merged.",
)
@click.option("--min-frequency", type=int, default=1, show_default=True, help="Stop at pairs rarer than this.")
@click.option("--max-token-length", type=int, help="No token of more bytes than this.")
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
@click.option("--save-counts", metavar="FILE", help="Keep the counted pre-tokens (Parquet).")
@click.option("--from-counts", metavar="FILE", help="Train from counts saved before, without the text.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@work_options
def command(
    source: tuple[str, ...],
    vocab_size: int,
    out: str,
    special_tokens: tuple[str, ...],
    pattern: str | None,
    save_counts: str | None,
    from_counts: str | None,
    force: bool,
    work: Work,
    **rules: Any,
) -> None:
    """Train a vocabulary on text.

    SOURCE: files, folders, globs, URLs. Documents are what stands between special tokens. Without
    --scheduler or --cluster the work runs on the threads of this process.

    \b
    Examples:
      dask-bpe train corpus/ --vocab-size 32000 --special-token '<|endoftext|>' --out vocabulary.json
      dask-bpe train 'logs/*.txt' --vocab-size 8000 --save-counts counts.parquet --out small.json
      dask-bpe train --from-counts counts.parquet --vocab-size 16000 --out larger.json
    """
    if bool(source) == bool(from_counts):
        raise click.UsageError("Give either SOURCE or --from-counts: the text, or what was counted in it.")
    for path in filter(None, (out, save_counts)):
        new_file(path, force)
    if save_counts == out:
        raise click.UsageError("--out and --save-counts name the same file.")

    import dask_bpe
    from dask_bpe.training import check_rules

    check_rules(vocab_size, special_tokens, **rules)

    began = time.perf_counter()
    with work.begin() as (client, progress):
        options: dict[str, Any] = {
            "special_tokens": special_tokens,
            "pattern": "gpt2" if pattern is None else pattern,
            "errors": work.errors,
            "block_bytes": work.block_bytes,
            "client": client,
            "progress": progress,
        }
        corpus: list[str] | dask_bpe.PretokenCounts = list(source)
        if from_counts:
            corpus = dask_bpe.PretokenCounts.from_parquet(from_counts)
            options["pattern"] = corpus.pattern if pattern is None else pattern
            options["special_tokens"] = special_tokens or corpus.special_tokens
        elif save_counts:
            corpus = dask_bpe.count_pretokens(list(source), **options)
            corpus.to_parquet(save_counts)
        counted = time.perf_counter() - began
        tokenizer = dask_bpe.train(corpus, vocab_size, **rules, **options)
    tokenizer.save(out)
    if not work.quiet:
        # The report of a training from counts knows nothing of the time that counting took.
        seconds = {"counting": counted} if save_counts and not from_counts else {}
        summary.show(summary.of_training(tokenizer, out, seconds), work.as_json)
