"""How answers that are tables are printed: for people, as JSON or as CSV."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dask_bpe.cli.options import json_option, together

if TYPE_CHECKING:
    from dask_bpe.analysis.table import Table, Tabular

csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")

# Where no terminal says how wide it is, nothing is folded.
_ANY_WIDTH = 10_000
# Where the terminal is narrow, text is folded to this width; numbers are not.
_LEAST_TEXT = 12


@dataclass(frozen=True)
class Output:
    """How an answer is to be printed. Raises click.UsageError for both ways at once."""

    as_json: bool
    as_csv: bool

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise click.UsageError("--json and --csv: give one of them.")


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """--json and --csv, handed to the command as its argument `output`."""
    return together(Output, "output", (json_option, csv_option), command)


def show(answer: Tabular, output: Output) -> None:
    """Print an answer to standard output. In CSV an empty line stands between two tables."""
    if output.as_json:
        click.echo(json.dumps(answer.to_dict(), ensure_ascii=False))
    elif output.as_csv:
        click.echo("\n".join(table.to_csv() for table in answer.tables()), nl=False)
    else:
        for number, table in enumerate(answer.shown()):
            if number:
                click.echo()
            show_table(table)


def show_table(table: Table, width: int | None = None) -> None:
    """Print one table, within `width` columns: by default those of the terminal."""
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table as RichTable
    from rich.text import Text

    width = width or (None if sys.stdout.isatty() else _ANY_WIDTH)
    console = Console(file=sys.stdout, width=width, highlight=False, emoji=False, markup=False)
    if table.title:
        console.print(Text(table.title, "bold"))
    if len(table):
        grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        texts = table.texts()
        for heading, number, cells in zip(table.headings(), table.is_number(), zip(*texts, strict=True), strict=True):
            least = max(*map(len, heading.split()), min(max(map(len, cells)), _ANY_WIDTH if number else _LEAST_TEXT))
            grid.add_column(
                heading,
                justify="right" if number else "left",
                overflow="fold",
                width=least if number else None,
                min_width=least,
            )
        for row in texts:
            grid.add_row(*map(Text, row))
        # What does not fit is left to the terminal to fold: nothing is cut off.
        least = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), grid).minimum
        console.width = max(console.width, least)
        console.print(grid)
    for note in table.notes:
        console.print(Text(note, "dim"))
