"""Folders that hold the files of a tokenizer."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from dask_bpe.errors import OutputError
from dask_bpe.io import paths


def new_folder(path: str | PathLike[str]) -> Path:
    """The folder, made if it is not there; its own folder must be. Raises OutputError."""
    folder = Path(path)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {paths.one_line(error)}") from None
    return folder
