"""`dask scheduler --preload dask_bpe.monitor.preload`: the page /dask-bpe is there from the start, and /metrics too."""

from __future__ import annotations

from typing import Any

from dask_bpe.monitor.plugin import JobPlugin


async def dask_setup(scheduler: Any) -> None:
    """Dask calls this when the scheduler starts."""
    await scheduler.register_scheduler_plugin(JobPlugin(), idempotent=True)
