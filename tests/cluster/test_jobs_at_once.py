"""Jobs that one process gives to one cluster at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
from distributed import Client

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.counts import PretokenCounts

END = "<|endoftext|>"


def test_countings_at_once_are_as_one_after_the_other(client: Client, alice: str, tmp_path: Path) -> None:
    paths = []
    for number in range(6):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(END.join(alice[number * 5_000 : (number + 3) * 5_000].split("\n\n")), encoding="utf-8")

    def count(path: Path) -> PretokenCounts:
        # Every other one with a folder, whose partitions the driver hands out itself.
        work = path.with_suffix(".work") if int(path.stem) % 2 else None
        return dask_bpe.count_pretokens(path, special_tokens=[END], block_bytes=2_000, work_dir=work, client=client)

    with ThreadPoolExecutor(3) as threads:
        counted = list(threads.map(count, paths))
    for path, counts in zip(paths, counted, strict=True):
        assert counts == dask_bpe.count_pretokens(path, special_tokens=[END], block_bytes=2_000)
    assert dask.config.get("scheduler", None) is None


def test_encodings_at_once_are_as_one_after_the_other(client: Client, alice: str, tmp_path: Path) -> None:
    tokens = {i: bytes([i]) for i in range(256)} | {256: b"th", 257: b"the"}
    tokenizer = Tokenizer(tokens, [(b"t", b"h"), (b"th", b"e")], special_tokens={END: 258})
    text = tmp_path / "alice.txt"
    text.write_text(END.join(alice.split("\n\n")), encoding="utf-8")
    expected = dask_bpe.encode_corpus(text, tokenizer, tmp_path / "expected")

    def encode(number: int) -> bytes:
        report = dask_bpe.encode_corpus(text, tokenizer, tmp_path / str(number), client=client, block_bytes=5_000)
        assert report.n_tokens == expected.n_tokens
        return b"".join(path.read_bytes() for path in sorted((tmp_path / str(number)).glob("*.bin")))

    with ThreadPoolExecutor(3) as threads:
        made = set(threads.map(encode, range(3)))
    assert made == {b"".join(path.read_bytes() for path in sorted((tmp_path / "expected").glob("*.bin")))}
    assert dask.config.get("scheduler", None) is None
