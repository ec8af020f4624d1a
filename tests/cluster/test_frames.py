"""A column of a Dask data frame is a source like a bag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dask_bpe
from dask_bpe.errors import InputError

pytestmark = pytest.mark.peers


@pytest.fixture
def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    dataframe = pytest.importorskip("dask.dataframe")
    texts = [f"document {i} says {'na ' * i}batman" for i in range(30)]
    return dataframe.from_pandas(pandas.DataFrame({"id": range(30), "text": texts}), npartitions=4)


def test_a_column(frame: Any, tmp_path: Path) -> None:
    texts = list(frame["text"].compute())
    tokenizer = dask_bpe.train(frame["text"], 300, special_tokens=["<|endoftext|>"])
    assert tokenizer.vocabulary == dask_bpe.train(iter(texts), 300, special_tokens=["<|endoftext|>"]).vocabulary
    report = dask_bpe.encode_corpus(frame["text"], tokenizer, tmp_path / "out")
    assert report.n_documents == 30
    documents = dask_bpe.open_tokens(tmp_path / "out").documents
    assert [tokenizer.decode(ids).removesuffix("<|endoftext|>") for ids in documents] == texts


def test_a_frame_does_not_say_which(frame: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"columns \['id', 'text'\]: give the one with the text"):
        dask_bpe.train(frame, 300)
