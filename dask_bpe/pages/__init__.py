"""What a report or a notebook shows, as data first: the same document becomes a page of HTML, Markdown, or JSON.

    Document(title, lead, [Section("Stages", [Table(...), Plot(...)])]).save("report.html")

Pages are one file each, ask no network for anything, follow the reader's choice of dark or light, and escape all text.
"""

from __future__ import annotations

from dask_bpe.pages.document import Block, Document, Facts, Link, Meters, Points, Section, Table, Text
from dask_bpe.pages.plot import Axis, Plot, Series

__all__ = [
    "Axis",
    "Block",
    "Document",
    "Facts",
    "Link",
    "Meters",
    "Plot",
    "Points",
    "Section",
    "Series",
    "Table",
    "Text",
]
