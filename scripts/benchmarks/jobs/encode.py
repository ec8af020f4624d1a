"""A text file to token ids on disk, with all cores: uint16 for GPT-2, uint32 for larger vocabularies. Everybody writes
the same bytes, the separator's id between documents."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from benchmarks import yardsticks
from benchmarks.bars import Bar, faster_than
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.report import comparison, notes, section, speed
from benchmarks.texts import SEPARATOR
from benchmarks.work import SetUp, Task, Work, file_blocks

SLOW = ("tiktoken", "tokenizers")


def dask_bpe(task: Task) -> Work:
    import dask_bpe

    tokenizer, out = task.files.dask_bpe(), task.path("shards")

    def run() -> None:
        shutil.rmtree(out, ignore_errors=True)
        dask_bpe.encode_corpus(task.text, tokenizer, out, "bin", dtype=task.files.dtype, separator=SEPARATOR)

    def made(_: Any) -> Iterator[bytes]:
        for path in sorted(out.glob("part-*.bin")):
            yield from file_blocks(path)

    return Work(run, made)


def gigatoken(task: Task) -> Work:
    import numpy as np

    tokenizer, out = task.files.gigatoken(), task.path("tokens.bin")

    def run() -> None:
        # The file as one document: the separators are found in it as special tokens.
        rows = tokenizer.encode_files(task.text)
        np.asarray(rows.layout.content.data).astype(task.files.dtype).tofile(out)

    return Work(run, lambda _: file_blocks(out))


def by_batches(task: Task, encode: Callable[[list[str]], Iterable[list[int]]], end: int) -> Work:
    """For those who take lists of documents and give lists of ids."""
    import numpy as np

    out = task.path("tokens.bin")

    def run() -> None:
        between: list[int] = []
        with out.open("wb") as file:
            for documents in task.document_batches():
                for ids in encode(documents):
                    file.write(np.array([*between, *ids], task.files.dtype).tobytes())
                    between = [end]

    return Work(run, lambda _: file_blocks(out))


def tiktoken(task: Task) -> Work:
    encoding = task.files.tiktoken()
    return by_batches(task, partial(encoding.encode_ordinary_batch, num_threads=task.threads), encoding.eot_token)


def tokenizers(task: Task) -> Work:
    tokenizer = task.files.tokenizers()

    def encode(documents: list[str]) -> Iterator[list[int]]:
        for encoded in tokenizer.encode_batch_fast(documents, add_special_tokens=False):
            yield encoded.ids

    return by_batches(task, encode, tokenizer.token_to_id(SEPARATOR))


CONTESTANTS: dict[str, SetUp] = {
    OURS: dask_bpe,
    "gigatoken": gigatoken,
    "tiktoken": tiktoken,
    "tokenizers": tokenizers,
    **yardsticks.CONTESTANTS,
}


def measure(bench: Bench) -> Iterator[Contest]:
    """Every text with every vocabulary."""
    for text in bench.texts:
        for vocabulary in bench.vocabularies:
            entries = [Entry(name, text, vocabulary) for name in (OURS, "gigatoken")]
            entries += bench.slow(SLOW, text, bench.options.slow_megabytes, vocabulary=vocabulary)
            entries += yardsticks.entries(text)
            yield bench.contest("encode", {"text": text.name, "vocabulary": vocabulary.name}, entries)


def report(contests: list[Contest]) -> str:
    """MB/s."""
    body = comparison(contests, [OURS], ["gigatoken", *SLOW], "MB/s", speed, peaks=(OURS, "gigatoken"))
    return section("Encoding a file to ids on disk", body, notes(contests))


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """Against everybody, on every text with every vocabulary."""
    for peer, wanted in (("gigatoken", 1.2), ("tiktoken", 30), ("tokenizers", 80)):
        yield faster_than(peer, wanted, "encoding to .bin", contests)
