"""`dask-bpe compare`: what corpora cost with several tokenizers."""

from __future__ import annotations

import click

from dask_bpe.cli.options import Input, Work, input_options, size, tokenizers_option, work_options
from dask_bpe.cli.table import Output, csv_option, show


@click.command("compare")
@input_options
@tokenizers_option
@click.option("--sample", type=size, metavar="SIZE", help="Read about so much of each corpus, as 10MB.  [default: all]")
@click.option(
    "--context",
    "contexts",
    metavar="N,N",
    default="2048,8192",
    show_default=True,
    help="Count documents of more tokens than these.",
)
@click.option(
    "--separator", metavar="TEXT", default="<|endoftext|>", show_default=True, help="Ends documents of text files."
)
@csv_option
@work_options
def command(
    corpus: Input,
    tokenizers: tuple[str, ...],
    sample: int | None,
    contexts: str,
    separator: str,
    as_csv: bool,
    work: Work,
) -> None:
    """Compare tokenizers on corpora: tokens, bytes and characters for a token, what becomes of words.

    Each SOURCE is a corpus: a file, folder, glob or URL. A tokenizer is a file or folder of any format that `convert`
    reads, or a name in tiktoken; the others are compared with the first. All text is read, or a sample that is spread
    over each corpus.

    \b
    Examples:
      dask-bpe compare corpus/ -t vocabulary.json -t tokenizer.json
      dask-bpe compare en.txt zh.jsonl -t ours.json -t cl100k_base.tiktoken --sample 10MB --csv
    """
    output = Output(work.as_json, as_csv)
    lengths = _lengths(contexts)
    sources = corpus.paths()
    from dask_bpe.cluster.compare import compare

    with work.begin() as (client, progress):
        found = compare(
            tokenizers,
            sources,
            sample=sample,
            contexts=lengths,
            separator=separator or None,
            input_format=corpus.format(),
            errors=work.errors,
            block_bytes=work.block_bytes,
            client=client,
            progress=progress,
        )
    show(found, output)


def _lengths(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a list of lengths such as 2048,8192", param_hint="--context"
        ) from None
