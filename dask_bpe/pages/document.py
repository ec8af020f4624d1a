"""Documents: sections of paragraphs, points, facts, tables, plots. Values stay values until they are rendered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from dask_bpe.errors import OutputError, ParameterError
from dask_bpe.pages.plot import Plot, plain

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {"text": self.text}


@dataclass(frozen=True)
class Points:
    """Sentences that stand for themselves, one below the other."""

    items: Sequence[str]

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {"items": list(self.items)}


@dataclass(frozen=True)
class Facts:
    """Rows of a name and a value."""

    rows: Sequence[tuple[str, Value]]

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {"rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Table:
    """Rows of values under the names of columns; numbers stand to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    caption: str = ""

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {"columns": list(self.columns), "rows": [plain(row) for row in self.rows], "caption": self.caption}


@dataclass(frozen=True)
class Meters:
    """Rows of a name, how much of it is done (0 to 1, None when nobody knows), and words for that."""

    rows: Sequence[tuple[str, float | None, str]]

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {"rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Link:
    """Where there is more: an address of http, https or this page."""

    text: str
    address: str

    def __post_init__(self) -> None:
        if not self.address.startswith(("http://", "https://", "#")):
            raise ValueError(f"{self.address!r} is no address that a page may link to")

    def content(self) -> dict[str, Any]:
        """JSON values."""
        return {"text": self.text, "address": self.address}


Block: TypeAlias = Text | Points | Facts | Table | Plot | Meters | Link


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it. Plots that follow each other stand side by side where there is room."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes
    ----------
    title : of the page.
    lead : what it says in one or two sentences.
    sections : in the order in which they are read.
    data : JSON values by name, for programs: `to_json` gives them beside the sections.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_html(self) -> str:
        """One page that needs no other file. Raises ParameterError when it has plots and matplotlib is missing."""
        from dask_bpe.pages.html import render_page

        return render_page(self)

    def to_markdown(self) -> str:
        """The same as Markdown; of plots it has some of the figures."""
        from dask_bpe.pages.markdown import render_markdown

        return render_markdown(self)

    def to_json(self) -> str:
        """The same as a JSON object, with all figures."""
        sections = [
            {"title": section.title, "blocks": [{"block": _kind(block), **block.content()} for block in section.blocks]}
            for section in self.sections
        ]
        content = {"title": self.title, "lead": self.lead, "data": dict(self.data), "sections": sections}
        return json.dumps(content, ensure_ascii=False, indent=1, default=_plain_number) + "\n"

    def _repr_html_(self) -> str:
        from dask_bpe.pages.html import render_document

        return render_document(self)

    def save(self, path: str) -> None:
        """Write a file; ``.html``, ``.md`` or ``.json`` decides what it is. It is complete or not there.

        Raises
        ------
        ParameterError
            The name ends otherwise; or as `to_html`.
        OutputError
        """
        target = Path(path)
        makers = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}
        if target.suffix not in makers:
            raise ParameterError(f"{path}: a report is a file of .html, .md or .json")
        text = makers[target.suffix]()
        temporary = target.with_name(f"{target.name}.partial")
        try:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _plain_number(value: Any) -> Any:
    """A number of numpy as one of Python."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} of type {type(value).__name__} is no JSON value")
