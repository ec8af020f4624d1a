"""A folder of arrays that belong together: a .npy file each, and ``state.json``, written last, with their checksums.

A folder without it, or in which a file is not what it says, is as good as none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from dask_bpe.io import paths, records
from dask_bpe.io.atomic import atomic_write

NAME = "state.json"
VERSION = 1


def save(folder: str, kind: str, arrays: Mapping[str, npt.NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write contiguous arrays and JSON values that say what they are, into a folder that exists. Raises OutputError."""
    checksums = {}
    for name, array in arrays.items():
        with atomic_write(paths.join(folder, f"{name}.npy")) as file:
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
            if array.size:
                file.write(array.data)
        checksums[name] = xxhash.xxh3_128(array.data if array.size else b"").hexdigest()
    records.write(paths.join(folder, NAME), kind, VERSION, {"about": dict(about), "arrays": checksums})


def load(folder: str, kind: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]] | None:
    """What `save` wrote, None when it is incomplete, damaged or something else. Raises OSError."""
    content = records.find(paths.join(folder, NAME), kind, VERSION)
    if content is None:
        return None
    arrays = {}
    for name, checksum in content["arrays"].items():
        try:
            with paths.open_to_read(paths.join(folder, f"{name}.npy")) as file:
                array = np.load(file, allow_pickle=False)
        except (FileNotFoundError, EOFError, ValueError):
            return None
        if xxhash.xxh3_128(array.data if array.size else b"").hexdigest() != checksum:
            return None
        arrays[name] = array
    return arrays, content["about"]


def about(folder: str, kind: str) -> dict[str, Any] | None:
    """Only what the arrays are; None when the folder is not complete. Raises OSError."""
    content = records.find(paths.join(folder, NAME), kind, VERSION)
    return None if content is None else dict(content["about"])
