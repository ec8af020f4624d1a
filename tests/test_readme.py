"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import dask_bpe
from dask_bpe.cli import main

README = Path(__file__).parent.parent / "README.md"
DATA = Path(dask_bpe.__file__).parent / "data"


def blocks(language: str) -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the bundled text where the README has it."""
    (tmp_path / "dask_bpe" / "data").mkdir(parents=True)
    for name in ("alice.txt", "poems.txt"):
        shutil.copy(DATA / name, tmp_path / "dask_bpe" / "data")
    (tmp_path / "corpus").mkdir()
    shutil.copy(DATA / "alice.txt", tmp_path / "corpus")
    shutil.copy(DATA / "poems.txt", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_python_examples_print_what_they_say(folder: Path) -> None:
    (folder / "dask_bpe").rename(folder / "text")  # not to be mistaken for the package
    for example in blocks("python"):
        code = example.replace("dask_bpe/data/", "text/data/")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == re.findall(r"^# (.*)", example, re.MULTILINE)


def test_the_commands_run(folder: Path) -> None:
    commands = re.findall(r"^\$ dask-bpe (.*)", "".join(blocks("console")), re.MULTILINE)
    assert len(commands) >= 15
    for command in commands:
        result = CliRunner().invoke(main, shlex.split(command.replace("32000", "2000"), comments=True))
        assert result.exit_code == 0, f"{command}: {result.output}"
    assert (folder / "tokens" / "manifest.json").exists()


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", README.read_text())
    assert len(named) >= 8
    for name in named:
        assert (README.parent / name).exists(), name
