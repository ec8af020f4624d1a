"""How much memory there is, and what shares of the counts fit into it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dask_bpe import machine
from dask_bpe.cluster import schedule
from dask_bpe.errors import ParameterError, whole_number

if TYPE_CHECKING:
    from distributed import Client

# What adding up takes per distinct pre-token: its bytes, offset, count and first place in what is added up so far, in
# the next part (as Arrow reads it, and as arrays), and in the sum.
_BYTES_PER_STRING = 40
_COPIES = 4
# The share of a task's memory that may be filled: the rest is the interpreter's, and that of the code.
_SHARE = 0.5
_MOST_BUCKETS = 256


def memory_per_task(client: Client | None, asked: int | None) -> int:
    """Bytes for each of the tasks that a worker runs at the same time.

    asked : bytes per worker; None is its limit, without a cluster the memory of the machine.

    Raises
    ------
    ParameterError
        When `asked` is not a whole number of at least 1.
    """
    if asked is not None:
        whole_number("memory_per_worker", asked)
    if client is None:
        return (machine.memory_limit() if asked is None else asked) // schedule.n_threads(None)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [(asked or worker["memory_limit"] or machine.memory_limit()) // worker["nthreads"] for worker in workers]
    return int(min(shares, default=asked or machine.memory_limit()))


def n_buckets(distinct: float, memory: int) -> int:
    """Shares into which so many distinct pre-tokens are dealt, so that one can be added up in `memory` bytes."""
    return min(max(1, math.ceil(bytes_to_add_up(distinct) / (_SHARE * memory))), _MOST_BUCKETS)


def bytes_to_add_up(distinct: float) -> float:
    """Bytes of memory that it takes to add up counts of so many distinct pre-tokens."""
    return _COPIES * _BYTES_PER_STRING * distinct


def fit_in(what: str, needed: int, limit: int) -> None:
    """Refuse work on the driver that needs more memory than there is.

    Raises
    ------
    ParameterError
    """
    if needed > limit:
        raise ParameterError(
            f"{what} takes about {needed / 1e9:,.3g} GB, and there are {limit / 1e9:,.3g} GB: drop rare pre-tokens"
            " with min_count=2 (--min-count 2) or more, or run on a machine with more memory"
        )
