"""Workers that cannot do the work are refused before it begins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from distributed import Client

import dask_bpe
from dask_bpe.errors import ClusterError


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("one two three " * 50)
    return path


def test_without_the_package(client: Client, text: Path) -> None:
    def hide() -> None:
        import dask_bpe  # what it holds stays loaded

        sys.modules["dask_bpe_hidden"] = dask_bpe
        sys.modules["dask_bpe"] = None  # type: ignore[assignment]

    def show() -> None:
        sys.modules["dask_bpe"] = sys.modules.pop("dask_bpe_hidden")

    client.run(hide)
    try:
        with pytest.raises(ClusterError, match=r"has no dask_bpe: pip install dask-bpe=="):
            dask_bpe.train(text, 300, client=client)
    finally:
        client.run(show)
    assert dask_bpe.train(text, 300, client=client).vocab_size > 256


def test_with_another_version(client: Client, text: Path) -> None:
    def claim(version: str) -> None:
        import dask_bpe

        dask_bpe.__version__ = version

    client.run(claim, "0.0.1")
    try:
        with pytest.raises(ClusterError, match=r"has dask_bpe 0\.0\.1, this process has"):
            dask_bpe.train(text, 300, client=client)
    finally:
        client.run(claim, dask_bpe.__version__)
