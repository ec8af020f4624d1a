"""`dask-bpe compare`, `languages` and `inspect`: that they say what the functions find, and what they refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from conftest import bundled

import dask_bpe
from dask_bpe.cli import main

TEXT = "low lower lowest\n自君之出矣\n" * 20


def run(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), input=given)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A text, and two tokenizers."""
    (tmp_path / "t.txt").write_text(TEXT, encoding="utf-8")
    for name, size in (("small", 270), ("large", 290)):
        dask_bpe.train(iter([TEXT]), size).save(tmp_path / f"{name}.json")
    return {"text": tmp_path / "t.txt", "small": tmp_path / "small.json", "large": tmp_path / "large.json"}


def test_compare(files: dict[str, Path]) -> None:
    arguments = "compare", files["text"], "-t", files["small"], "-t", files["large"], "--context", "10,99999", "-q"
    data = json.loads(run(*arguments, "--json").stdout)
    rows = data["pairs"]
    assert data["notes"] == []
    expected = dask_bpe.compare([files["small"], files["large"]], files["text"], contexts=[10, 99999])
    assert rows == expected.tables()[0].records()
    table = list(csv.DictReader(run(*arguments, "--csv").stdout.splitlines()))
    assert [row["tokens"] for row in table] == [str(row["tokens"]) for row in rows]
    assert [row["over_10"] for row in table] == ["1", "1"]
    shown = run(*arguments)
    assert shown.exit_code == 0
    assert f"t.txt: {len(TEXT.encode()):,} bytes, {len(TEXT):,} characters, 1 document" in shown.stdout
    assert "A word is a run of letters and marks" in shown.stdout


def test_languages(tmp_path: Path, files: dict[str, Path]) -> None:
    data = json.loads(run("languages", "-t", files["small"], "-q", "--json", "--reference", "ko").stdout)
    rows = data["languages"]
    assert data["reference"] == "ko"
    assert len(rows) == len(bundled("udhr.jsonl").splitlines())
    assert next(row["relative"] for row in rows if row["language"] == "ko") == 1.0
    lines = run("languages", "-t", files["small"], "-q").stdout
    assert "Universal Declaration of Human Rights" in lines
    assert "those of the text in the language en" in lines
    (tmp_path / "x.jsonl").write_text('{"l": "a", "s": "low"}\n{"l": "b", "s": "lower"}\n')
    fields = "--field", "s", "--language-field", "l"
    rows = json.loads(run("languages", tmp_path / "x.jsonl", "-t", files["large"], *fields, "-q", "--json").stdout)
    assert [row["language"] for row in rows["languages"]] == ["a", "b"]


def test_inspect(files: dict[str, Path]) -> None:
    text = "lowest 自臺"
    tokenizers = "-t", files["small"], "-t", files["large"]
    shown = run("inspect", *tokenizers, text, "--shortest", "--tree", "--tokens")
    assert shown.exit_code == 0, shown.output
    expected = dask_bpe.inspect_text(text, [files["small"], files["large"]])
    for one in expected.segmentations:
        assert one.line() in shown.stdout
    assert "rank" in shown.stdout
    assert "└── " in shown.stdout
    assert "[e8 87]" in shown.stdout
    data = json.loads(run("inspect", *tokenizers, text, "--json").stdout)
    assert data == expected.to_dict()
    by_file = files["text"].with_name("i.txt")
    by_file.write_text(text, encoding="utf-8")
    assert json.loads(run("inspect", *tokenizers, "--file", by_file, "--json").stdout) == data
    assert json.loads(run("inspect", *tokenizers, "--json", given=f"{text}\n").stdout) == data
    rows = list(csv.DictReader(run("inspect", *tokenizers, text, "--csv").stdout.splitlines()))
    assert len(rows) == sum(len(one.pieces) for one in expected.segmentations)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", "a", "--file", "b", "-t", "small"], "either TEXT or --file"),
        (["inspect", "--file", "/no/such", "-t", "small"], "/no/such: cannot be read"),
        (["inspect", "a", "-t", "/no/such.json"], "no such file, and tiktoken knows no encoding of this name"),
        (["inspect", "a", "-t", "small", "--json", "--csv"], "give one of them"),
        (["compare", "text", "-t", "small", "--context", "x"], "not a list of lengths"),
        (["compare", "-t", "small"], "Give SOURCE or --files-from"),
        (["compare", "/no/such.txt", "-t", "small"], "/no/such.txt"),
        (["languages", "-t", "small", "--reference", "xx"], "no text in 'xx'"),
    ],
)
def test_mistakes(files: dict[str, Path], arguments: list[str], words: str) -> None:
    result = run(*(files.get(argument, argument) for argument in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
