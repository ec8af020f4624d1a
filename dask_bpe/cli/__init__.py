"""The command line: parse, call one public function, print.

`main` is the group behind `dask-bpe`, `python -m dask_bpe` and (through Dask's entry point) `dask bpe`.
What the commands need is imported when they run, so that `--help` answers at once.
"""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from dask_bpe import __version__
from dask_bpe.cli import (
    compare,
    convert,
    coverage,
    curve,
    decode,
    encode,
    info,
    inspect,
    languages,
    plan,
    report,
    reshape,
    shrink,
    trace,
    train,
    verify,
    vocab,
)
from dask_bpe.errors import BpeError

__all__ = ["main"]

INTERRUPTED = 130  # what a shell reports for a program that SIGINT ended


class _Commands(click.Group):
    """Turns errors into exit codes in `invoke`, which runs under `dask bpe` too; `main` would not."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; end with the exit code of its error, said in one line."""
        try:
            return super().invoke(ctx)
        except BpeError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)


# Dask registers the group under this name; dask-bpe shows the name of the program.
@click.group(name="bpe", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dask-bpe")
def main() -> None:
    """Train and apply byte-level BPE tokenizers, in this process or on a Dask cluster.

    \b
    Example:
      dask-bpe train corpus/ --vocab-size 32000 --special-token '<|endoftext|>' --out vocabulary.json
      dask-bpe encode corpus/ --tokenizer vocabulary.json --out tokens/
      dask-bpe info tokens/
    """
    # Text in any script must print, whatever the locale of a bare machine says.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


_MODULES = (
    *(plan, train, shrink, encode, verify, report, reshape, decode, info, convert),
    *(curve, trace, vocab, coverage, compare, languages, inspect),
)
for _module in _MODULES:
    main.add_command(_module.command)
