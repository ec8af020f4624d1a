"""`dask-bpe encode`: text to shards of token ids."""

from __future__ import annotations

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import Work, work_options


@click.command("encode")
@click.argument("source", nargs=-1, required=True)
@click.option("-t", "--tokenizer", metavar="FILE", required=True, help="A vocabulary made by `train`.")
@click.option("-o", "--out", metavar="FOLDER", required=True, help="New or empty; shards and manifest.json.")
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
@work_options
def command(
    source: tuple[str, ...],
    tokenizer: str,
    out: str,
    shard_format: str,
    dtype: str | None,
    separator: str | None,
    work: Work,
) -> None:
    """Encode text to shards of token ids.

    SOURCE: files, folders, globs, URLs. The folder is complete when it holds manifest.json, which is
    written last.

    \b
    Examples:
      dask-bpe encode corpus/ --tokenizer vocabulary.json --out tokens/
      dask-bpe encode corpus/ --tokenizer vocabulary.json --out tokens/ --format parquet --cluster 4
    """
    import dask_bpe

    model = dask_bpe.Tokenizer.load(tokenizer)
    with work.begin() as (client, progress):
        report = dask_bpe.encode_corpus(
            list(source),
            model,
            out,
            shard_format,
            dtype=dtype,
            errors=work.errors,
            separator=separator,
            block_bytes=work.block_bytes,
            client=client,
            progress=progress,
        )
    if not work.quiet:
        summary.show(summary.of_encoding(report, shard_format), work.as_json)
