"""`dask-bpe reshape`: an encoded corpus in the layout of another trainer."""

from __future__ import annotations

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import json_option, progress_option

# The names of `dask_bpe.io.layouts.LAYOUTS`, which --help need not import.
LAYOUTS = ("bin", "parquet", "nanogpt", "llmc", "megatron", "dolma", "datatrove", "mds", "litdata")


@click.command("reshape")
@click.argument("source", metavar="TOKENS")
@click.option("--to", type=click.Choice(LAYOUTS), required=True, help="What to write.")
@click.option("-o", "--out", metavar="FOLDER", required=True, help="New or empty; complete when it holds layout.json.")
@click.option("--dtype", metavar="TYPE", help="Of an id.  [default: the smallest that holds the vocabulary]")
@click.option(
    "--shard-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="A shard ends with the document that brings it to N tokens.  [default: what suits the layout]",
)
@click.option(
    "--val-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="The first documents, until they reach N tokens, are for validation (nanogpt, llmc).",
)
@click.option("--shuffle", type=click.IntRange(min=0), metavar="SEED", help="Documents in an order drawn by the seed.")
@click.option("--force", is_flag=True, help="Replace what reshape wrote to the folder before.")
@progress_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@json_option
def command(
    source: str,
    to: str,
    out: str,
    dtype: str | None,
    shard_tokens: int | None,
    val_tokens: int | None,
    shuffle: int | None,
    force: bool,
    progress: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write an encoded corpus in the layout of another trainer, without encoding it again.

    TOKENS is a folder that `encode` wrote. Beside the layout's own files lie documents.parquet, which says where each
    document comes from and where it is, and layout.json, the record with checksums, written last.

    \b
    bin, parquet   our own shards
    nanogpt        train.bin, one file of uint16
    llmc           llm.c's shards, with a header, the separator before each document
    megatron       Megatron-LM's .bin and .idx
    dolma          dolma's and OLMo's .npy and .csv.gz
    datatrove      .ds, .ds.index, .ds.metadata
    mds            shards of MosaicML's streaming
    litdata        LitData's chunks

    \b
    Examples:
      dask-bpe reshape tokens/ --to nanogpt --out nanogpt/ --val-tokens 1000000
      dask-bpe reshape tokens/ --to mds --out mds/ --shuffle 17
    """
    import dask_bpe
    from dask_bpe.monitor import terminal_progress

    with terminal_progress("none" if quiet else progress) as view:
        report = dask_bpe.reshape(
            source,
            out,
            to,
            dtype=dtype,
            shard_tokens=shard_tokens,
            val_tokens=val_tokens,
            shuffle=shuffle,
            overwrite=force,
            progress=view,
        )
    if not quiet:
        summary.show(summary.of_reshaping(report), as_json)
