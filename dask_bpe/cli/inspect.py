"""`dask-bpe inspect`: how a text falls into tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dask_bpe.cli.options import tokenizers_option
from dask_bpe.cli.table import Output, output_options, show, show_table
from dask_bpe.errors import InputError

if TYPE_CHECKING:
    from rich.tree import Tree

    from dask_bpe.analysis.merge_tree import MergeTree
    from dask_bpe.analysis.segmentation import Inspection


@click.command("inspect")
@click.argument("text", required=False)
@tokenizers_option
@click.option("--file", metavar="FILE", help="The text is in this file.")
@click.option("--tokens", is_flag=True, help="A row for each token: id, bytes, rank, pre-token.")
@click.option("--tree", is_flag=True, help="The merges that built each token.")
@click.option("--shortest", is_flag=True, help="The least number of tokens too, and where merging takes more.")
@output_options
def command(
    text: str | None,
    tokenizers: tuple[str, ...],
    file: str | None,
    tokens: bool,
    tree: bool,
    shortest: bool,
    output: Output,
) -> None:
    """Show how TEXT, or standard input, falls into tokens.

    A tokenizer is a file or folder of any format that `convert` reads, or a name in tiktoken. A space is shown as ·, a
    line end as ↵, a tab as →, parts of a character as their bytes: [e5 b8].

    \b
    Examples:
      dask-bpe inspect -t vocabulary.json '1234 naïve 自君'
      dask-bpe inspect -t vocabulary.json -t tokenizer.json --shortest --file main.py
      echo 'lowest' | dask-bpe inspect -t vocabulary.json --tree
    """
    if text is not None and file is not None:
        raise click.UsageError("Give either TEXT or --file.")
    data = _read(file) if text is None else text
    from dask_bpe.analysis.segmentation import inspect_text

    found = inspect_text(data, tokenizers, shortest=shortest)
    show(found, output)
    if output.as_json or output.as_csv:
        return
    if tokens:
        click.echo()
        for table in found.tables():
            show_table(table)
    if tree:
        click.echo()
        _show_trees(found)


def _read(file: str | None) -> bytes:
    """The text of a file, or of standard input without the line end that a shell puts there."""
    if file is None:
        return sys.stdin.buffer.read().removesuffix(b"\n")
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None


def _show_trees(found: Inspection) -> None:
    from rich.console import Console
    from rich.tree import Tree

    console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
    for one in found.segmentations:
        root = Tree(one.tokenizer, highlight=False)
        for tree in one.trees.values():
            if tree.parts:
                _grow(root, tree)
        console.print(root)


def _grow(root: Tree, tree: MergeTree) -> None:
    from rich.text import Text

    from dask_bpe.analysis.legible import legible

    rank = "" if tree.rank is None else f", rank {tree.rank:,}"
    branch = root.add(Text(f"{legible(tree.token)}  {tree.id}{rank}"))
    for part in tree.parts:
        _grow(branch, part)
