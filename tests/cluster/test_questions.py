"""Questions asked of text: on threads or a cluster, however it is divided, the answers are those of the counts."""

from __future__ import annotations

import json
from pathlib import Path

import dask.bag as db
import pytest
from distributed import Client
from small_texts import counts_of, texts

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.cluster.count_special import count_special_tokens
from dask_bpe.errors import InputError
from dask_bpe.training.fit import fit

SPECIAL = ["<|end|>", "<|end|>x", "<|pad|>"]


def tokenizer() -> Tokenizer:
    return Tokenizer(fit(counts_of("en"), 320, special_tokens=SPECIAL).vocabulary)


def documents() -> list[str]:
    """Some lines with special tokens in them, and beside each other."""
    lines = texts()["en"].splitlines()[:40]
    return [line + ("<|end|>x" if k % 3 else "<|end|><|pad|>") * (k % 5) for k, line in enumerate(lines)]


def expected() -> dict[str, int]:
    whole = "".join(documents())
    longer = whole.count("<|end|>x")
    return {"<|end|>": whole.count("<|end|>") - longer, "<|end|>x": longer, "<|pad|>": whole.count("<|pad|>")}


@pytest.mark.parametrize("block_bytes", [50, 700, None])
def test_special_tokens_in_files(tmp_path: Path, block_bytes: int | None) -> None:
    (tmp_path / "text.txt").write_text("".join(documents()), encoding="utf-8")
    assert count_special_tokens(tmp_path / "text.txt", tokenizer(), block_bytes=block_bytes) == expected()


def test_special_tokens_in_documents(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in documents()]
    (tmp_path / "text.jsonl").write_text("\n".join([*lines, "{broken"]), encoding="utf-8")
    assert count_special_tokens(tmp_path / "text.jsonl", tokenizer()) == expected()
    assert count_special_tokens(iter(documents()), tokenizer()) == expected()


def test_without_special_tokens_nothing_is_read() -> None:
    plain = Tokenizer(fit(counts_of("en"), 300).vocabulary)
    assert count_special_tokens("no such file", plain) == {}
    with pytest.raises(InputError, match="no such file"):
        count_special_tokens("no such file", tokenizer())


def test_on_a_cluster(client: Client, tmp_path: Path) -> None:
    bag = db.from_sequence(documents(), npartitions=3)
    assert count_special_tokens(bag, tokenizer(), client=client) == expected()
    path = tmp_path / "ko.txt"
    path.write_text(texts()["ko"], encoding="utf-8")
    how = {"client": client, "block_bytes": 300}
    described = dask_bpe.describe_vocabulary(tokenizer(), path, **how)
    assert (
        described.to_dict()["odd_tokens"]
        == dask_bpe.describe_vocabulary(tokenizer(), counts_of("ko")).to_dict()["odd_tokens"]
    )
    assert (
        dask_bpe.vocab_curve(path, [300, 400], **how).points == dask_bpe.vocab_curve(counts_of("ko"), [300, 400]).points
    )
    report = dask_bpe.report_vocabulary(tokenizer(), {"ko": path}, **how)
    assert report.data["corpora"][0]["tokens"] == dask_bpe.measure_usage(tokenizer(), counts_of("ko")).n_tokens


def test_many_documents_of_a_block_are_counted_in_slices(tmp_path: Path) -> None:
    """A dozen megabytes of short documents in one block."""
    lines = [f"document {k} of many <|end|>" for k in range(500_000)]
    (tmp_path / "text.txt").write_text("".join(lines), encoding="utf-8")
    counts = dask_bpe.count_pretokens(tmp_path / "text.txt", special_tokens=SPECIAL, block_bytes=1 << 30)
    assert (counts.n_documents, counts.to_dict()[b" many"]) == (500_000, 500_000)
