"""`dask-bpe curve`: how many tokens a corpus has under vocabularies of many sizes."""

from __future__ import annotations

from typing import Any

import click

from dask_bpe.cli import corpora
from dask_bpe.cli.options import Input, Work, input_options, work_options
from dask_bpe.cli.table import Output, csv_option, show


@click.command("curve")
@input_options
@corpora.source_option
@click.option("--sizes", metavar="N,N,...", help="Ids in all.  [default with --tokenizer: all doublings of 256]")
@click.option("-t", "--tokenizer", metavar="FILE", help="Cut this vocabulary to the sizes, instead of training.")
@corpora.pattern_option
@corpora.special_token_option
@corpora.ties_option
@corpora.min_frequency_option
@corpora.max_token_length_option
@csv_option
@work_options
def command(
    corpus: Input,
    sources: tuple[str, ...],
    sizes: str | None,
    tokenizer: str | None,
    pattern: str | None,
    special_tokens: tuple[str, ...],
    as_csv: bool,
    work: Work,
    **rules: Any,
) -> None:
    """Say how many tokens a corpus has by the size of the vocabulary, from one training.

    SOURCE: text as for `train`, or counts that it saved. Each size has exactly the tokens of a training of that size.

    \b
    Examples:
      dask-bpe curve corpus/ --sizes 1024,4096,16384,65536
      dask-bpe curve counts.parquet --sizes 256,320,384,512
      dask-bpe curve --source en=english.txt --source zh=chinese.txt --sizes 1024,8192 --csv
      dask-bpe curve corpus/ --tokenizer vocabulary.json
    """
    output = Output(work.as_json, as_csv)
    if sizes is None and tokenizer is None:
        raise click.UsageError("Give --sizes, such as 1024,4096,16384.")
    if tokenizer is not None and (pattern or special_tokens):
        raise click.UsageError("--tokenizer brings its own pattern and special tokens.")
    wanted = None if sizes is None else corpora.numbers(sizes)

    import dask_bpe

    source = corpora.load_sources(corpus, sources)
    options: dict[str, Any] = {"tokenizer": corpora.load_tokenizer(tokenizer)[1]} if tokenizer else rules
    options |= {} if tokenizer else corpora.cuts(source, pattern, special_tokens)
    with work.begin() as (client, progress):
        curve = dask_bpe.vocab_curve(source, wanted, **options, **corpora.reading(work, corpus, client, progress))
    show(curve, output)
