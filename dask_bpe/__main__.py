"""`python -m dask_bpe` is `dask-bpe`."""

from __future__ import annotations

from dask_bpe.cli import main

if __name__ == "__main__":
    main(prog_name="python -m dask_bpe")
