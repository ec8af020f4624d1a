"""How an encoding is divided, and how its text is read: the first run decides, later ones find it in the folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dask_bpe.cluster import blocks, schedule
from dask_bpe.cluster.blocks import Block
from dask_bpe.cluster.contents import Reading
from dask_bpe.cluster.encode_partition import Partition
from dask_bpe.errors import InputError
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.job import Job, Piece
from dask_bpe.io.paths import is_remote
from dask_bpe.io.source import SourceFile, version_of
from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from distributed import Client

# A task holds its text, the ids of a slice, caches and what reading needs: together some sixteen times a block at most.
_BLOCKS_IN_MEMORY = 16


def block_size(total: int, asked: int | None, memory_per_worker: int | None, client: Client | None) -> int:
    """Bytes of a block: what is asked for, else what suits the corpus and fits the memory of a task."""
    size = blocks.block_size(total, schedule.n_threads(client), asked)
    memory = schedule.memory_per_thread(client, memory_per_worker)
    return size if asked is not None or memory is None else max(1, min(size, memory // _BLOCKS_IN_MEMORY))


def reading_of(job: Job, vocabulary: Vocabulary) -> Reading:
    """How the text of a job is read."""
    options, specials = job.options, tuple(vocabulary.special_tokens)
    separator = options["separator"]
    return Reading(
        vocabulary.cut_pattern,
        specials,
        frozenset() if separator is None else frozenset({specials.index(separator)}),
        options["errors"],
        job.patience,
        tuple(vocabulary.added_rules.items()),
        options["on_error"],
        InputFormat(**options["input"]),
        options["special_tokens_in_text"],
    )


def pieces_of(files: Sequence[SourceFile], size: int, how: InputFormat) -> list[list[Piece]]:
    """The partitions of files, as pieces by the numbers of the files."""
    number = {file.path: i for i, file in enumerate(files)}
    partitions = blocks.gather(blocks.divide(files, size, how=how), size)
    return [[(number[block.path], block.start, block.stop) for block in partition] for partition in partitions]


def partitions_of(job: Job) -> list[Partition]:
    """The partitions of a job, of which the first run has decided."""
    made = []
    for index, pieces in enumerate(job.partitions):
        files = [(job.files[number], start, stop) for number, start, stop in pieces]
        made.append(
            Partition(
                index,
                tuple(Block(index, file.path, file.size, start, stop, file.version) for file, start, stop in files),
            )
        )
    return made


def check_unchanged(files: Sequence[SourceFile]) -> None:
    """Refuse to call a job done whose local files have changed after they were read. Raises InputError."""
    for file in files:
        if not is_remote(file.path) and version_of(file.path) != (file.size, file.version):
            raise InputError(f"{file.path}: changed while the job ran: begin the job anew (overwrite)")
