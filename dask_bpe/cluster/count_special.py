"""How often the text of each special token stands in a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import dask.bag as db
import numpy as np
import numpy.typing as npt

from dask_bpe.cluster import blocks, contents, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.compute import compute
from dask_bpe.cluster.contents import Errors, Reading
from dask_bpe.cluster.count import Source, as_bag, as_documents, as_paths
from dask_bpe.io.inputs import Bad, InputFormat
from dask_bpe.io.source import list_files
from dask_bpe.progress import Progress
from dask_bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    from distributed import Client

Int64s = npt.NDArray[np.int64]

STAGE = "special tokens"


def count_special_tokens(
    source: Source,
    tokenizer: Tokenizer,
    *,
    input_format: InputFormat | None = None,
    errors: Errors = "replace",
    block_bytes: int | None = None,
    client: Client | None = None,
    progress: Progress | None = None,
) -> dict[str, int]:
    """How often the text of each special token stands in a corpus, in documents and between them.

    Documents that cannot be read are passed over. Parameters as for `count_pretokens`.

    Raises
    ------
    InputError, ParameterError, ClusterError
    """
    vocabulary = tokenizer.vocabulary
    texts = tuple(vocabulary.special_tokens)
    if not texts:
        return {}
    reading = Reading(
        vocabulary.cut_pattern,
        texts,
        frozenset(range(len(texts))),
        errors,
        0,
        rules=tuple(vocabulary.added_rules.items()),
        on_error="quarantine",
        how=input_format or InputFormat(),
        special_tokens_in_text="encode",
    )
    view, source = progress or Progress(), as_bag(source)
    if isinstance(source, db.Bag):
        client = schedule.active_client(client)
        with schedule.job(STAGE, None, "B", view, client) as job:
            found = _summed(source.map_partitions(_in_texts, reading=reading, job=job), client)
    elif (paths := as_paths(source)) is None:
        with schedule.job(STAGE, None, "B", view, None) as job:
            found = _in_texts(as_documents(source), reading, job)[0]
    else:
        client = schedule.active_client(client)
        files = list_files(paths)
        total = sum(file.size for file in files)
        size = blocks.block_size(total, schedule.n_threads(client), block_bytes)
        parts = blocks.gather(blocks.divide(files, size, None, reading.how), size)
        with schedule.job(STAGE, total, "B", view, client) as job:
            bag = db.from_sequence(parts, npartitions=len(parts))
            found = _summed(bag.map_partitions(_in_partitions, reading=reading, job=job), client)
    return dict(zip(texts, found.tolist(), strict=True))


def _summed(counted: db.Bag, client: Client | None) -> Int64s:
    total: Int64s = compute(counted.reduction(_sum, _sum), client)
    return total


def _sum(parts: Iterable[Int64s]) -> Int64s:
    total: Int64s = np.sum(list(parts), axis=0)
    return total


def _in_partitions(parts: Iterable[Sequence[Block]], reading: Reading, job: str) -> list[Int64s]:
    with schedule.task(job):
        found = np.zeros(len(reading.special_tokens), np.int64)
        for part in parts:
            for block in part:
                for content in blocks.read(block, reading):
                    found += _in_content(content, reading)
                schedule.report(job, block.stop - block.start)
    return [found]


def _in_texts(texts: Iterable[str], reading: Reading, job: str) -> list[Int64s]:
    with schedule.task(job):
        found = np.zeros(len(reading.special_tokens), np.int64)
        for content in contents.texts_to_contents(texts, "documents", reading, contents.TEXTS_BYTES):
            found += _in_content(content, reading)
            if not isinstance(content, Bad):
                schedule.report(job, len(content.text))
    return [found]


def _in_content(content: contents.Content | Bad, reading: Reading) -> Int64s:
    if isinstance(content, Bad):
        return np.zeros(len(reading.special_tokens), np.int64)
    return np.bincount(content.special[content.special >= 0], minlength=len(reading.special_tokens))
