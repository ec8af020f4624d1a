"""A cluster that outlives the drivers that work on it: `python -m faults.cluster FILE` until standard input ends.

FILE is a scheduler file, as `--scheduler` takes it; it is there when two workers are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from distributed import LocalCluster


def main() -> None:
    """Serve."""
    (path,) = sys.argv[1:]
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        cluster.wait_for_workers(2)
        unfinished = Path(path).with_suffix(".part")
        unfinished.write_text(json.dumps({"type": "Scheduler", "address": cluster.scheduler_address}))
        unfinished.replace(path)
        sys.stdin.read()


if __name__ == "__main__":
    main()
