"""scripts/notebook.ipynb runs from top to bottom in a real kernel, and shows what is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

import dask_bpe

PATH = Path(__file__).parent.parent / "scripts/notebook.ipynb"
DATA = Path(dask_bpe.__file__).parent / "data"


def test_it_is_kept_without_outputs() -> None:
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code and all(not cell.outputs and cell.execution_count is None for cell in code)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The outputs of each cell, by its id; no cell has raised."""
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(PATH, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def html(outputs: list[Any]) -> str:
    return "".join(output["data"].get("text/html", "") for output in outputs if "data" in output)


def text(outputs: list[Any]) -> str:
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def fact(page: str, name: str) -> str:
    (value,) = re.findall(rf"<dt>{name}</dt><dd>(.*?)</dd>", page)
    return str(value)


@pytest.mark.notebook
def test_what_it_shows_is_true(outputs: dict[str, list[Any]]) -> None:
    corpus = [DATA / "alice.txt", DATA / "poems.txt"]
    tokenizer = dask_bpe.train(corpus, 4096, special_tokens=["<|endoftext|>"])
    n_tokens = len(tokenizer.encode(corpus[0].read_text())) + len(tokenizer.encode(corpus[1].read_text()))
    # The ends of both files are marked too.
    n_tokens += sum(not path.read_text().endswith("<|endoftext|>") for path in corpus)

    assert not [output for cell in outputs.values() for output in cell if output["output_type"] == "error"]
    # On a busy machine Dask may complain when the cluster is closed.
    quiet = [cell for name, cell in outputs.items() if name != "end"]
    assert not [output for cell in quiet for output in cell if output.get("name") == "stderr"]
    assert re.search(r"dashboard: http://127\.0\.0\.1:\d+/status", text(outputs["cluster"]))
    assert fact(html(outputs["tokenizer"]), "ids") == "4,096"
    last = text(outputs["curve"]).splitlines()[-1]
    assert last.startswith(f"4,096 ids: {int(tokenizer.training.log.tokens_after[-1]):>7,} tokens")
    assert fact(html(outputs["open"]), "tokens") == f"{n_tokens:,}"
    assert f"{(n_tokens - 65) // 64 + 1:,} windows of 64 uint16 ids" in text(outputs["window"])
    assert fact(html(outputs["verify"]), "text compared") == "410.5 kB"


@pytest.mark.notebook
def test_jobs_are_one_output_each_and_end_in_a_summary(outputs: dict[str, list[Any]]) -> None:
    for cell in ("train", "encode"):
        shown = [output for output in outputs[cell] if "data" in output]
        assert len(shown) == 1
        assert "done in" in shown[0]["data"]["text/plain"] and "/dask-bpe" in html(shown)
    assert fact(html(outputs["train"]), "merges") == "3,839"
    assert fact(html(outputs["encode"]), "tokens") == fact(html(outputs["open"]), "tokens")
    assert "What would have made it faster" in html(outputs["report"])
