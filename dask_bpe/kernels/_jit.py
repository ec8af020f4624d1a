"""The one decorator of every kernel: its flags, its cache and why they are what they are."""

from __future__ import annotations

import getpass
import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock
from numba import njit, types

# Types of arguments, as short as the signatures need them. What kernels only read may be read-only, as
# bytes, memory maps and arrays that came over the network are.
text_type = types.Array(types.uint8, 1, "C", readonly=True)
given_u16s = types.Array(types.uint16, 1, "C", readonly=True)
given_u32s = types.Array(types.uint32, 1, "C", readonly=True)
given_u64s = types.Array(types.uint64, 1, "C", readonly=True)
given_i64s = types.Array(types.int64, 1, "C", readonly=True)
given_i64m = types.Array(types.int64, 2, "C", readonly=True)
u8s, u32s, u64s = types.uint8[::1], types.uint32[::1], types.uint64[::1]
i32s, i64s = types.int32[::1], types.int64[::1]
i64m = types.int64[:, ::1]
i64, u64, none = types.int64, types.uint64, types.void


def named(kind: type[tuple[Any, ...]], *members: Any) -> Any:
    """Type of a named tuple: arrays that always go together are one argument."""
    if len(set(members)) == 1:  # numba has a type of its own for these
        return types.NamedUniTuple(members[0], len(members), kind)
    return types.NamedTuple(members, kind)


# Processes that start together on an empty cache wait here for the first one to compile, then load what
# it wrote: four of them cost one compilation instead of four, and none reads an index that another is
# halfway through replacing.
# There is a lock for each cache: who has compiled must not wait for another environment that does.
_USER = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
_CACHE = hashlib.sha256(f"{__file__} {os.environ.get('NUMBA_CACHE_DIR')}".encode()).hexdigest()[:12]
_COMPILING = FileLock(Path(tempfile.gettempdir()) / f"dask_bpe-{_USER}-{_CACHE}.lock")


@contextmanager
def _one_process_at_a_time() -> Iterator[None]:
    """Hold the lock; where there is no folder for it, go without: the cache stays right, work is done twice."""
    try:
        _COMPILING.acquire()
    except OSError:
        yield
        return
    try:
        yield
    finally:
        _COMPILING.release()


# Numba compiles a kernel anew when the file it stands in is another one; at what it contains of other files it does not
# look. So the source of all of them is a part of every name in the cache: without it an upgrade, or an edit, went on
# with the machine code of yesterday.
_SOURCES = hashlib.sha256()
for _path in sorted(Path(__file__).parent.glob("*.py")):
    _SOURCES.update(_path.read_bytes())

_NO_CACHE = (
    "numba finds no folder to keep compiled kernels in, so every process compiles them again, for 45 s:"
    " set NUMBA_CACHE_DIR to a folder that can be written to"
)
_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_rewrites": True}
# Nothing calls a step but kernels: without the wrappers for Python and C it compiles in two thirds of the time.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile for exactly these types, at import. Kernels release the GIL and allocate nothing.

    Explicit signatures keep integer widths out of the hands of type inference (int64 + uint64 is int64
    when compiled and float64 in numpy) and make every kernel one entry of the on-disk cache.
    ``NUMBA_BOUNDSCHECK=1`` in the environment checks every index.
    """

    def compile_now(function: Callable[..., Any]) -> Any:
        signature = result(*arguments)
        function.__qualname__ = f"{function.__name__}.{_SOURCES.hexdigest()[:12]}"
        with _one_process_at_a_time():
            try:
                return njit(signature, cache=True, no_cfunc_wrapper=True, **_FLAGS)(function)
            except RuntimeError as error:
                if "no locator available" not in str(error):
                    raise
                warnings.warn(_NO_CACHE, RuntimeWarning, stacklevel=2)
                return njit(signature, no_cfunc_wrapper=True, **_FLAGS)(function)

    return compile_now


def on_demand(part: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A kernel that does what a step does, compiled when it is called: for Python, where kernels contain the step.

    LLVM compiles what a kernel contains with it. Were the step a kernel too it would be compiled once more by everyone.
    """

    @cache
    def compiled() -> Any:
        return kernel(result, *arguments)(part.py_func)

    return lambda *given: compiled()(*given)


def direct(compiled: Any) -> Any:
    """What calls a kernel from Python without a look at the types of its arguments: 4 us less for forty arrays.

    For arguments that this package made itself: of an array it sees no more than whether its items have the right size.
    """
    (result,) = compiled.overloads.values()
    return result.entry_point


def step(function: Callable[..., Any]) -> Any:
    """A part of kernels, never called from Python: compiled into each kernel that calls it.

    LLVM decides whether it becomes a call. Without numba's reference counting (``_nrt``) arrays go to it
    as plain words; with it every call paid two atomic operations an array: 25 MB/s instead of 155 in the
    scalar scanner.
    """
    return njit(**_FLAGS, **_NO_WRAPPERS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A `step` so short and hot that it must not become a call, which LLVM made of `table.pack`."""
    return njit(forceinline=True, **_FLAGS, **_NO_WRAPPERS)(function)
