"""What is said of a job is said where it was started, not only in the logs of workers."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from distributed import Client

import dask_bpe
from dask_bpe.errors import PatternWarning


def test_a_pattern_that_is_not_compiled(tmp_path: Path, client: Client) -> None:
    path = tmp_path / "text.txt"
    path.write_text("some words, and some more words\n" * 100)
    with pytest.warns(PatternWarning, match=r"\(\?<! at character 0") as caught:
        counts = dask_bpe.count_pretokens(path, pattern=r"(?<!q)\w+|\W+", client=client, block_bytes=500)
    assert len(caught) == 1
    assert counts.to_dict()[b"words"] == 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dask_bpe.count_pretokens(path, pattern=r"\w+|\W+", client=client, block_bytes=500)
