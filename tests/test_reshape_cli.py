"""`dask-bpe reshape`: what it writes, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import dask_bpe
from dask_bpe.cli import main, reshape
from dask_bpe.io.layouts import LAYOUTS

END = "<|endoftext|>"
DOCUMENTS = ["low lower lowest", "new newer newest\n自君之出矣", "wide wider"] * 10


def run(*arguments: object) -> Result:
    """The command line in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(result: Result, *words: str) -> None:
    """Assert that the command ended with one line on standard error that holds the words."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    for word in words:
        assert word in line


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """The documents encoded, from a file of two blocks."""
    text = tmp_path / "text.txt"
    text.write_bytes("".join(document + END for document in DOCUMENTS).encode())
    tokenizer = dask_bpe.train(text, 280, special_tokens=[END])
    dask_bpe.encode_corpus(text, tokenizer, tmp_path / "tokens", block_bytes=800)
    return tmp_path / "tokens"


def test_the_names_are_those_of_the_library() -> None:
    assert tuple(LAYOUTS) == reshape.LAYOUTS


@pytest.mark.parametrize("to", list(LAYOUTS))
def test_it_writes_what_the_library_writes(tmp_path: Path, tokens: Path, to: str) -> None:
    assert len(dask_bpe.open_tokens(tokens).shards) == 2
    result = run("reshape", tokens, "--to", to, "--out", tmp_path / "a", "--shuffle", 3, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["layout"], facts["documents"], facts["dtype"]) == (to, 30, "uint16")
    assert facts["lacking_separator"] == 0
    dask_bpe.reshape(tokens, tmp_path / "b", to, shuffle=3)
    assert dask_bpe.verify_layout(tmp_path / "a") == dask_bpe.verify_layout(tmp_path / "b")


def test_the_separator_is_found(tmp_path: Path, tokens: Path) -> None:
    """The encoding recorded its id: llm.c's first token is it, nanoGPT's last one."""
    end = 256
    for to, name, place in (("llmc", "tokens_train_000000.bin", 512), ("nanogpt", "train.bin", -1)):
        assert run("reshape", tokens, "--to", to, "--out", tmp_path / to, "-q").output == ""
        ids = np.fromfile(tmp_path / to / name, "<u2")
        assert ids[place] == end
        assert np.count_nonzero(ids[512 * (to == "llmc") :] == end) == 30


def test_it_says_what_it_did(tmp_path: Path, tokens: Path) -> None:
    result = run("reshape", tokens, "--to", "llmc", "--out", tmp_path / "a", "--val-tokens", 20, "--shard-tokens", 50)
    assert result.exit_code == 0, result.output
    for label in ("documents", "tokens", "shards", "reshaping"):
        assert f"  {label}" in result.stdout
    assert "(llmc, uint16)" in result.stdout
    assert "reshaping: " in result.stderr
    assert (tmp_path / "a" / "tokens_val_000000.bin").exists()


def test_what_is_refused(tmp_path: Path, tokens: Path) -> None:
    command = ("reshape", tokens, "--out", tmp_path / "a")
    refused(run(*command, "--to", "npy"), "'npy'", "nanogpt")
    refused(run(*command, "--to", "nanogpt", "--shard-tokens", 5), "nanogpt is one file")
    refused(run(*command, "--to", "mds", "--dtype", "int8"), "int8", "uint16, uint32")
    refused(run("reshape", tmp_path, "--to", "mds", "--out", tmp_path / "a"), "no manifest.json")
    assert not (tmp_path / "a").exists()
    assert run(*command, "--to", "mds", "-q").exit_code == 0
    refused(run(*command, "--to", "dolma"), "not empty")
    assert run(*command, "--to", "dolma", "--force", "-q").exit_code == 0
    assert dask_bpe.verify_layout(tmp_path / "a").layout == "dolma"
    refused(run("reshape", tokens, "--to", "mds", "--out", tokens, "--force"), "is the corpus itself")


def test_help_holds_an_example() -> None:
    result = run("reshape", "--help")
    assert result.exit_code == 0
    assert "  dask-bpe reshape " in result.stdout
