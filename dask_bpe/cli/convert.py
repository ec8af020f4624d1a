"""`dask-bpe convert`: a tokenizer from one format to another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import json_option, new_file
from dask_bpe.errors import OutputError, ParameterError
from dask_bpe.interchange.formats import BARE, FORMATS, PAIRS, read_as, recognise

if TYPE_CHECKING:
    import dask_bpe


@click.command("convert")
@click.argument("source", metavar="IN")
@click.argument("out", metavar="OUT")
@click.option("--to", type=click.Choice(FORMATS), required=True, help="What to write.")
@click.option("--from", "given", type=click.Choice(FORMATS), help="What IN is.  [default: what it looks like]")
@click.option("--pattern", metavar="NAME|REGEX|none", help="How text is split, where IN does not say it.")
@click.option(
    "--special-token",
    "special_tokens",
    metavar="TEXT[=ID]",
    multiple=True,
    help="A special token, where IN does not name them. May be given many times.",
)
@click.option("--force", is_flag=True, help="Replace files that exist.")
@json_option
def command(
    source: str,
    out: str,
    to: str,
    given: str | None,
    pattern: str | None,
    special_tokens: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Convert a tokenizer that gives the same ids, or say why the format cannot express it.

    \b
    dask_bpe      the vocabulary file of `train`
    huggingface   tokenizer.json, or a folder with it
    tiktoken      ranks (base64); written with pattern and special tokens beside them
    gpt2          a folder with vocab.json and merges.txt
    minbpe        a .model file
    course        a folder with vocab.json and merges.json, lists of bytes

    \b
    Examples:
      dask-bpe convert vocabulary.json tokenizer/ --to huggingface
      dask-bpe convert cl100k_base.tiktoken cl100k.json --to dask_bpe
      dask-bpe convert gpt2/ gpt2.json --to dask_bpe --special-token '<|endoftext|>'
    """
    import dask_bpe

    kind = given or _recognised(source)
    if kind not in BARE and (pattern is not None or special_tokens):
        raise ParameterError(f"a {kind} tokenizer comes with pattern and special tokens; leave the options out")
    for path in _written(to, out):
        new_file(str(path), force)
    tokenizer = dask_bpe.Tokenizer(read_as(kind, source, pattern, dict(map(_special, special_tokens))))
    if to in PAIRS:
        Path(out).mkdir(exist_ok=True)
    snippet = _write(tokenizer, to, out)
    shown = summary.of_tokenizer(tokenizer, out)
    facts = shown.facts | {"from": kind, "to": to} | ({"python": snippet.split("\n")} if snippet else {})
    rows = shown.rows + [("to load it", line) for line in snippet.split("\n") if line]
    summary.show(summary.Summary(f"{out}: {to}, of {source} ({kind})", rows, facts), as_json)


def _recognised(source: str) -> str:
    """The format of a file or folder, by its name and what it holds."""
    kind = recognise(source)
    if kind is None:
        raise ParameterError(f"{source} does not show what it is: name its format with --from {'|'.join(FORMATS)}")
    return kind


def _written(to: str, out: str) -> list[Path]:
    """The files that will be written."""
    if not out:
        raise OutputError("OUT is empty; give the name of a file or a folder")
    if to in PAIRS:
        _new_folder(out)
        return [Path(out) / name for name in PAIRS[to] if Path(out).is_dir()]
    if to == "huggingface" and not out.endswith(".json"):
        _new_folder(out)
        return [Path(out) / name for name in ("tokenizer.json", "tokenizer_config.json") if Path(out).is_dir()]
    return [Path(out), Path(f"{out}.json")] if to == "tiktoken" else [Path(out)]


def _new_folder(out: str) -> None:
    if Path(out).exists() and not Path(out).is_dir():
        raise OutputError(f"{out} is a file, and a folder is to be written; give another name")
    if not Path(out).absolute().parent.is_dir():
        raise OutputError(f"{Path(out).parent}, the folder of {Path(out).name}, does not exist; make it first")


def _write(tokenizer: dask_bpe.Tokenizer, to: str, out: str) -> str:
    """Returns the lines of Python that load what was written, if it needs any."""
    if to == "tiktoken":
        return tokenizer.to_tiktoken(out)
    if to in PAIRS:
        paths = [Path(out) / name for name in PAIRS[to]]
        (tokenizer.to_gpt2 if to == "gpt2" else tokenizer.to_files)(*paths)
    else:
        {"dask_bpe": tokenizer.save, "huggingface": tokenizer.to_huggingface, "minbpe": tokenizer.to_minbpe}[to](out)
    return ""


def _special(given: str) -> tuple[str, int | None]:
    """Text and id of ``TEXT=ID`` or ``TEXT``."""
    match = re.fullmatch(r"(.+)=([0-9]+)", given, re.DOTALL)
    return (match[1], int(match[2])) if match else (given, None)
