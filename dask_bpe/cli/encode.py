"""`dask-bpe encode`: text to shards of token ids."""

from __future__ import annotations

from typing import Any

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import Input, Work, input_options, work_options
from dask_bpe.cli.reshape import LAYOUTS


def _layouts(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Every LAYOUT=FOLDER as the two of them."""
    pairs = []
    for value in values:
        layout, _, folder = value.partition("=")
        if layout not in LAYOUTS or not folder:
            raise click.BadParameter(f"{value!r} is not LAYOUT=FOLDER with one of {', '.join(LAYOUTS)}")
        pairs.append((layout, folder))
    return tuple(pairs)


@click.command("encode")
@input_options
@click.option("-t", "--tokenizer", metavar="FILE", required=True, help="A vocabulary made by `train`.")
@click.option(
    "-o", "--out", metavar="FOLDER", required=True, help="New, empty, or of the same job; shards and manifest.json."
)
@click.option(
    "--format",
    "shard_format",
    type=click.Choice(["bin", "parquet"]),
    default="bin",
    show_default=True,
    help="Flat arrays of ids for memory maps, or Parquet with a row per document.",
)
@click.option("--dtype", type=click.Choice(["uint16", "uint32"]), help="Of an id.  [default: uint16 if all fit]")
@click.option(
    "--separator",
    metavar="TEXT",
    help="The special token that ends a document.  [default: <|endoftext|>, or the first]",
)
@click.option(
    "--end/--no-end", "end_of_document", default=True, show_default=True, help="The separator after documents."
)
@click.option("--begin", "begin_of_document", metavar="TEXT", help="A special token to put before every document.")
@click.option(
    "--shard-tokens", type=int, default=1 << 26, show_default=True, help="A shard ends with the document that fills it."
)
@click.option(
    "--on-error",
    type=click.Choice(["quarantine", "raise"]),
    default="quarantine",
    show_default=True,
    help="About documents that cannot be read: list them in quarantine.jsonl and go on, or stop.",
)
@click.option("--max-bad", type=int, default=1000, show_default=True, help="Stop at more such documents than this.")
@click.option(
    "--also",
    callback=_layouts,
    metavar="LAYOUT=FOLDER",
    multiple=True,
    help="Then write them in this layout too, as `reshape` does. May be given many times.",
)
@click.option("--overwrite", is_flag=True, help="Delete what another job has left in the folder.")
@work_options
def command(
    corpus: Input,
    tokenizer: str,
    out: str,
    shard_format: str,
    dtype: str | None,
    separator: str | None,
    also: tuple[tuple[str, str], ...],
    work: Work,
    **choices: Any,
) -> None:
    """Encode text to shards of token ids.

    SOURCE: files, folders, globs, URLs: text, JSONL, Parquet, Arrow, WARC, plain or compressed. The folder is complete
    when it holds manifest.json, which is written last. A job that was interrupted is gone on with by the same command.

    \b
    Examples:
      dask-bpe encode corpus/ --tokenizer vocabulary.json --out tokens/
      dask-bpe encode corpus/ --tokenizer vocabulary.json --out tokens/ --format parquet --cluster 4
      dask-bpe encode corpus/ --tokenizer vocabulary.json --out tokens/ --also megatron=megatron/ --also mds=mds/
      dask-bpe encode 's3://bucket/*.jsonl.zst' --field body --id-field id --tokenizer vocabulary.json --out tokens/
    """
    import dask_bpe

    model = dask_bpe.Tokenizer.load(tokenizer)
    with work.begin() as (client, progress):
        report = dask_bpe.encode_corpus(
            corpus.paths(),
            model,
            out,
            shard_format,
            dtype=dtype,
            errors=work.errors,
            separator=separator,
            block_bytes=work.block_bytes,
            memory_per_worker=work.memory_per_worker,
            input_format=corpus.format(),
            **choices,
            client=client,
            progress=progress,
        )
        reshaped = [dask_bpe.reshape(out, folder, to, overwrite=True, progress=progress) for to, folder in also]
    if not work.quiet:
        summary.show(summary.of_encoding(report, shard_format), work.as_json)
        for other in reshaped:
            summary.show(summary.of_reshaping(other), work.as_json)
