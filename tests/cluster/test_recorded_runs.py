"""What jobs record of their runs, and the reports of it: figures equal what was written, also after interruptions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from distributed import Client

import dask_bpe
from dask_bpe import Progress, Tokenizer
from dask_bpe.cli import main
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.runs import NAME, append_run, read_runs

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, alice: str) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for number in range(4):
        (folder / f"{number}.txt").write_text(alice[number * 15_000 : (number + 1) * 15_000] + END)
    return folder


@pytest.fixture(scope="module")
def tokenizer(text: Path) -> Tokenizer:
    return dask_bpe.train(text, 400, special_tokens=[END])


class Stop(Progress):
    """Raises an error when so much of a stage is done."""

    def __init__(self, error: BaseException, stage: str, after: int) -> None:
        self._error, self._stage, self._after = error, stage, after

    def advance(self, stage: str, amount: int) -> None:
        self._after -= amount if stage == self._stage else 0
        if self._after < 0:
            raise self._error


def last_run(folder: Path) -> dict[str, Any]:
    return read_runs(str(folder)).runs[-1]


@pytest.mark.parametrize("cluster", [False, True])
def test_figures_of_an_encoding_are_those_of_its_manifest(
    text: Path, tokenizer: Tokenizer, tmp_path: Path, client: Client, cluster: bool
) -> None:
    report = dask_bpe.encode_corpus(
        text, tokenizer, tmp_path / "out", block_bytes=4000, client=client if cluster else None
    )
    manifest = Manifest.read(tmp_path / "out")
    (run,) = read_runs(report.path).runs
    assert run["state"] == "finished" and run["folder"] == report.path
    assert run["figures"] == {**manifest.text, "tokens": manifest.tokens, "shards": len(manifest.shards)}
    assert run["threads"] == 2 if cluster else run["threads"] >= 1
    assert set(run["spent"]) == {"reading", "encoding", "writing"}
    # What tasks were doing at the same time is no more than the threads had of the time.
    assert 0 < sum(run["spent"].values()) <= run["threads"] * run["seconds"]
    document = json.loads(report.report().to_json())
    assert document["data"]["manifest"]["tokens"] == manifest.tokens
    assert sum(document["data"]["shares"].values()) == pytest.approx(1)
    assert f"{manifest.tokens:,}" in report.report().to_html()


@pytest.mark.parametrize("cluster", [False, True])
def test_a_training_in_a_folder_records_what_it_counted_and_merged(
    text: Path, tmp_path: Path, client: Client, cluster: bool
) -> None:
    tokenizer = dask_bpe.train(
        text,
        400,
        special_tokens=[END],
        work_dir=tmp_path / "work",
        block_bytes=4000,
        client=client if cluster else None,
    )
    report = tokenizer.training
    (run,) = read_runs(str(tmp_path / "work")).runs
    assert run["state"] == "finished"
    expected = {"bytes": report.n_bytes, "documents": 4, "distinct": report.n_distinct, "merges": report.n_merges}
    assert run["figures"].items() >= expected.items()
    assert [stage["name"] for stage in run["stages"]] == ["planning", "counting", "reducing", "merging"]
    assert set(run["spent"]) == {"reading", "counting", "reducing", "writing"}
    assert report.run["figures"].items() >= expected.items() and report.run["state"] == "finished"
    page = report.report().to_html()
    assert "How often the merged pair occurred" in page and f"{report.n_distinct:,}" in page


@pytest.mark.parametrize(
    ("error", "state"), [(KeyboardInterrupt(), "interrupted"), (RuntimeError("the disk burns\nand more"), "failed")]
)
def test_runs_that_were_stopped_are_recorded_and_the_output_is_the_same(
    text: Path, tokenizer: Tokenizer, tmp_path: Path, error: BaseException, state: str
) -> None:
    def encode(out: Path, progress: Progress | None = None) -> dask_bpe.EncodeReport:
        return dask_bpe.encode_corpus(text, tokenizer, out, block_bytes=4000, progress=progress)

    with pytest.raises(type(error)):
        encode(tmp_path / "out", Stop(error, "encoding", 30_000))
    stopped = last_run(tmp_path / "out")
    assert stopped["state"] == state
    assert stopped["error"] == ("KeyboardInterrupt" if state == "interrupted" else "the disk burns")
    report = encode(tmp_path / "out")
    runs = read_runs(report.path).runs
    assert [run["state"] for run in runs] == [state, "finished"]
    assert runs[1]["partitions"]["resumed"] == report.n_resumed > 0
    assert "1 of 2 runs" in report.report().to_markdown() or report.seconds < 5
    encode(tmp_path / "at once")
    names = {path.name for path in (tmp_path / "at once").iterdir()}
    assert names == {path.name for path in (tmp_path / "out").iterdir()}
    for name in names - {NAME}:
        assert (tmp_path / "at once" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_an_interrupted_training_is_recorded_too(text: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"special_tokens": [END], "work_dir": tmp_path / "work", "block_bytes": 4000}
    with pytest.raises(KeyboardInterrupt):
        dask_bpe.train(text, 400, progress=Stop(KeyboardInterrupt(), "merging", 20), **options)
    assert last_run(tmp_path / "work")["state"] == "interrupted"
    dask_bpe.train(text, 400, **options)
    assert [run["state"] for run in read_runs(str(tmp_path / "work")).runs] == ["interrupted", "finished"]


def test_a_job_that_did_nothing_leaves_no_record(text: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", progress=Stop(KeyboardInterrupt(), "planning", 0))
    assert not (tmp_path / "out").exists()


def test_the_record_is_no_part_of_the_output(text: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    report = dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out")
    (tmp_path / "out" / NAME).write_bytes(b"torn {")
    assert dask_bpe.verify_corpus(tmp_path / "out", roundtrip=True).n_tokens == report.n_tokens
    (tmp_path / "out" / NAME).unlink()
    assert dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out").n_tokens == report.n_tokens


def test_a_record_that_cannot_be_written_ends_no_job(text: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    said: list[str] = []

    class Listening(Progress):
        def say(self, fact: str) -> None:
            said.append(fact)

    dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out")
    (tmp_path / "out" / NAME).unlink()
    (tmp_path / "out" / NAME).mkdir()
    dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", progress=Listening())
    assert len([fact for fact in said if fact.startswith("this run is not recorded: cannot write")]) == 2


@pytest.fixture(scope="module")
def folder(text: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "tokens"
    (bad := folder.parent / "bad.jsonl").write_text('{"text": "good"}\n{"text": <script>}\n')
    dask_bpe.encode_corpus([text / "0.txt", bad], tokenizer, folder)
    return folder


class TestCommand:
    """`dask-bpe report`."""

    def run(self, *arguments: object) -> Any:
        return CliRunner().invoke(main, ["report", *map(str, arguments)])

    def test_the_same_in_three_forms(self, folder: Path, tmp_path: Path) -> None:
        tokens = Manifest.read(folder).tokens
        markdown, page, data = (self.run(folder, form).stdout for form in ("--markdown", "--html", "--json"))
        assert self.run(folder).stdout == markdown
        assert f"| tokens | {tokens:,} |" in markdown
        assert page.startswith("<!DOCTYPE html>") and f"<dd>{tokens:,}</dd>" in page
        assert json.loads(data)["data"]["manifest"]["tokens"] == tokens
        for name, text in (("r.md", markdown), ("r.html", page), ("r.json", data)):
            result = self.run(folder, "-o", tmp_path / name)
            assert result.exit_code == 0 and result.stdout == f"{tmp_path / name}\n"
            assert (tmp_path / name).read_text() == text

    def test_what_could_not_be_read_is_listed_and_escaped(self, folder: Path) -> None:
        page = self.run(folder, "--html").stdout
        assert "bad.jsonl" in page and "What could not be read" in page and "<script" not in page
        assert json.loads(self.run(folder, "--json").stdout)["data"]["quarantined"] == 1

    def test_torn_lines_are_said(self, folder: Path) -> None:
        before = (folder / NAME).read_bytes()
        (folder / NAME).write_bytes(before + b'{"id": "encode')
        assert "1 lines of the record are torn" in self.run(folder).stdout
        append_run(str(folder), {**last_run(folder), "id": "later", "state": "running"})
        assert "never said how it ended" in self.run(folder).stdout
        (folder / NAME).write_bytes(before)

    @pytest.mark.parametrize(
        ("prepare", "message"),
        [
            (lambda path: None, "no job can be read there"),
            (lambda path: path.mkdir(), "it holds no job"),
            (lambda path: (path.mkdir(), (path / "job.json").touch()), "no run is recorded"),
            (lambda path: (path.mkdir(), append_run(str(path), {"id": "a", "version": 0})), "a run of version 0"),
        ],
    )
    def test_what_is_no_job_is_refused(self, tmp_path: Path, prepare: Callable[[Path], Any], message: str) -> None:
        prepare(tmp_path / "x")
        result = self.run(tmp_path / "x")
        assert result.exit_code == 2
        assert re.fullmatch(rf"Error: [^\n]*{message}[^\n]*\n", result.stderr)

    def test_a_file_that_exists_is_not_replaced(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "r.md").write_text("mine")
        assert self.run(folder, "-o", tmp_path / "r.md").exit_code == 2
        assert (tmp_path / "r.md").read_text() == "mine"
        assert self.run(folder, "-o", tmp_path / "r.md", "--force").exit_code == 0
