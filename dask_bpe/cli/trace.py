"""`dask-bpe trace`: the merges of a training, one by one."""

from __future__ import annotations

from typing import Any

import click

from dask_bpe.cli import corpora
from dask_bpe.cli.options import Input, Work, input_options, work_options
from dask_bpe.cli.table import Output, csv_option, show


@click.command("trace")
@input_options
@click.option("--vocab-size", type=int, help="Ids in all, of the training that is traced.")
@click.option("-t", "--tokenizer", metavar="FILE", help="Trace the training of this vocabulary, which SOURCE made.")
@corpora.pattern_option
@corpora.special_token_option
@corpora.ties_option
@corpora.min_frequency_option
@corpora.max_token_length_option
@click.option("--head", type=click.IntRange(min=0), metavar="N", help="The first N merges.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="The last N merges.")
@click.option("--around", metavar="TOKEN", help="The merge that makes TOKEN, and ten before and after it.")
@click.option("--about", metavar="TOKEN", help="The merges that make TOKEN or join it to another.")
@click.option("--min-count", type=click.IntRange(min=1), metavar="N", help="Merges of pairs that stood there N times.")
@csv_option
@work_options
def command(
    corpus: Input,
    vocab_size: int | None,
    tokenizer: str | None,
    pattern: str | None,
    special_tokens: tuple[str, ...],
    head: int | None,
    tail: int | None,
    around: str | None,
    about: str | None,
    min_count: int | None,
    as_csv: bool,
    work: Work,
    **rules: Any,
) -> None:
    """Show merge by merge what a training joined, how often it stood there, and how many tokens were left.

    SOURCE: text as for `train`, or counts that it saved. Of many merges the first and the last are shown; --json and
    --csv give all that were chosen.

    \b
    Examples:
      dask-bpe trace corpus/ --vocab-size 1000 --tail 30
      dask-bpe trace counts.parquet --tokenizer vocabulary.json --around ' the'
      dask-bpe trace counts.parquet --vocab-size 32000 --min-count 100 --csv
    """
    output = Output(work.as_json, as_csv)
    if (vocab_size is None) == (tokenizer is None):
        raise click.UsageError("Give --vocab-size of a training, or --tokenizer that it made.")

    import dask_bpe

    source = corpora.load(corpus.paths())
    if tokenizer is None:
        options = {"vocab_size": vocab_size, **rules, **corpora.cuts(source, pattern, special_tokens)}
    else:
        rules.pop("ties")  # the vocabulary knows
        options = {"tokenizer": corpora.load_tokenizer(tokenizer)[1], **rules}
    with work.begin() as (client, progress):
        trace = dask_bpe.trace_merges(source, **options, **corpora.reading(work, corpus, client, progress))
    if min_count is not None:
        trace = trace.at_least(min_count)
    if about is not None:
        trace = trace.about(about)
    if around is not None:
        trace = trace.around(around)
    if head is not None:
        trace = trace.head(head)
    if tail is not None:
        trace = trace.tail(tail)
    show(trace, output)
