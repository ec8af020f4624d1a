"""The folder of a job: the same one goes on, another one is refused, what is damaged is done again."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.errors import OutputError
from dask_bpe.io import paths, records
from dask_bpe.io.inputs import Bad
from dask_bpe.io.job import Job, JobFolder, Part, clear_output, clear_temporary, open_job, part_name
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.records import DamageError
from dask_bpe.io.shards import FORMATS, Span, open_writer
from dask_bpe.io.source import SourceFile

FILES = (SourceFile("/text/a.txt", 10, "1"), SourceFile("/text/é\udcff.txt", 20, "2"), SourceFile("s3://b/c", 5))
OPTIONS = {"format": "bin", "separator": None, "shard_tokens": 100, "input": {"kind": "auto", "column": None}}
JOB = Job("a" * 64, OPTIONS, "", FILES, (((0, 0, 10), (1, 0, 7)), ((1, 7, 20), (2, 0, 5))), 7)


def begin(folder, job: Job = JOB, *, overwrite: bool = False) -> tuple[JobFolder, Job, bool]:
    """Open and leave again, as a job that was interrupted after its first partition."""
    with open_job(folder, job, overwrite=overwrite) as (opened, planned, begun):
        if not begun:
            opened.finish_part(Part(0, (), 1, 2, 3, 4, 5))
    return opened, planned, begun


def refused(folder, job: Job, **options) -> str:
    before = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    with pytest.raises(OutputError) as caught, open_job(folder, job, **{"overwrite": False} | options):
        pytest.fail("it was not refused")
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in Path(folder).iterdir()} == before
    return str(caught.value)


def write_shard(folder: JobFolder, kind: str, index: int = 0, number: int = 0):
    with open_writer(kind, folder.path, part_name(index, number), "uint16", sources=[Span("/text/a.txt", 0, 10)]) as w:
        w.write(np.array([1, 2, 3], np.uint32), np.array([1, 3]))
        shard = w.close()
    assert shard is not None
    return shard


json_scalars = st.none() | st.booleans() | st.integers(0, 1 << 62) | st.text(max_size=4)
jobs_drawn = st.builds(
    Job,
    vocabulary=st.text("0123456789abcdef", min_size=1, max_size=8),
    options=st.dictionaries(st.text(max_size=5), json_scalars | st.dictionaries(st.text(max_size=3), json_scalars)),
    source=st.text(max_size=5),
    files=st.lists(
        st.builds(SourceFile, st.text(max_size=5) | st.just("\udcff"), st.integers(0, 1 << 50), st.text(max_size=4)),
        max_size=4,
    ).map(tuple),
    partitions=st.lists(st.lists(st.tuples(*[st.integers(0, 1 << 50)] * 3), max_size=3).map(tuple), max_size=3).map(
        tuple
    ),
    patience=st.integers(0, 1 << 40),
)


class TestJob:
    @given(jobs_drawn)
    def test_round_trip(self, job):
        found = Job.from_content(json.loads(json.dumps(job.content())))
        assert found == job
        assert (found.partitions, found.patience) == (job.partitions, job.patience)
        assert records.digest(found.content()) == records.digest(job.content())

    @given(jobs_drawn, jobs_drawn)
    def test_there_is_a_difference_if_they_differ(self, one, other):
        # No file is named twice, and an option that is None is as good as none.
        one, other = (
            replace(
                job,
                files=tuple({file.path: file for file in job.files}.values()),
                options={name: value for name, value in job.options.items() if value is not None},
            )
            for job in (one, other)
        )
        assert bool(one.difference(other)) == bool(other.difference(one)) == (one != other)
        assert one.difference(one) == ""

    @pytest.mark.parametrize("key", [field.name for field in fields(Job)])
    def test_a_field_that_is_missing_or_wrong(self, key):
        content = JOB.content()
        with pytest.raises(DamageError, match="damaged"):
            Job.from_content({name: value for name, value in content.items() if name != key})
        with pytest.raises(DamageError, match="damaged"):
            Job.from_content(content | {key: 1.5})
        for wrong in ([1], [[1, 2, 3, 4, 5]], [[[1, 2]]]):
            if isinstance(content[key], list):
                with pytest.raises(DamageError, match="damaged"):
                    Job.from_content(content | {key: wrong})

    def test_part_names(self):
        names = [part_name(0), part_name(3, 1), part_name(123_456, 12_345)]
        assert names == ["part-00000", "part-00003_0001", "part-123456_12345"]
        assert names == sorted(names)


class TestTheSameJob:
    def test_goes_on(self, tmp_path):
        folder, planned, begun = begin(tmp_path)
        assert (planned, begun) == (JOB, False)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "part-00000.json"]
        again, planned, begun = begin(tmp_path)
        assert (planned, begun) == (JOB, True)
        assert again.digest == folder.digest
        assert again.path == str(tmp_path)

    def test_the_first_run_decides_about_partitions(self, tmp_path):
        """Whoever goes on with other threads or memory takes the partitions as they are."""
        begin(tmp_path)
        _, planned, begun = begin(tmp_path, replace(JOB, partitions=(((0, 0, 10),),), patience=99))
        assert begun
        assert (planned.partitions, planned.patience) == (JOB.partitions, JOB.patience)

    def test_temporary_files_are_gone(self, tmp_path):
        begin(tmp_path)
        for name in ("part-00001.bin.tmp-0a", "manifest.json.tmp-1", "part-00001.docs.parquet.tmp-2"):
            (tmp_path / name).write_text("half")
        begin(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "part-00000.json"]

    def test_killed_as_it_began(self, tmp_path):
        """Nothing is there but what could not be finished."""
        for name in ("job.json.tmp-0123456789ab", "job.lock"):
            (tmp_path / name).write_text("{")
        assert begin(tmp_path)[2] is False
        assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "part-00000.json"]

    def test_remote(self):
        url = "memory://job"
        try:
            assert begin(url)[2] is False
            assert begin(url)[2] is True
            assert sorted(paths.list_names(url)) == ["job.json", "part-00000.json"]
            with pytest.raises(OutputError, match="it was begun with"):
                begin(url, replace(JOB, vocabulary="b" * 64))
            assert begin(url, replace(JOB, vocabulary="b" * 64), overwrite=True)[2] is False
        finally:
            fsspec.filesystem("memory").rm("/job", recursive=True)


class TestAnotherJob:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"vocabulary": "b" * 64}, ["begun with the tokenizer aaaaaaaaaaaaaaaa, not with bbbbbbbbbbbbbbbb"]),
            ({"source": "an iterable"}, ["begun with files, not with an iterable"]),
            ({"files": FILES[:2]}, ["s3://b/c was part of its input and is not now"]),
            ({"files": (*FILES, SourceFile("/text/z", 1))}, ["/text/z was not part of its input"]),
            ({"files": (FILES[1], FILES[0], FILES[2])}, ["given in another order"]),
            ({"files": (replace(FILES[0], size=11), *FILES[1:])}, ["/text/a.txt has changed", "10 bytes then, 11 now"]),
            ({"files": (replace(FILES[0], version="5"), *FILES[1:])}, ["/text/a.txt has changed", "another time"]),
        ],
        ids=str,
    )
    def test_is_refused_and_named(self, tmp_path, change, words):
        begin(tmp_path)
        message = refused(tmp_path, replace(JOB, **change))
        assert message.startswith(f"{tmp_path}: holds another job: ")
        assert message.endswith("; ask for the same, choose another folder, or overwrite it")
        for word in words:
            assert word in message
        assert begin(tmp_path)[2] is True

    @pytest.mark.parametrize("name", list(OPTIONS))
    def test_with_another_option(self, tmp_path, name):
        begin(tmp_path)
        other = {**OPTIONS, name: "other"}
        assert f"begun with {name} {OPTIONS[name]!r}, not with 'other'" in refused(
            tmp_path, replace(JOB, options=other)
        )
        without = {key: value for key, value in OPTIONS.items() if key != name}
        if OPTIONS[name] is not None:
            assert f"{name} {OPTIONS[name]!r}, not with None" in refused(tmp_path, replace(JOB, options=without))

    def test_overwrites_if_asked(self, tmp_path):
        begin(tmp_path)
        (tmp_path / "part-00007.bin").write_text("old")
        (tmp_path / "manifest.json").write_text("old")
        other = replace(JOB, vocabulary="b" * 64)
        folder, planned, begun = begin(tmp_path, other, overwrite=True)
        assert (planned, begun) == (other, False)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "part-00000.json"]
        assert folder.done(0) is not None

    def test_overwriting_spares_the_files_of_others(self, tmp_path):
        begin(tmp_path)
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(OutputError, match=r"not empty \(it holds 'notes.txt'\)"):
            begin(tmp_path, overwrite=True)
        assert (tmp_path / "notes.txt").read_text() == "mine"

    @pytest.mark.parametrize("name", ["notes.txt", "part-00000.bin", "manifest.json", "part-0.bin", "vocabulary.json"])
    def test_a_folder_of_something_else(self, tmp_path, name):
        """Even what is named as ours: without job.json nobody knows what it is of."""
        (tmp_path / name).write_text("")
        assert f"not empty (it holds {name!r})" in refused(tmp_path, JOB)

    def test_a_foreign_file_beside_the_same_job(self, tmp_path):
        begin(tmp_path)
        (tmp_path / "part-00000.bin.old").write_text("")
        assert "not empty (it holds 'part-00000.bin.old')" in refused(tmp_path, JOB)

    @pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b"[]"])
    def test_a_damaged_job(self, tmp_path, damage):
        begin(tmp_path)
        (tmp_path / "job.json").write_bytes(damage)
        message = refused(tmp_path, JOB)
        assert "cannot go on with the job there: job.json" in message
        assert message.endswith("overwrite it")
        assert begin(tmp_path, overwrite=True)[2] is False

    def test_one_that_works_there(self, tmp_path):
        with open_job(tmp_path, JOB, overwrite=False) as (folder, *_):
            folder.finish_part(Part(0, (), 0, 0, 0, 0, 0))
            for overwrite in (False, True):
                assert "another job works in this folder" in refused(tmp_path, JOB, overwrite=overwrite)


class TestThePlace:
    def test_a_new_folder(self, tmp_path):
        with open_job(tmp_path / "a" / "b", JOB, overwrite=False) as (folder, _, begun):
            assert folder.path == str(tmp_path / "a" / "b")
            assert folder.file("x") == str(tmp_path / "a" / "b" / "x")
            assert not begun

    def test_a_file(self, tmp_path):
        (tmp_path / "a").write_text("")
        with pytest.raises(OutputError, match="the output must be a folder"):
            begin(tmp_path / "a")
        with pytest.raises(OutputError, match="cannot make the output folder"):
            begin(tmp_path / "a" / "b")

    def test_unwritable(self):
        with pytest.raises(OutputError):
            begin("/proc/dask_bpe")

    @pytest.mark.parametrize("there", [False, True])
    def test_a_failure_before_anything_is_done_leaves_nothing(self, tmp_path, there):
        out = tmp_path / "out"
        if there:
            out.mkdir()
        with pytest.raises(KeyError), open_job(out, JOB, overwrite=False) as (folder, *_):
            write_shard(folder, "bin")
            (out / "vocabulary.json").write_text("{}")
            raise KeyError
        assert out.exists() == there
        assert not list(tmp_path.rglob("*.*"))

    def test_a_failure_later_keeps_what_is_done(self, tmp_path):
        with pytest.raises(KeyError), open_job(tmp_path, JOB, overwrite=False) as (folder, *_):
            folder.finish_part(Part(1, (write_shard(folder, "bin", 1),), 3, 2, 0, 0, 0))
            raise KeyError
        assert begin(tmp_path)[2] is True
        assert JobFolder(str(tmp_path), folder.digest).done(1) is not None


def test_clearing_takes_only_what_is_ours(tmp_path):
    ours = [
        "part-00000.bin",
        "part-00000.idx",
        "part-00000.docs.parquet",
        "part-00000_0001.bin",
        "part-00000.json",
        "part-123456.parquet.tmp-0a",
        "job.json",
        "job.lock",
        "vocabulary.json",
        "quarantine.jsonl",
        "manifest.json",
        "manifest.json.tmp-1",
    ]
    others = ["part-0.bin", "notes.txt", "part-00000.bin.old", "x-manifest.json", "part-00000_1.bin", "other.json"]
    for name in ours + others:
        (tmp_path / name).write_text("")
    clear_temporary(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        name for name in ours + others if ".tmp-" not in name
    )
    clear_output(str(tmp_path), keep=("job.lock",))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "job.lock"])
    clear_output(str(tmp_path), made=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)
    clear_output(str(tmp_path / "missing"))


def test_clearing_begins_with_the_manifest(tmp_path, monkeypatch):
    """What is left of a clearing that was interrupted must not look finished."""
    for name in ("job.json", "manifest.json", "part-00000.bin"):
        (tmp_path / name).write_text("")
    removed = []
    monkeypatch.setattr(paths, "remove", lambda path: removed.append(Path(path).name))
    clear_output(str(tmp_path))
    assert removed[0] == "manifest.json"
    assert len(removed) == 3


class TestParts:
    @pytest.fixture
    def folder(self, tmp_path):
        return begin(tmp_path)[0]

    def part(self, folder: JobFolder, kind: str = "bin") -> Part:
        """A partition of two shards."""
        shards = tuple(write_shard(folder, kind, 1, number) for number in range(2))
        bad = (Bad("/text/é\udcff.txt", 7, 3, "why\nso"), Bad("x", None, None, "another"))
        return Part(1, shards, 10, 4, 1, 4, 0, bad)

    @pytest.mark.parametrize("kind", list(FORMATS))
    def test_round_trip(self, folder, kind):
        part = self.part(folder, kind)
        assert folder.done(1) is None
        folder.finish_part(part)
        assert folder.done(1) == part
        assert folder.done(2) is None

    def test_one_without_shards(self, folder):
        folder.finish_part(Part(5, (), 0, 0, 0, 0, 0))
        assert folder.done(5) == Part(5, (), 0, 0, 0, 0, 0)

    @pytest.mark.parametrize("change", ["missing", "cut", "longer", "changed"])
    @pytest.mark.parametrize("kind", list(FORMATS))
    def test_a_damaged_file_means_to_do_it_again(self, folder, kind, change):
        part = self.part(folder, kind)
        folder.finish_part(part)
        for file in (file for shard in part.shards for file in shard.files):
            path = Path(folder.file(file.name))
            content = path.read_bytes()
            if change == "missing":
                path.unlink()
            else:
                flipped = bytes([content[0] ^ 1]) + content[1:]
                path.write_bytes({"cut": content[:-1], "longer": content + b"x", "changed": flipped}[change])
            assert folder.done(1) is None, file.name
            path.write_bytes(content)
            assert folder.done(1) == part

    @pytest.mark.parametrize("change", ["missing", "cut", "changed"])
    def test_a_damaged_record_means_to_do_it_again(self, folder, change):
        folder.finish_part(self.part(folder))
        path = Path(folder.file("part-00001.json"))
        content = path.read_bytes()
        if change == "missing":
            path.unlink()
        elif change == "cut":
            path.write_bytes(content[:-10])
        else:
            path.write_bytes(content.replace(b'"documents": 4', b'"documents": 5'))
        assert folder.done(1) is None

    def test_a_record_of_another_job_or_partition(self, folder):
        folder.finish_part(self.part(folder))
        assert JobFolder(folder.path, "0" * 64).done(1) is None
        os.replace(folder.file("part-00001.json"), folder.file("part-00002.json"))  # noqa: PTH105
        assert folder.done(2) is None

    def test_a_record_whose_content_cannot_be(self, folder):
        """A checksum that fits doesn't make it one of ours."""
        content = {"job": folder.digest, "index": 3, "bytes": 0, "documents": 0, "invalid": 0, "ends": 0, "begins": 0}
        for rest in (
            {"bad": [[1]], "shards": []},
            {"bad": [], "shards": [1]},
            {"bad": [], "shards": [{}]},
            {"bad": [1]},
        ):
            records.write(folder.file("part-00003.json"), "dask_bpe.part", 1, {**content, **rest})
            assert folder.done(3) is None


class TestCheckCurrent:
    def test_it_is(self, tmp_path):
        begin(tmp_path)[0].check_current()

    def test_given_to_another_job(self, tmp_path):
        old = begin(tmp_path)[0]
        begin(tmp_path, replace(JOB, vocabulary="b" * 64), overwrite=True)
        with pytest.raises(OutputError, match="another job works in this folder now"):
            old.check_current()

    def test_gone(self, tmp_path):
        old = begin(tmp_path)[0]
        clear_output(str(tmp_path))
        with pytest.raises(OutputError, match=r"cannot read .*job\.json: No such file"):
            old.check_current()

    def test_the_checksum_stands_where_it_looks(self, tmp_path):
        """With a plan of any length."""
        many = replace(JOB, partitions=tuple(((0, i, i + 1),) for i in range(10_000)))
        begin(tmp_path, many)[0].check_current()


def test_clearing_a_job_keeps_what_it_was_asked_for(tmp_path):
    folder = begin(tmp_path)[0]
    write_shard(folder, "bin")
    for name in ("vocabulary.json", "manifest.json", "quarantine.jsonl", "notes.txt"):
        (tmp_path / name).write_text("")
    folder.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "notes.txt", "vocabulary.json"]


class TestFinish:
    def manifest(self, folder: JobFolder) -> Manifest:
        return Manifest("bin", "uint16", "f", 300, {}, (write_shard(folder, "bin"),))

    def test_quarantine_and_manifest(self, tmp_path):
        folder = begin(tmp_path)[0]
        (tmp_path / "part-00009.bin.tmp-0").write_text("half")
        manifest = self.manifest(folder)
        folder.finish(manifest, [Bad("/é\udcff.txt", 7, 3, "why\nso"), Bad("x", None, None, "y")])
        assert Manifest.read(tmp_path) == manifest
        lines = (tmp_path / "quarantine.jsonl").read_text("utf-8").splitlines()
        assert [json.loads(line) for line in lines] == [
            {"source": "/é?.txt", "position": 7, "line": 3, "reason": "why\nso"},
            {"source": "x", "position": None, "line": None, "reason": "y"},
        ]
        assert not list(tmp_path.glob("*.tmp-*"))

    def test_nothing_bad_nothing_listed(self, tmp_path):
        folder = begin(tmp_path)[0]
        folder.finish(self.manifest(folder), [])
        assert not (tmp_path / "quarantine.jsonl").exists()

    def test_again_changes_nothing(self, tmp_path):
        folder = begin(tmp_path)[0]
        manifest = self.manifest(folder)
        folder.finish(manifest, [Bad("x", 1, 2, "y")])
        before = {path.name: path.stat() for path in tmp_path.iterdir()}
        folder.finish(manifest, [Bad("x", 1, 2, "y")])
        after = {path.name: path.stat() for path in tmp_path.iterdir()}
        assert {n: (s.st_ino, s.st_mtime_ns) for n, s in before.items()} == {
            n: (s.st_ino, s.st_mtime_ns) for n, s in after.items()
        }
        folder.finish(manifest, [Bad("x", 1, 2, "z")])
        assert "z" in (tmp_path / "quarantine.jsonl").read_text()


def test_a_killed_process_leaves_a_job_to_go_on_with(tmp_path):
    program = """
import os, signal, sys
from dask_bpe.io.job import Job, Part, open_job
from dask_bpe.io.atomic import AtomicFile
with open_job(sys.argv[1], Job("a", {}), overwrite=False) as (folder, *_):
    folder.finish_part(Part(0, (), 1, 2, 3, 4, 5))
    half = AtomicFile(folder.file("part-00001.bin"))
    half.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-P", "-c", program, str(tmp_path)], check=False)
    assert done.returncode < 0
    assert len(list(tmp_path.glob("part-00001.bin.tmp-*"))) == 1
    with open_job(tmp_path, Job("a", {}), overwrite=False) as (folder, _, begun):
        assert begun
        assert folder.done(0) == Part(0, (), 1, 2, 3, 4, 5)
        assert not list(tmp_path.glob("*.tmp-*"))
