"""Which files an input names, and reading ranges of them."""

import os
import time

import fsspec
import numpy as np
import pytest

from dask_bpe.errors import InputError, ParameterError
from dask_bpe.io import source
from dask_bpe.io.source import SourceFile, list_files, read_list, read_range, version_of


@pytest.fixture
def tree(tmp_path):
    """Files of different sizes, hidden ones, folders in folders."""
    for name, text in {
        "b.txt": "bb",
        "a.txt": "a",
        "sub/c.txt": "ccc",
        "sub/deep/d": "dddd",
        ".hidden": "x",
        ".git/config": "x",
        "empty.txt": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def memory():
    """The same kind of tree behind a URL."""
    fs = fsspec.filesystem("memory")
    for name, text in {"b.txt": b"bb", "a.txt": b"a", "sub/c.txt": b"ccc", ".hidden": b"x"}.items():
        fs.pipe_file(f"/corpus/{name}", text)
    yield "memory://corpus"
    fs.rm("/corpus", recursive=True)


def names(files: list[SourceFile], root) -> list[str]:
    return [os.path.relpath(file.path, root) for file in files]


def test_one_file(tree):
    version = str((tree / "b.txt").stat().st_mtime_ns)
    expected = [SourceFile(str(tree / "b.txt"), 2, version)]
    assert list_files(tree / "b.txt") == list_files(str(tree / "b.txt")) == expected


def test_relative_path_becomes_absolute(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert [file.path for file in list_files("./sub/../a.txt")] == [str(tree / "a.txt")]


def test_folder_is_walked_without_hidden_files(tree):
    files = list_files(tree)
    assert names(files, tree) == ["a.txt", "b.txt", "empty.txt", "sub/c.txt", "sub/deep/d"]
    assert [file.size for file in files] == [1, 2, 0, 3, 4]


def test_globs(tree):
    assert names(list_files(f"{tree}/*.txt"), tree) == ["a.txt", "b.txt", "empty.txt"]
    assert names(list_files(f"{tree}/**/*"), tree) == [
        "a.txt",
        "b.txt",
        "empty.txt",
        "sub/c.txt",
        "sub/deep/d",
    ]
    assert names(list_files(f"{tree}/[a]*"), tree) == ["a.txt"]


def test_name_that_looks_like_a_glob(tree):
    (tree / "data[1].txt").write_text("x")
    assert names(list_files(tree / "data[1].txt"), tree) == ["data[1].txt"]


def test_list_keeps_its_order(tree):
    assert names(list_files([tree / "sub", tree / "b.txt", f"{tree}/a*"]), tree) == [
        "sub/c.txt",
        "sub/deep/d",
        "b.txt",
        "a.txt",
    ]


def test_links_are_followed_once(tree):
    (tree / "sub" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "z").symlink_to(tree / "a.txt")
    assert names(list_files(tree), tree) == ["a.txt", "b.txt", "empty.txt", "sub/c.txt", "sub/deep/d", "z"]


@pytest.mark.parametrize("item", ["missing", "*.nothing", "", "sub/../sub/missing.txt"])
def test_missing(tree, item):
    with pytest.raises((InputError, ParameterError)):
        list_files([tree / "a.txt", f"{tree}/{item}" if item else item])


def test_what_is_wrong_is_said_in_one_line(tree):
    (tree / "none").mkdir()
    (tree / "pipe").symlink_to("/dev/null")
    (tree / "dangling").symlink_to(tree / "nowhere")
    cases = {
        "none": "the folder holds no text files",
        "none*": "the folder holds no text files|no file matches",
        "missing": "no such file or folder",
        "empty.txt": "empty.txt is empty",
        "pipe": "not a regular file",
        "dangling": "a link to a file that does not exist",
    }
    for item, message in cases.items():
        with pytest.raises(InputError, match=message) as caught:
            list_files(tree / item)
        assert "\n" not in str(caught.value)


def test_no_text_at_all(tree):
    (tree / "empty2.txt").write_text("")
    with pytest.raises(InputError, match=r"all 2 files of .* are empty"):
        list_files(f"{tree}/empty*")
    with pytest.raises(InputError, match="the list of files is empty"):
        list_files([])


def test_named_twice(tree):
    with pytest.raises(InputError, match=r"a\.txt: named twice"):
        list_files([tree, tree / "a.txt"])


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".XZ"])
def test_compressed_files_are_listed(tree, suffix):
    (tree / f"sub/t.txt{suffix}").write_bytes(b"x")
    assert f"sub/t.txt{suffix}" in names(list_files(tree), tree)


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".TGZ", ".7z"])
def test_archives_are_refused(tree, suffix):
    (tree / f"t{suffix}").write_bytes(b"x")
    for item in (tree, tree / f"t{suffix}"):
        with pytest.raises(InputError, match="archives of files are not supported"):
            list_files(item)


def test_version_changes_with_the_file(tree, memory):
    for path, write in (
        (str(tree / "a.txt"), (tree / "a.txt").write_bytes),
        (memory + "/a.txt", lambda data: fsspec.filesystem("memory").pipe_file("/corpus/a.txt", data)),
    ):
        listed = list_files(path)[0]
        assert version_of(path) == (listed.size, listed.version)
        assert listed.version
        write(b"z")
        size, version = version_of(path)
        assert size == 1
        assert version != listed.version


def test_version_of_what_is_gone(tree, memory):
    for path in (str(tree / "gone"), memory + "/gone"):
        with pytest.raises(InputError, match=r"cannot read .*gone") as caught:
            version_of(path)
        assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_list_of_files(tree, memory, monkeypatch):
    monkeypatch.chdir(tree)
    text = f"\ufeff# corpora\n\n  a.txt \r\nsub/*\n{memory}/b.txt\n#{tree}/b.txt\ncafé/näme.txt"
    (tree / "files.lst").write_text(text, encoding="utf-8")
    expected = [f"{tree}/a.txt", f"{tree}/sub/*", f"{memory}/b.txt", f"{tree}/café/näme.txt"]
    assert read_list("files.lst") == expected
    fsspec.filesystem("memory").pipe_file("/corpus/files.lst", text.encode())
    assert read_list(memory + "/files.lst") == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a.txt\nb\xff.txt\n", r"files\.lst: line 2 is not UTF-8"),
        (b"\n\na\0.txt\n", r"files\.lst: line 3: a path holds a NUL character"),
        (b"memory://a::b\n", r"files\.lst: line 1: .*chained URLs"),
        (b"# nothing\n\n", r"files\.lst: lists no files"),
        (None, r"cannot read the list of files .*files\.lst: No such file"),
    ],
)
def test_wrong_list_of_files(tmp_path, data, message):
    path = tmp_path / "files.lst"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_list(path)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_many_files_are_listed_quickly(tmp_path):
    for folder in range(20):
        (tmp_path / f"{folder:02}").mkdir()
        for file in range(1000):
            (tmp_path / f"{folder:02}" / f"{file:03}").write_bytes(b"x")
    start = time.perf_counter()
    files = list_files(tmp_path)
    assert time.perf_counter() - start < 5
    assert [file.path for file in files] == sorted(file.path for file in files)
    assert len(files) == 20_000


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", {"a"}, [3], ["memory://a::b"], "nosuchprotocol://x"])
def test_wrong_types(wrong):
    with pytest.raises(ParameterError):
        list_files(wrong)


def test_no_permission(tree, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="no permission"):
        list_files(tree / "a.txt")


def test_remote_listing(memory):
    assert [(file.path, file.size) for file in list_files(memory)] == [
        ("memory:///corpus/a.txt", 1),
        ("memory:///corpus/b.txt", 2),
        ("memory:///corpus/sub/c.txt", 3),
    ]
    assert [(file.path, file.size) for file in list_files(memory + "/b.txt")] == [(memory + "/b.txt", 2)]
    assert [file.size for file in list_files(memory + "/*.txt")] == [1, 2]
    for item in ("/missing", "/*.nothing"):
        with pytest.raises(InputError):
            list_files(memory + item)


def test_ranges_of_a_local_file(tmp_path):
    path = tmp_path / "a"
    data = np.random.default_rng(0).integers(0, 256, 10_000, np.uint8)
    path.write_bytes(data.tobytes())
    for start, stop in [(0, 10_000), (0, 0), (10_000, 10_000), (17, 4_242), (9_999, 10_000)]:
        found = read_range(str(path), start, stop)
        assert found.dtype == np.uint8
        assert found.flags.writeable
        assert np.array_equal(found, data[start:stop])


def test_ranges_of_a_remote_file(memory, monkeypatch):
    monkeypatch.setattr(source, "_REMOTE_PIECE", 7)
    data = np.random.default_rng(0).integers(0, 256, 100, np.uint8)
    fsspec.filesystem("memory").pipe_file("/corpus/r", data.tobytes())
    for start, stop in [(0, 100), (0, 7), (3, 60), (99, 100)]:
        found = read_range(memory + "/r", start, stop)
        assert found.flags.writeable
        assert np.array_equal(found, data[start:stop])
    with pytest.raises(InputError, match="it ends at byte 100, 101 were expected"):
        read_range(memory + "/r", 5, 101)


def test_file_that_became_shorter(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    with pytest.raises(InputError, match="file changed while being read: it ends at byte 5, 9 were expected"):
        read_range(str(path), 2, 9)
    with pytest.raises(InputError, match="ends at byte"):
        read_range(str(path), 20, 30)


def test_file_that_went_away(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        read_range(str(tmp_path / "a"), 0, 1)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2)])
def test_impossible_range(tmp_path, start, stop):
    with pytest.raises(ParameterError, match="start <= stop"):
        read_range(str(tmp_path), start, stop)
