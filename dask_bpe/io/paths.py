"""Where a file lies: on a local file system, or behind a URL that fsspec understands.

A path is local unless it holds ``://``. Local paths are made absolute, because a worker of a cluster has a
working folder of its own; ``file://`` URLs become local paths, so that they take the fast way too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dask_bpe.errors import ParameterError


def normalise(path: str | os.PathLike[str]) -> str:
    """The absolute local path, or the URL without trailing slashes. Raises ParameterError for other types."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise ParameterError(f"a path must be a str or os.PathLike, not {type(path).__name__}: {path!r}")
    if not text:
        raise ParameterError("a path is empty")
    if "\0" in text:
        raise ParameterError(f"a path holds a NUL character, which no file has in its name: {text[:80]!r}")
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if is_remote(text):
        if "::" in text:
            raise ParameterError(f"{text}: chained URLs are not supported; give the plain URL")
        return text.rstrip("/")
    # Not `Path.resolve`: it would follow links.
    return os.path.abspath(text)  # noqa: PTH100


def is_remote(path: str) -> bool:
    """Whether `path` is a URL."""
    return "://" in path


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it. Raises ParameterError when there is none."""
    # Imported here: it takes 0.1 s, which a start without URLs need not wait for.
    from fsspec.core import url_to_fs

    try:
        fs, inner = url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise ParameterError(f"{url}: {one_line(error)}") from error
    return fs, inner


def join(folder: str, name: str) -> str:
    """`name` inside `folder`."""
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else str(Path(folder, name))


def size_of(path: str) -> int:
    """Size of a file in bytes. Raises OSError (FileNotFoundError when it is missing)."""
    if not is_remote(path):
        return Path(path).stat().st_size
    fs, inner = filesystem(path)
    return int(fs.info(inner)["size"])


def open_to_read(path: str) -> Any:
    """The file, open for reading bytes. Raises OSError."""
    if not is_remote(path):
        return Path(path).open("rb")
    fs, inner = filesystem(path)
    return fs.open(inner, "rb")


def list_names(folder: str) -> list[str]:
    """Names of everything in a folder, sorted. Raises OSError (FileNotFoundError when it is missing)."""
    if not is_remote(folder):
        return sorted(entry.name for entry in Path(folder).iterdir())
    fs, inner = filesystem(folder)
    return sorted(name.rstrip("/").rsplit("/", 1)[-1] for name in fs.ls(inner, detail=False))


def remove(path: str) -> None:
    """Delete a file; it is fine when there is none. Raises OSError."""
    try:
        if is_remote(path):
            fs, inner = filesystem(path)
            fs.rm_file(inner)
        else:
            Path(path).unlink()
    except FileNotFoundError:
        return


def one_line(error: BaseException) -> str:
    """What an error says, fit for one line; the system's own words for an OSError."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split())
