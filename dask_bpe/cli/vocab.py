"""`dask-bpe vocab`: what is in a vocabulary."""

from __future__ import annotations

import click

from dask_bpe.cli import corpora
from dask_bpe.cli.options import Input, Work, input_options, work_options
from dask_bpe.cli.table import Output, csv_option, show


@click.command("vocab")
@click.argument("tokenizer")
@input_options
@click.option("--longest", "n_longest", type=click.IntRange(min=0), default=20, show_default=True, help="Tokens named.")
@click.option(
    "--rare", type=click.IntRange(min=1), default=100, show_default=True, help="List tokens used less often than this."
)
@click.option("--usage", is_flag=True, help="Show how often SOURCE uses the tokens, instead.")
@csv_option
@work_options
def command(tokenizer: str, corpus: Input, n_longest: int, rare: int, usage: bool, as_csv: bool, work: Work) -> None:
    """Say what the tokens of a vocabulary are: whole characters or parts, letters of which script, which are odd.

    TOKENIZER: a vocabulary file. With SOURCE, text as for `train` or counts that it saved, the tokens are named too
    that it never or hardly uses, and special tokens in it are counted.

    \b
    Examples:
      dask-bpe vocab vocabulary.json
      dask-bpe vocab vocabulary.json corpus/ --rare 10
      dask-bpe vocab vocabulary.json counts.parquet --usage --csv
    """
    output = Output(work.as_json, as_csv)
    named = bool(corpus.source or corpus.files_from)
    if usage and not named:
        raise click.UsageError("--usage is about a corpus: give SOURCE.")

    import dask_bpe

    _, model = corpora.load_tokenizer(tokenizer)
    source = corpora.load(corpus.paths()) if named else None
    with work.begin() as (client, progress):
        how = corpora.reading(work, corpus, client, progress)
        if usage and source is not None:
            show(dask_bpe.measure_usage(model, source, **how), output)
        else:
            show(dask_bpe.describe_vocabulary(model, source, n_longest=n_longest, rare=rare, **how), output)
