"""The command line: what it prints, the exit codes, and that nothing is left half-written."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dask_bpe
from dask_bpe.cli import main
from dask_bpe.cli.options import size
from dask_bpe.io import patience
from dask_bpe.io import source as sources

END = "<|endoftext|>"
TEXT = f"low lower lowest{END}new newer newest\n自君之出矣{END}" * 20


def run(*arguments: object, stdin: str | bytes = "") -> Result:
    """The command line in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


def refused(result: Result, *words: str, code: int = 2) -> None:
    """Assert that the command ended with one line on standard error that holds the words."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert result.stderr.splitlines()[-1:] == lines, result.stderr
    for word in words:
        assert word in lines[0]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture
def vocabulary(tmp_path: Path, text: Path) -> Path:
    path = tmp_path / "vocabulary.json"
    result = run("train", text, "--vocab-size", 280, "--special-token", END, "--out", path, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    return path


def test_train_writes_what_the_library_trains(text: Path, vocabulary: Path) -> None:
    tokenizer = dask_bpe.train(text, 280, special_tokens=[END])
    assert dask_bpe.Tokenizer.load(vocabulary) == tokenizer


def test_train_says_what_it_did(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "v.json"
    result = run("train", text, "--vocab-size", 280, "--special-token", END, "--out", out)
    assert result.exit_code == 0
    for label in ("text", "pre-tokens", "merges", "counting", "merging", "peak memory", "longest token"):
        assert f"  {label}" in result.stdout
    assert "counting: " in result.stderr  # progress, apart from the result


def test_train_goes_on_in_a_work_folder(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "again.json"
    command = ["train", text, "--vocab-size", 280, "--special-token", END, "--out", out, "--force", "--work-dir", work]
    for more in ([], [], ["--overwrite"], ["--save-counts", tmp_path / "counts.parquet", "--overwrite"]):
        result = run(*command, *more)
        assert result.exit_code == 0, result.output
        assert out.read_bytes() == vocabulary.read_bytes()
        assert (work / "counts.parquet").exists()
    refused(run(*command, "--pattern", "cl100k"), "pattern 'gpt2', not 'cl100k'", "--overwrite")
    assert run(*command[:-2], "--overwrite").exit_code == 2


def test_train_says_what_it_dropped(tmp_path: Path, text: Path) -> None:
    text.write_text("the cat sat on the mat and the rat sat too " * 9 + "once upon a time")
    command = ["train", text, "--vocab-size", 270, "--out", tmp_path / "v.json", "--force", "--min-count", 2, "-q"]
    assert run(*command).exit_code == 0
    result = run(*command[:-1])
    assert "5, 5 of them distinct" in result.stdout
    assert "merges are the same without anything dropped" in result.stdout
    facts = json.loads(run(*command[:-1], "--json").stdout)
    assert (facts["dropped_pretokens"], facts["dropped_distinct_pretokens"]) == (5, 5)
    assert 0 <= facts["proved_merges"] <= facts["merges"]
    refused(run("train", text, "--vocab-size", 270, "--out", tmp_path / "w.json", "--min-count", 0), "min_count is 0")


def test_train_as_json(tmp_path: Path, text: Path) -> None:
    arguments = ("train", text, "--vocab-size", 280, "--special-token", END, "--json")
    facts = json.loads(run(*arguments, "--out", tmp_path / "v.json").stdout)
    assert facts["vocab_size"] == 280
    assert facts["merges"] == 280 - 257
    assert facts["bytes"] == len(TEXT.encode())
    assert facts["documents"] == 40
    assert set(facts["seconds"]) >= {"counting", "merging"}


def test_train_from_saved_counts_gives_the_same_file(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    counts, first, second = (tmp_path / name for name in ("counts.parquet", "first.json", "second.json"))
    rules = ("--vocab-size", 280)
    saved = run("train", text, *rules, "--special-token", END, "--save-counts", counts, "--out", first)
    assert saved.exit_code == 0, saved.output
    loaded = run("train", "--from-counts", counts, *rules, "--out", second)
    assert loaded.exit_code == 0, loaded.output
    assert vocabulary.read_bytes() == first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("shard_format", ["bin", "parquet"])
def test_encode_and_decode_give_the_text_back(tmp_path: Path, text: Path, vocabulary: Path, shard_format: str) -> None:
    out = tmp_path / "tokens"
    result = run("encode", text, "--tokenizer", vocabulary, "--out", out, "--format", shard_format, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["documents"], facts["dtype"], facts["format"]) == (40, "uint16", shard_format)
    whole = run("decode", "--tokenizer", vocabulary, "--shards", out)
    assert whole.stdout_bytes == TEXT.encode()
    second = run("decode", "--tokenizer", vocabulary, "--shards", out, "--document", 1)
    assert second.stdout_bytes == f"new newer newest\n自君之出矣{END}".encode()


def test_decode_takes_ids_from_arguments_and_from_standard_input(vocabulary: Path) -> None:
    ids = dask_bpe.Tokenizer.load(vocabulary).encode("lowest 自")
    assert run("decode", "-t", vocabulary, *ids).stdout == "lowest 自"
    assert run("decode", "-t", vocabulary, stdin=json.dumps(ids)).stdout == "lowest 自"
    assert run("decode", "-t", vocabulary, stdin=" ".join(map(str, ids))).stdout == "lowest 自"
    refused(run("decode", "-t", vocabulary, stdin="low"), "standard input", "'low'")
    refused(run("decode", "-t", vocabulary, 99999), "99999")


def test_decode_refuses_the_tokens_of_another_vocabulary(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    out, other = tmp_path / "tokens", tmp_path / "other.json"
    assert run("encode", text, "-t", vocabulary, "-o", out).exit_code == 0
    assert run("train", text, "--vocab-size", 270, "--special-token", END, "-o", other).exit_code == 0
    refused(run("decode", "-t", other, "--shards", out), "another vocabulary")
    refused(run("decode", "-t", vocabulary, "--shards", out, "--document", 40), "document 40", "0 to 39")


def test_info_of_a_vocabulary(vocabulary: Path) -> None:
    result = run("info", vocabulary)
    assert result.exit_code == 0
    assert "280 ids" in result.stdout
    facts = json.loads(run("info", vocabulary, "--json").stdout)
    assert facts["special_tokens"] == {END: 256}
    assert facts["fingerprint"] == dask_bpe.Tokenizer.load(vocabulary).vocabulary.fingerprint()


def test_info_verifies_shards(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    out = tmp_path / "tokens"
    assert run("encode", text, "-t", vocabulary, "-o", out).exit_code == 0
    assert json.loads(run("info", out, "--json").stdout)["documents"] == 40
    assert run("info", out, "--verify").exit_code == 0
    shard = out / "part-00000.bin"
    shard.write_bytes(b"\x00" + shard.read_bytes()[1:-1] + b"\x01")
    refused(run("info", out, "--verify", "--json"), "part-00000.bin")


def test_the_same_encoding_again_goes_on_with_it(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    command = ("encode", text, "-t", vocabulary, "-o", tmp_path / "tokens")
    first = json.loads(run(*command, "--json").stdout)
    (tmp_path / "tokens" / "manifest.json").unlink()
    again = run(*command)
    assert again.exit_code == 0, again.output
    assert "gone on with" in again.stdout
    facts = json.loads(run(*command, "--json").stdout)
    assert (first["resumed"], facts["resumed"]) == (0, 1)
    varying = {"resumed", "seconds", "bytes_per_second", "peak_memory_bytes"}
    assert {k: v for k, v in facts.items() if k not in varying} == {k: v for k, v in first.items() if k not in varying}


def test_another_encoding_is_refused_or_overwrites(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    out = tmp_path / "tokens"
    assert run("encode", text, "-t", vocabulary, "-o", out).exit_code == 0
    other = ("encode", text, "-t", vocabulary, "-o", out, "--no-end", "--begin", END, "--shard-tokens", 100)
    refused(run(*other, "-q"), "holds another job", "begin_of_document None")
    result = run(*other, "--overwrite", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["shards"] > 1
    ids = dask_bpe.open_tokens(out).documents[1].tolist()
    assert dask_bpe.Tokenizer.load(vocabulary).decode(ids) == f"{END}new newer newest\n自君之出矣"


def test_documents_that_cannot_be_read_are_listed(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    text.write_bytes(text.read_bytes() + b"bad \xff")
    strict = ("encode", text, "-t", vocabulary, "--errors", "strict")
    result = run(*strict, "-o", tmp_path / "tokens")
    assert result.exit_code == 0, result.output
    assert "1 document, listed in quarantine.jsonl" in result.stdout
    (line,) = (tmp_path / "tokens" / "quarantine.jsonl").read_text().splitlines()
    assert json.loads(line)["position"] == len(TEXT.encode())
    refused(run(*strict, "-o", tmp_path / "none", "-q", "--max-bad", 0), "text.txt", "max_bad=0")
    refused(run(*strict, "-o", tmp_path / "other", "-q", "--on-error", "raise"), "text.txt", "is not UTF-8")
    assert not (tmp_path / "other").exists()


def test_an_encoding_that_is_not_complete_has_an_exit_code(
    tmp_path: Path, text: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(patience, "WAITS", (0.0,))
    monkeypatch.setattr(sources, "_read_local", fail)
    command = ("encode", text, "-t", vocabulary, "-o", tmp_path / "tokens", "-q")
    refused(run(*command), "1 of 1 partitions could not be encoded", "Input/output error", code=4)


def test_encode_writes_other_layouts_too(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    also = [f"--also={layout}={tmp_path / layout}" for layout in ("megatron", "mds")]
    result = run("encode", text, "-t", vocabulary, "-o", tmp_path / "tokens", *also)
    assert result.exit_code == 0, result.output
    for layout in ("megatron", "mds"):
        found = run("verify", tmp_path / layout, "--json")
        assert json.loads(found.stdout)["layout"] == layout
    result = run("verify", tmp_path / "tokens", "--roundtrip", "--json")
    facts = json.loads(result.stdout)
    assert (facts["right"], facts["n_bytes"]) == (True, len(TEXT.encode()))
    refused(run("encode", text, "-t", vocabulary, "-o", tmp_path / "x", "--also", "zarr=x"), "LAYOUT=FOLDER")


BAD = {
    "a missing file": (["train", "missing.txt"], ["missing.txt"]),
    "an empty file": (["train", "empty.txt"], ["empty.txt", "empty"]),
    "a folder without text": (["train", "folder"], ["folder"]),
    "a vocabulary too small": (["train", "text.txt", "--vocab-size", "256"], ["256"]),
    "an unknown pattern": (["train", "text.txt", "--pattern", "gpt9"], ["gpt9", "gpt2"]),
    "an invalid pattern": (["train", "text.txt", "--pattern", "(a"], ["(a"]),
    "an unknown tie rule": (["train", "text.txt", "--ties", "coin"], ["coin", "huggingface"]),
    "a special token twice": (["train", "text.txt", "--special-token", END], [END]),
    "an empty special token": (["train", "text.txt", "--special-token", ""], ["empty"]),
    "invalid UTF-8": (["train", "bad.txt", "--errors", "strict", "--on-error", "raise"], ["bad.txt", "byte 3"]),
    "text and counts": (["train", "text.txt", "--from-counts", "counts.parquet"], ["--from-counts"]),
    "two clusters": (["train", "text.txt", "--scheduler", "x", "--cluster", "2"], ["--cluster"]),
    "a size that is none": (["train", "text.txt", "--block-size", "many"], ["many"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(
    case: str, tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").touch()
    Path("bad.txt").write_bytes(b"abc\xff def")
    Path("folder").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    arguments, words = BAD[case]
    size_given = [] if "--vocab-size" in arguments else ["--vocab-size", "280"]
    refused(run(*arguments, *size_given, "--special-token", END, "--out", "out.json", "-q"), *words)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_existing_outputs_are_kept(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    before = vocabulary.read_bytes()
    again = ("train", text, "--vocab-size", 270, "--out", vocabulary, "-q")
    refused(run(*again), "exists already", "--force")
    assert vocabulary.read_bytes() == before
    assert run(*again, "--force").exit_code == 0
    assert vocabulary.read_bytes() != before
    refused(run("encode", text, "-t", vocabulary, "-o", tmp_path, "-q"), "not empty")
    refused(run("train", text, "--vocab-size", 270, "-o", tmp_path / "no" / "v.json"), "no", "does not exist")


def test_a_damaged_vocabulary_is_named(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_bytes(vocabulary.read_bytes()[:-20])
    for arguments in (("info", damaged), ("encode", text, "-t", damaged, "-o", tmp_path / "out")):
        refused(run(*arguments), "damaged.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["train", "encode", "decode", "info"])
def test_help_holds_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"  dask-bpe {command} " in result.stdout


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, dask_bpe.cli; print(*{'numpy', 'numba', 'pyarrow', 'dask', 'rich'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_dask_has_the_command() -> None:
    command = [sys.executable, "-c", "from dask.cli import run_cli; run_cli()", "bpe", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "encode" in result.stdout


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("1", 1), ("64MiB", 64 << 20), ("64 MB", 64_000_000), ("1.5g", 1_500_000_000), ("2k", 2000)],
)
def test_sizes(text: str, n_bytes: int) -> None:
    assert size(text) == n_bytes


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_ends_cleanly(tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    # Every word another one, so that there is a lot to merge.
    text.write_text(" ".join(f"{word * 2654435761 % 2**32:x}" for word in range(400_000)))
    out = tmp_path / "v.json"
    arguments = ["train", str(text), "--vocab-size", "200000", "--out", str(out)]
    command = [sys.executable, "-m", "dask_bpe", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        seen = process.stderr.readline()  # it has counted, and is about to merge
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert "counting" in seen
    assert process.returncode == 130, stderr
    assert stderr.splitlines()[-1] == "Interrupted."
    assert "Traceback" not in stderr
    assert stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["long.txt"]


def test_an_own_cluster_gives_what_this_process_gives(text: Path, tmp_path: Path) -> None:
    """In processes of their own, as a user starts them: workers are spawned from the main module."""

    def command(*arguments: object) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "dask_bpe", *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr

    rules = ["--vocab-size", 300, "--special-token", END]
    command("train", text, *rules, "--out", tmp_path / "here.json")
    command("train", text, *rules, "--out", tmp_path / "there.json", "--cluster", 2)
    assert (tmp_path / "there.json").read_bytes() == (tmp_path / "here.json").read_bytes()
    command("encode", text, "--tokenizer", tmp_path / "here.json", "--out", tmp_path / "tokens", "--cluster", 2)
    tokenizer = dask_bpe.Tokenizer.load(tmp_path / "here.json")
    tokens = dask_bpe.open_tokens(tmp_path / "tokens")
    assert tokens.tokens(0, len(tokens)).tolist() == tokenizer.encode(text.read_bytes())


def test_progress_for_programs(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    """Every line on standard error is a snapshot; the summary goes to standard output as ever."""
    rest = ("--tokenizer", vocabulary, "--out", tmp_path / "out", "--progress", "json", "--json")
    result = run("encode", text, *rest)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert {line["version"] for line in lines} == {1}
    assert len({line["id"] for line in lines}) == 1
    facts, last = json.loads(result.stdout), lines[-1]
    assert last["state"] == "finished"
    assert last["figures"]["tokens"] == facts["tokens"]
    assert last["figures"]["bytes"] == facts["bytes"] == text.stat().st_size


def test_progress_may_be_left_out(tmp_path: Path, text: Path, vocabulary: Path) -> None:
    result = run("encode", text, "--tokenizer", vocabulary, "--out", tmp_path / "out", "--progress", "none")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "tokens" in result.stdout
    refused(run("encode", text, "--tokenizer", vocabulary, "--out", tmp_path / "x", "--progress", "sounds"), "sounds")
