"""Jobs in a notebook: one output that is updated in place, and the kernel's interrupt, which stops a job cleanly."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel import Cell, Kernel, kernel

import dask_bpe
from dask_bpe.monitor import automatic
from dask_bpe.monitor.bars import Bars
from dask_bpe.monitor.notebook import NotebookOutput, describe, render
from dask_bpe.progress import JobState

END = "<|endoftext|>"
NAME = "<script>alert(1)</script>.txt"
BLOCK = 8000


def shell(monkeypatch: pytest.MonkeyPatch, **attributes: object) -> None:
    """As if this process were a shell of IPython."""
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(**attributes)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)


def test_who_shows_a_job_that_asked_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert automatic() is None
    shell(monkeypatch, kernel=object())
    assert isinstance(automatic(), NotebookOutput)
    shell(monkeypatch)
    assert isinstance(automatic(), Bars)


def test_all_texts_of_a_job_are_escaped() -> None:
    job = JobState("encode", f"/data/{NAME}")
    job.start("<b>stage", 100, "B")
    job.advance("<b>stage", 50)
    job.say(f"cannot be read: {NAME}")
    page = render(job.snapshot())
    assert "<script" not in page and "<b>" not in page
    assert page.count("&lt;script&gt;") == 2 and "width: 50.0%" in page and "50 B of 100 B" in page
    assert "javascript" not in page and "href" not in page


@pytest.mark.parametrize(
    ("error", "folder", "words"),
    [
        (None, "", "Encoding to out: done in"),
        (KeyboardInterrupt(), "out", "; the same call goes on"),
        (KeyboardInterrupt(), "", "; nothing was kept"),
        (OSError("no space left"), "out", "failed after 0.0 s: no space left"),
    ],
)
def test_how_a_job_ended_is_said_in_one_line(error: BaseException | None, folder: str, words: str) -> None:
    job = JobState("encode", "out")
    assert re.fullmatch(r"Encoding to out: \d\.\d s", describe(job.snapshot()))
    job.keep(folder)
    job.end(error)
    assert words in describe(job.snapshot())


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, alice: str) -> Path:
    path = tmp_path_factory.mktemp("text") / NAME.replace("/", "_")
    path.write_text((alice[:50_000] + END) * 6)
    return path


@pytest.fixture(scope="module")
def expected(text: Path) -> dict[str, bytes]:
    """What the encoding writes when nothing disturbs it."""
    tokenizer = dask_bpe.train(text, 400, special_tokens=[END])
    tokenizer.save(text.with_suffix(".json"))
    dask_bpe.encode_corpus(text, tokenizer, text.parent / "undisturbed", block_bytes=BLOCK)
    return contents(text.parent / "undisturbed")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("runs.jsonl", "job.lock")}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("kernel")) as running:
        started = running.run("import time\nimport dask_bpe")
        assert not started.error, started
        yield running


# A task that takes long enough to be interrupted in the middle of.
SLOW = """
def slow():
    from dask_bpe.cluster import encode_partition
    if not hasattr(encode_partition, "fast"):
        encode_partition.fast = encode_partition.write_content
        def write_content(*arguments):
            time.sleep(0.3)
            return encode_partition.fast(*arguments)
        encode_partition.write_content = write_content
def fast():
    from dask_bpe.cluster import encode_partition
    encode_partition.write_content = encode_partition.fast
"""
# How many tasks run here and on each worker, and how many each of them has to do.
RUNNING = """
def n_running():
    from dask_bpe.cluster import schedule
    return sum(schedule._RUNNING.values())
time.sleep(1)
print(n_running())
"""
RUNNING_ON_CLUSTER = """
print(*client.run(n_running).values())
print(*map(len, client.processing().values()))
"""
CLUSTER = """
from distributed import Client, LocalCluster
cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
client = Client(cluster)
"""


def done_in(cell: Cell) -> bool:
    """Whether some partitions are done, by what a cell shows."""
    return any(re.search(r"<dt>shards</dt><dd>[3-9]", page) for page in cell.html())


@pytest.mark.notebook
def test_a_job_is_one_output_and_its_result_another(notebook: Kernel, text: Path) -> None:
    cell = notebook.run(f"tokenizer = dask_bpe.train({str(text)!r}, 400, special_tokens=[{END!r}])\ntokenizer")
    assert not cell.error and not cell.text
    job, result = cell.displays.values()
    assert len(job) >= 2 and len(result) == 1
    assert "done in" in job[-1]["text/plain"] and "<dt>merges</dt><dd>143</dd>" in job[-1]["text/html"]
    assert "<script" not in job[-1]["text/html"] and "&lt;script&gt;" in job[-1]["text/html"]
    assert "<dt>ids</dt><dd>400</dd>" in result[0]["text/html"]
    silent = notebook.run(f"counts = dask_bpe.count_pretokens({str(text)!r}, progress=dask_bpe.Progress())")
    assert not silent.displays and not silent.text and not silent.error


@pytest.mark.notebook
@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_an_interrupt_stops_the_job_and_the_same_call_goes_on(
    notebook: Kernel, text: Path, expected: dict[str, bytes], tmp_path: Path, where: str
) -> None:
    everywhere = "import time\nclient.run({0}); {0}()" if where == "cluster" else "{0}()"
    prepared = notebook.run(SLOW + (CLUSTER if where == "cluster" else "") + everywhere.format("slow"))
    assert not prepared.error, prepared
    call = (
        f"tokenizer = dask_bpe.Tokenizer.load({str(text.with_suffix('.json'))!r})\n"
        f"dask_bpe.encode_corpus({str(text)!r}, tokenizer, {str(tmp_path / 'out')!r}, block_bytes={BLOCK})"
    )
    stopped = notebook.run(call, interrupt_when=done_in)
    assert stopped.error == "KeyboardInterrupt"
    ((*_, last),) = stopped.displays.values()
    assert last["text/plain"].endswith("; the same call goes on") and "interrupted after" in last["text/html"]
    # Nothing goes on in the background: no task runs, and no file comes or changes.
    before = contents(tmp_path / "out")
    assert "manifest.json" not in before and len([name for name in before if name.endswith(".bin")]) >= 3
    running = notebook.run(RUNNING + (RUNNING_ON_CLUSTER if where == "cluster" else ""))
    assert running.text.split() == ["0"] * (5 if where == "cluster" else 1), running
    assert contents(tmp_path / "out") == before

    went_on = notebook.run(everywhere.format("fast") + "\n" + call)
    assert not went_on.error, went_on
    assert "partitions done before" in went_on.html()[-1]
    assert contents(tmp_path / "out") == expected
    if where == "cluster":
        assert "/dask-bpe" in went_on.html()[0]
        notebook.run("client.close()\ncluster.close()")
