"""What cannot work is said in one line, by an error that names it, and leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import pytest

import dask_bpe
from dask_bpe import BpeError, PretokenCounts, Tokenizer
from dask_bpe.errors import InputError, OutputError, ParameterError, PatternError, ShardError, VocabularyError

ENDOFTEXT = "<|endoftext|>"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(f"some text{ENDOFTEXT}and more of it".encode())
    return path


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer({i: bytes([i]) for i in range(256)}, [], [ENDOFTEXT])


def listing(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@contextmanager
def refusal(folder: Path, kind: type[BpeError], *words: str | Path) -> Iterator[None]:
    """The block must raise `kind`, in one line with these words in it, and leave the folder as it was."""
    before = listing(folder)
    with pytest.raises(kind) as caught:
        yield
    message = str(caught.value)
    assert message.strip()
    assert "\n" not in message
    for word in words:
        assert str(word) in message
    assert listing(folder) == before


@contextmanager
def stopped(out: Path, kind: type[BpeError], *words: str | int) -> Iterator[None]:
    """The block must raise `kind`, in one line with these words in it, and leave nothing but complete partitions."""
    with pytest.raises(kind) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert str(word) in message
    names = {path.name for path in out.iterdir()} if out.exists() else set()
    assert "manifest.json" not in names
    assert not [name for name in names if ".tmp-" in name or name == "job.lock"]
    for name in names:
        if name.startswith("part-") and name.endswith(".json"):
            record = json.loads((out / name).read_bytes())
            for shard in record["shards"]:
                assert {file: size for file, size, _ in shard["files"]}.items() <= {
                    path.name: path.stat().st_size for path in out.iterdir()
                }.items()


def train_file(source: Any, **options: Any) -> Any:
    return dask_bpe.train(source, 300, special_tokens=[ENDOFTEXT], **options)


def count_file(source: Any, **options: Any) -> Any:
    return dask_bpe.count_pretokens(source, special_tokens=[ENDOFTEXT], **options)


def train_course(source: Any) -> Any:
    return dask_bpe.train_bpe(source, 300, [ENDOFTEXT])


CALLS: list[Callable[..., Any]] = [train_file, count_file, train_course]


@pytest.mark.parametrize("call", CALLS)
def test_a_missing_file(call: Callable[..., Any], tmp_path: Path) -> None:
    with refusal(tmp_path, InputError, "nowhere.txt"):
        call(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("call", CALLS)
def test_an_empty_file(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    with refusal(tmp_path, InputError, "empty.txt", "empty"):
        call(tmp_path / "empty.txt")


@pytest.mark.parametrize("kept", [False, True])
def test_less_than_a_character(kept: bool, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("é", encoding="utf-8")
    with pytest.raises(InputError, match="the first 1 bytes hold no whole character"):
        dask_bpe.count_pretokens(tmp_path / "text.txt", max_bytes=1, work_dir=tmp_path / "work" if kept else None)


@pytest.mark.parametrize("call", [train_file, count_file])
def test_a_folder_without_text(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with refusal(tmp_path, InputError, tmp_path / "folder"):
        call(tmp_path / "folder")


def test_the_same_for_encoding(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "folder").mkdir()
    for source in ("nowhere.txt", "empty.txt", "folder", "no*.txt"):
        with refusal(tmp_path, InputError, source):
            dask_bpe.encode_corpus(tmp_path / source, tokenizer, tmp_path / "out")


def test_nothing_to_train_on(tmp_path: Path) -> None:
    for nothing in ([], iter([]), iter(["", ""])):
        with refusal(tmp_path, InputError):
            dask_bpe.train(nothing, 300)


@pytest.mark.parametrize("size", [-1, 0, 1, 255, 256])
def test_a_vocabulary_below_bytes_and_special_tokens(size: int, text: Path, tmp_path: Path) -> None:
    with refusal(tmp_path, ParameterError, size, 257):
        dask_bpe.train(text, size, special_tokens=[ENDOFTEXT])
    with refusal(tmp_path, ParameterError, size, 257):
        dask_bpe.train_bpe(text, size, [ENDOFTEXT])
    assert len(dask_bpe.train(text, 257, special_tokens=[ENDOFTEXT])) == 257


@pytest.mark.parametrize("name", ["gpt3", "GPT2", "gpt-2", ""])
def test_an_unknown_pattern(name: str, text: Path, tmp_path: Path) -> None:
    with refusal(tmp_path, PatternError, "gpt2"):
        train_file(text, pattern=name)


@pytest.mark.parametrize("pattern", ["(a", "[a-", r"\p{Nonsense}+", "a**", "(?P<x"])
def test_an_invalid_pattern(pattern: str, text: Path, tmp_path: Path) -> None:
    with refusal(tmp_path, PatternError):
        train_file(text, pattern=pattern)
    with refusal(tmp_path, PatternError):
        count_file(text, pattern=pattern)
    with refusal(tmp_path, PatternError):
        Tokenizer({i: bytes([i]) for i in range(256)}, [], pattern=pattern)


@pytest.mark.parametrize(
    "options",
    [
        {"ties": "largest"},
        {"ties": ""},
        {"min_frequency": 0},
        {"min_frequency": -1},
        {"max_token_length": 0},
        {"max_token_length": -3},
        {"errors": "ignore"},
        {"block_bytes": 0},
        {"block_bytes": -5},
        {"split_every": 1},
        {"split_every": 0},
    ],
    ids=str,
)
def test_arguments_that_cannot_work(options: dict[str, Any], text: Path, tmp_path: Path) -> None:
    with refusal(tmp_path, ParameterError, *map(str, options.values())):
        train_file(text, **options)


def test_errors_of_arguments_are_value_errors() -> None:
    assert issubclass(ParameterError, ValueError)


@pytest.mark.parametrize("special", [[""], ["<|a|>", ""], ["<|a|>", "<|a|>"], ["x", "y", "x"]], ids=str)
def test_a_special_token_that_is_empty_or_given_twice(
    special: list[str], text: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with refusal(tmp_path, ParameterError, "special token"):
        dask_bpe.train(text, 400, special_tokens=special)
    with refusal(tmp_path, ParameterError, "special token"):
        dask_bpe.count_pretokens(text, special_tokens=special)
    with refusal(tmp_path, ParameterError, "special token"):
        dask_bpe.train_bpe(text, 400, special)
    with refusal(tmp_path, ParameterError, "special token"):
        Tokenizer({i: bytes([i]) for i in range(256)}, [], special)


@pytest.mark.parametrize("block_bytes", [1, 4, 1000])
@pytest.mark.parametrize(
    ("data", "at"),
    [(b"valid \xff no more", 6), (b"abc\xe8\x87", 3), ("é自".encode() + b"\x80", 5), (b"\xed\xa0\x80", 0)],
)
def test_invalid_utf8_under_strict(
    data: bytes, at: int, block_bytes: int, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    path = tmp_path / "broken.txt"
    path.write_bytes(data)
    with refusal(tmp_path, InputError, "broken.txt", at):
        dask_bpe.train(path, 300, errors="strict", on_error="raise", block_bytes=block_bytes)
    with refusal(tmp_path, InputError, "none of the 1 documents"):
        dask_bpe.train(path, 300, errors="strict", block_bytes=block_bytes)
    with refusal(tmp_path, InputError, "nothing to encode", 1, "cannot be read"):
        dask_bpe.encode_corpus(path, tokenizer, tmp_path / "out", errors="strict", block_bytes=block_bytes)
    with stopped(tmp_path / "out", InputError, "broken.txt", at):
        dask_bpe.encode_corpus(
            path, tokenizer, tmp_path / "out", errors="strict", on_error="raise", block_bytes=block_bytes
        )


def test_invalid_utf8_in_a_later_document(tokenizer: Tokenizer, tmp_path: Path) -> None:
    good = (f"fine é自{ENDOFTEXT}" * 100).encode()
    (tmp_path / "good.txt").write_bytes(good)
    (tmp_path / "other.txt").write_bytes(good + b"\xc3(" + good)
    sources = [tmp_path / "good.txt", tmp_path / "other.txt"]
    with refusal(tmp_path, InputError, "other.txt", len(good)):
        dask_bpe.count_pretokens(sources, special_tokens=[ENDOFTEXT], errors="strict", on_error="raise", block_bytes=50)
    counts = dask_bpe.count_pretokens(sources, special_tokens=[ENDOFTEXT], errors="strict", block_bytes=50)
    assert (counts.n_documents, counts.n_quarantined) == (299, 1)
    options: dict[str, Any] = {"errors": "strict", "on_error": "raise"}
    with stopped(tmp_path / "out", InputError, "other.txt", len(good)):
        dask_bpe.encode_corpus(sources, tokenizer, tmp_path / "out", block_bytes=50, **options)
    with refusal(tmp_path, InputError, "other.txt", len(good)), dask.config.set(scheduler="synchronous"):
        dask_bpe.encode_corpus(sources[1:], tokenizer, tmp_path / "nothing done", block_bytes=1 << 20, **options)
    assert dask_bpe.count_pretokens(sources[:1], special_tokens=[ENDOFTEXT], errors="strict").n_invalid == 0


def test_an_output_folder_that_is_not_empty(text: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep me")
    for fmt in ("bin", "parquet"):
        with refusal(tmp_path, OutputError, tmp_path / "out"):
            dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", format=fmt)


def test_an_output_folder_that_cannot_be(text: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        with refusal(tmp_path, OutputError, tmp_path / "file"):
            dask_bpe.encode_corpus(text, tokenizer, out)


def test_a_vocabulary_file_that_cannot_be_written(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for path in (tmp_path / "file" / "vocabulary.json", tmp_path / "missing" / "vocabulary.json"):
        with refusal(tmp_path, OutputError):
            tokenizer.save(path)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "csv"},
        {"dtype": "uint8"},
        {"dtype": "float32"},
        {"separator": "<|other|>"},
        {"errors": "ignore"},
        {"on_error": "ignore"},
        {"block_bytes": 0},
        {"shard_tokens": 0},
        {"max_bad": -1},
        {"memory_per_worker": 0},
        {"begin_of_document": "<|other|>"},
        {"special_tokens_in_text": "skip"},
    ],
    ids=str,
)
def test_encoding_that_cannot_work(options: dict[str, Any], text: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    with refusal(tmp_path, ParameterError, *map(str, options.values())):
        dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", **options)


def test_a_failure_half_way_leaves_no_final_output(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """The error of one partition ends the job; the folder is not taken for complete, and what is in it can be used."""
    path = tmp_path / "broken.txt"
    path.write_bytes(f"fine{ENDOFTEXT}".encode() * 50 + b"\xff")
    for fmt in ("bin", "parquet"):
        options: dict[str, Any] = {"format": fmt, "errors": "strict", "on_error": "raise"}
        with stopped(tmp_path / fmt, InputError, "broken.txt"), dask.config.set(scheduler="synchronous"):
            dask_bpe.encode_corpus(path, tokenizer, tmp_path / fmt, block_bytes=20, **options)
        assert list((tmp_path / fmt).glob("part-*.json"))
        with refusal(tmp_path, ShardError, tmp_path / fmt, "not finished"):
            dask_bpe.open_tokens(tmp_path / fmt)
        with refusal(tmp_path, InputError, "broken.txt"):
            dask_bpe.encode_corpus(path, tokenizer, tmp_path / "out", block_bytes=1 << 20, **options)


def damages(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Ways in which a vocabulary file can be wrong."""
    fields = json.loads(content)
    yield "empty", b""
    yield "cut", content[: len(content) // 2]
    yield "not JSON", b"\x80\x04binary"
    yield "other JSON", b'{"model": {"type": "BPE"}}'
    yield "a list", b"[1, 2]"
    yield "newer", json.dumps(fields | {"version": 2}).encode()
    yield "a byte changed", content.replace(b'"pattern":"gpt2"', b'"pattern":"gpt3"')
    yield "a token less", json.dumps(fields | {"tokens": fields["tokens"][:-1]}).encode()
    yield "a merge more", json.dumps(fields | {"merges": [*fields["merges"], [0, 1, 2]]}).encode()
    yield (
        "a field less",
        json.dumps({key: value for key, value in fields.items() if key != "tokens"}).encode(),
    )


def test_a_damaged_vocabulary_file(tmp_path: Path) -> None:
    trained = dask_bpe.train(iter(["low lower lowest"]), 262, special_tokens=[ENDOFTEXT])
    trained.save(tmp_path / "good.json")
    assert Tokenizer.load(tmp_path / "good.json") == trained
    path = tmp_path / "vocabulary.json"
    for name, content in damages((tmp_path / "good.json").read_bytes()):
        path.write_bytes(content)
        with refusal(tmp_path, VocabularyError, "vocabulary.json"):
            pytest.fail(f"{name}: {Tokenizer.load(path)}")
    with refusal(tmp_path, VocabularyError, "nowhere.json"):
        Tokenizer.load(tmp_path / "nowhere.json")


def test_damaged_files_of_the_course(tmp_path: Path) -> None:
    trained = dask_bpe.train(iter(["low lower lowest"]), 262)
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.json"
    trained.to_files(vocab, merges)
    good = vocab.read_bytes(), merges.read_bytes()
    for path, content in zip((vocab, merges), good, strict=True):
        for damage in (b"", content[:-3], b"[[1], 2]", b'{"0": "x"}', b"\xff"):
            path.write_bytes(damage)
            with refusal(tmp_path, VocabularyError, path.name):
                Tokenizer.from_files(vocab, merges)
        path.write_bytes(content)
    assert Tokenizer.from_files(vocab, merges).vocabulary == trained.vocabulary


def test_damaged_counts(text: Path, tmp_path: Path) -> None:
    path = tmp_path / "counts.parquet"
    dask_bpe.count_pretokens(text).to_parquet(path)
    content = path.read_bytes()
    for damage in (b"", content[:100], b"PAR1 not at all PAR1"):
        path.write_bytes(damage)
        with refusal(tmp_path, BpeError, "counts.parquet"):
            PretokenCounts.from_parquet(path)
    with refusal(tmp_path, BpeError, "nowhere.parquet"):
        PretokenCounts.from_parquet(tmp_path / "nowhere.parquet")


def test_counts_of_other_rules_do_not_add_up(text: Path, tmp_path: Path) -> None:
    counts = dask_bpe.count_pretokens(text, special_tokens=[ENDOFTEXT])
    for options in ({"pattern": None, "special_tokens": [ENDOFTEXT]}, {"special_tokens": []}):
        with refusal(tmp_path, ParameterError):
            _ = counts + dask_bpe.count_pretokens(text, **options)


@pytest.mark.parametrize("count", [0, -1])
def test_counts_that_count_nothing(count: int, tmp_path: Path) -> None:
    with refusal(tmp_path, ParameterError):
        PretokenCounts.from_mapping({b"ab": count})


def test_damaged_shards(text: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    dask_bpe.encode_corpus(text, tokenizer, out)
    with refusal(tmp_path, ShardError):
        dask_bpe.open_tokens(tmp_path / "nowhere")
    shard = next(out.glob("part-*.bin"))
    content = shard.read_bytes()
    shard.write_bytes(content[:-2])
    with refusal(tmp_path, ShardError, shard.name):
        dask_bpe.open_tokens(out)
    shard.write_bytes(content[:-2] + b"\0\0")
    with refusal(tmp_path, ShardError, shard.name):
        dask_bpe.open_tokens(out).verify()


@pytest.mark.parametrize("ids", [[256, 0, 300], [-1], [10**9]])
def test_unknown_ids(ids: list[int], tokenizer: Tokenizer, tmp_path: Path) -> None:
    bad = max(ids, key=lambda i: (i < 0, i))
    with refusal(tmp_path, ParameterError, bad, ids.index(bad)):
        tokenizer.decode(ids)
    assert dask_bpe.BpeError.exit_code != 0


@pytest.mark.parametrize("pattern", [r"\w+", r"[^.]+", "a*", "(?=a)"])
def test_a_pattern_that_leaves_text_out(pattern: str, tmp_path: Path) -> None:
    """What no pre-token holds could not be decoded again."""
    gaps = Tokenizer({i: bytes([i]) for i in range(256)}, [], pattern=pattern)
    with refusal(tmp_path, InputError, "pattern"):
        gaps.encode("a. b")
    with refusal(tmp_path, InputError, "pattern"):
        list(gaps.encode_iterable(["a", ". b"]))
