"""`dask-bpe report`: a job, or a vocabulary, as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dask_bpe.cli import corpora
from dask_bpe.cli.options import Input, Work, input_options, new_file, work_options

if TYPE_CHECKING:
    from dask_bpe.pages import Document


@click.command("report")
@input_options
@click.option("-o", "--out", metavar="FILE|DIR", help="Write it there, instead of printing it.")
@click.option("--html", "form", flag_value="html", help="Print one page that needs no other file.")
@click.option("--markdown", "form", flag_value="markdown", default=True, help="Print Markdown.  [default]")
@click.option("--lab", is_flag=True, help="Report on two texts, with a vocabulary of both and one of the English one.")
@click.option(
    "--sizes", metavar="N,N,...", default="256,320,384,512", show_default=True, help="With --lab: ids in all."
)
@click.option("--rare", type=click.IntRange(min=1), default=100, show_default=True, help="Tokens used less are rare.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@work_options
def command(
    corpus: Input, out: str | None, form: str, lab: bool, sizes: str, rare: int, force: bool, work: Work
) -> None:
    """Report on a job, or on a vocabulary and the text it is used for.

    \b
    SOURCE decides, by its first item:
      a folder          that `encode` wrote, finished or not, or the --work-dir of a training: stages and times,
                        throughput, memory, what could not be read, what would have been faster
      a vocabulary      followed by corpora, each a text as for `train`, or saved counts: what a token costs, by size
                        and by corpus, how the tokens are used, what they are, which are odd

    With --lab it is two texts, Korean and English: what each costs under a vocabulary of both and under one of the
    English one alone. A job's --out is a file, of .html, .md or .json; that of the others a folder, which gets all
    three.

    \b
    Examples:
      dask-bpe report tokens/ -o report.html
      dask-bpe report work/ --json
      dask-bpe report vocabulary.json english.txt multilingual.parquet -o report/
      dask-bpe report --lab korean.txt english.txt -o lab/
    """
    paths = corpus.paths()
    form = "json" if work.as_json else form
    if lab:
        _report_lab(paths, corpus, out, form, corpora.numbers(sizes), force, work)
    elif _is_vocabulary(paths[0]):
        _report_vocabulary(paths, corpus, out, form, rare, force, work)
    else:
        _report_job(paths, out, form, force)


def _is_vocabulary(path: str) -> bool:
    """Whether a path is that of a vocabulary of any format: a file, but none of a job's, or a folder of one."""
    place = Path(path)
    if place.is_file():
        return place.name not in ("manifest.json", "job.json")
    return any((place / name).is_file() for name in ("tokenizer.json", "vocab.json"))


def _report_job(paths: list[str], out: str | None, form: str, force: bool) -> None:
    from dask_bpe import run_report

    if len(paths) > 1:
        raise click.UsageError(f"{paths[0]} is no vocabulary; of a job give its folder alone.")
    if out is not None:
        new_file(out, force)
    document = run_report.report(run_report.read_evidence(paths[0]))
    if out is None:
        _print(document, form)
    else:
        document.save(out)
        click.echo(out)


def _report_vocabulary(
    paths: list[str], corpus: Input, out: str | None, form: str, rare: int, force: bool, work: Work
) -> None:
    from dask_bpe import report_vocabulary

    if len(paths) < 2:
        raise click.UsageError(f"Give the text that {paths[0]} is to be looked at with, after it.")
    folder = None if out is None else new_folder(out, ("report.html", "report.md", "report.json"), force)
    name, tokenizer = corpora.load_tokenizer(paths[0])
    sources = {name: corpora.load([path]) for name, path in corpora.names_of(paths[1:]).items()}
    with work.begin() as (client, progress):
        how = corpora.reading(work, corpus, client, progress)
        document = report_vocabulary(tokenizer, sources, name=name, rare=rare, **how)
    if folder is None:
        _print(document, form)
        return
    for suffix in ("json", "md", "html"):  # what needs matplotlib last
        document.save(str(folder / f"report.{suffix}"))
    if not work.quiet:
        click.echo(str(folder / "report.html"))


def _report_lab(
    paths: list[str], corpus: Input, out: str | None, form: str, sizes: list[int], force: bool, work: Work
) -> None:
    from dask_bpe import report_lab
    from dask_bpe.io.atomic import atomic_write

    if len(paths) != 2:
        raise click.UsageError(f"--lab is about two texts: {len(paths)} are given.")
    names = "token_report.json", "token_report.md", "token_report.html"
    folder = None if out is None else new_folder(out, names, force)
    one, other = (corpora.load([path]) for path in paths)
    with work.begin() as (client, progress):
        document = report_lab(one, other, sizes, **corpora.reading(work, corpus, client, progress))
    figures = json.dumps(document.data, ensure_ascii=False, indent=1) + "\n"
    if folder is None:
        click.echo(figures, nl=False) if form == "json" else _print(document, form)
        return
    with atomic_write(folder / names[0]) as file:
        file.write(figures.encode())
    for name in names[1:]:
        document.save(str(folder / name))
    if not work.quiet:
        click.echo(str(folder / names[1]))


def new_folder(path: str, names: tuple[str, ...], force: bool) -> Path:
    """A folder that will get files of these names; made if it is not there. Raises OutputError as `new_file`."""
    from dask_bpe.errors import OutputError

    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {path}: {error.strerror or error}") from error
    for name in names:
        new_file(str(folder / name), force)
    return folder


def _print(document: Document, form: str) -> None:
    made = {"html": document.to_html, "markdown": document.to_markdown, "json": document.to_json}
    click.echo(made[form](), nl=False)
