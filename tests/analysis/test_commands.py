"""The commands that ask questions: what they print is what the functions give."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from small_texts import counts_of, texts

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts, their counts, and a vocabulary that was trained on the English one."""
    for name, text in texts().items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        counts_of(name).to_parquet(tmp_path / f"{name}.parquet")
    dask_bpe.train(counts_of("en"), 320).save(tmp_path / "en.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--quiet"])


def answer(*arguments: str) -> dict[str, list[dict[str, object]]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, list[dict[str, object]]] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("source", ["en.txt", "en.parquet"])
def test_curve(folder: Path, source: str) -> None:
    expected = dask_bpe.vocab_curve(counts_of("en"), [256, 320, 384, 512])
    assert answer("curve", source, "--sizes", "256,320,384,512") == expected.to_dict()


def test_curve_of_several_sources(folder: Path) -> None:
    expected = dask_bpe.vocab_curve({"e": counts_of("en"), "k": counts_of("ko")}, [300], ties="ids", min_frequency=2)
    found = answer(
        "curve", "--source", "e=en.txt", "--source", "k=ko.parquet", "--sizes", "300", "--ties", "ids",
        "--min-frequency", "2",
    )  # fmt: skip
    assert found == expected.to_dict()


def test_counts_of_several_files_are_added(folder: Path) -> None:
    expected = dask_bpe.vocab_curve(counts_of("en") + counts_of("ko"), [400])
    assert answer("curve", "en.parquet", "ko.parquet", "--sizes", "400") == expected.to_dict()


def test_curve_of_a_tokenizer(folder: Path) -> None:
    expected = dask_bpe.vocab_curve(counts_of("mixed"), tokenizer=Tokenizer.load("en.json"))
    assert answer("curve", "mixed.txt", "--tokenizer", "en.json") == expected.to_dict()


def test_trace(folder: Path) -> None:
    trace = dask_bpe.trace_merges(counts_of("en"), 320)
    assert answer("trace", "en.txt", "--vocab-size", "320") == trace.to_dict()
    assert answer("trace", "en.parquet", "--tokenizer", "en.json", "--tail", "3") == trace.tail(3).to_dict()
    assert answer("trace", "en.txt", "--vocab-size", "320", "--around", " the", "--head", "5") == (
        trace.around(" the").head(5).to_dict()
    )
    assert answer("trace", "en.txt", "--vocab-size", "320", "--about", "he", "--min-count", "50") == (
        trace.at_least(50).about("he").to_dict()
    )


def test_vocab(folder: Path) -> None:
    tokenizer = Tokenizer.load("en.json")
    assert answer("vocab", "en.json") == dask_bpe.describe_vocabulary(tokenizer).to_dict()
    expected = dask_bpe.describe_vocabulary(tokenizer, counts_of("zh"), n_longest=3, rare=2)
    assert answer("vocab", "en.json", "zh.parquet", "--longest", "3", "--rare", "2") == expected.to_dict()
    usage = dask_bpe.measure_usage(tokenizer, counts_of("zh"))
    assert answer("vocab", "en.json", "zh.txt", "--usage") == usage.to_dict()


def test_coverage(folder: Path) -> None:
    expected = dask_bpe.measure_coverage(Tokenizer.load("en.json"), counts_of("en"), counts_of("ko"))
    assert answer("coverage", "en.json", "ko.txt", "--training", "en.parquet") == expected.to_dict()


def test_csv_and_tables(folder: Path) -> None:
    result = run("curve", "ko.txt", "--sizes", "256,300", "--csv")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    expected = dask_bpe.vocab_curve(counts_of("ko"), [256, 300]).points
    assert [int(row["tokens"]) for row in rows] == [point.n_tokens for point in expected]
    shown = run("curve", "ko.txt", "--sizes", "256,300").stdout
    assert all(f"{point.n_tokens:,}" in shown for point in expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curve", "en.txt"], "Give --sizes"),
        (["curve", "en.txt", "--sizes", "many"], "no list of numbers"),
        (["curve", "--sizes", "300"], "Give SOURCE or --files-from"),
        (["curve", "en.txt", "--source", "a=en.txt", "--sizes", "300"], "not both"),
        (["curve", "--source", "en.txt", "--sizes", "300"], "NAME=PATH was expected"),
        (["curve", "--source", "a=en.txt", "--source", "a=ko.txt", "--sizes", "300"], "given twice"),
        (["curve", "en.txt", "ko.parquet", "--sizes", "300"], "ko.parquet holds counts, and en.txt is text"),
        (["curve", "en.parquet", "--pattern", "none", "--sizes", "300"], "Saved counts know their pattern"),
        (["curve", "en.txt", "-t", "en.json", "--pattern", "none"], "brings its own pattern"),
        (["curve", "en.txt", "--sizes", "300", "--json", "--csv"], "give one of them"),
        (["curve", "en.txt", "--sizes", "255"], "cannot hold the 256 bytes"),
        (["trace", "en.txt"], "Give --vocab-size of a training, or --tokenizer"),
        (["trace", "ko.txt", "-t", "en.json"], "it was trained on other text or by other rules"),
        (["trace", "en.txt", "--vocab-size", "300", "--around", "zzz"], "none of the 44 merges makes 'zzz'"),
        (["vocab", "en.json", "--usage"], "give SOURCE"),
        (["vocab", "missing.json"], "missing.json"),
        (["coverage", "en.json", "ko.txt"], "Missing option '--training'"),
        (["coverage", "en.json", "missing.txt", "--training", "en.txt"], "no such file"),
    ],
)
def test_bad_input_is_one_line(folder: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr.strip().splitlines()[-1]
