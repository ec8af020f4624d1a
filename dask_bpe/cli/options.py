"""What the commands share: options, their types, and the checks that come before any work."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_bpe.errors import OutputError

if TYPE_CHECKING:
    from distributed import Client

    from dask_bpe.cluster.contents import Errors
    from dask_bpe.io.inputs import InputFormat
    from dask_bpe.monitor import View

# Named as in `dask_bpe.monitor.CHOICES`, which is imported when a command runs.
progress_option = click.option(
    "--progress",
    type=click.Choice(["auto", "bars", "lines", "json", "none"]),
    default="auto",
    show_default=True,
    help="On standard error: bars, lines for a log, JSON lines for programs; auto: bars on a terminal, else lines.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the summary.")
tokenizers_option = click.option(
    "-t",
    "--tokenizer",
    "tokenizers",
    metavar="FILE|NAME",
    multiple=True,
    required=True,
    help="May be given many times.",
)

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def size(text: str) -> int:
    """A number of bytes: `500000`, `64MB`, `64MiB`, `1.5G`. Raises click.BadParameter."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmg]i?)?b?)\s*", text, re.IGNORECASE)
    n_bytes = int(float(match[1]) * _FACTORS[(match[2] or "").lower()]) if match else 0
    if n_bytes < 1:
        raise click.BadParameter(f"{text!r} is not a size of at least one byte, such as 64MiB")
    return n_bytes


@dataclass(frozen=True)
class Work:
    """How a command that reads a corpus does it, as given on the command line.

    Attributes
    ----------
    errors : "strict", "replace" or "skip"
        What to do about invalid UTF-8.
    block_bytes : int or None
        Bytes of text per task.
    scheduler, workers : str or None, int or None
        The cluster to join; the processes of an own one. Neither: the threads of this process.
    memory_per_worker : int or None
        Bytes to which tasks are sized.
    progress : str
        How the progress is shown, see `monitor.terminal_progress`.
    quiet, as_json : bool
        Say nothing; one JSON object instead of the summary.
    """

    errors: Errors
    block_bytes: int | None
    scheduler: str | None
    workers: int | None
    memory_per_worker: int | None
    progress: str
    quiet: bool
    as_json: bool

    def __post_init__(self) -> None:
        if self.scheduler is not None and self.workers is not None:
            raise click.UsageError("--scheduler joins a cluster, --cluster makes one: give one of them.")

    @contextmanager
    def begin(self) -> Iterator[tuple[Client | None, View]]:
        """The cluster's client, if there is one, and the view of the progress."""
        from dask_bpe.cluster.schedule import connect
        from dask_bpe.monitor import terminal_progress

        with (
            connect(self.scheduler, self.workers, self.memory_per_worker) as client,
            terminal_progress("none" if self.quiet else self.progress) as progress,
        ):
            if client is not None and self.progress != "json":
                self._say_page(client, progress)
            yield client, progress

    def _say_page(self, client: Client, progress: View) -> None:
        from dask_bpe.monitor.publisher import page_link

        link = page_link(client)
        if link is not None:
            progress.say(f"watch it at {link}")


_WORK_OPTIONS = (
    click.option(
        "--errors",
        type=click.Choice(["strict", "replace", "skip"]),
        default="replace",
        show_default=True,
        help="What to do about bytes that are not UTF-8.",
    ),
    click.option("--block-size", "block_bytes", type=size, help="Text per task, such as 64MiB."),
    click.option(
        "--scheduler",
        metavar="ADDRESS|FILE",
        help="Run on this Dask cluster: tcp://host:8786, or a scheduler file.",
    ),
    click.option(
        "--cluster",
        "workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Run on an own Dask cluster of N processes on this machine.",
    ),
    click.option(
        "--memory-per-worker",
        type=size,
        metavar="SIZE",
        help="What a worker may use, such as 4GiB; of --cluster it is the limit.  [default: that of the Dask worker]",
    ),
    progress_option,
    click.option("-q", "--quiet", is_flag=True, help="No progress, no summary."),
    json_option,
)


@dataclass(frozen=True)
class Input:
    """The text that a command reads: SOURCE, a list of more, and how files are to be taken."""

    source: tuple[str, ...]
    files_from: str | None
    kind: str
    field: str
    column: str | None
    id_field: str | None

    def paths(self) -> list[str]:
        """All that is named. Raises click.UsageError when nothing is, InputError for a list that cannot be read."""
        if not self.source and self.files_from is None:
            raise click.UsageError("Give SOURCE or --files-from: the text to read.")
        if self.files_from is None:
            return list(self.source)
        from dask_bpe.io.source import read_list

        return [*self.source, *read_list(self.files_from)]

    def format(self) -> InputFormat:
        """Raises ParameterError."""
        from dask_bpe.io.inputs import InputFormat

        return InputFormat(self.kind, self.field, self.column, self.id_field)


_INPUT_OPTIONS = (
    click.argument("source", nargs=-1),
    click.option("--files-from", metavar="FILE", help="A file with more of SOURCE, one a line."),
    click.option(
        "--input-format",
        "kind",
        type=click.Choice(["auto", "text", "jsonl", "parquet", "arrow", "warc"]),
        default="auto",
        show_default=True,
        help="What the files are; by default their names tell.",
    ),
    click.option("--field", metavar="NAME", default="text", show_default=True, help="JSONL: where the text is (a.b)."),
    click.option("--column", metavar="NAME", help="Parquet and Arrow: where the text is.  [default: as --field]"),
    click.option("--id-field", metavar="NAME", help="Where a document's own id is.  [default: file and position]"),
)


def input_options(command: Callable[..., None]) -> Callable[..., None]:
    """SOURCE and the options of `Input`, handed to the command as its argument `corpus`."""
    return together(Input, "corpus", _INPUT_OPTIONS, command)


def together(
    kind: type[Any], name: str, options: tuple[Callable[..., Any], ...], command: Callable[..., None]
) -> Callable[..., None]:
    """Several options, handed to the command as one argument `name`, a dataclass whose fields are called like them."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        made = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**{name: made}, **given)

    for option in reversed(options):
        with_options = option(with_options)
    return with_options


def work_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of `Work`, handed to the command as its argument `work`."""

    return together(Work, "work", _WORK_OPTIONS, command)


def new_file(path: str, force: bool) -> None:
    """Refuse a file that cannot be written at the end, before the work begins.

    Remote paths (`s3://...`) are left to the write itself.

    Raises
    ------
    OutputError
        It exists and `force` is not set, it is a folder, or its folder is missing or not writable.
    """
    if "://" in path:
        return
    file = Path(path)
    if file.is_dir():
        raise OutputError(f"{path} is a folder; give the name of a file")
    if file.exists() and not file.is_file():
        raise OutputError(f"{path} is a device, not a file; give the name of a file")
    if file.exists() and not force:
        raise OutputError(f"{path} exists already; give another name, or --force to replace it")
    if not file.parent.is_dir():
        raise OutputError(f"{file.parent}, the folder of {file.name}, does not exist; make it first")
    if not os.access(file.parent, os.W_OK):
        raise OutputError(f"{file.parent}, the folder of {file.name}, cannot be written to")
