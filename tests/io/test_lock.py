"""One job at a time in a folder, and no dead one."""

import errno
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import filelock
import fsspec
import pytest

from dask_bpe.errors import OutputError
from dask_bpe.io import lock, paths
from dask_bpe.io.lock import locked

HOLDER = """
import sys, time
from dask_bpe.io.lock import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock."""
    command = [sys.executable, "-P", "-c", HOLDER, str(tmp_path / "job.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def refused(path) -> str:
    with pytest.raises(OutputError) as caught, locked(str(path)):
        pytest.fail("it was not locked")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_second_process_is_refused_and_a_dead_one_forgotten(tmp_path, holder):
    message = refused(tmp_path / "job.lock")
    assert message.startswith(f"{tmp_path / 'job.lock'} is locked: another job works in this folder")
    assert (tmp_path / "job.lock").exists()
    holder.kill()
    holder.wait()
    assert (tmp_path / "job.lock").exists()  # nobody was left to remove it
    with locked(str(tmp_path / "job.lock")):
        pass
    assert not list(tmp_path.iterdir())


def test_in_one_process(tmp_path):
    path = str(tmp_path / "job.lock")
    with locked(path):
        assert "is locked" in refused(path)
        assert Path(path).exists()
        refusals = []
        thread = threading.Thread(target=lambda: refusals.append(refused(path)))
        thread.start()
        thread.join()
        assert len(refusals) == 1
    with locked(path):
        pass
    assert not Path(path).exists()


def test_released_by_an_error(tmp_path):
    path = str(tmp_path / "job.lock")
    with pytest.raises(KeyError), locked(path):
        raise KeyError
    with locked(path):
        pass


def test_a_folder_that_is_not_there(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot lock" in refused(tmp_path / "file" / "job.lock")


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "Permission denied"), NotImplementedError("no locks here")])
def test_a_file_system_without_locks(tmp_path, monkeypatch, error):
    def refuse(self, *_, **__):
        raise error

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    assert refused(tmp_path / "job.lock") == f"cannot lock {tmp_path / 'job.lock'}: {paths.one_line(error)}"


class TestRemote:
    URL = "memory://lease/job.lock"

    @pytest.fixture(autouse=True)
    def folder(self):
        self.fs = fsspec.filesystem("memory")
        self.fs.makedirs("/lease", exist_ok=True)
        yield
        self.fs.rm("/lease", recursive=True)

    def names(self) -> list[str]:
        return paths.list_names("memory://lease")

    def held(self) -> dict:
        return json.loads(self.fs.cat_file("/lease/job.lock"))

    def hold(self, age: float) -> None:
        about = {"pid": 77, "host": "elsewhere", "time": time.time() - age}
        self.fs.pipe_file("/lease/job.lock", json.dumps(about).encode())

    def test_refused_while_it_is_held(self):
        with locked(self.URL):
            message = refused(self.URL)
            assert f"process {self.held()['pid']} on {self.held()['host']} works in this folder" in message
            assert "a dead one is given up after 300 s" in message
        assert self.names() == []
        with locked(self.URL):
            pass

    def test_somebody_elses(self):
        self.hold(age=200)
        assert "process 77 on elsewhere works in this folder and was heard of 200 s ago" in refused(self.URL)
        assert self.held()["pid"] == 77

    def test_a_dead_one_is_given_up(self):
        self.hold(age=301)
        with locked(self.URL):
            assert self.held()["pid"] != 77
        assert self.names() == []

    def test_a_live_one_is_renewed(self, monkeypatch):
        monkeypatch.setattr(lock, "_RENEWED_EVERY", 0.01)
        monkeypatch.setattr(lock, "_DEAD_AFTER", 30.0)
        with locked(self.URL):
            first = self.held()["time"]
            self.hold(age=29)  # as if 29 seconds had passed
            until = time.monotonic() + 20
            while self.held()["time"] <= first:
                assert time.monotonic() < until
                time.sleep(0.01)
            assert "works in this folder" in refused(self.URL)
        assert self.names() == []

    def test_a_renewal_that_fails_is_tried_again(self, monkeypatch):
        monkeypatch.setattr(lock, "_RENEWED_EVERY", 0.01)
        tries = []
        write = lock._write

        def flaky(path):
            tries.append(path)
            if len(tries) in (2, 3):
                raise OutputError("the store refuses")
            write(path)

        monkeypatch.setattr(lock, "_write", flaky)
        with locked(self.URL):
            until = time.monotonic() + 20
            while len(tries) < 5:
                assert time.monotonic() < until
                time.sleep(0.01)
        assert self.names() == []

    def test_released_by_an_error(self):
        with pytest.raises(KeyError), locked(self.URL):
            raise KeyError
        assert self.names() == []

    def test_garbage_is_said(self):
        self.fs.pipe_file("/lease/job.lock", b"{")
        assert "delete it if no job works there" in refused(self.URL)
