"""The public names, and what importing them costs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import dask_bpe

NAMES = {
    "BpeError",
    "CharTokenizer",
    "EncodeReport",
    "Plan",
    "PretokenCounts",
    "Progress",
    "ReshapeReport",
    "Tokenizer",
    "TrainingReport",
    "Vocabulary",
    "measure_coverage",
    "describe_vocabulary",
    "trace_merges",
    "report_lab",
    "report_vocabulary",
    "measure_usage",
    "vocab_curve",
    "__version__",
    "compare",
    "compare_languages",
    "count_pretokens",
    "count_shortest",
    "encode_shortest",
    "inspect_text",
    "InputFormat",
    "VerifyReport",
    "encode_corpus",
    "open_tokens",
    "plan_corpus",
    "reshape",
    "train",
    "train_bpe",
    "verify_corpus",
    "verify_layout",
}
HEAVY = {"dask", "distributed", "numba", "llvmlite", "pyarrow", "fsspec", "numpy", "rich", "click", "regex"}


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh Python has loaded after the statement."""
    program = f"{statement}\nimport sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return {name.split(".")[0] for name in loaded.split()}


def test_all_public_names_and_no_others() -> None:
    assert set(dask_bpe.__all__) == NAMES
    assert list(dask_bpe.__all__) == sorted(dask_bpe.__all__, key=lambda name: (name.lower(), name)) or (
        list(dask_bpe.__all__) == sorted(dask_bpe.__all__)
    )
    assert set(dir(dask_bpe)) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_there(name: str) -> None:
    assert getattr(dask_bpe, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dask_bpe.no_such_name


def test_version() -> None:
    from importlib.metadata import version

    assert re.fullmatch(r"\d+\.\d+\.\d+.*", dask_bpe.__version__)
    assert dask_bpe.__version__ == version("dask-bpe")


@pytest.mark.parametrize("name", sorted(NAMES - {"__version__"}))
def test_every_name_is_documented(name: str) -> None:
    thing = getattr(dask_bpe, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        own = [member for key, member in vars(thing).items() if not key.startswith("_")]
        undocumented = [m for m in own if callable(m) and not inspect.getdoc(m)]
        assert not undocumented


def test_import_is_light() -> None:
    assert not modules_after("import dask_bpe") & HEAVY


def test_a_tokenizer_needs_no_dask() -> None:
    statement = "from dask_bpe import Tokenizer; Tokenizer({i: bytes([i]) for i in range(256)}, []).encode('a b')"
    assert not modules_after(statement) & {"dask", "distributed", "rich", "click"}


def test_the_parameters_that_users_rely_on() -> None:
    def names(function: object) -> list[str]:
        return list(inspect.signature(function).parameters)  # type: ignore[arg-type]

    assert names(dask_bpe.train_bpe) == ["input_path", "vocab_size", "special_tokens", "max_bytes"]
    assert names(dask_bpe.train)[:2] == ["source", "vocab_size"]
    assert {"special_tokens", "pattern", "ties", "min_frequency", "max_token_length", "client"} <= {
        *names(dask_bpe.train)
    }
    assert names(dask_bpe.encode_corpus)[:4] == ["source", "tokenizer", "out", "format"]
    assert names(dask_bpe.Tokenizer.from_files)[:3] == ["vocab_path", "merges_path", "special_tokens"]
