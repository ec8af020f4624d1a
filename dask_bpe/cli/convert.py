"""`dask-bpe convert`: a tokenizer from one format to another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_bpe.cli import summary
from dask_bpe.cli.options import json_option, new_file
from dask_bpe.errors import OutputError, ParameterError, VocabularyError

if TYPE_CHECKING:
    import dask_bpe

FORMATS = ("dask_bpe", "huggingface", "tiktoken", "gpt2", "minbpe", "course")
# Those that do not say which tokens are special and how text is split.
_BARE = ("tiktoken", "gpt2", "course")
_PAIRS = {"gpt2": ("vocab.json", "merges.txt"), "course": ("vocab.json", "merges.json")}


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
    kind = given or _recognised(source)
    if kind not in _BARE and (pattern is not None or special_tokens):
        raise ParameterError(f"a {kind} tokenizer comes with pattern and special tokens; leave the options out")
    for path in _written(to, out):
        new_file(str(path), force)
    tokenizer = _READERS[kind](source, pattern, special_tokens)
    if to in _PAIRS:
        Path(out).mkdir(exist_ok=True)
    snippet = _write(tokenizer, to, out)
    shown = summary.of_tokenizer(tokenizer, out)
    facts = shown.facts | {"from": kind, "to": to} | ({"python": snippet.split("\n")} if snippet else {})
    rows = shown.rows + [("to load it", line) for line in snippet.split("\n") if line]
    summary.show(summary.Summary(f"{out}: {to}, of {source} ({kind})", rows, facts), as_json)


def _recognised(source: str) -> str:
    """The format of a file or folder, by its name and what it holds."""
    path = Path(source)
    if path.is_dir():
        names = {file.name for file in path.iterdir()}
        if "tokenizer.json" in names:
            return "huggingface"
        found = [kind for kind, pair in _PAIRS.items() if names.issuperset(pair)]
        if len(found) == 1:
            return found[0]
        raise _unknown(source)
    by_suffix = {".tiktoken": "tiktoken", ".model": "minbpe"}
    if path.suffix in by_suffix:
        return by_suffix[path.suffix]
    from dask_bpe.vocabulary import FORMAT, read_file

    try:
        content = json.loads(read_file(source))
    except (ValueError, RecursionError):
        content = None
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None
    if isinstance(content, dict) and content.get("format") == FORMAT:
        return "dask_bpe"
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        return "huggingface"
    raise _unknown(source)


def _unknown(source: str) -> ParameterError:
    return ParameterError(f"{source} does not show what it is: name its format with --from {'|'.join(FORMATS)}")


def _written(to: str, out: str) -> list[Path]:
    """The files that will be written."""
    if not out:
        raise OutputError("OUT is empty; give the name of a file or a folder")
    if to in _PAIRS:
        _new_folder(out)
        return [Path(out) / name for name in _PAIRS[to] if Path(out).is_dir()]
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
    if to in _PAIRS:
        paths = [Path(out) / name for name in _PAIRS[to]]
        (tokenizer.to_gpt2 if to == "gpt2" else tokenizer.to_files)(*paths)
    else:
        {"dask_bpe": tokenizer.save, "huggingface": tokenizer.to_huggingface, "minbpe": tokenizer.to_minbpe}[to](out)
    return ""


# Readers: of the source, the pattern and the special tokens as they stand on the command line.


def _read_plain(name: str, source: str, pattern: str | None, special_tokens: tuple[str, ...]) -> dask_bpe.Tokenizer:
    """By the method of `Tokenizer`; the file says the rest."""
    import dask_bpe

    tokenizer: dask_bpe.Tokenizer = getattr(dask_bpe.Tokenizer, name)(source)
    return tokenizer


def _read_tiktoken(source: str, pattern: str | None, special_tokens: tuple[str, ...]) -> dask_bpe.Tokenizer:
    import dask_bpe

    if not special_tokens:
        return dask_bpe.Tokenizer.from_tiktoken(source, pattern)
    named = dict(map(_special, special_tokens))
    missing = next((text for text, index in named.items() if index is None), None)
    if missing is not None:
        raise ParameterError(f"ranks leave the ids of special tokens open: write --special-token '{missing}=ID'")
    return dask_bpe.Tokenizer.from_tiktoken(source, pattern, {text: int(index or 0) for text, index in named.items()})


def _read_pair(kind: str, source: str, pattern: str | None, special_tokens: tuple[str, ...]) -> dask_bpe.Tokenizer:
    """From a folder with the two files of a kind."""
    import dask_bpe
    from dask_bpe.interchange.course_json import read_pair
    from dask_bpe.interchange.gpt2 import read_gpt2
    from dask_bpe.pretokenize import get_pattern

    named = dict(map(_special, special_tokens))
    first, second = _PAIRS[kind]
    folder = Path(source) if Path(source).is_dir() else Path(source).parent
    how: dict[str, Any] = {"pattern": get_pattern("gpt2" if pattern is None else pattern).spec}
    if kind == "course":
        how["ties"] = "ids"
    reader: Callable[..., dask_bpe.Vocabulary] = read_pair if kind == "course" else read_gpt2
    vocabulary = reader(folder / first, folder / second, list(named), **how)
    for text, index in named.items():
        if index is not None and vocabulary.special_tokens[text] != index:
            raise ParameterError(
                f"special token {text!r} has id {vocabulary.special_tokens[text]} in {source}, not {index}"
            )
    return dask_bpe.Tokenizer(vocabulary)


def _special(given: str) -> tuple[str, int | None]:
    """Text and id of ``TEXT=ID`` or ``TEXT``."""
    match = re.fullmatch(r"(.+)=([0-9]+)", given, re.DOTALL)
    return (match[1], int(match[2])) if match else (given, None)


_READERS: dict[str, Callable[..., dask_bpe.Tokenizer]] = {
    "dask_bpe": partial(_read_plain, "load"),
    "huggingface": partial(_read_plain, "from_huggingface"),
    "minbpe": partial(_read_plain, "from_minbpe"),
    "tiktoken": _read_tiktoken,
    "gpt2": partial(_read_pair, "gpt2"),
    "course": partial(_read_pair, "course"),
}
