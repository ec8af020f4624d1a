"""Folders to write into, local or behind a URL."""

from __future__ import annotations

import os
from pathlib import Path

from dask_bpe.errors import OutputError
from dask_bpe.io import paths


def make_folder(path: str) -> bool:
    """Make a folder and those above it, unless it is there; whether it is known that it was not. Raises OutputError."""
    try:
        if paths.is_remote(path):
            fs, inner = paths.filesystem(path)
            fs.makedirs(inner, exist_ok=True)
            return False
        made = not Path(path).exists()
        Path(path).mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"{path}: a file; the output must be a folder") from error
    except OSError as error:
        raise OutputError(f"cannot make the output folder {path}: {paths.one_line(error)}") from error
    return made


def empty_folder(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Make a folder that must be empty; its normalised path, and whether it was made here. Raises OutputError."""
    folder = paths.normalise(path)
    made = make_folder(folder)
    try:
        names = paths.list_names(folder)
    except OSError as error:
        raise OutputError(f"cannot list {folder}: {paths.one_line(error)}") from error
    if names:
        raise not_empty(folder, names[0])
    return folder, made


def not_empty(folder: str, name: str) -> OutputError:
    """What is said of a folder that holds something else."""
    return OutputError(f"{folder}: the output folder is not empty (it holds {name!r}); choose another or empty it")
