"""`dask-bpe coverage`: held-out text under a vocabulary."""

from __future__ import annotations

import click

from dask_bpe.cli import corpora
from dask_bpe.cli.options import Input, Work, input_options, work_options
from dask_bpe.cli.table import Output, csv_option, show


@click.command("coverage")
@click.argument("tokenizer")
@input_options
@click.option(
    "--training",
    metavar="PATH",
    multiple=True,
    required=True,
    help="What the vocabulary was trained on: text, or counts that were saved. May be given many times.",
)
@csv_option
@work_options
def command(tokenizer: str, corpus: Input, training: tuple[str, ...], as_csv: bool, work: Work) -> None:
    """Say what held-out text costs, and what of it the training never met.

    TOKENIZER: a vocabulary file. SOURCE: the held-out text, as for `train`, or counts of it.

    \b
    Examples:
      dask-bpe coverage vocabulary.json held-out/ --training counts.parquet
      dask-bpe coverage vocabulary.json held-out.jsonl.gz --training corpus/ --json
    """
    output = Output(work.as_json, as_csv)

    import dask_bpe

    _, model = corpora.load_tokenizer(tokenizer)
    held_out, trained_on = corpora.load(corpus.paths()), corpora.load(training)
    with work.begin() as (client, progress):
        how = corpora.reading(work, corpus, client, progress)
        show(dask_bpe.measure_coverage(model, trained_on, held_out, **how), output)
