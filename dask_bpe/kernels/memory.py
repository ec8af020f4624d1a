"""Memory for kernels: tables that are read at random, and bytes that are written once."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

_HUGE_PAGE = 1 << 21
_NEW_BYTES = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)
_advise = getattr(ctypes.CDLL(None), "madvise", None) if hasattr(mmap, "MADV_HUGEPAGE") else None


def zeros(count: int, dtype: Any = np.uint64) -> npt.NDArray[Any]:
    """Zeros at the start of a cache line; on huge pages, asked for before the first touch, when large.

    A table of 64 MB on pages of 4 kB misses the TLB at nearly every look-up: encoding took a quarter longer.
    """
    n_bytes = max(count, 1) * np.dtype(dtype).itemsize
    if n_bytes < _HUGE_PAGE // 4 or not hasattr(mmap, "MADV_HUGEPAGE"):
        raw = np.zeros(n_bytes + 64, np.uint8)
        start = -raw.ctypes.data % 64
    else:
        # Private: memory that processes could share would be a file, which gets no huge pages.
        region = mmap.mmap(
            -1, -(-n_bytes // _HUGE_PAGE) * _HUGE_PAGE + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        )
        region.madvise(mmap.MADV_HUGEPAGE)
        raw = np.frombuffer(region, np.uint8)
        start = -raw.ctypes.data % _HUGE_PAGE
    table: npt.NDArray[Any] = raw[start : start + n_bytes].view(dtype)[:count]
    return table


def new_bytes(size: int) -> bytes:
    """`bytes` of any contents, for a kernel to fill before somebody else sees them, as Python's own C code does.

    ``np.frombuffer`` of them is what a kernel takes. To fill an array and copy it takes 0.08 s more a GB; to touch
    pages of 4 kB for the first time, 0.3 s.
    """
    made: bytes = _NEW_BYTES(None, size) if size else b""
    start = -(-id(made) // _HUGE_PAGE) * _HUGE_PAGE
    inside = id(made) + size - start
    if _advise is not None and inside >= _HUGE_PAGE:
        _advise(ctypes.c_void_p(start), ctypes.c_size_t(inside // _HUGE_PAGE * _HUGE_PAGE), mmap.MADV_HUGEPAGE)
    return made
