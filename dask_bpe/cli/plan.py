"""`dask-bpe plan`: what training and encoding a corpus will take, before it is begun."""

from __future__ import annotations

import json
import shutil

import click

from dask_bpe.cli.corpora import pattern_option, special_token_option
from dask_bpe.cli.options import Input, input_options, json_option, new_file, progress_option, size


@click.command("plan")
@input_options
@click.option("--workers", type=int, default=1, show_default=True, help="Processes of the cluster.")
@click.option("--threads", type=int, help="Threads of each.  [default: the CPUs of this machine]")
@click.option("--vocab-size", type=int, help="Ids in all.  [default: those of the tokenizer, else 32000]")
@click.option("-t", "--tokenizer", metavar="FILE", help="What encodes.  [default: one trained on the sample]")
@special_token_option
@pattern_option
@click.option("--size", "corpus_size", type=size, metavar="SIZE", help="Plan for so much of such files, as 825GiB.")
@click.option(
    "--sample", "sample_bytes", type=size, metavar="SIZE", default="64MiB", show_default=True, help="How much is read."
)
@click.option(
    "--format",
    "shard_format",
    type=click.Choice(["bin", "parquet"]),
    default="bin",
    show_default=True,
    help="Of the shards.",
)
@click.option("--block-size", "block_bytes", type=size, metavar="SIZE", help="Text per task, such as 64MiB.")
@click.option(
    "--memory-per-worker", type=size, metavar="SIZE", help="What a worker may use.  [default: all of this machine's]"
)
@click.option("--storage", type=float, metavar="MB/S", help="What all tasks read and write together.  [default: any]")
@click.option(
    "--network", type=float, metavar="MB/S", default=1000, show_default=True, help="From one worker to another."
)
@click.option("--plot", metavar="FILE", help="Draw the time over the number of workers (.svg, .png, .pdf).")
@click.option("--force", is_flag=True, help="Replace a plot that exists.")
@progress_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@json_option
def command(
    corpus: Input,
    workers: int,
    threads: int | None,
    vocab_size: int | None,
    tokenizer: str | None,
    special_tokens: tuple[str, ...],
    pattern: str | None,
    corpus_size: int | None,
    sample_bytes: int,
    shard_format: str,
    block_bytes: int | None,
    memory_per_worker: int | None,
    storage: float | None,
    network: float,
    plot: str | None,
    force: bool,
    progress: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure a sample of a corpus, and say what all of it will take.

    SOURCE: files, folders, globs, URLs, as for `encode`. Some of it is read, counted, trained on, encoded and written
    to a temporary folder, on one thread of this machine. From that follow memory, time and output of `train` and
    `encode`, and how they would go on 1 to 10,000 workers.

    \b
    Examples:
      dask-bpe plan corpus/
      dask-bpe plan 'shards/00.jsonl.zst' --size 825GiB --workers 50 --threads 16 --storage 20000 --plot plan.svg
      dask-bpe plan corpus/ --tokenizer vocabulary.json --json
    """
    import dask_bpe
    from dask_bpe.cli.plan_text import lines_of
    from dask_bpe.cluster.planning.plot import check_plot, draw
    from dask_bpe.monitor import terminal_progress

    if plot is not None:
        new_file(plot, force)
        check_plot(plot)
    source = corpus.paths()
    model = dask_bpe.Tokenizer.load(tokenizer) if tokenizer else None
    with terminal_progress("none" if quiet else progress) as view:
        plan = dask_bpe.plan_corpus(
            source,
            workers=workers,
            threads=threads,
            vocab_size=vocab_size,
            tokenizer=model,
            pattern="gpt2" if pattern is None else pattern,
            special_tokens=special_tokens,
            size=corpus_size,
            sample_bytes=sample_bytes,
            input_format=corpus.format(),
            format=shard_format,
            block_bytes=block_bytes,
            memory_per_worker=memory_per_worker,
            storage=None if storage is None else storage * 1e6,
            network=network * 1e6,
            progress=view,
        )
    if plot is not None:
        draw(plan, plot)
    if as_json:
        click.echo(json.dumps(plan.to_json(), ensure_ascii=False))
        return
    # Where no terminal is, a line is as long as of old.
    width = min(max(shutil.get_terminal_size((80, 24)).columns, 60), 120)
    for line in lines_of(plan, source, width):
        click.echo(line)
