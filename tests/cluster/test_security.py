"""A cluster that talks by TLS and knows its clients by certificates: what it needs, the client has with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

import dask_bpe

pytestmark = pytest.mark.peers


def test_training_and_encoding_by_tls(tmp_path: Path, corpus: list[str]) -> None:
    pytest.importorskip("cryptography")
    end = "<|endoftext|>"
    text = tmp_path / "text.txt"
    text.write_text(end.join(corpus) + end, encoding="utf-8", newline="")
    security = Security.temporary()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, security=security, dashboard_address=":0") as cluster,
        Client(cluster, security=security, set_as_default=False) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        tokenizer = dask_bpe.train(text, 400, special_tokens=[end], client=client, block_bytes=1000)
        assert tokenizer.vocabulary == dask_bpe.train(text, 400, special_tokens=[end]).vocabulary
        dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", client=client, block_bytes=1000)
    dask_bpe.encode_corpus(text, tokenizer, tmp_path / "here", block_bytes=1000)
    for path in sorted((tmp_path / "here").glob("part-*")):
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    assert dask_bpe.verify_corpus(tmp_path / "out", roundtrip=text).n_documents == len(corpus)
