"""Documents as pages of HTML, and as outputs of a notebook.

Everything that is put into a template is escaped by jinja2; what is drawn here is the only HTML that it takes as it is.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dask_bpe.pages import theme
from dask_bpe.pages.cells import are_numbers, format_cell
from dask_bpe.pages.document import Block, Document, Section, Table
from dask_bpe.pages.plot import Plot
from dask_bpe.pages.svg import draw, has_matplotlib

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(document: Document) -> str:
    """A page of its own. Raises ParameterError when it has plots and matplotlib is missing."""
    return _environment().get_template("page.html").render(document=document, draw=_drawer(), **_styles())


def render_document(document: Document) -> str:
    """The page as an output of a notebook, in the notebook's colours; without plots where matplotlib is missing."""
    sections = [Section(section.title, _drawable(section.blocks)) for section in document.sections]
    shown = replace(document, sections=sections)
    return _environment().get_template("output.html").render(document=shown, draw=_drawer(_prefix(shown)), **_styles())


def render_output(title: str, blocks: Sequence[Block]) -> str:
    """A few blocks as an output of a notebook; plots are left out where matplotlib is missing."""
    shown = _drawable(blocks)
    template = _environment().get_template("output.html")
    return template.render(title=title, blocks=shown, draw=_drawer(_prefix((title, shown))), **_styles())


def _drawable(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if has_matplotlib() or not isinstance(block, Plot)]


def _prefix(shown: Any) -> str:
    """What ids begin with. Outputs stand in one page with others: they are told apart by what they show."""
    return f"p{hashlib.sha256(repr(shown).encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


def _drawer(prefix: str = "p") -> Any:
    """What draws the plots of a page, one after the other, each with ids of its own."""
    numbers = itertools.count(1)
    return lambda plot: Markup(draw(plot, f"{prefix}-{next(numbers)}-"))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dask_bpe.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else format_cell(value),
    )
    environment.filters["groups"] = _groups
    environment.filters["number_columns"] = _number_columns
    return environment


@lru_cache(maxsize=1)
def _styles() -> dict[str, Markup]:
    texts = {
        name: Markup(files("dask_bpe.pages").joinpath(f"templates/{name}.css").read_text())
        for name in ("style", "page")
    }
    return texts | {"light": Markup(theme.variables(theme.LIGHT)), "dark": Markup(theme.variables(theme.DARK))}


def _groups(blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
    """Blocks of the same kind that follow each other."""
    return [(kind, list(group)) for kind, group in itertools.groupby(blocks, lambda block: type(block).__name__)]


def _number_columns(table: Table) -> set[int]:
    return {at for at in range(len(table.columns)) if are_numbers([row[at] for row in table.rows])}
