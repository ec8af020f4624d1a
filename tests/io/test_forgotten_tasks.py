"""Tasks that a job has forgotten, or begun twice, and that go on: they must not harm what is done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dask_bpe.errors import OutputError
from dask_bpe.io.origins import Origins
from dask_bpe.io.series import ShardSeries
from dask_bpe.io.shards import ShardWriter, open_writer
from dask_bpe.io.writer import Shard


def written(folder: Path, kind: str) -> ShardWriter:
    """A shard of which all is written, and nothing in place."""
    writer = open_writer(kind, str(folder), "part-00000", "uint16", origins=Origins())
    writer.write(np.array([1, 2], np.uint16), np.array([2]))
    return writer


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names(shard: Shard) -> set[str]:
    return {file.name for file in shard.files}


@pytest.mark.parametrize("kind", ["bin", "parquet"])
def test_its_temporary_files_are_cleared_when_the_shard_is_done(tmp_path: Path, kind: str) -> None:
    forgotten = written(tmp_path, kind)
    (temporary,) = tmp_path.glob(f"part-00000.{kind}.tmp-*")
    shard = written(tmp_path, kind).close()
    assert shard is not None
    temporary.unlink()
    done = {name: data for name, data in contents(tmp_path).items() if name in names(shard)}
    with pytest.raises(OutputError, match=rf"cannot write .*part-00000\.{kind}"):
        forgotten.close()
    assert contents(tmp_path) == done


@pytest.mark.parametrize("kind", ["bin", "parquet"])
def test_it_ends_after_the_shard_is_done(tmp_path: Path, kind: str) -> None:
    forgotten = written(tmp_path, kind)
    shard = written(tmp_path, kind).close()
    assert shard is not None
    before = {name: data for name, data in contents(tmp_path).items() if name in names(shard)}
    assert forgotten.close() == shard
    assert contents(tmp_path) == before


def test_it_writes_no_shard_into_the_folder_of_another_job(tmp_path: Path) -> None:
    """Not even one that it had filled before it would look."""
    allowed = [True]

    def check() -> None:
        if not allowed[0]:
            raise OutputError("another job works here")

    def open_next(number: int, origins: Origins, continues: bool) -> ShardWriter:
        return open_writer("bin", tmp_path, f"part-00000_{number:04d}", "uint16", origins=origins, continues=continues)

    series = ShardSeries(open_next, 2, continues=False, check=check)
    series.write(np.array([1, 2], np.uint16), np.array([2]))
    before = contents(tmp_path)
    assert "part-00000_0000.bin" in before
    allowed[0] = False
    with pytest.raises(OutputError, match="another job"):
        series.write(np.array([3, 4], np.uint16), np.array([2]))
    series.abort()
    assert contents(tmp_path) == before
