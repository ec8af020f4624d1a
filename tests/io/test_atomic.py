"""Files appear complete or not at all."""

import errno
import io
import os
from pathlib import Path

import fsspec
import pytest
import xxhash

from dask_bpe.errors import OutputError
from dask_bpe.io import atomic, paths
from dask_bpe.io.atomic import TEMPORARY_MARK, AtomicFile, File, atomic_write, checksum, sync, sync_folder


class FullDisk(io.RawIOBase):
    """Takes `room` bytes, then there is no space left."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = min(self.room, len(data))
        self.room -= taken
        return taken


def test_file_appears_at_the_end_only(tmp_path):
    target = tmp_path / "a.bin"
    with atomic_write(target) as file:
        file.write(b"one ")
        assert [p.name.startswith("a.bin" + TEMPORARY_MARK) for p in tmp_path.iterdir()] == [True]
        file.write(memoryview(b"two"))
    assert target.read_bytes() == b"one two"
    assert list(tmp_path.iterdir()) == [target]


def test_failure_keeps_the_old_file_and_leaves_nothing(tmp_path):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with pytest.raises(KeyError), atomic_write(target) as file:
        file.write(b"half of the new")
        raise KeyError
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_success_replaces_the_old_file(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with atomic_write(tmp_path / "a") as file:
        file.write(b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_size_and_checksum_are_of_what_was_written(tmp_path):
    file = AtomicFile(tmp_path / "a", checksum=True)
    for piece in (b"", b"abc", b"\x00" * 1000):
        file.write(piece)
    file.commit()
    content = (tmp_path / "a").read_bytes()
    assert file.size == file.tell() == len(content) == 1003
    assert file.record() == File("a", 1003, xxhash.xxh3_128(content).hexdigest())
    assert checksum(str(tmp_path / "a")) == file.record().xxh3_128


def test_text_goes_through_the_usual_wrappers(tmp_path):
    with atomic_write(tmp_path / "a") as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        text.write("é\n")
        text.flush()
        text.detach()
    assert (tmp_path / "a").read_bytes() == "é\n".encode()


def test_full_disk_is_an_output_error_and_leaves_nothing(tmp_path):
    file = AtomicFile(tmp_path / "a")
    file._file.close()
    file._file = FullDisk(5)
    with pytest.raises(OutputError, match=r"cannot write .*/a: No space left on device"):
        file.write(b"0123456789")
    file.close()
    assert not list(tmp_path.iterdir())


def test_partial_writes_are_continued(tmp_path):
    file = AtomicFile(tmp_path / "a")
    kept = bytearray()

    class Slow(io.RawIOBase):
        def write(self, data) -> int:
            kept.extend(data[:3])
            return min(3, len(data))

    file._file.close()
    file._file = Slow()
    assert file.write(b"0123456789") == 10
    assert kept == b"0123456789"
    file.close()


@pytest.mark.parametrize("target", ["no/such/folder/a", "file/a"])
def test_impossible_place(tmp_path, target):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot write"), atomic_write(tmp_path / target):
        pass


def test_target_that_is_a_folder(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OutputError, match="cannot write"), atomic_write(tmp_path / "a") as file:
        file.write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_forgotten_file_is_removed(tmp_path):
    file = AtomicFile(tmp_path / "a")
    file.write(b"x")
    del file
    assert not list(tmp_path.iterdir())


def test_write_after_the_end(tmp_path):
    with atomic_write(tmp_path / "a") as file:
        pass
    with pytest.raises(ValueError, match="closed"):
        file.write(b"x")


def test_remote(tmp_path):
    fs = fsspec.filesystem("memory")
    with atomic_write("memory://atomic/a") as file:
        file.write(b"content")
    with pytest.raises(KeyError), atomic_write("memory://atomic/b") as file:
        file.write(b"half")
        raise KeyError
    assert fs.cat_file("/atomic/a") == b"content"
    assert [name.rsplit("/", 1)[-1] for name in fs.ls("/atomic", detail=False)] == ["a"]
    fs.rm("/atomic", recursive=True)


def test_file_url_is_a_local_path(tmp_path):
    with atomic_write(f"file://{tmp_path}/a") as file:
        file.write(b"x")
    assert (tmp_path / "a").read_bytes() == b"x"
    assert paths.normalise(f"file://{tmp_path}/a") == str(tmp_path / "a")


def test_sync_folder(tmp_path):
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(Path(tmp_path, "missing"))


def test_sync(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    (tmp_path / "b").mkdir()
    for name in ("a", "c", "b/d"):
        (tmp_path / name).write_bytes(b"x")
    sync(str(tmp_path / name) for name in ("a", "b/d"))
    assert sorted(synced) == sorted((tmp_path / name).stat().st_ino for name in ("a", "b/d", ".", "b"))
    with pytest.raises(OutputError, match=r"cannot write .*missing: No such file"):
        sync([str(tmp_path / "missing")])


def test_checksum_tells_its_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_PIECE", 4)
    (tmp_path / "a").write_bytes(b"0123456789")
    told = []
    assert checksum(str(tmp_path / "a"), told.append) == xxhash.xxh3_128(b"0123456789").hexdigest()
    assert told == [4, 4, 2]
