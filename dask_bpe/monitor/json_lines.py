"""A JSON object a line, for machines: the snapshot of the job, once a second and at the end of each stage."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from dask_bpe.monitor.view import View
from dask_bpe.progress import Snapshot


class JsonLines(View):
    """The keys are those of `dask_bpe.progress.snapshot.Snapshot`. While the job runs `curves` and the cells of
    `partitions` are left out, since whoever reads the lines sees them grow; the last line has them."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream or sys.stderr

    def show(self, snapshot: Snapshot) -> None:
        """See `View.show`."""
        line: dict[str, Any] = dict(snapshot)
        if snapshot["state"] == "running":
            del line["curves"]
            line["partitions"] = {key: value for key, value in snapshot["partitions"].items() if key != "cells"}
        print(json.dumps(line, ensure_ascii=False), file=self._stream, flush=True)
