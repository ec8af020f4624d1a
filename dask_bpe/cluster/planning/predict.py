"""From what was measured on a sample to the tasks of the whole jobs: what each reads, takes, keeps and writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dask_bpe.cluster import blocks, memory
from dask_bpe.cluster.planning.sample import Sample
from dask_bpe.cluster.planning.sample_pieces import format_name
from dask_bpe.cluster.planning.simulate import Cluster, Floats, Tasks
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.source import SourceFile
from dask_bpe.training.fit import merge_memory_of

# A process that has loaded Dask, Arrow and the kernels, and has read nothing yet.
PROCESS_BYTES = 225_000_000
# A table of counts takes this for a distinct pre-token: four words of its entry, two to four of its index, and when it
# is emptied keys, order, bounds, counts and places, two words of keys more. Its bytes come twice.
_TABLE_BYTES = 112
# The cache of an encoder takes about so much for a distinct pre-token, and never more than its limit.
_CACHE_BYTES, _MOST_CACHE = 96, 1 << 28
# Ids of a slice, tables in front of the caches, buffers of files.
_ENCODER_BYTES = 32 << 20
# Counts travel as the bytes of the pre-tokens with a bound, a count and a place each.
_WORDS = 24
# Files that a corpus is scaled up to.
_MOST_PLANNED = 10_000
# Tasks of the simulation for one level of the trees of all buckets.
_MOST_OF_LEVEL = 2_000


@dataclass(frozen=True, eq=False)
class Partitions:
    """What the tasks of a job read.

    Attributes
    ----------
    size : bytes of a block that were aimed at.
    n_bytes, text : float64[n], bytes of files and of text of each partition.
    seconds : float64[n], to take each of them apart.
    whole : bytes of text of the largest file that cannot be divided; 0 if there is none.
    """

    size: int
    n_bytes: Floats
    text: Floats
    seconds: Floats
    whole: float

    def __len__(self) -> int:
        return len(self.text)


class Predictor:
    """Tasks of the jobs on a corpus of which a sample was measured.

    Parameters
    ----------
    files : all of them; they are neither opened nor looked for.
    sample : what was measured.
    how : their formats.
    split_every : counts that one task adds up.
    """

    def __init__(self, files: Sequence[SourceFile], sample: Sample, how: InputFormat, split_every: int) -> None:
        self.files, self.sample, self._how = files, sample, how
        self._split_every = split_every
        self.total = sum(file.size for file in files)
        known = {item.name: (item.expansion, item.seconds / item.n_bytes) for item in sample.formats}
        n_bytes = sum(item.n_bytes for item in sample.formats)
        # Of a format that no piece fell on, what is true of all of them together.
        mean = sample.text_bytes / n_bytes, sum(item.seconds for item in sample.formats) / n_bytes
        names = {file.path: format_name(file.path, how) for file in files}
        self._of_path = {path: known.get(name, mean) for path, name in names.items()}
        self.whole = any(not how.splittable(path) for path in names)
        self.text = float(sum(file.size * self._of_path[file.path][0] for file in files))
        self.distinct = sample.distinct.of(self.text)
        self.distinct_bytes = sample.distinct_bytes.of(self.text)

    def partitions(self, size: int) -> Partitions:
        """What the tasks of counting and of encoding read in blocks of this size: one block, or several small ones."""
        return self._partitions(size, blocks.gather(blocks.divide(self.files, size, how=self._how), size))

    def _partitions(self, size: int, parts: Sequence[Sequence[blocks.Block]]) -> Partitions:
        n_bytes = np.array([block.stop - block.start for part in parts for block in part], np.float64)
        rates = np.array([self._of_path[block.path] for part in parts for block in part], np.float64)
        bounds = np.concatenate(([0], np.cumsum([len(part) for part in parts])))[:-1]
        text, seconds = n_bytes * rates[:, 0], n_bytes * rates[:, 1]
        splittable = {file.path for file in self.files if self._how.splittable(file.path)}
        whole = [text[k] for k, block in enumerate(b for part in parts for b in part) if block.path not in splittable]
        sums = [np.add.reduceat(values, bounds) for values in (n_bytes, text, seconds)]
        return Partitions(size, sums[0], sums[1], sums[2], float(max(whole, default=0.0)))

    def counting(self, partitions: Partitions, n_buckets: int, cluster: Cluster) -> Tasks:
        """Counting, in the order of the corpus, and adding up in a tree for every bucket, in the workers' memory.

        In a work folder the largest partitions are counted first, and sums begin when all are counted.
        """
        sample, n = self.sample, len(partitions)
        counting = partitions.text / sample.count + sample.distinct.at(partitions.text) / sample.freeze
        seconds = (partitions.seconds + counting).tolist()
        after: list[Sequence[int]] = [()] * n
        messages = [1 + n_buckets * (n_buckets > 1)] * n
        below, first_below = 1, 0
        for level in self._tree(partitions.text, cluster):
            # Where there are many additions, several buckets are one task here, one after the other.
            groups = min(n_buckets, max(1, _MOST_OF_LEVEL // len(level)))
            bounds = [group * n_buckets // groups for group in range(groups + 1)]
            first = len(seconds)
            for node in level:
                for start, stop in pairwise(bounds):
                    inputs = range(start * below // n_buckets, (stop * below - 1) // n_buckets + 1)
                    after.append([first_below + child * below + group for child in node.children for group in inputs])
                    seconds.append(node.seconds * (stop - start) / n_buckets)
                    messages.append(stop - start)
            below, first_below = groups, first
        n_nodes = len(seconds) - n
        # A tree is climbed as soon as it can be. With buckets, each partition is dealt out by tasks of their own.
        rank = np.concatenate((np.arange(n), np.full(n_nodes, -1.0)))
        read = np.concatenate((partitions.n_bytes, np.zeros(n_nodes)))
        return Tasks(read, np.array(seconds), np.zeros(len(seconds)), rank, after, messages)

    def encoding(self, partitions: Partitions) -> Tasks:
        """Encoding, the largest partitions first."""
        sample = self.sample
        seconds = partitions.seconds + partitions.text / sample.encode
        return Tasks(partitions.n_bytes, seconds, partitions.text * sample.shard_bytes, -partitions.n_bytes)

    def driver(self, n_buckets: int, cluster: Cluster) -> tuple[float, float]:
        """Seconds that the driver takes to get and join all counts, and to merge."""
        sample = self.sample
        travel = self._travelling(self.distinct, self.distinct_bytes) / cluster.network if cluster.workers > 1 else 0.0
        joining = self.distinct * math.ceil(math.log2(n_buckets)) / sample.combine
        return travel + joining, sample.merge_seconds(self.distinct)

    @staticmethod
    def _travelling(distinct: float, n_bytes: float) -> float:
        return n_bytes + _WORDS * distinct

    def _tree(self, text: Floats, cluster: Cluster) -> list[list[_Node]]:
        """The additions, level by level, as Dask's bags make them; the last level is the root."""
        levels: list[list[_Node]] = []
        while True:
            last = len(text) <= self._split_every
            starts = range(0, len(text), max(len(text), 1) if last else self._split_every)
            groups = [range(start, min(start + starts.step, len(text))) for start in starts]
            levels.append([self._node(group, text, cluster) for group in groups])
            if last:
                return levels
            text = np.array([text[group.start : group.stop].sum() for group in groups])

    def _node(self, group: range, text: Floats, cluster: Cluster) -> _Node:
        sample = self.sample
        parts = text[group.start : group.stop]
        sizes = sample.distinct_bytes.at(parts) + _WORDS * sample.distinct.at(parts)
        # The task runs where the largest of its inputs is; the others are there as well or on any other worker.
        moved = float(sizes.sum() - sizes.max()) * (1.0 - 1.0 / cluster.workers)
        strings = 0.0
        while len(parts) > 1:
            even = len(parts) // 2 * 2
            strings += float(sample.distinct.at(parts[:even]).sum())
            parts = np.append(parts[:even:2] + parts[1:even:2], parts[even:])
        return _Node(list(group), moved / cluster.network + strings / sample.combine)

    def task_memory(self, counted: Partitions, encoded: Partitions, n_buckets: int) -> dict[str, float]:
        """Bytes that one task of each kind holds at most. Files that are read as a whole come in pieces like blocks."""
        sample = self.sample
        text = float(counted.text.max())
        table = _TABLE_BYTES * sample.distinct.of(text) + 2 * sample.distinct_bytes.of(text)
        cache = min(_MOST_CACHE, _CACHE_BYTES * self.distinct)
        return {
            "counting": min(text, float(counted.size)) + table,
            "adding up": memory.bytes_to_add_up(self.distinct / n_buckets),
            "encoding": min(float(encoded.text.max()), float(encoded.size)) + cache + _ENCODER_BYTES,
        }

    def driver_memory(self) -> float:
        """Bytes that the driver holds: all counts, twice while they are joined, and then what merges them."""
        counts = self._travelling(self.distinct, self.distinct_bytes)
        return counts + max(
            counts, float(merge_memory_of(int(self.distinct), int(self.distinct_bytes), self.sample.vocab_size))
        )


@dataclass(frozen=True)
class _Node:
    """An addition: the numbers of its inputs on the level below, and what it takes with the way there."""

    children: Sequence[int]
    seconds: float


def scaled(files: Sequence[SourceFile], size: int) -> list[SourceFile]:
    """Files of the same kinds and sizes, as many as hold `size` bytes; larger ones when these would be too many."""
    files = [file for file in files if file.size]
    total = sum(file.size for file in files)
    copies = min(max(1, round(size / total)), max(1, _MOST_PLANNED // len(files)))
    bounds: npt.NDArray[np.int64] = np.cumsum(np.tile([file.size for file in files], copies), dtype=np.float64)
    bounds = np.round(bounds * (size / bounds[-1])).astype(np.int64)
    sizes = np.diff(bounds, prepend=0).tolist()
    return [SourceFile(files[k % len(files)].path, n_bytes) for k, n_bytes in enumerate(sizes)]
