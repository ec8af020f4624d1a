"""What training and encoding a corpus will take, from a sample of it: memory, time and output, on any cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dask_bpe import machine
from dask_bpe.cluster import schedule
from dask_bpe.cluster.count import Source, as_paths, named
from dask_bpe.cluster.encode import SHARD_TOKENS
from dask_bpe.cluster.planning.forecast import Forecast, Forecaster
from dask_bpe.cluster.planning.predict import PROCESS_BYTES, Partitions, Predictor, scaled
from dask_bpe.cluster.planning.sample import Sample, measure
from dask_bpe.cluster.planning.sample_work import Wanted
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.shards import writer_class
from dask_bpe.io.source import SourceFile, list_files
from dask_bpe.monitor import automatic
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.progress import Progress, watch
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.training.fit import check_rules

SAMPLE_BYTES = 64 << 20
USUAL_VOCABULARY = 32_000
NETWORK = 1e9
# Seconds of the scheduler per task; those of Dask say 0.2 to 1 ms.
OVERHEAD = 0.0005
WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
# What the merge loop can index.
_MOST_POSITIONS = 1 << 32
# A task so many times the mean, and so large a residual of the growth, are worth a word.
_UNEVEN, _UNSURE = 4.0, 0.25


@dataclass(frozen=True)
class Plan:
    """What `plan_corpus` expects.

    Attributes
    ----------
    files, n_bytes, text_bytes : of the corpus that is planned for: files, their bytes, bytes of text in them.
    source_files, source_bytes : what there is of it now.
    sample : what was measured.
    distinct, distinct_bytes : distinct pre-tokens, and their bytes together.
    partitions, encodings, largest, skew : of the counting and of the encoding, how many; bytes of text of the largest,
        and how many times the mean that is.
    whole : bytes of text of the largest file that one task must read.
    buckets : shares into which the distinct pre-tokens are dealt, so that each fits into a worker.
    tasks_memory : bytes that a task of each kind holds; `worker_memory` what a worker needs with all its threads.
    memory_limit : bytes that a worker may use.
    driver_memory : bytes that the driver needs, for the merges mostly.
    tokens, shards, output_bytes : what is written.
    forecast : the time on the workers that were asked for; `rows`: on others.
    storage, network, overhead : bytes per second of all together (None: no limit) and between workers, seconds.
    warnings : what is in the way of the jobs, a sentence each.
    assumptions : what all this takes for granted, a sentence each.
    """

    files: int
    n_bytes: int
    text_bytes: int
    source_files: int
    source_bytes: int
    sample: Sample
    distinct: int
    distinct_bytes: int
    partitions: int
    encodings: int
    largest: int
    skew: float
    whole: int
    buckets: int
    tasks_memory: dict[str, int]
    worker_memory: int
    memory_limit: int
    driver_memory: int
    tokens: int
    shards: int
    output_bytes: int
    forecast: Forecast
    rows: tuple[Forecast, ...]
    storage: float | None
    network: float
    overhead: float
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        forecast = self.forecast
        return (
            f"Plan({self.text_bytes:,} bytes of text, {forecast.workers:,} workers: {forecast.total:,.1f} s,"
            f" bound by {forecast.bound})"
        )

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_plan

        return of_plan(self)

    def to_json(self) -> dict[str, Any]:
        """JSON values by name."""
        return asdict(self)


def plan_corpus(
    source: Source,
    *,
    workers: int = 1,
    threads: int | None = None,
    vocab_size: int | None = None,
    tokenizer: Tokenizer | None = None,
    pattern: PatternSpec = "gpt2",
    special_tokens: Sequence[str] = (),
    size: int | None = None,
    sample_bytes: int = SAMPLE_BYTES,
    input_format: InputFormat | None = None,
    format: str = "bin",  # noqa: A002
    block_bytes: int | None = None,
    memory_per_worker: int | None = None,
    split_every: int = 8,
    storage: float | None = None,
    network: float = NETWORK,
    progress: Progress | None = None,
) -> Plan:
    """Measure a sample of a corpus, on one thread of this process, and say what training and encoding all of it takes.

    Parameters
    ----------
    source : files, as `encode_corpus` takes them.
    workers, threads : the cluster: processes, and threads of each, by default as many as this machine has CPUs.
    vocab_size : ids in all; by default those of the tokenizer, else 32,000.
    tokenizer : what encodes. By default one is trained on the sample.
    pattern, special_tokens : of the training; a tokenizer has its own.
    size : bytes of the files of the corpus, if there will be more of them, or fewer, of the same kinds and sizes.
    sample_bytes : so much of the files is read, in pieces from everywhere.
    input_format, format, block_bytes, memory_per_worker, split_every : as in `encode_corpus` and `count_pretokens`.
    storage : bytes per second that all tasks together can read and write; None is no limit.
    network : bytes per second from one worker to another.
    progress : told of the stage "sampling", in bytes.

    Raises
    ------
    InputError, ParameterError, PatternError
    """
    paths = as_paths(source)
    if paths is None:
        raise ParameterError(f"a plan is made for files, not for {type(source).__name__}: give paths or URLs")
    whole_number("workers", workers)
    threads = schedule.n_threads(None) if threads is None else whole_number("threads", threads)
    whole_number("sample_bytes", sample_bytes)
    whole_number("split_every", split_every, 2)
    for name, speed in (("storage", storage), ("network", network)):
        _positive(name, speed)
    for name, n_bytes in (("block_bytes", block_bytes), ("memory_per_worker", memory_per_worker)):
        if n_bytes is not None:
            whole_number(name, n_bytes)
    writer_class(format)
    how = input_format or InputFormat()
    wanted = _wanted(vocab_size, tokenizer, pattern, special_tokens, how, format)
    found = list_files(paths)
    files = found if size is None else scaled(found, whole_number("size", size))
    limit = machine.memory_limit() if memory_per_worker is None else memory_per_worker
    with watch("plan", named(paths), progress or automatic()) as job:
        sample = measure([file for file in found if file.size], sample_bytes, wanted, job)
    predictor = Predictor(files, sample, how, split_every)
    forecaster = Forecaster(
        predictor, threads, limit, memory_per_worker is not None, block_bytes,
        math.inf if storage is None else float(storage), float(network), OVERHEAD,
    )  # fmt: skip
    return _plan(found, forecaster, workers, limit, storage, network)


def _plan(
    found: Sequence[SourceFile],
    forecaster: Forecaster,
    workers: int,
    memory_limit: int,
    storage: float | None,
    network: float,
) -> Plan:
    """What is expected on so many workers, and on others; `found` are the files that there are now."""
    predictor, sample = forecaster.predictor, forecaster.predictor.sample
    rows = forecaster.forecasts(sorted({*WORKERS, workers}))
    counted, encoded = forecaster.partitions(workers)
    tasks_memory = predictor.task_memory(counted, encoded, forecaster.n_buckets)
    worker_memory = int(PROCESS_BYTES + forecaster.threads * max(tasks_memory.values()))
    tokens = encoded.text / sample.bytes_per_token
    return Plan(
        files=len(predictor.files),
        n_bytes=predictor.total,
        text_bytes=int(predictor.text),
        source_files=len(found),
        source_bytes=sum(file.size for file in found),
        sample=sample,
        distinct=int(predictor.distinct),
        distinct_bytes=int(predictor.distinct_bytes),
        partitions=len(counted),
        encodings=len(encoded),
        largest=int(encoded.text.max()),
        skew=float(encoded.text.max() / encoded.text.mean()),
        whole=int(encoded.whole),
        buckets=forecaster.n_buckets,
        tasks_memory={name: int(n_bytes) for name, n_bytes in tasks_memory.items()},
        worker_memory=worker_memory,
        memory_limit=memory_limit,
        driver_memory=int(PROCESS_BYTES + predictor.driver_memory()),
        tokens=int(tokens.sum()),
        shards=int(np.maximum(np.round(tokens / SHARD_TOKENS), 1).sum()),
        output_bytes=int(encoded.text.sum() * sample.shard_bytes),
        forecast=next(row for row in rows if row.workers == workers),
        rows=tuple(rows),
        storage=storage,
        network=network,
        overhead=OVERHEAD,
        warnings=tuple(_warnings(predictor, encoded, worker_memory, memory_limit)),
        assumptions=tuple(_assumptions(sample, predictor, storage, network)),
    )


def _warnings(predictor: Predictor, encoded: Partitions, worker_memory: int, limit: int) -> Iterator[str]:
    if predictor.distinct_bytes + predictor.distinct >= _MOST_POSITIONS:
        yield (
            f"{predictor.distinct / 1e6:,.0f} million distinct pre-tokens are more than the merge loop can index: drop"
            " rare ones (min_count), or train on a part of the corpus."
        )
    if worker_memory > limit:
        yield (
            f"A worker needs {worker_memory / 1e9:,.2f} GB and may use {limit / 1e9:,.2f} GB: take fewer threads for"
            " each, or smaller blocks."
        )
    if encoded.whole > _UNEVEN * encoded.text.mean():
        yield (
            f"One file that is read as a whole holds {encoded.whole / 1e9:,.2f} GB of text,"
            f" {encoded.whole / encoded.text.mean():,.1f} times the mean of all tasks: divide it into smaller ones."
        )
    if predictor.sample.distinct.residual > _UNSURE:
        yield "The distinct pre-tokens of the sample do not grow by Heaps' law: take a larger sample."


def _assumptions(sample: Sample, predictor: Predictor, storage: float | None, network: float) -> Iterator[str]:
    yield "All of the corpus is like the sample; more of it holds files of the same kinds and sizes."
    if predictor.whole:
        yield "A file that cannot be read from the middle is one task, and its beginning stands for all of it."
    yield "Every thread of every worker works as fast as the one that was measured here, beside all others."
    together = "without any limit together" if storage is None else f"at most {storage / 1e6:,.0f} MB/s together"
    yield (
        f"Tasks read at {sample.read / 1e6:,.0f} MB/s and write at {sample.write / 1e6:,.0f} MB/s, as here (where the"
        f" page cache may have helped), {together}."
    )
    yield f"Between workers go {network / 1e6:,.0f} MB/s; the scheduler takes {OVERHEAD * 1e3:.1f} ms for a task."
    yield "Counting takes the blocks in their order, encoding begins with the largest. No task fails or is done twice."
    yield (
        "Distinct pre-tokens go on to grow as in the sample; in real text the exponent falls, so there may be fewer."
        " The merges take time in proportion to them."
    )
    yield "Processes are up and kernels compiled."


def _positive(name: str, speed: float | None) -> None:
    if speed is not None and not (isinstance(speed, int | float) and 0 < speed < math.inf):
        raise ParameterError(f"{name} is {speed!r}: bytes per second were expected, more than 0")


def _wanted(
    vocab_size: int | None,
    tokenizer: Tokenizer | None,
    pattern: PatternSpec,
    special_tokens: Sequence[str],
    how: InputFormat,
    format: str,  # noqa: A002
) -> Wanted:
    """Raises ParameterError, PatternError."""
    if tokenizer is None:
        vocab_size = USUAL_VOCABULARY if vocab_size is None else vocab_size
    else:
        if special_tokens or pattern != "gpt2":
            raise ParameterError("a tokenizer has its own pattern and special tokens: give either it or them")
        vocabulary = tokenizer.vocabulary
        pattern, special_tokens = vocabulary.pattern, tuple(vocabulary.special_tokens)
        vocab_size = max(len(vocabulary), 256 + len(special_tokens)) if vocab_size is None else vocab_size
    check_rules(vocab_size, special_tokens, "bytes", 1, None)
    specials = SpecialTokens(special_tokens).tokens
    return Wanted(vocab_size, tokenizer, get_pattern(pattern).spec, specials, how, format)
