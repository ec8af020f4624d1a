"""Text that comes in: which files there are, and bytes of them.

Only names and sizes are looked at until somebody reads a range. Nothing is decoded and no line end is
touched.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import InputError, ParameterError
from dask_bpe.io import paths

COMPRESSED = (".gz", ".zst", ".zstd", ".bz2", ".xz", ".lz4", ".zip")
_REMOTE_PIECE = 16 << 20


@dataclass(frozen=True)
class TextFile:
    """A file of text.

    Attributes
    ----------
    path : str
        Absolute local path, or URL.
    size : int
        Bytes.
    """

    path: str
    size: int


def list_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[TextFile]:
    """Every text file that `source` names.

    Parameters
    ----------
    source
        A path, a folder (all files below it; names that begin with a dot are left out, links are followed), a
        glob (``**`` crosses folders; only files count), a URL of these kinds for fsspec, or a sequence of all
        that. A path that exists is taken literally, also when it looks like a glob.

    Returns
    -------
    list of TextFile
        Sorted by path within each item; the items in the order given. Empty files are kept among others.

    Raises
    ------
    InputError
        Something is missing, unreadable, compressed, not a regular file, or named twice; or there is no text
        at all.
    """
    items = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(items, Sequence) or isinstance(items, bytes):
        raise ParameterError(
            f"text must be a path, a folder, a glob, a URL or a list of these, not {type(source).__name__}"
        )
    if not items:
        raise InputError("no text input: the list of files is empty")
    files: list[TextFile] = []
    seen: set[str] = set()
    for item in items:
        path = paths.normalise(item)
        for file in _list_remote(path) if paths.is_remote(path) else _list_local(path):
            if file.path in seen:
                raise InputError(f"{file.path}: named twice in the input; its text would count twice")
            seen.add(file.path)
            files.append(file)
    if not any(file.size for file in files):
        what = f"{files[0].path} is empty" if len(files) == 1 else f"all {len(files)} files of {source!r} are empty"
        raise InputError(f"no text input: {what}")
    return files


def read_range(path: str, start: int, stop: int) -> npt.NDArray[np.uint8]:
    """Bytes `start` to `stop` of a file, as a writable uint8[stop - start].

    A local file is read straight into the array.

    Raises
    ------
    InputError
        The file cannot be read, or ends before `stop`.
    """
    if not 0 <= start <= stop:
        raise ParameterError(f"{path}: a range of bytes must satisfy 0 <= start <= stop, not [{start}, {stop})")
    data = np.empty(stop - start, np.uint8)
    if not len(data):
        return data
    try:
        done = (_read_remote if paths.is_remote(path) else _read_local)(path, start, data)
    except OSError as error:
        raise InputError(f"cannot read {path}: {paths.one_line(error)}") from error
    if done < len(data):
        raise InputError(f"{path}: file changed while being read: it ends at byte {start + done}, {stop} were expected")
    return data


def _read_local(path: str, start: int, data: npt.NDArray[np.uint8]) -> int:
    view = data.data
    done = 0
    with Path(path).open("rb", buffering=0) as file:
        file.seek(start)
        # A single read gives at most 2 GiB on Linux.
        while done < len(view):
            count = file.readinto(view[done:])
            if not count:
                break
            done += count
    return done


def _read_remote(path: str, start: int, data: npt.NDArray[np.uint8]) -> int:
    # In pieces: `cat_file` returns bytes, and a whole block twice in memory is what the pieces avoid.
    fs, inner = paths.filesystem(path)
    done = 0
    while done < len(data):
        stop = min(done + _REMOTE_PIECE, len(data))
        piece = fs.cat_file(inner, start=start + done, end=start + stop)
        data[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
        if done < stop:
            break
    return done


def _list_local(path: str) -> list[TextFile]:
    if Path(path).is_dir():
        found = sorted(_walk(path))
        if not found:
            raise InputError(f"{path}: the folder holds no text files")
    elif os.path.lexists(path):
        found = [path]
    elif glob.has_magic(path):
        # Not `Path.glob`: it takes no absolute pattern, and finds hidden files.
        matches = set(glob.glob(path, recursive=True))  # noqa: PTH207
        found = sorted(name for name in matches if not Path(name).is_dir())
        if not found:
            raise InputError(f"{path}: no file matches")
    else:
        raise InputError(f"{path}: no such file or folder")
    return [_local_file(name) for name in found]


def _walk(folder: str) -> Iterator[str]:
    """Files below `folder`, without hidden ones; links to folders are followed, each real folder once."""

    def refuse(error: OSError) -> None:
        raise InputError(f"cannot list {error.filename}: {paths.one_line(error)}") from error

    visited: set[str] = set()
    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        real = os.path.realpath(parent)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if not name.startswith("."):
                yield str(Path(parent, name))


def _local_file(path: str) -> TextFile:
    _refuse_compressed(path)
    if not Path(path).exists():
        raise InputError(f"{path}: a link to a file that does not exist")
    if not Path(path).is_file():
        raise InputError(f"{path}: not a regular file; its size must be known to cut it into blocks")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: no permission to read")
    return TextFile(path, Path(path).stat().st_size)


def _list_remote(url: str) -> list[TextFile]:
    fs, inner = paths.filesystem(url)
    try:
        if fs.isdir(inner):
            found = [info for name, info in fs.find(inner, detail=True).items() if not _hidden(name, inner)]
            lack = "the folder holds no text files"
        elif fs.exists(inner):
            info = fs.info(inner)
            return [_remote_file(url, info)]
        elif glob.has_magic(inner):
            found = [info for info in fs.glob(inner, detail=True).values() if info["type"] == "file"]
            lack = "no file matches"
        else:
            raise InputError(f"{url}: no such file or folder")
    except OSError as error:
        raise InputError(f"cannot list {url}: {paths.one_line(error)}") from error
    if not found:
        raise InputError(f"{url}: {lack}")
    named = sorted((fs.unstrip_protocol(info["name"]), info) for info in found)
    return [_remote_file(name, info) for name, info in named]


def _hidden(name: str, folder: str) -> bool:
    below = name.removeprefix(folder).strip("/")
    return any(part.startswith(".") for part in below.split("/"))


def _remote_file(url: str, info: dict[str, Any]) -> TextFile:
    _refuse_compressed(url)
    if info.get("size") is None:
        raise InputError(f"{url}: the server does not tell its size; download it first")
    return TextFile(url, int(info["size"]))


def _refuse_compressed(path: str) -> None:
    if path.lower().endswith(COMPRESSED):
        raise InputError(f"{path}: compressed files are not supported; decompress it first")
