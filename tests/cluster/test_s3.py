"""A corpus in an object store, encoded into the same store: a real S3 server on this machine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

import dask_bpe
from dask_bpe.errors import OutputError, ShardError

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

ENDOFTEXT = "<|endoftext|>"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URL of an empty bucket."""
    pytest.importorskip("s3fs")
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        # The workers of a cluster inherit it too.
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("corpus")
        yield "s3://corpus"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture(scope="module")
def documents(alice: str) -> list[str]:
    return [alice[start : start + 1500] for start in range(0, 60_000, 1500)]


@pytest.fixture(scope="module")
def source(bucket: str, documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The documents in four formats."""
    import s3fs

    folder = tmp_path_factory.mktemp("formats")
    text = ENDOFTEXT.join(documents[:10]) + ENDOFTEXT
    lines = "".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(documents))
    contents: dict[str, Any] = {
        "a.txt": text.encode(),
        "b.txt.gz": gzip.compress((ENDOFTEXT.join(documents[10:20]) + ENDOFTEXT).encode()),
        "c.jsonl": "".join(lines.splitlines(keepends=True)[20:30]).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    pq.write_table(pa.table({"text": documents[30:]}), folder / "d.parquet", row_group_size=3)
    fs = s3fs.S3FileSystem()
    urls = []
    for path in sorted(folder.iterdir()):
        fs.put(str(path), f"corpus/in/{path.name}")
        urls.append(f"{bucket}/in/{path.name}")
    return urls


@pytest.fixture(scope="module")
def tokenizer(documents: list[str]) -> dask_bpe.Tokenizer:
    return dask_bpe.train(iter(documents), 600, special_tokens=[ENDOFTEXT])


def decoded(path: Any, tokenizer: dask_bpe.Tokenizer) -> list[str]:
    return [tokenizer.decode(ids).removesuffix(ENDOFTEXT) for ids in dask_bpe.open_tokens(path).documents]


@pytest.mark.parametrize("format", ["bin", "parquet"])
def test_round_trip(
    bucket: str,
    source: list[str],
    documents: list[str],
    tokenizer: dask_bpe.Tokenizer,
    format: str,  # noqa: A002
    tmp_path: Path,
) -> None:
    out = f"{bucket}/out-{format}"
    report = dask_bpe.encode_corpus(f"{bucket}/in", tokenizer, out, format, block_bytes=4000)
    assert report.n_documents == len(documents)
    assert decoded(out, tokenizer) == documents
    assert dask_bpe.verify_corpus(out, roundtrip=True).n_documents == len(documents)
    # Asked again, nothing is done; another job is refused.
    assert dask_bpe.encode_corpus(f"{bucket}/in", tokenizer, out, format, block_bytes=4000).n_resumed > 1
    with pytest.raises(OutputError, match="holds another job"):
        dask_bpe.encode_corpus(source[:2], tokenizer, out, format, block_bytes=4000)
    local = tmp_path / "out"
    dask_bpe.encode_corpus(f"{bucket}/in", tokenizer, local, format, block_bytes=4000)
    assert decoded(local, tokenizer) == documents


def test_on_a_cluster(bucket: str, source: list[str], documents: list[str], tokenizer: dask_bpe.Tokenizer) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        out = f"{bucket}/out-cluster"
        dask_bpe.encode_corpus(source, tokenizer, out, block_bytes=4000, client=client)
        assert decoded(out, tokenizer) == documents
        assert dask_bpe.verify_corpus(out, roundtrip=source, client=client).n_bytes > 0
        rules: dict[str, Any] = {"special_tokens": [ENDOFTEXT], "block_bytes": 4000}
        trained = dask_bpe.train(source, 600, **rules, client=client)
        kept = dask_bpe.train(source, 600, **rules, client=client, work_dir=f"{bucket}/work")
    here = dask_bpe.train(source, 600, special_tokens=[ENDOFTEXT])
    assert trained.vocabulary.fingerprint() == kept.vocabulary.fingerprint() == here.vocabulary.fingerprint()
    # What is there serves a process without a cluster.
    assert dask_bpe.count_pretokens(source, **rules, work_dir=f"{bucket}/work") == dask_bpe.count_pretokens(
        source, **rules
    )


def test_a_damaged_shard_is_found(bucket: str, source: list[str], tokenizer: dask_bpe.Tokenizer) -> None:
    import s3fs

    out = f"{bucket}/out-damaged"
    dask_bpe.encode_corpus(source, tokenizer, out)
    fs = s3fs.S3FileSystem()
    content = bytearray(fs.cat_file("corpus/out-damaged/part-00000.bin"))
    content[0] ^= 1
    fs.pipe_file("corpus/out-damaged/part-00000.bin", bytes(content))
    with pytest.raises(ShardError, match=r"part-00000\.bin has changed"):
        dask_bpe.verify_corpus(out)
