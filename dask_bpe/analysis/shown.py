"""Answers as blocks of pages, and as outputs of a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from dask_bpe.analysis.table import Table as Figures
from dask_bpe.analysis.table import Tabular
from dask_bpe.pages import Plot, Table
from dask_bpe.pages.html import render_output


def page_table(figures: Figures, most: int | None = None) -> Table:
    """A table of figures as one of a page; shares become percent. `most`: no more rows than that."""
    columns = {name: list(values)[:most] for name, values in figures.columns.items()}
    headings = []
    for heading, name in zip(figures.headings(), columns, strict=True):
        percent = figures.formats.get(name, "").endswith("%")
        headings.append(f"{heading}, %" if percent else heading)
        if percent:
            columns[name] = [None if value is None else 100 * float(value) for value in columns[name]]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    left_out = len(figures) - len(rows)
    more = f" ({left_out:,} more rows are in the JSON)" if left_out else ""
    return Table(headings, rows, figures.title + more)


def output(title: str, answer: Tabular, plots: Sequence[Plot]) -> str:
    """What a notebook shows: plots, where matplotlib is, and the tables for people."""
    return render_output(title, [*plots, *map(page_table, answer.shown())])
