"""`scripts/parity`: a sample of what it compares, and that it finds a difference."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from huggingface_files import added, byte_level, sequence, split, trained

from dask_bpe.pretokenize import PATTERNS

SCRIPT = Path(__file__).parents[1] / "scripts" / "parity.py"


@pytest.fixture(scope="module")
def parity() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("parity_of_scripts", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def vocabs(tmp_path: Path, gpt2_files: tuple[Path, Path]) -> Path:
    """GPT-2's vocabulary and two tokenizers of Hugging Face's trainer."""
    folder = tmp_path / "vocabs"
    for name in ("gpt2", "sequence/large", "normal"):
        (folder / name).mkdir(parents=True)
    for path in gpt2_files:
        (folder / "gpt2" / path.name).symlink_to(path)
    deepseek = sequence(*(split(step.regex) for step in PATTERNS["deepseek"]), byte_level())
    files = {
        "sequence/large": trained(deepseek, added_tokens=[added("<s>", 420), added("<l>", 421, "lstrip")]),
        "normal": trained(normalizer={"type": "NFC"}, model={"ignore_merges": True}),
    }
    for name, file in files.items():
        (folder / name / "tokenizer.json").write_text(json.dumps(file), encoding="utf-8")
    return folder


def test_the_same_ids_on_a_sample(
    parity: ModuleType, vocabs: Path, tmp_path: Path, alice: str, poems: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(alice[:20_000] + poems[:3_000] + "<|endoftext|>\r\n" + "x" * 70_000, encoding="utf-8")
    nasty = tmp_path / "nasty"
    nasty.mkdir()
    documents = [{"text": "lone \ud83d and \ude00"}, {"text": ""}, {"text": " " * 3_000}, {"other": 1}, "none"]
    (nasty / "a.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n{broken\n", encoding="ascii")
    (nasty / "b.bin").write_bytes(bytes(range(256)) * 20)
    parity.main([str(text), "--vocabs", str(vocabs), "--ugly", str(nasty), "--strings", "400"])
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert len(rows) == 3 * 4
    assert {(row[1], row[2]) for row in rows} == {
        ("gpt2", "tiktoken"),
        ("normal", "tokenizers"),
        ("sequence/large", "tokenizers"),
    }
    assert {row[0] for row in rows} == {"text.txt", "a.jsonl", "b.bin", "400 random strings"}
    assert {row[6] for row in rows} == {"0"}
    assert all(int(row[5].replace(",", "")) > 100 for row in rows)
    assert str(tmp_path) not in "\n".join(lines)


def test_the_first_difference_is_named(
    parity: ModuleType, vocabs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(path: Path, folder: Path) -> Any:
        return parity.Peer("t", "peer", lambda texts: [[1, 2, 3]] * len(texts), lambda texts: [[1, 2]] * len(texts), [])

    monkeypatch.setattr(parity, "huggingface", other)
    with pytest.raises(SystemExit, match="Other ids: t by peer on 5 random strings, document 0 ") as caught:
        parity.main(["--vocabs", str(vocabs), "--strings", "5", "--only", "normal"])
    assert "id 2: ours [1, 2, 3], theirs [1, 2]" in str(caught.value)
    assert "| 5 random strings | t | peer | 5 |" in capsys.readouterr().out


def test_nothing_to_compare_is_no_success(parity: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="Nothing was compared"):
        parity.main(["--vocabs", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        parity.main(["--vocabs", str(tmp_path / "missing")])


def test_texts_are_taken_apart_and_lose_nothing(parity: ModuleType) -> None:
    text = "line\n" * 40_000 + "x" * 200_000 + "\n"
    parts = list(parity.pieces(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= parity.PIECE_BYTES
    assert all(part.endswith("\n") for part in parts[:3])
