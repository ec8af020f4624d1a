"""Reshaping into a folder: nothing half-done in it, nothing of others deleted, and every byte can be verified."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from asserts import contents, read_back
from layout_readers import END
from token_corpora import write_corpus

import dask_bpe
from dask_bpe.errors import BpeError, InputError, OutputError, ParameterError, ShardError
from dask_bpe.io import reshape as reshaping
from dask_bpe.io.atomic import AtomicFile
from dask_bpe.io.layouts import LAYOUTS
from dask_bpe.io.layouts.record import LayoutRecord
from dask_bpe.io.manifest import Manifest
from dask_bpe.progress import Progress

every_layout = pytest.mark.parametrize("to", list(LAYOUTS))


@pytest.fixture(autouse=True)
def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of outputs, each flushed to the disk, would take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class TestInterrupted:
    """Whatever fails, nothing is left under a final name, and the folder goes if it was made."""

    @pytest.fixture(autouse=True)
    def corpus(self, tmp_path: Path) -> None:
        write_corpus(tmp_path / "corpus", [[i, END] for i in range(9)])

    def write(self, tmp_path: Path, to: str, shuffle: int | None = None) -> None:
        asked = None if to == "nanogpt" else 6
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to, shard_tokens=asked, shuffle=shuffle)

    @every_layout
    @pytest.mark.parametrize("error", [KeyboardInterrupt, OutputError])
    def test_at_every_file(
        self, tmp_path: Path, to: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit = AtomicFile.commit
        failed = 0
        while True:
            left = failed + 1  # the mark that the folder is unfinished

            def failing(file: AtomicFile) -> None:
                nonlocal left
                if left == 0:
                    raise error("now")
                left -= 1
                commit(file)

            monkeypatch.setattr(AtomicFile, "commit", failing)
            try:
                self.write(tmp_path, to)
                break
            except error:
                assert not (tmp_path / "out").exists()
                failed += 1
        assert failed == len(LayoutRecord.read(tmp_path / "out").files) + 1

    @every_layout
    def test_at_every_write(self, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A disk that is full after so many bytes."""
        write = AtomicFile.write
        room = 0
        while True:
            written = 0

            def full(file: AtomicFile, data: bytes, room: int = room) -> int:
                nonlocal written
                written += memoryview(data).nbytes
                if written > room:
                    raise OutputError("no space left on device")
                return write(file, data)

            monkeypatch.setattr(AtomicFile, "write", full)
            try:
                self.write(tmp_path, to)
                break
            except OutputError:
                assert not (tmp_path / "out").exists()
                room += 397
        assert room > 400

    def test_temporary_files_of_a_shuffle(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reshaping.shuffling, "BUCKET_DOCUMENTS", 2)
        seen = []

        def stop(writer: object, batch: object) -> None:
            seen.extend(path.name for path in (tmp_path / "out").iterdir() if path.is_dir())
            raise KeyboardInterrupt

        monkeypatch.setattr(LAYOUTS["dolma"], "write", stop)
        with pytest.raises(KeyboardInterrupt):
            self.write(tmp_path, "dolma", shuffle=1)
        assert [name[:12] for name in seen] == ["shuffle.tmp-"]
        assert not (tmp_path / "out").exists()


class TestExistingFolder:
    @pytest.fixture(autouse=True)
    def corpus(self, tmp_path: Path) -> None:
        write_corpus(tmp_path / "corpus", [[i, END] for i in range(9)])

    def test_is_cleared_when_asked(self, tmp_path: Path) -> None:
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "datatrove", shard_tokens=2)
        with pytest.raises(OutputError, match="the output folder is not empty"):
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "mds")
        for to in LAYOUTS:
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", to, overwrite=True)
            read_back(to, tmp_path / "out")

    def test_left_by_a_process_that_died(self, tmp_path: Path) -> None:
        (tmp_path / "out" / "shuffle.tmp-abc").mkdir(parents=True)
        for name in ("layout.unfinished", "part-00000.ds", "part-00001.ds.tmp-0123456789ab", "shuffle.tmp-abc/0-1"):
            (tmp_path / "out" / name).write_bytes(b"x")
        with pytest.raises(OutputError, match="not empty"):
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "nanogpt")
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "nanogpt", overwrite=True)
        assert read_back("nanogpt", tmp_path / "out") == [[[i, END] for i in range(9)]]

    def test_of_somebody_else_is_kept(self, tmp_path: Path) -> None:
        write_corpus(tmp_path / "other", [[1, END]])
        before = contents(tmp_path / "other")
        with pytest.raises(OutputError, match="not written by reshape"):
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "other", "bin", overwrite=True)
        assert contents(tmp_path / "other") == before
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "bin")
        (tmp_path / "out" / "notes.txt").write_text("mine")
        with pytest.raises(OutputError, match=r"not empty \(it holds 'notes.txt'\)"):
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "bin", overwrite=True)
        assert set(contents(tmp_path / "out")) == {"notes.txt"}

    def test_is_the_corpus(self, tmp_path: Path) -> None:
        before = contents(tmp_path / "corpus")
        with pytest.raises(OutputError, match="is the corpus itself"):
            dask_bpe.reshape(tmp_path / "corpus", tmp_path / "corpus", "parquet", overwrite=True)
        assert contents(tmp_path / "corpus") == before


def test_arguments_that_cannot_be(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", [[1, END]])
    Manifest("bin", "uint16", "f", 256).write(tmp_path)
    calls: list[tuple[Callable[[], object], type[BpeError], str]] = [
        (lambda: dask_bpe.reshape(tmp_path / "corpus", tmp_path / "o", "npy"), ParameterError, "unknown layout 'npy'"),
        (lambda: dask_bpe.reshape(tmp_path, tmp_path / "o", "mds"), InputError, "holds no tokens"),
        (lambda: dask_bpe.reshape(tmp_path / "none", tmp_path / "o", "mds"), ShardError, "no manifest.json"),
        (
            lambda: dask_bpe.reshape(tmp_path / "corpus", tmp_path / "o", "nanogpt", shard_tokens=5),
            ParameterError,
            "nanogpt is one file",
        ),
        (
            lambda: dask_bpe.reshape(tmp_path / "corpus", tmp_path / "o", "mds", shard_tokens=0),
            ParameterError,
            "shard_tokens is 0",
        ),
        (
            lambda: dask_bpe.reshape(tmp_path / "corpus", tmp_path / "o", "mds", val_tokens=1),
            ParameterError,
            "mds has no place for it",
        ),
        (
            lambda: dask_bpe.reshape(tmp_path / "corpus", tmp_path / "o", "mds", shuffle=-1),
            ParameterError,
            "shuffle is -1",
        ),
    ]
    for call, error, message in calls:
        with pytest.raises(error, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "o").exists()


class TestVerify:
    @pytest.fixture
    def out(self, tmp_path: Path) -> Path:
        write_corpus(tmp_path / "corpus", [[i, END] for i in range(9)])
        dask_bpe.reshape(tmp_path / "corpus", tmp_path / "out", "megatron")
        return tmp_path / "out"

    def refuses(self, out: Path, message: str) -> None:
        with pytest.raises(ShardError, match=message) as caught:
            dask_bpe.verify_layout(out)
        assert "\n" not in str(caught.value)

    def test_every_byte(self, out: Path) -> None:
        for path in sorted(out.iterdir()):
            data = path.read_bytes()
            for damaged in (data[:-1] + bytes([data[-1] ^ 1]), bytes([data[0] ^ 1]) + data[1:], data + b"x", b""):
                path.write_bytes(damaged)
                with pytest.raises(ShardError, match=path.name):
                    dask_bpe.verify_layout(out)
            path.write_bytes(data)
        dask_bpe.verify_layout(out)

    def test_what_is_missing(self, out: Path) -> None:
        (out / "part-00000_text_document.idx").unlink()
        self.refuses(out, "cannot read part-00000_text_document.idx: No such file")
        (out / "layout.json").unlink()
        self.refuses(out, "layout.json: No such file or directory; not an output of reshape, or not finished")

    def test_record_of_another_kind_or_time(self, out: Path) -> None:
        record = json.loads((out / "layout.json").read_text())
        for change, message in (
            ({"kind": "other"}, "not the record of a layout"),
            ({"version": 2}, "of version 2; this dask_bpe reads version 1"),
            ({"tokens": 7}, "its checksum does not match its content"),
        ):
            (out / "layout.json").write_text(json.dumps(record | change))
            self.refuses(out, message)

    def test_progress(self, out: Path) -> None:
        calls: list[object] = []

        class Recorder(Progress):
            def start(self, stage: str, total: int | None, unit: str) -> None:
                calls.append((stage, total, unit))

            def advance(self, stage: str, amount: int) -> None:
                calls.append(amount)

            def finish(self, stage: str) -> None:
                calls.append(stage)

        record = dask_bpe.verify_layout(out, Recorder())
        assert calls[0] == ("verifying", record.bytes, "B")
        assert sum(call for call in calls if isinstance(call, int)) == record.bytes
        assert calls[-1] == "verifying"
