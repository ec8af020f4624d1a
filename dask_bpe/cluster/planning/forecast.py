"""The time of the jobs on so many workers: their tasks, run in a simulation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dask_bpe.cluster import blocks, memory
from dask_bpe.cluster.planning.predict import Partitions, Predictor
from dask_bpe.cluster.planning.simulate import Cluster, Tasks, lower_bounds, simulate

# As in an encoding: what a task holds is so many times its block at most.
_BLOCKS_IN_MEMORY = 16


@dataclass(frozen=True)
class Forecast:
    """The jobs on some workers, without the seconds in which processes start and code is loaded.

    Attributes
    ----------
    workers, threads : processes, and threads of each.
    partitions, block_bytes : tasks that count, and the size aimed at.
    counting, reducing, merging, encoding, total : seconds. Reducing is what is left to add up when all is counted, and
        the way to the driver.
    speed_up, efficiency : against one worker, and as a share of the workers.
    bound : what most of the time goes by: "workers" (more of them help), "storage", "scheduler", "one task",
        "adding up", "merging".
    """

    workers: int
    threads: int
    partitions: int
    block_bytes: int
    counting: float
    reducing: float
    merging: float
    encoding: float
    total: float
    speed_up: float
    efficiency: float
    bound: str


class Forecaster:
    """Forecasts of the same jobs for any number of workers.

    Parameters
    ----------
    predictor : knows the tasks.
    threads : of each worker.
    memory_limit, limited : bytes that a worker may use, and whether that was asked for, so that blocks are sized to it.
    block_bytes : text per task, or None.
    storage, network, overhead : see `Cluster`.

    Attributes
    ----------
    n_buckets : shares into which the distinct pre-tokens are dealt.
    """

    def __init__(
        self,
        predictor: Predictor,
        threads: int,
        memory_limit: int,
        limited: bool,
        block_bytes: int | None,
        storage: float,
        network: float,
        overhead: float,
    ) -> None:
        self.predictor = predictor
        self.threads = threads
        per_task = max(1, memory_limit // threads)
        self._most = max(1, per_task // _BLOCKS_IN_MEMORY) if limited and block_bytes is None else 1 << 62
        self._block_bytes = block_bytes
        sample = predictor.sample
        self._cluster = Cluster(1, threads, sample.read, sample.write, storage, network, overhead)
        self._partitions: dict[int, Partitions] = {}
        # As counting chooses in a work folder: by a sample, with room for twice what it expects.
        self.n_buckets = memory.n_buckets(2 * predictor.distinct, per_task)

    def partitions(self, workers: int) -> tuple[Partitions, Partitions]:
        """Those of counting and of encoding, as the jobs on so many workers divide the corpus."""
        slots = workers * self._cluster.threads
        size = blocks.block_size(self.predictor.total, slots, self._block_bytes)
        return self._of_size(size), self._of_size(min(size, self._most))

    def _of_size(self, size: int) -> Partitions:
        if size not in self._partitions:
            self._partitions[size] = self.predictor.partitions(size)
        return self._partitions[size]

    def forecasts(self, workers: Sequence[int]) -> list[Forecast]:
        """One for each number of workers; the first of them, which is 1, is what the others are compared with."""
        rows = [self._forecast(n) for n in workers]
        base = rows[0].total
        return [
            replace(row, speed_up=base / row.total, efficiency=base / row.total / row.workers * workers[0])
            for row in rows
        ]

    def _forecast(self, workers: int) -> Forecast:
        cluster = replace(self._cluster, workers=workers)
        counted, encoded = self.partitions(workers)
        tasks = self.predictor.counting(counted, self.n_buckets, cluster)
        run = simulate(tasks, cluster)
        counting = float(run.end[: len(counted)].max())
        joining, merging = self.predictor.driver(self.n_buckets, cluster)
        reducing = run.seconds - counting + joining
        encodings = self.predictor.encoding(encoded)
        encoding = simulate(encodings, cluster).seconds
        spent = defaultdict(float, {"adding up": reducing, "merging": merging})
        spent[_bound(tasks.first(len(counted)), cluster)] += counting
        spent[_bound(encodings, cluster)] += encoding
        total = counting + reducing + merging + encoding
        bound = max(spent, key=lambda name: spent[name])
        return Forecast(
            workers, cluster.threads, len(counted), counted.size, counting, reducing, merging, encoding, total,
            1.0, 1.0, bound,
        )  # fmt: skip


def _bound(tasks: Tasks, cluster: Cluster) -> str:
    """What keeps independent tasks from ending earlier."""
    bounds = lower_bounds(tasks, cluster)
    return max(bounds, key=lambda name: bounds[name])
