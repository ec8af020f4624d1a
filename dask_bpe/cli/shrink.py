"""`dask-bpe shrink`: a vocabulary without what it learned last."""

from __future__ import annotations

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import json_option, new_file


@click.command("shrink")
@click.argument("tokenizer", metavar="TOKENIZER")
@click.option("--vocab-size", type=int, required=True, help="Ids that are left, special tokens included.")
@click.option("-o", "--out", metavar="FILE", required=True, help="The smaller vocabulary (JSON).")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@json_option
def command(tokenizer: str, vocab_size: int, out: str, force: bool, as_json: bool) -> None:
    """Cut off what the last merges of a vocabulary made.

    What is left is the vocabulary of a training to that size. Ids stay; special tokens that come after the merges
    move down.

    \b
    Example:
      dask-bpe shrink vocabulary.json --vocab-size 16000 --out smaller.json
    """
    new_file(out, force)

    import dask_bpe

    smaller = dask_bpe.Tokenizer.load(tokenizer).shrink(vocab_size)
    smaller.save(out)
    summary.show(summary.of_tokenizer(smaller, out), as_json)
