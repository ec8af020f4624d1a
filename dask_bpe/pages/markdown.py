"""Documents as Markdown, with tables as GitHub reads them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from dask_bpe.pages.cells import are_numbers, format_cell
from dask_bpe.pages.document import Block, Document, Facts, Link, Meters, Points, Table, Text, Value
from dask_bpe.pages.plot import Plot, plain, thin

# Of a plot so many points are given for each series.
_POINTS = 12
_SYNTAX = re.compile(r"([\\`*_\[\]|~#$])")


def render_markdown(document: Document) -> str:
    """The whole document."""
    parts = [f"# {escape(document.title)}", escape(document.lead)]
    for section in document.sections:
        parts.append(f"## {escape(section.title)}")
        parts += [_render(block) for block in section.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(value: Value) -> str:
    """A value as text that Markdown and the HTML in it leave as it is, on one line."""
    text = html.escape(" ".join(format_cell(value).split("\n")), quote=False)
    return _SYNTAX.sub(r"\\\1", text)


def _render(block: Block) -> str:
    match block:
        case Text(text):
            return escape(text)
        case Points(items):
            return "\n".join(f"- {escape(item)}" for item in items)
        case Facts(rows):
            return _table(("", ""), rows)
        case Table(columns, rows, caption):
            return "\n\n".join(filter(None, (escape(caption), _table(columns, rows))))
        case Meters(rows):
            return _table(
                ("", "", ""), [(name, None if done is None else f"{done:.0%}", text) for name, done, text in rows]
            )
        case Link(text, address):
            return f"[{escape(text)}](<{address}>)"
        case Plot():
            return _figures(block)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    right = [are_numbers([row[at] for row in rows]) for at in range(len(columns))]
    lines = [
        [escape(name) for name in columns],
        ["---:" if number else "---" for number in right],
        *([escape(value) for value in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figures(plot: Plot) -> str:
    """Some points of every series: a row each."""
    several = len(plot.series) > 1
    rows: list[list[Value]] = []
    for series in plot.series:
        pairs = list(zip(plain(series.x), plain(series.y), strict=True))
        places = thin(len(pairs), _POINTS, log=plot.x.log)
        rows += [[*([series.name] if several else []), *pairs[at]] for at in places]
    columns = [*([""] if several else []), plot.x.title, plot.y.title]
    return "\n\n".join(filter(None, (escape(plot.caption), _table(columns, rows))))
