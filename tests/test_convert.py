"""`dask-bpe convert`: every format to every other that can express it, and what it says where it does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from click.testing import CliRunner, Result
from huggingface_files import CORPUS, added, byte_level, sequence, split, trained
from test_tiktoken import opened

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.cli import main
from dask_bpe.pretokenize import PATTERNS

END = "<|endoftext|>"
TEXT = "".join(CORPUS) + END
OUTPUTS = {
    "dask_bpe": "out.json",
    "huggingface": "out",
    "tiktoken": "out.tiktoken",
    "gpt2": "out",
    "minbpe": "out.model",
    "course": "out",
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["convert", *map(str, arguments)])


def refused(result: Result, *words: str, code: int = 2) -> None:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    line = result.stderr.splitlines()[-1]
    assert line.startswith("Error: ")
    for word in words:
        assert word in line


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return dask_bpe.train(iter(CORPUS), 400, special_tokens=[END], ties="ids")


@pytest.fixture
def saved(tmp_path: Path, tokenizer: Tokenizer) -> dict[str, Path]:
    """The tokenizer in every format."""
    folder = tmp_path / "in"
    folder.mkdir()
    paths = {kind: folder / f"{kind}{Path(name).suffix}" for kind, name in OUTPUTS.items()}
    plain = Tokenizer.from_tiktoken(
        {token: index - (index > 256) for index, token in enumerate(tokenizer.vocabulary.tokens) if index != 256},
        "gpt2",
        {END: 399},
    )
    tokenizer.save(paths["dask_bpe"])
    tokenizer.to_huggingface(paths["huggingface"])
    tokenizer.to_tiktoken(paths["tiktoken"])
    plain.to_minbpe(paths["minbpe"])
    for kind in ("gpt2", "course"):
        paths[kind].mkdir()
    tokenizer.to_gpt2(paths["gpt2"] / "vocab.json", paths["gpt2"] / "merges.txt")
    tokenizer.to_files(paths["course"] / "vocab.json", paths["course"] / "merges.json")
    return paths


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("to", OUTPUTS)
def test_from_every_format_to_every_format(tmp_path: Path, saved: dict[str, Path], kind: str, to: str) -> None:
    out = tmp_path / OUTPUTS[to]
    options = ["--special-token", END] if kind in ("gpt2", "course") else []
    expected = Tokenizer.from_minbpe(saved["minbpe"]) if kind == "minbpe" else Tokenizer.load(saved["dask_bpe"])
    result = run(saved[kind], out, "--to", to, *options)
    if to == "minbpe" and kind != "minbpe":
        refused(result, "minbpe cannot express this tokenizer: the merge that makes id 257")
        assert not out.exists()
        return
    assert result.exit_code == 0, result.output
    assert f"{out}: {to}, of {saved[kind]} ({kind})" in result.stdout
    named = ["--special-token", END] if to in ("gpt2", "course") else []
    back = run(out, tmp_path / "back.json", "--to", "dask_bpe", *named)
    assert back.exit_code == 0, back.output
    assert Tokenizer.load(tmp_path / "back.json").encode(TEXT) == expected.encode(TEXT)


def test_the_libraries_load_what_is_written(tmp_path: Path, saved: dict[str, Path], tokenizer: Tokenizer) -> None:
    assert run(saved["gpt2"], tmp_path / "t.json", "--to", "huggingface", "--special-token", END).exit_code == 0
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    assert theirs.encode(TEXT).ids == tokenizer.encode(TEXT)
    result = run(tmp_path / "t.json", tmp_path / "t.tiktoken", "--to", "tiktoken", "--json")
    lines = json.loads(result.stdout)["python"]
    encoding: tiktoken.Encoding = opened("\n".join(lines), tmp_path)
    assert encoding.encode(TEXT, allowed_special="all") == tokenizer.encode(TEXT)


def test_ranks_need_a_pattern_and_ids_of_special_tokens(tmp_path: Path, saved: dict[str, Path]) -> None:
    ranks = tmp_path / "bare.tiktoken"
    shutil.copy(saved["tiktoken"], ranks)
    out = tmp_path / "out.json"
    refused(run(ranks, out, "--to", "dask_bpe"), "ranks do not say how text is split")
    refused(run(ranks, out, "--to", "dask_bpe", "--pattern", "gpt2", "--special-token", "<a>"), "'<a>=ID'")
    arguments = (ranks, out, "--to", "dask_bpe", "--pattern", "llama3", "--special-token")
    assert run(*arguments, "<a=b>=1000").exit_code == 0
    assert (Tokenizer.load(out).pattern, Tokenizer.load(out).special_tokens) == ("llama3", {"<a=b>": 1000})
    assert run(*arguments, "<a=b>=256", "--force").exit_code == 0


def test_pairs_take_a_pattern_and_check_ids(tmp_path: Path, saved: dict[str, Path], tokenizer: Tokenizer) -> None:
    out = tmp_path / "out.json"
    special = tokenizer.special_tokens[END]
    arguments = (saved["course"], out, "--to", "dask_bpe", "--pattern", "none", "--special-token")
    refused(run(*arguments, f"{END}=7"), f"special token '{END}' has id {special} in", "not 7")
    assert run(*arguments, f"{END}={special}").exit_code == 0
    assert Tokenizer.load(out).pattern is None
    vocab = saved["gpt2"] / "vocab.json"
    assert run(vocab, tmp_path / "b.json", "--to", "dask_bpe", "--from", "gpt2").exit_code == 0
    assert Tokenizer.load(tmp_path / "b.json").special_tokens == {}


def test_everything_of_a_tokenizer_json_survives(tmp_path: Path) -> None:
    file = trained(
        sequence(*(split(step.regex) for step in PATTERNS["deepseek"]), byte_level()),
        normalizer={"type": "NFC"},
        added_tokens=[added("<s>", 420, "lstrip")],
        post_processor={"type": "BertProcessing", "sep": ["<s>", 420], "cls": ["<s>", 420]},
    )
    (tmp_path / "tokenizer.json").write_text(json.dumps(file), encoding="utf-8")
    assert run(tmp_path, tmp_path / "ours.json", "--to", "dask_bpe").exit_code == 0
    assert run(tmp_path / "ours.json", tmp_path / "again", "--to", "huggingface").exit_code == 0
    assert Tokenizer.from_huggingface(tmp_path / "again") == Tokenizer.from_huggingface(tmp_path)
    assert Tokenizer.load(tmp_path / "ours.json") == Tokenizer.from_huggingface(tmp_path)
    for to in ("tiktoken", "gpt2", "minbpe", "course"):
        (tmp_path / "new").mkdir(exist_ok=True)
        refused(run(tmp_path, tmp_path / "new" / OUTPUTS[to], "--to", to), "cannot express this tokenizer")
        assert [path for path in (tmp_path / "new").rglob("*") if path.is_file()] == []


def test_mistakes_are_one_line(tmp_path: Path, saved: dict[str, Path]) -> None:
    out = tmp_path / "out.json"
    refused(run(tmp_path / "no.json", out, "--to", "dask_bpe"), "no.json: cannot read the file")
    (tmp_path / "x.json").write_text("[]")
    refused(run(tmp_path / "x.json", out, "--to", "dask_bpe"), "does not show what it is", "--from dask_bpe|")
    refused(run(tmp_path, out, "--to", "dask_bpe"), "does not show what it is")
    refused(run(saved["dask_bpe"], out, "--to", "dask_bpe", "--pattern", "gpt2"), "comes with pattern")
    out.write_text("")
    refused(run(saved["dask_bpe"], out, "--to", "huggingface"), "exists already")
    refused(run(saved["dask_bpe"], out, "--to", "gpt2"), "is a file, and a folder is to be written")
    refused(run(saved["dask_bpe"], tmp_path / "a" / "b", "--to", "huggingface"), "does not exist; make it first")
    assert run(saved["dask_bpe"], out, "--to", "huggingface", "--force").exit_code == 0
    assert run(saved["dask_bpe"], saved["gpt2"], "--to", "gpt2").exit_code == 2
