"""`dask-bpe plan`: what it prints and draws, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dask_bpe
from dask_bpe.cli import main
from dask_bpe.cli.plan_text import duration, size

END = "<|endoftext|>"


def run(*arguments: object, columns: int = 80) -> Result:
    """The command line in this process, in a terminal so wide."""
    return CliRunner().invoke(main, ["plan", *map(str, arguments)], env={"COLUMNS": str(columns)})


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(f"low lower lowest{END}new newer newest\n自君之出矣{END}" * 2000)
    return path


@pytest.mark.parametrize("columns", [80, 120])
def test_it_says_what_to_expect_within_the_terminal(text: Path, columns: int) -> None:
    result = run(text, "--special-token", END, "--vocab-size", 300, columns=columns)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for label in ("counting", "memory, worker", "memory, driver", "output", "pre-tokens", "total", "workers   count"):
        assert any(line.lstrip().startswith(label) for line in lines), label
    # The headline alone is as long as the name of the corpus.
    assert max(map(len, lines[1:])) <= columns
    table = lines[lines.index(next(line for line in lines if line.startswith("workers   count"))) :]
    assert table[1].split()[0] == "1"
    assert table[13].split()[0] == "10,000"
    assert "sampling: " in result.stderr


def test_as_json_it_is_the_plan(text: Path) -> None:
    result = run(
        text, "--special-token", END, "--vocab-size", 300, "--json", "--quiet", "--workers", 7, "--size", "1GB"
    )
    plan = json.loads(result.stdout)
    assert (plan["n_bytes"], plan["forecast"]["workers"]) == (10**9, 7)
    assert plan["sample"]["vocab_size"] == 300


def test_a_tokenizer_from_a_file(text: Path, tmp_path: Path) -> None:
    dask_bpe.train(text, 270, special_tokens=[END]).save(tmp_path / "v.json")
    plan = json.loads(run(text, "--tokenizer", tmp_path / "v.json", "--json", "-q").stdout)
    assert plan["sample"]["vocab_size"] == 270


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot(text: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / f"plan.{suffix}"
    result = run(text, "--special-token", END, "--vocab-size", 300, "-q", "--plot", file, "--size", "100GB")
    assert result.exit_code == 0, result.output
    assert file.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")
    again = run(text, "-q", "--plot", file)
    assert again.exit_code == 2
    assert "exists already" in again.stderr


def test_without_matplotlib_a_plot_is_refused_before_any_work(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(text, "--plot", tmp_path / "plan.png")
    assert result.exit_code == 2
    assert result.stderr == "Error: a plot needs matplotlib: pip install 'dask-bpe[plot]'\n"
    assert list(tmp_path.iterdir()) == [text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "no such file or folder"),
        (["TEXT", "--workers", "0"], "workers is 0"),
        (["TEXT", "--storage", "-3"], "storage is -3000000.0"),
        (["TEXT", "--plot", "plan.gif"], "plan.gif: a plot is a file of .pdf, .png or .svg"),
        (["TEXT", "--tokenizer", "missing.json"], "missing.json"),
        (["TEXT", "--vocab-size", "3"], "vocabulary size 3"),
    ],
)
def test_bad_input_is_one_clear_line(text: Path, arguments: list[str], message: str) -> None:
    result = run(*[str(text) if argument == "TEXT" else argument for argument in arguments])
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert message in line
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00123, "1.23 ms"), (0.9999, "1.00 s"), (9.996, "10.0 s"), (99.96, "100 s"), (119.4, "119 s"), (150, "2.50 min"),
     (7200, "2.00 h"), (10**6, "11.6 d"), (0, "0.00 ms")],
)  # fmt: skip
def test_three_digits_of_time(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(5, "5 bytes"), (999.9, "1.00 kB"), (64 << 20, "67.1 MB"), (885e9, "885 GB"), (4e15, "4,000 TB")],
)
def test_three_digits_of_size(n_bytes: float, text: str) -> None:
    assert size(n_bytes) == text
