"""The record of runs: every line that was written whole comes back, whatever happened to the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.errors import OutputError, ShardError
from dask_bpe.io.job import Job, open_job
from dask_bpe.io.runs import NAME, append_run, read_runs
from dask_bpe.io.work_folder import open_work_folder

runs_of_folders = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from("abc"), "state": st.sampled_from(["running", "finished"]), "said": st.text()}
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("remote", [False, True])
def test_the_last_line_of_a_run_counts(tmp_path: Path, remote: bool) -> None:
    folder = "memory://runs" if remote else str(tmp_path)
    assert read_runs(folder).runs == ()
    for run in ({"id": "a", "state": "running"}, {"id": "b", "state": "running"}, {"id": "a", "state": "finished"}):
        append_run(folder, run)
    found = read_runs(folder)
    assert found.runs == ({"id": "a", "state": "finished"}, {"id": "b", "state": "running"})
    assert found.n_torn == 0


@given(runs=runs_of_folders, cut=st.integers(0, 10_000), after=runs_of_folders)
def test_a_process_killed_while_it_wrote_costs_one_line(
    tmp_path_factory: pytest.TempPathFactory, runs: list[dict[str, str]], cut: int, after: list[dict[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    for run in runs:
        append_run(str(folder), run)
    written = (folder / NAME).read_bytes()
    left = written[: cut % (len(written) + 1)]
    (folder / NAME).write_bytes(left)
    for run in after:
        append_run(str(folder), run)
    whole = {json.dumps(run): run for run in runs}
    lines = left.split(b"\n")
    kept = [json.loads(line) for line in lines[:-1]]
    # A line that lacks its end of line only is whole.
    last, torn = lines[-1], 0
    if last:
        try:
            kept.append(json.loads(last))
        except ValueError:
            torn = 1
    expected = {run["id"]: run for run in [*kept, *after]}
    assert all(json.dumps(run) in whole for run in kept)
    found = read_runs(str(folder))
    assert {run["id"]: run for run in found.runs} == expected and found.n_torn == torn


def test_what_is_no_run_is_counted_as_torn(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b'{"id": "a"}\n[1]\n{"state": "running"}\n\xff\n"id"\n')
    assert read_runs(str(tmp_path)).n_torn == 4


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        append_run(str(tmp_path / "missing"), {"id": "a"})
    (tmp_path / NAME).mkdir()
    with pytest.raises(ShardError, match="cannot be read"):
        read_runs(str(tmp_path))


def test_overwriting_clears_the_runs_of_the_job_before(tmp_path: Path) -> None:
    for folder, begin in (
        (tmp_path / "job", lambda path, overwrite: open_job(path, Job("v", {}), overwrite=overwrite)),
        (tmp_path / "work", lambda path, overwrite: open_work_folder(path, overwrite=overwrite)),
    ):
        with begin(folder, False):
            append_run(str(folder), {"id": "a"})
            (folder / "part-00000.bin").touch()
            (folder / "part-00000.json").touch()
        with begin(folder, False):
            assert len(read_runs(str(folder)).runs) == 1
        (folder / "part-00000.bin").unlink()
        (folder / "part-00000.json").unlink()
        with begin(folder, True):
            assert not read_runs(str(folder)).runs
