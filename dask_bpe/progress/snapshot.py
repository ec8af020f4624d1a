"""All figures of a job at one moment. Plain JSON: numbers, texts, lists, dictionaries, None.

This is what `--progress json` prints, one a line, and what every other surface shows. Its size is bounded, whatever the
job: curves have some hundreds of points, lists their last entries. Times are in seconds, amounts in bytes; a rate is
per second. Keys are added in later versions, never given another meaning.
"""

from __future__ import annotations

from typing import Literal, TypedDict

VERSION = 1

Ending = Literal["running", "finished", "failed", "interrupted"]


class Stage(TypedDict):
    """A stage: `planning`, `counting`, `reducing`, `merging`, `encoding`, `writing`, `verifying` and so on.

    name : what it does.
    unit : of `done`, `total`, `rate` and `rate_now`: "B" (bytes), "merges", "files", "sums", "partitions", "tokens".
    done, total : how far it is; `total` is None when nobody knows it.
    state : as that of the job; a stage that has not begun is not there.
    began : seconds from the job's beginning to that of the stage.
    seconds : that it has taken.
    rate, rate_now : units a second on average, and in the last ten seconds; None while nothing is known.
    seconds_left : at the rate of now; None when it cannot be told, or while the stage before still runs.
    """

    name: str
    unit: str
    done: int
    total: int | None
    state: Ending
    began: float
    seconds: float
    rate: float | None
    rate_now: float | None
    seconds_left: float | None


class Rate(TypedDict):
    """A figure's growth a second: in the last ten seconds, and on average while its stages ran."""

    now: float
    average: float


class Memory(TypedDict):
    """Resident bytes: of the process that started the job, now, at most and its budget; and of all workers together.

    None is what nobody knows, or what has no limit. Without a cluster `workers` is None.
    """

    driver: int
    driver_peak: int
    driver_limit: int | None
    workers: int | None
    workers_limit: int | None


class Worker(TypedDict):
    """A worker of a cluster: bytes of text done for the job's present stage, bytes a second now, resident bytes and
    their limit (None: no limit)."""

    name: str
    done: int
    rate: float
    memory: int
    memory_limit: int | None


class Quarantined(TypedDict):
    """A document that could not be read: its file or source, its position there (None: all of it), the reason."""

    source: str
    position: int | None
    reason: str


class Merge(TypedDict):
    """A merge, to read: its rank (the first is 1), its halves as text, occurrences of the pair in the corpus.

    Halves that are no text are written in hexadecimal, `[e5 b8]`. They come from the corpus: escape them.
    """

    rank: int
    left: str
    right: str
    count: int


class SlowPartition(TypedDict):
    """A partition that took long: its number, seconds, and the worker ("" when nobody knows)."""

    partition: int
    seconds: float
    worker: str


class Partitions(TypedDict):
    """What has become of the partitions of the present stage (or the last one that had any).

    total : how many there are; 0 while nobody knows.
    done, failed, resumed : how many are done now, could not be done, were done by an earlier run.
    cells : the partitions in order, each cell a run of `per_cell` of them: ``[done, failed, resumed, waiting]``. Empty
        when it is not known which ones are done.
    slowest : those that took longest, the slowest first.
    """

    total: int
    done: int
    failed: int
    resumed: int
    per_cell: int
    cells: list[list[int]]
    slowest: list[SlowPartition]


class Throughput(TypedDict):
    """Bytes of text a second over time: lists of one length. `seconds` from the job's beginning, each the end of the
    interval over which the rates are averages. `workers`: of each worker by name, of up to eight; of more, of the
    "slowest", "median" and "fastest" one."""

    seconds: list[float]
    all: list[float]
    workers: dict[str, list[float]]


class Growth(TypedDict):
    """Distinct pre-tokens against the bytes of a part of the corpus: ascending, the most found in a part of about that
    size; the last one is the corpus at the end of the job."""

    bytes: list[int]
    distinct: list[int]


class MergeCurve(TypedDict):
    """By rank of the merge, on a grid that is even in its logarithm: occurrences of the pair, and tokens of the corpus
    after it."""

    rank: list[int]
    count: list[int]
    tokens_left: list[int]


class Compression(TypedDict):
    """Bytes of text per token of what is encoded so far, against the bytes encoded."""

    bytes: list[int]
    bytes_per_token: list[float]


class Curves(TypedDict):
    """All curves; those that the job has no use for are empty."""

    throughput: Throughput
    growth: Growth
    merges: MergeCurve
    compression: Compression


class Snapshot(TypedDict):
    """A job at one moment.

    version : of these keys.
    id : of the job, unlike that of any other.
    kind : "train", "count", "encode", "verify", "reshape", "plan".
    name : what the job is about: its source, or its output.
    folder : where what is done is kept, so that the same call goes on after an interruption; "" if nowhere.
    page : the address of the job's page on Dask's dashboard; "" if there is none.
    state, error : how it is or ended; the first line of what stopped it, else None.
    began : when it began, in seconds since 1970.
    seconds : from then on, or to its end.
    stages : those that have begun, in that order.
    figures : what is done so far: some of `bytes`, `documents`, `invalid` (places that were not UTF-8), `quarantined`
        (documents that could not be read), `pretokens`, `distinct` (pre-tokens), `merges`, `tokens`, `shards`. Those of
        a finished job are exact: those of its result and its manifest.
    rates : of `bytes`, `merges` and `tokens`, where they grow.
    threads : tasks that could run at the same time; 0 where nobody said.
    spent : seconds of all threads together by what tasks were doing: `reading`, `counting`, `reducing`, `encoding`,
        `writing`.
    memory, n_workers, workers : of a cluster's workers at most 16 are listed, those that are fullest.
    partitions, curves : see there.
    merges : the last ten.
    quarantined : the last fifty documents that could not be read.
    said : the last ten lines that were said.
    """

    version: int
    id: str
    kind: str
    name: str
    folder: str
    page: str
    state: Ending
    error: str | None
    began: float
    seconds: float
    stages: list[Stage]
    figures: dict[str, int]
    rates: dict[str, Rate]
    threads: int
    spent: dict[str, float]
    memory: Memory
    n_workers: int
    workers: list[Worker]
    partitions: Partitions
    curves: Curves
    merges: list[Merge]
    quarantined: list[Quarantined]
    said: list[str]
