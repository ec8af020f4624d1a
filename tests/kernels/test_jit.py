"""Kernels compile also where nothing can be kept, and processes that start at once agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import warnings, tempfile
warnings.simplefilter("always")
{prepare}
from dask_bpe.kernels._jit import i64, kernel
with open("kernel.py", "w") as file:
    file.write("def double(x):\\n    return 2 * x\\n")
import sys; sys.path.insert(0, ".")
from kernel import double
print(kernel(i64, i64)(double)(21))
"""


def run(folder: Path, prepare: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Compile and call a kernel in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", CODE.format(prepare=prepare)],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_kernel_compiles_where_no_cache_can_be_kept(tmp_path: Path) -> None:
    no_cache = "import numba.core.caching as c; c.CacheImpl._locator_classes = []"
    done = run(tmp_path, no_cache)
    assert done.stdout == "42\n", done.stderr
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_kernel_compiles_where_no_lock_can_be_made(tmp_path: Path) -> None:
    done = run(tmp_path, f"tempfile.tempdir = {str(tmp_path / 'missing' / 'deeper')!r}; open('missing', 'w').close()")
    assert done.stdout == "42\n", done.stderr


@pytest.mark.slow
def test_four_processes_start_at_once_on_an_empty_cache(tmp_path: Path) -> None:
    code = (
        "from dask_bpe import Tokenizer\n"
        "tokenizer = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b'he'}, [(b'h', b'e')])\n"
        "print(tokenizer.encode('the hen'))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert outputs == ["[116, 256, 32, 256, 110]\n"] * 4
