"""Tables: what is shown to people, and that no figure is changed on the way to programs."""

from __future__ import annotations

import csv
import json
import sys
from html.parser import HTMLParser

import click
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from dask_bpe.analysis.table import Table, Tabular
from dask_bpe.cli.table import Output, output_options, show, show_table
from dask_bpe.errors import ParameterError

TABLE = Table(
    "pairs",
    {
        "tokenizer": ["gpt2", "<b>\n"],
        "tokens": [1234567, None],
        "bytes_per_token": [4.5, 0.1 + 0.2],
        "over": [0.125, 1.0],
        "exact": [True, False],
    },
    title="On alice & co.",
    notes=("A word is a word.",),
    formats={"over": ".1%"},
)


class Answer(Tabular):
    def tables(self) -> tuple[Table, ...]:
        return (TABLE, Table("more", {"n": []}))


@click.command()
@output_options
def command(output: Output) -> None:
    """Show the answer."""
    show(Answer(), output)


def run(*arguments: str, width: int = 80) -> Result:
    return CliRunner().invoke(command, arguments, env={"COLUMNS": str(width)})


def test_for_people_numbers_are_short_and_names_are_words() -> None:
    assert TABLE.headings() == ["tokenizer", "tokens", "bytes per token", "over", "exact"]
    assert TABLE.texts() == [["gpt2", "1,234,567", "4.500", "12.5%", "yes"], ["<b>\n", "–", "0.300", "100.0%", "no"]]
    assert TABLE.is_number() == [False, True, True, True, True]
    assert len(TABLE) == 2
    assert len(Table("more", {"n": []})) == 0


def test_rows_make_the_same_table() -> None:
    assert Table.of("pairs", TABLE.records()).columns == TABLE.columns
    assert Table.of("pairs", [], ["n"]).columns == {"n": []}


def test_columns_must_be_of_equal_length() -> None:
    with pytest.raises(ParameterError, match="pairs differ in length"):
        Table("pairs", {"a": [1], "b": []})


def test_json_and_csv_hold_every_digit() -> None:
    assert json.loads(run("--json").stdout) == {"pairs": TABLE.records(), "more": []}
    first, second = run("--csv").stdout.split("\n\nn")
    rows = list(csv.reader(first.splitlines(keepends=True)))
    assert rows == [
        list(TABLE.columns),
        ["gpt2", "1234567", "4.5", "0.125", "True"],
        ["<b>\n", "", repr(0.1 + 0.2), "1.0", "False"],
    ]
    assert second == "\n"


def test_both_at_once_are_refused() -> None:
    result = run("--json", "--csv")
    assert (result.exit_code, "give one of them" in result.stderr) == (2, True)


def test_on_a_terminal_there_is_everything() -> None:
    lines = run().stdout.splitlines()
    assert lines[0] == "On alice & co."
    assert [line.split() for line in lines[1:4]] == [
        ["bytes"],
        ["per"],
        ["tokenizer", "tokens", "token", "over", "exact"],
    ]
    assert lines[5].split() == ["gpt2", "1,234,567", "4.500", "12.5%", "yes"]
    assert "A word is a word." in lines


class _Texts(HTMLParser):
    """The text of the cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.in_cell = tag in ("td", "th")
        if self.in_cell:
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = False

    def handle_data(self, data: str) -> None:
        if self.in_cell:
            self.texts[-1] += data


def test_in_a_notebook_it_is_a_table_and_text_is_no_html() -> None:
    page = _Texts(Answer()._repr_html_())
    assert page.texts[:-1] == [*TABLE.headings(), *TABLE.texts()[0], *TABLE.texts()[1]]
    assert "b" not in page.tags


def test_a_frame_has_the_same_values() -> None:
    frame = Answer().to_frame()
    pd.testing.assert_frame_equal(frame, pd.DataFrame(dict(TABLE.columns)))


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ParameterError, match=r"pip install 'dask-bpe\[pandas\]'"):
        TABLE.to_frame()


@pytest.mark.parametrize("width", [40, 60, 120])
def test_a_narrow_terminal_folds_text_and_headings_but_no_number(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = Table("wide", {"name": ["a long name " * 4], **{f"number_of_{x}": [10**9 + k] for k, x in enumerate("abc")}})
    show_table(wide, width)
    lines = capsys.readouterr().out.splitlines()
    assert width == 40 or max(map(len, lines)) <= width
    assert all(any(f"1,000,000,00{k}" in line for line in lines) for k in range(3))
