"""Kernels compile also where nothing can be kept, and processes that start at once agree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dask_bpe

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


def test_a_kernel_is_compiled_anew_when_what_it_contains_has_changed(tmp_path: Path) -> None:
    """Of another file, that is: numba itself looks at the kernel's own only."""
    package = tmp_path / "dask_bpe"
    shutil.copytree(Path(dask_bpe.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "outer.py").write_text(
        "from dask_bpe.kernels._jit import i64, kernel\n"
        "from dask_bpe.kernels.inner import inner\n"
        "@kernel(i64, i64)\n"
        "def outer(x):\n"
        "    return inner(x)\n"
    )

    def called() -> str:
        code = "from dask_bpe.kernels.outer import outer; print(outer(40), sum(outer.stats.cache_hits.values()))"
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    inner = "from dask_bpe.kernels._jit import step\n@step\ndef inner(x):\n    return x + {}\n"
    (package / "kernels" / "inner.py").write_text(inner.format(1))
    assert called() == "41 0\n"
    assert called() == "41 1\n"
    (package / "kernels" / "inner.py").write_text(inner.format(2))
    assert called() == "42 0\n"


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
