"""`dask-bpe languages`: what the same text costs in several languages."""

from __future__ import annotations

from dataclasses import replace

import click

from dask_bpe.cli.options import Input, Work, input_options, tokenizers_option, work_options
from dask_bpe.cli.table import Output, csv_option, show


@click.command("languages")
@input_options
@tokenizers_option
@click.option("--reference", metavar="LANGUAGE", help="Compare the others with it.  [default: the first one]")
@click.option(
    "--language-field", metavar="NAME", default="lang", show_default=True, help="Where documents name their language."
)
@csv_option
@work_options
def command(
    corpus: Input,
    tokenizers: tuple[str, ...],
    reference: str | None,
    language_field: str,
    as_csv: bool,
    work: Work,
) -> None:
    """Compare what the same text costs in several languages.

    SOURCE: a folder with a text file for each language, named by it, or files whose documents name their language
    (JSON Lines, Parquet, Arrow). By default ten articles of the Universal Declaration of Human Rights in 33 languages.

    \b
    Examples:
      dask-bpe languages -t vocabulary.json
      dask-bpe languages -t vocabulary.json -t tokenizer.json --reference zh
      dask-bpe languages flores.jsonl --field sentence --language-field iso -t vocabulary.json --csv
    """
    output = Output(work.as_json, as_csv)
    given = corpus.source or corpus.files_from is not None
    texts = corpus.paths() if given else None
    how = replace(corpus.format(), id_field=corpus.id_field or language_field) if given else None
    from dask_bpe.cluster.compare import compare_languages

    with work.begin() as (client, progress):
        found = compare_languages(
            tokenizers,
            texts,
            reference=reference,
            input_format=how,
            errors=work.errors,
            client=client,
            progress=progress,
        )
    show(found, output)
