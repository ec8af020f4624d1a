"""Corpora of the commands that ask questions: text, or counts that `train --save-counts` kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_bpe.cli.options import Input, Work

if TYPE_CHECKING:
    from distributed import Client

    from dask_bpe import PretokenCounts, Progress, Tokenizer

pattern_option = click.option(
    "--pattern", metavar="NAME|REGEX|none", help="How text is split into pre-tokens.  [default: gpt2]"
)
special_token_option = click.option(
    "--special-token", "special_tokens", metavar="TEXT", multiple=True, help="As in `train`."
)
ties_option = click.option(
    "--ties",
    metavar="bytes|ids|huggingface|first",
    default="bytes",
    show_default=True,
    help="Which of equally frequent pairs is merged.",
)
min_frequency_option = click.option(
    "--min-frequency", type=int, default=1, show_default=True, help="Stop at pairs rarer than this."
)
max_token_length_option = click.option("--max-token-length", type=int, help="No token of more bytes than this.")
source_option = click.option(
    "--source",
    "sources",
    metavar="NAME=PATH",
    multiple=True,
    help="A corpus that is told apart, by its name. May be given many times, instead of SOURCE.",
)


def load(paths: Sequence[str]) -> list[str] | PretokenCounts:
    """Paths of text as they are; saved counts, added up. Raises click.UsageError for both at once."""
    from dask_bpe import PretokenCounts
    from dask_bpe.counts import is_saved

    saved = [is_saved(path) for path in paths]
    if not any(saved):
        return list(paths)
    if not all(saved):
        raise click.UsageError(f"{paths[saved.index(True)]} holds counts, and {paths[saved.index(False)]} is text.")
    return reduce(add, map(PretokenCounts.from_parquet, paths))


def load_sources(corpus: Input, sources: Sequence[str]) -> Any:
    """What the command is about: SOURCE, or the corpora of --source by their names."""
    if not sources:
        return load(corpus.paths())
    if corpus.source or corpus.files_from:
        raise click.UsageError("Give SOURCE, or --source NAME=PATH for each corpus: not both.")
    named: dict[str, Any] = {}
    for item in sources:
        name, _, path = item.partition("=")
        if not name or not path:
            raise click.UsageError(f"--source {item}: NAME=PATH was expected.")
        if name in named:
            raise click.UsageError(f"--source {name} is given twice.")
        named[name] = load([path])
    return named


def name_of(path: str) -> str:
    """The name of a corpus, from its path: "english" of "corpora/english.txt.gz"."""
    return Path(path.rstrip("/")).name.split(".")[0] or path


def reading(work: Work, corpus: Input, client: Client | None, progress: Progress) -> dict[str, Any]:
    """How text is read: what the questions of `cluster.questions` take."""
    return {
        "input_format": corpus.format(),
        "errors": work.errors,
        "block_bytes": work.block_bytes,
        "memory_per_worker": work.memory_per_worker,
        "client": client,
        "progress": progress,
    }


def cuts(source: Any, pattern: str | None, special_tokens: Sequence[str]) -> dict[str, Any]:
    """Pattern and special tokens as given; else those that saved counts were cut by, or the default."""
    from dask_bpe import PretokenCounts

    parts = list(source.values()) if isinstance(source, dict) else [source]
    saved = next((part for part in parts if isinstance(part, PretokenCounts)), None)
    if saved is not None and pattern is not None:
        raise click.UsageError("Saved counts know their pattern: leave --pattern out, or count the text again.")
    default = "gpt2" if saved is None else saved.pattern
    return {
        "pattern": default if pattern is None else pattern,
        "special_tokens": tuple(special_tokens) or (() if saved is None else saved.special_tokens),
    }


def names_of(paths: Sequence[str]) -> dict[str, str]:
    """Paths by the names of their corpora; where two would be called alike, by the whole path."""
    names = [name_of(path) for path in paths]
    found = {path if names.count(name) > 1 else name: path for name, path in zip(names, paths, strict=True)}
    if len(found) < len(paths):
        twice = next(path for path in paths if list(paths).count(path) > 1)
        raise click.UsageError(f"{twice} is given twice.")
    return found


def numbers(text: str) -> list[int]:
    """A list such as "1024,4096,16384". Raises click.BadParameter."""
    try:
        return [int(item) for item in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as 1024,4096,16384", param_hint="--sizes"
        ) from None


def load_tokenizer(path: str) -> tuple[str, Tokenizer]:
    """A tokenizer of any format that `convert` reads, and its name."""
    from dask_bpe.analysis.tokenizers import load_tokenizers

    ((name, tokenizer),) = load_tokenizers(path).items()
    return name, tokenizer
