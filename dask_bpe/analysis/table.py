"""Tables of figures: the form in which every answer about a vocabulary or a corpus is given."""

from __future__ import annotations

import csv
import html
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from dask_bpe.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

Value: TypeAlias = int | float | str | bool | None

_NONE = "–"
_STYLE = "text-align: {}; white-space: pre"


@dataclass(frozen=True)
class Table:
    """Named columns of equal length.

    Attributes
    ----------
    name : what it is in JSON: a key.
    columns : by their names, such as "bytes_per_token": the values of all rows. None is a value that there is not.
    title : a line above it.
    notes : sentences below it: definitions, what a sample was taken of.
    formats : of columns that are not shown as others of their type: a format specification, such as ".1%".

    Raises
    ------
    ParameterError
        Columns differ in length.
    """

    name: str
    columns: Mapping[str, Sequence[Value]]
    title: str = ""
    notes: tuple[str, ...] = ()
    formats: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise ParameterError(f"columns of the table {self.name} differ in length: {lengths}")

    @classmethod
    def of(cls, name: str, rows: Iterable[Mapping[str, Value]], columns: Sequence[str] = (), **fields: Any) -> Table:
        """A table of rows, each a mapping of all columns; `columns` names them where there may be no row."""
        records = list(rows)
        names = columns or (tuple(records[0]) if records else ())
        return cls(name, {column: [record[column] for record in records] for column in names}, **fields)

    def __len__(self) -> int:
        """Rows."""
        return len(next(iter(self.columns.values()), ()))

    def records(self) -> list[dict[str, Value]]:
        """The rows, as JSON has them."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

    def headings(self) -> list[str]:
        """The names of the columns for people: with spaces."""
        return [name.replace("_", " ") for name in self.columns]

    def texts(self) -> list[list[str]]:
        """The rows for people."""
        shown = [[self._text(name, value) for value in values] for name, values in self.columns.items()]
        return [list(row) for row in zip(*shown, strict=True)]

    def _text(self, name: str, value: Value) -> str:
        if value is None:
            return _NONE
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "yes" if value else "no"
        return format(value, self.formats.get(name, "," if isinstance(value, int) else ",.3f"))

    def is_number(self) -> list[bool]:
        """Whether each column holds numbers, which stand to the right."""
        return [
            any(value is not None for value in values)
            and all(value is None or isinstance(value, int | float) for value in values)
            for values in self.columns.values()
        ]

    def to_csv(self) -> str:
        """Lines of comma-separated values, the names of the columns first; a value that there is not is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue()

    def to_html(self) -> str:
        """A <table>, with title and notes."""
        sides = ["right" if number else "left" for number in self.is_number()]
        lines = ["<table>"]
        if self.title:
            lines.append(f"<caption>{html.escape(self.title)}</caption>")
        lines.append(f"<thead>{_html_row('th', self.headings(), sides)}</thead>")
        lines += ["<tbody>", *(_html_row("td", row, sides) for row in self.texts()), "</tbody>", "</table>"]
        return "\n".join(lines + [f"<p>{html.escape(note)}</p>" for note in self.notes])

    def to_frame(self) -> pd.DataFrame:
        """The table as a frame of pandas. Raises ParameterError without pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise ParameterError("a frame needs pandas: pip install 'dask-bpe[pandas]'") from None
        return pd.DataFrame({name: list(values) for name, values in self.columns.items()})


def _html_row(tag: str, texts: Iterable[str], sides: Iterable[str]) -> str:
    cells = [
        f'<{tag} style="{_STYLE.format(side)}">{html.escape(text)}</{tag}>'
        for text, side in zip(texts, sides, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


class Tabular(ABC):
    """An answer that is a table, or several: for a terminal, a notebook, pandas, JSON and CSV alike."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """All figures, nothing rounded: for programs. The first table is the frame."""

    def shown(self) -> tuple[Table, ...]:
        """The tables for people."""
        return self.tables()

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON has them: a list of rows for each table, by its name."""
        return {table.name: table.records() for table in self.tables()}

    def to_frame(self) -> pd.DataFrame:
        """The figures as a frame of pandas. Raises ParameterError without pandas."""
        return self.tables()[0].to_frame()

    def _repr_html_(self) -> str:
        return "\n".join(table.to_html() for table in self.shown())
