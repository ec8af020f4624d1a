"""Storage that refuses, and sources that are not what they were."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import fsspec
import psutil

from dask_bpe.io import runs
from faults import trouble
from faults.corpus import END
from faults.job import Failure, kill
from faults.trial import INCOMPLETE, Encoding, Trial, assert_refused

# So often, so many seconds apart, a disk is tried to be mounted in another way: workers may still close their files.
_TRIES, _SECONDS = 40, 0.25


class SkippedError(Exception):
    """A fault cannot be made on this machine."""


def full_disk(trial: Encoding) -> None:
    """The disk is full before all is written: one line; when there is room the job is gone on with.

    The disk is a small tmpfs; where none may be mounted, no file may be as large as the shards are.
    """
    sizes = [path.stat().st_size for path in trial.reference.iterdir()]
    mounted = _mounted(trial, int(sum(sizes) * trial.draw.uniform(0.3, 0.7)))
    with trial.start() as job:
        if not mounted:
            limit = max(sizes) // 2
            job.driver.rlimit(psutil.RLIMIT_FSIZE, (limit, limit))
        assert_refused(job.wait(), ["cannot write", "No space left on device" if mounted else "File too large"], 2)
    trial.injected += 1
    if mounted:
        _remount(trial, f"size={4 * sum(sizes)}")
    trial.complete()


def read_only(trial: Encoding) -> None:
    """The folder of a job that was interrupted cannot be written to: one line, and nothing in it is touched."""
    mounted = _mounted(trial, 4 * sum(path.stat().st_size for path in trial.reference.iterdir()))
    if not mounted and os.geteuid() == 0:
        raise SkippedError("root may write to any folder, and no tmpfs can be mounted")
    _interrupt(trial)
    before = _contents(trial.out)
    if mounted:
        _remount(trial, "ro")
    else:
        trial.out.chmod(0o555)
    trial.refused([str(trial.out), "Read-only file system" if mounted else "Permission denied"])
    trial.injected += 1
    if _contents(trial.out) != before:
        raise Failure(f"{trial.out}: a job that could not write has changed it")
    if mounted:
        _remount(trial, "rw")
    else:
        trial.out.chmod(0o755)
    trial.complete()


def changed_between(trial: Encoding) -> None:
    """The source has changed when an interrupted job is asked for again: refused, until it is begun anew."""
    _own_source(trial)
    _interrupt(trial)
    _change(trial)
    trial.refused(["text-1.txt has changed since", "overwrite"])
    trial.injected += 1
    trial.expect_of(trial.source)
    with trial.start("--overwrite") as job:
        trial.complete(job.wait())


def changed_during(trial: Encoding) -> None:
    """The source changes while it is read: the job stops."""
    _own_source(trial)
    trial.expect_of(trial.source)
    with trial.start() as job:
        if job.reached(lambda: trial.done() > 0):
            _change(trial)
            trial.injected += 1
        ended = job.wait()
    if ended.code == 0:
        return  # all of it was read before
    assert_refused(ended, ["text-1.txt: changed since the job was planned", "overwrite"], 2)
    trial.refused(["text-1.txt has changed since", "overwrite"])
    trial.expect_of(trial.source)
    with trial.start("--overwrite") as job:
        trial.complete(job.wait())


def flaky(trial: Trial) -> None:
    """Every 13th read of the source fails, which is one in three partitions: the job goes on by itself."""
    environment = troubled(trial, every=13)
    with trial.start(environment=environment) as job:
        ended = job.wait()
    if ended.code:
        raise Failure(f"a read that fails now and then must not end the job: {ended}")
    trial.injected += trouble.faults(environment)


def broken(trial: Trial) -> None:
    """A file of the source cannot be read at all: exit code 4, all the rest is done, and the next run does only it."""
    environment = troubled(trial, broken="text-3.txt")
    with trial.start(environment=environment) as job:
        ended = job.wait()
    assert_incomplete(trial, ended.lines, ended.code, "text-3.txt: Input/output error")
    trial.injected += trouble.faults(environment)
    trial.complete(environment=trouble.installed(trial.folder))


def assert_incomplete(trial: Trial, lines: tuple[str, ...], code: int, reason: str, failed: int = 1) -> None:
    """A job has ended with exit code 4, has said why, and all but so many partitions at most are done, or Failure."""
    said = lines[-1] if lines else ""
    if code != INCOMPLETE or not said.startswith("Error: ") or reason not in said or "number" not in said:
        raise Failure(f"exit code {INCOMPLETE} and {reason!r} were expected, not {code} and {lines}")
    if not trial.partitions - failed <= trial.done() < trial.partitions:
        raise Failure(f"{trial.done()} of {trial.partitions} partitions are done: all but {failed} were expected")


def troubled(trial: Trial, **kinds: object) -> dict[str, str]:
    """The source is read through the file system of `trouble` from now on."""
    trial.source = f"trouble://{trial.corpus.folder}"
    if isinstance(trial, Encoding):  # tokens know where they come from, a vocabulary does not
        fsspec.register_implementation("trouble", trouble.TroubleFileSystem, clobber=True)
        trial.expect_of(trial.source)
    return trouble.installed(trial.folder, **kinds)


def _own_source(trial: Encoding) -> None:
    """A copy of the source, to be changed."""
    own = trial.folder / "texts"
    own.mkdir()
    for path in sorted(trial.corpus.folder.iterdir()):
        (own / path.name).write_bytes(path.read_bytes())
    trial.source = str(own)


def _change(trial: Encoding) -> None:
    """One document of `text-1.txt` more, and two in another order."""
    path = Path(trial.source, "text-1.txt")
    text = path.read_text(encoding="utf-8")
    first, second, *rest = text.split(END)
    path.write_text(END.join([second, first, "A new one", *rest]), encoding="utf-8", newline="")
    documents = list(trial.corpus.documents)
    at = documents.index(first)
    trial.corpus = replace(trial.corpus, documents=[*documents[:at], second, first, "A new one", *documents[at + 2 :]])


def _interrupt(trial: Encoding) -> None:
    """Leave a part of the job done."""
    number = trial.draw.randint(1, max(1, trial.steps // 2))
    with trial.start() as job:
        if not job.reached(lambda: trial.done() >= number):
            raise Failure(f"the job had to be interrupted and ended before: {job.wait()}")
        kill([job.driver])
        job.wait()


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != runs.NAME}


def _mounted(trial: Encoding, n_bytes: int) -> bool:
    """Whether a tmpfs of this size could be put where the trial writes."""
    place = trial.folder / "disk"
    place.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", place], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    trial.at_the_end.callback(lambda: subprocess.run(["umount", "--lazy", place], check=True))
    trial.out = place / "tokens"
    return True


def _remount(trial: Encoding, how: str) -> None:
    """Mount it in another way, as soon as nobody writes there any more."""
    command = ["mount", "-o", f"remount,{how}", str(trial.folder / "disk")]
    for _ in range(_TRIES):
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(_SECONDS)
    subprocess.run(command, check=True)
