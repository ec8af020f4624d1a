"""What runs where: workers read the text, once; the driver looks at sizes; counts need no worker at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client

import dask_bpe

ENDOFTEXT = "<|endoftext|>"

_opened: list[str] = []
_watching = False


def _on_audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event == "open":
        _opened.append(str(arguments[0]))


@contextmanager
def files_opened() -> Iterator[list[str]]:
    """The paths that this process opens. An audit hook cannot be taken away, so it is switched off."""
    global _watching
    if not hasattr(sys, "_dask_bpe_audit"):
        sys.addaudithook(_on_audit)
        sys._dask_bpe_audit = True  # type: ignore[attr-defined]
    _opened.clear()
    _watching = True
    try:
        yield _opened
    finally:
        _watching = False


@pytest.fixture
def text(tmp_path: Path, corpus: list[str]) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(ENDOFTEXT.join(corpus), encoding="utf-8", newline="")
    return path


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("a graph was computed")


def test_counts_are_trained_without_a_scheduler(text: Path) -> None:
    counts = dask_bpe.count_pretokens(text, special_tokens=[ENDOFTEXT])
    with dask.config.set(scheduler=refuse):
        tokenizer = dask_bpe.train(counts, 300, special_tokens=[ENDOFTEXT])
    assert len(tokenizer) == 300


def test_the_driver_reads_no_text(client: Client, text: Path, tmp_path: Path) -> None:
    with files_opened() as opened:
        tokenizer = dask_bpe.train(text, 300, special_tokens=[ENDOFTEXT], client=client, block_bytes=5000)
        dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", client=client, block_bytes=5000)
    assert str(text) not in opened


def test_the_watch_sees_what_threads_read(text: Path) -> None:
    with files_opened() as opened:
        dask_bpe.count_pretokens(text, special_tokens=[ENDOFTEXT])
    assert str(text) in opened


def test_refused_before_anything_is_computed(text: Path, tmp_path: Path) -> None:
    """A vocabulary that needs uint32 cannot be written as uint16; that is known without reading the text."""
    vocab = {i: bytes([i]) for i in range(256)} | {256 + i: b"%06d" % i for i in range(70_000)}
    tokenizer = dask_bpe.Tokenizer(vocab, [], [ENDOFTEXT])
    with dask.config.set(scheduler=refuse), pytest.raises(dask_bpe.BpeError) as caught:
        dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", dtype="uint16")
    assert "uint16" in str(caught.value)
    assert not (tmp_path / "out").exists()
