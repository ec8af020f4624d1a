"""`dask-bpe verify`: whether an encoded corpus is whole, and gives its text back."""

from __future__ import annotations

from pathlib import Path

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import Work, work_options


@click.command("verify")
@click.argument("path")
@click.argument("source", nargs=-1)
@click.option("--roundtrip", is_flag=True, help="Decode all of it and compare it with the text.")
@work_options
def command(path: str, source: tuple[str, ...], roundtrip: bool, work: Work) -> None:
    """Read an encoded corpus again and compare it with its manifest: checksums, tokens, documents, marks.

    PATH is a folder that `encode` wrote, or `reshape`. With --roundtrip the tokens are decoded and compared with the
    text, byte for byte; SOURCE names it if it does not lie where it was, in the order in which it was encoded.

    \b
    Examples:
      dask-bpe verify tokens/
      dask-bpe verify tokens/ --roundtrip --cluster 4
      dask-bpe verify tokens/ corpus/ --roundtrip
    """
    if source and not roundtrip:
        raise click.UsageError("SOURCE is what --roundtrip compares with: give both or neither.")
    import dask_bpe

    if not roundtrip and Path(path, "layout.json").is_file():
        layout = dask_bpe.verify_layout(path)
        if not work.quiet:
            summary.show(summary.of_layout(path, layout), work.as_json)
        return
    with work.begin() as (client, progress):
        report = dask_bpe.verify_corpus(path, roundtrip=list(source) or roundtrip, client=client, progress=progress)
    if not work.quiet:
        summary.show(summary.of_verification(report), work.as_json)
