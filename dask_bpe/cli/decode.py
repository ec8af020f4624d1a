"""`dask-bpe decode`: token ids, given or from shards, to text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from dask_bpe.errors import InputError, ParameterError, VocabularyError

if TYPE_CHECKING:
    from dask_bpe import Tokenizer


@click.command("decode")
@click.argument("ids", nargs=-1, type=int)
@click.option("-t", "--tokenizer", metavar="FILE", required=True, help="The vocabulary of the ids.")
@click.option("--shards", metavar="FOLDER", help="Decode what `encode` wrote there.")
@click.option("--document", metavar="N", type=int, help="Only this document of the shards, counted from 0.")
def command(ids: tuple[int, ...], tokenizer: str, shards: str | None, document: int | None) -> None:
    """Write the text of token ids to standard output.

    IDS are given as arguments, or by standard input, or lie in shards. The bytes are written as they are,
    without a line end of our own.

    \b
    Examples:
      dask-bpe decode --tokenizer vocabulary.json 72 101 108
      echo '[72, 101, 108]' | dask-bpe decode --tokenizer vocabulary.json
      dask-bpe decode --tokenizer vocabulary.json --shards tokens/ --document 3
    """
    if shards is not None and ids:
        raise click.UsageError("Give either IDS or --shards.")
    if document is not None and shards is None:
        raise click.UsageError("--document picks from --shards: give the folder too.")

    import dask_bpe

    model = dask_bpe.Tokenizer.load(tokenizer)
    out = sys.stdout.buffer
    if shards is not None:
        for tokens in _documents(shards, document, model):
            out.write(model.decode_bytes(tokens))
    else:
        out.write(model.decode_bytes(ids or _read_ids()))
    out.flush()


def _documents(folder: str, document: int | None, model: Tokenizer) -> Iterator[Any]:
    """The ids of one document, or of every one, as arrays."""
    import dask_bpe

    corpus = dask_bpe.open_tokens(folder)
    if corpus.manifest.vocabulary != model.vocabulary.fingerprint():
        raise VocabularyError(
            f"{folder} was encoded with another vocabulary (fingerprint {corpus.manifest.vocabulary[:12]}...,"
            f" this one is {model.vocabulary.fingerprint()[:12]}...)"
        )
    if document is None:
        yield from corpus.documents
    elif 0 <= document < corpus.n_documents:
        yield corpus.documents[document]
    else:
        raise ParameterError(f"document {document} of {folder} does not exist; it holds 0 to {corpus.n_documents - 1}")


def _read_ids() -> Sequence[int]:
    """Ids from standard input, separated by space, commas or line ends; brackets are overlooked."""
    words = re.split(r"[\s,\[\]]+", sys.stdin.read())
    try:
        return [int(word) for word in words if word]
    except ValueError as error:
        raise InputError(f"standard input is not a list of token ids: {error}") from error
