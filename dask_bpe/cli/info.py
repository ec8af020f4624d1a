"""`dask-bpe info`: what a vocabulary file or a folder of shards holds."""

from __future__ import annotations

from pathlib import Path

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import json_option


@click.command("info")
@click.argument("path")
@click.option("--verify", is_flag=True, help="Read every shard again and compare its checksum.")
@json_option
def command(path: str, verify: bool, as_json: bool) -> None:
    """Say what a vocabulary or an encoded corpus holds.

    PATH is a vocabulary file, or a folder (or its manifest.json) that `encode` wrote.

    \b
    Examples:
      dask-bpe info vocabulary.json
      dask-bpe info tokens/ --verify
    """
    import dask_bpe

    name = Path(path).name
    # A vocabulary checks its own checksum whenever it is loaded, so --verify asks nothing more of it.
    if name.endswith(".json") and name != "manifest.json":
        summary.show(summary.of_tokenizer(dask_bpe.Tokenizer.load(path), path), as_json)
        return
    corpus = dask_bpe.open_tokens(path)
    if verify:
        from dask_bpe.monitor import terminal_progress

        with terminal_progress("none" if as_json else "auto") as progress:
            corpus.verify(progress)
    summary.show(summary.of_corpus(corpus, verify), as_json)
