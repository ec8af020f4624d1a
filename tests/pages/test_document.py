"""Documents: what is in them comes out of every form, and no text of theirs is taken for anything but text."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_bpe.errors import OutputError, ParameterError
from dask_bpe.pages import Axis, Document, Facts, Plot, Points, Section, Series, Table, Text
from dask_bpe.pages.cells import format_cell, visible
from dask_bpe.pages.html import render_output

HOSTILE = '<script>alert(1)</script> & "quotes" $x$ | {{ 7 * 7 }} \x00\u202e'


class Page(HTMLParser):
    """The elements and the text of a page, as a browser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def a_plot(kind: str = "line", name: str = "all") -> Plot:
    x = np.arange(1, 50)
    return Plot(kind, Axis("rank", log=kind == "points"), Axis("count", "tokens"), [Series(name, x, 1000 // x)])


def a_document(text: str = HOSTILE) -> Document:
    lying = Plot(
        "bars", Axis("language"), Axis("size", "B"), [Series("a", [text, "ko"], [1, 2]), Series(text, ["", ""], [2, 1])]
    )
    return Document(
        text,
        text,
        [
            Section(text, [Text(text), Points([text]), Facts([(text, text), ("n", 1234567)])]),
            Section("Plots", [a_plot(name=text), a_plot("points"), a_plot("area"), a_plot("bars"), lying]),
            Section("Table", [Table([text, "share"], [[text, 0.25], [None, 1.0]], caption=text)]),
        ],
        {"n": np.int64(7)},
    )


def test_text_stays_text_and_a_page_asks_no_network() -> None:
    document = a_document()
    page = document.to_html()
    found = Page(page)
    assert "script" not in found.tags and "img" not in found.tags and "link" not in found.tags
    assert all(address.startswith("#") for address in found.addresses)
    assert "http" not in re.sub(r'xmlns="[^"]*"|http-equiv', "", page)
    shown = " ".join(visible(HOSTILE).split())
    # Title, heading, lead, section, paragraph, point, fact twice, table three times, a bar and a series.
    assert found.text.count(shown) == 13
    assert "\x00" not in page and "\u202e" not in page
    assert "1,234,567" in found.text and "0.250" in found.text


@given(st.text(max_size=40))
@settings(max_examples=50, deadline=None)
def test_any_text_is_shown_in_html_and_markdown(text: str) -> None:
    document = Document("t", text, [Section("s", [Table(["column"], [[text], [5]])])])
    shown = " ".join(visible(text).split())
    assert " ".join(Page(document.to_html()).text.split()).count(shown) >= 2 if shown else True
    rows = [line for line in document.to_markdown().splitlines() if line.startswith("| ")]
    assert len(rows) == 4  # no text breaks a table
    assert json.loads(document.to_json())["lead"] == text


def test_ids_are_unique_in_a_page_and_between_outputs_of_a_notebook() -> None:
    ids = Page(a_document().to_html()).ids
    assert ids and len(ids) == len(set(ids))
    one, other = (
        Page(render_output("title", [a_plot("bars"), a_plot("points"), Facts([("n", n)])])).ids for n in (1, 2)
    )
    assert one and not set(one) & set(other)


def test_references_within_plots_lead_somewhere() -> None:
    page = a_document().to_html()
    wanted = set(re.findall(r'(?:url\(|href=")#([^)"]+)', page))
    assert wanted and wanted <= set(Page(page).ids)


def test_plots_have_the_colours_of_the_page_and_text_as_text() -> None:
    svg = re.findall(r"<svg.*?</svg>", a_document().to_html(), re.S)
    assert len(svg) == 5
    for drawing in svg:
        colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", drawing))
        assert {colour for colour in colours if not colour.startswith("var(--")} <= {"none", "#000000"}
        assert "count, tokens" in drawing or "size, B" in drawing


def test_the_same_document_makes_the_same_bytes() -> None:
    assert a_document().to_html() == a_document().to_html()
    assert a_document().to_json() == a_document().to_json()


def test_a_plot_of_many_points_is_small_and_keeps_the_first_and_the_last() -> None:
    x = np.arange(1, 1_000_001)
    plot = Plot("points", Axis("rank", log=True), Axis("count", log=True), [Series("", x, 10**9 // x)])
    assert len(render_output("ranks", [plot])) < 30_000
    rows = Document("t", "", [Section("s", [plot])]).to_markdown().splitlines()
    assert "| 1 | 1,000,000,000 |" in rows and "| 1,000,000 | 1,000 |" in rows


def test_json_holds_all_figures() -> None:
    found = json.loads(a_document().to_json())
    assert found["data"] == {"n": 7}
    plot = found["sections"][1]["blocks"][0]
    assert plot["series"][0]["y"] == (1000 // np.arange(1, 50)).tolist()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (True, "yes"),
        (1234567, "1,234,567"),
        (0.0, "0"),
        (0.25, "0.250"),
        (12345.6, "12,346"),
        (2e-5, "2.00e-05"),
    ],
)
def test_cells(value: object, shown: str) -> None:
    assert format_cell(value) == shown


def test_saved_whole_or_not_at_all(tmp_path: Path) -> None:
    document = a_document()
    for suffix, text in ((".html", document.to_html()), (".md", document.to_markdown()), (".json", document.to_json())):
        document.save(str(tmp_path / f"report{suffix}"))
        assert (tmp_path / f"report{suffix}").read_text() == text
    with pytest.raises(ParameterError, match=r"\.html, \.md or \.json"):
        document.save(str(tmp_path / "report.pdf"))
    with pytest.raises(OutputError, match="cannot write"):
        document.save(str(tmp_path / "missing" / "report.md"))
    assert len(list(tmp_path.iterdir())) == 3


def test_without_matplotlib_a_page_names_the_extra_and_an_output_goes_without_plots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match=r"dask-bpe\[plot\]"):
        a_document().to_html()
    found = Page(render_output("title", [a_plot(), Facts([("tokens", 12)])]))
    assert "svg" not in found.tags and "12" in found.texts
    found = Page(a_document()._repr_html_())
    assert "svg" not in found.tags and "1,234,567" in found.texts
    assert "1,234,567" in a_document().to_markdown()
