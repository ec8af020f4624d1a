"""Compressed text is cut while it is read: the same tokens as those of the plain file, whatever the sizes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import strategies
from asserts import assert_encoded, crossing, documents_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import dask_bpe
from dask_bpe.cluster import blocks, stream
from dask_bpe.cluster.contents import Content, Errors, OnError, Reading
from dask_bpe.cluster.stream import Piece, cut_stream
from dask_bpe.io.inputs import Bad
from dask_bpe.pretokenize import SpecialTokens, get_pattern
from dask_bpe.pretokenize.cut import Cutter
from dask_bpe.tokenizer import Tokenizer

ENDOFTEXT = "<|endoftext|>"
SIZES = [1, 2, 3, 7, 64, 1000]

# name -> special tokens (the first one ends a document), and the text.
CASES: dict[str, tuple[list[str], str]] = {
    "documents": ([ENDOFTEXT], f"one two three{ENDOFTEXT}four five six seven{ENDOFTEXT}eight"),
    "consecutive separators": ([ENDOFTEXT], f"a{ENDOFTEXT}{ENDOFTEXT}{ENDOFTEXT}b b{ENDOFTEXT}{ENDOFTEXT}"),
    "only separators": ([ENDOFTEXT], ENDOFTEXT * 5),
    "no separator": ([ENDOFTEXT], "it's a text, that goes on  and on\n\n and has no end of   its own, 123 times. " * 3),
    "no special token": ([], "it's a text  with\tno special 1234 token\n\n\n at all... " * 3),
    "nothing to cut at": ([ENDOFTEXT], "x" * 150 + " " * 150 + "…" * 50),
    "line ends": ([ENDOFTEXT], f"one\r\ntwo\r\n\r\nthree\r{ENDOFTEXT}\r\nfour\n\r five \r\n{ENDOFTEXT}\r\n"),
    "wide characters": ([ENDOFTEXT], f"自君之出矣😀 é\u0301ü 𠮷𠮷{ENDOFTEXT}不復理　　殘機。{ENDOFTEXT}\u2028\u00a0é"),
    "separators nearly": ([ENDOFTEXT], f"<|endoftext|<|endoftext|>endoftext|>{ENDOFTEXT}<|end{ENDOFTEXT[:-1]}"),
    "a longer special token": (["<|a|>", "<|a|><|b|>"], "x<|a|><|b|>y<|a|>z<|a|><|b|<|a|><|a|><|b|><|b|>"),
    "a separator inside another": (["b|>", "<|a|b|>"], "x<|a|b|>y b|> z<|a|b<|a|b|>|>b|>"),
    "a separator that overlaps itself": (["aa"], "aaaaa b aaa aaaa a ab aab" + "a" * 33 + "baa"),
    "two that overlap each other": (["ab", "ba"], "abababa ba aba bab abba" + "ab" * 20 + "a"),
    "a separator that is a space": ([" "], "one two   three  four "),
    "contractions": ([ENDOFTEXT], f"it's we'll they've I'd ''s 's'll x'{ENDOFTEXT}s 'l l{ENDOFTEXT}'re"),
}


def reading_of(
    tokenizer: Tokenizer, patience: int, errors: Errors = "replace", on_error: OnError = "quarantine"
) -> Reading:
    separators = frozenset({0}) if tokenizer.special_tokens else frozenset[int]()
    return Reading(
        tokenizer.vocabulary.cut_pattern, tuple(tokenizer.special_tokens), separators, errors, patience, (), on_error
    )


def compressed(folder: Path, data: bytes, missing: int = 0) -> str:
    """The data as a gzip file without its last bytes."""
    path = folder / "text.txt.gz"
    packed = gzip.compress(data, 1)
    path.write_bytes(packed[: len(packed) - missing])
    return str(path)


def read_whole(path: str, reading: Reading) -> list[Content | Bad]:
    size = Path(path).stat().st_size
    return list(blocks.read(blocks.Block(0, path, size, 0, size), reading))


def ids_of(contents: list[Content | Bad], tokenizer: Tokenizer) -> list[int]:
    """The ids of the contents' segments and of the special tokens between them."""
    ids: list[int] = []
    specials = [*tokenizer.special_tokens.values()]
    for content in contents:
        assert isinstance(content, Content)
        for start, end, special in zip(*content.segments.tolist(), content.special.tolist(), strict=True):
            ids += tokenizer.encode_ordinary(content.text[start:end].tobytes())
            ids += [specials[special]] if special >= 0 else []
    return ids


def assert_tiles(contents: list[Content | Bad], n_bytes: int) -> None:
    """The contents follow one another, and what one leaves open the next one continues."""
    at, is_open = 0, False
    for content in contents:
        assert isinstance(content, Content)
        assert content.start == at
        assert content.continues == is_open
        at, is_open = content.stop, not content_ends(content)
    assert at == n_bytes
    assert not is_open


def content_ends(content: Content) -> bool:
    """Whether a document ends at the end of the content."""
    *_, last = content.special.tolist()
    is_empty = content.segments[0, -1] == content.segments[1, -1]
    return last == -1 or (last == -2 and bool(is_empty) and len(content.special) > 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_pieces_of_any_size(case: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    special, text = CASES[case]
    monkeypatch.setattr(stream, "_CHUNK", max(size // 2, 1))
    monkeypatch.setattr(stream, "_MARGIN", 64)
    tokenizer = crossing([text], special)
    contents = read_whole(compressed(tmp_path, text.encode()), reading_of(tokenizer, size))
    assert ids_of(contents, tokenizer) == tokenizer.encode(text)
    assert_tiles(contents, len(text.encode()))


@given(data=st.data(), size=st.integers(1, 60))
@examples(0.7)
def test_any_text(data: st.DataObject, size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    text, special = data.draw(strategies.with_special_tokens(strategies.text(4)))
    text = text or "a"
    tokenizer = crossing([text], special)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_CHUNK", data.draw(st.integers(1, 40)))
        path = compressed(tmp_path_factory.mktemp("any"), text.encode())
        contents = read_whole(path, reading_of(tokenizer, size))
    assert ids_of(contents, tokenizer) == tokenizer.encode(text)
    assert_tiles(contents, len(text.encode()))


@pytest.mark.parametrize("fmt", ["bin", "parquet"])
@pytest.mark.parametrize("case", CASES)
def test_encoded_as_the_plain_file(case: str, fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens, documents and where they stand, when a file is many pieces of one partition."""
    special, text = CASES[case]
    tokenizer = crossing([text], special)
    path = compressed(tmp_path, text.encode())
    monkeypatch.setattr(stream, "_CHUNK", 16)
    for size in (1, 9, None):
        out = tmp_path / f"out-{size}"
        report = dask_bpe.encode_corpus(path, tokenizer, out, fmt, shard_tokens=20, block_bytes=size)
        separator = special[0] if special else None
        if separator is not None and ENDOFTEXT in special:
            separator = ENDOFTEXT
        assert_encoded(out, [text], tokenizer, separator)
        documents = documents_of([text], tokenizer, separator)
        assert report.n_documents == len(documents)
        assert report.n_bytes == len(text.encode())
        places = np.cumsum([0, *(len(piece) for piece in pieces_of(documents, tokenizer, separator, text))])
        assert positions_of(out, fmt) == places[: len(documents)].tolist()


def pieces_of(documents: list[list[int]], tokenizer: Tokenizer, separator: str | None, text: str) -> list[bytes]:
    """The bytes of the documents with their separators, by the ids."""
    pieces = [b"".join(tokenizer.vocabulary.tokens[i] for i in document) for document in documents]
    end = separator.encode() if separator is not None else b""
    assert b"".join(pieces) in (text.encode(), text.encode() + end)
    return pieces


def positions_of(out: Path, fmt: str) -> list[int]:
    names = sorted(out.glob("part-*.docs.parquet" if fmt == "bin" else "part-*.parquet"))
    return [at for name in names for at in pq.read_table(name, columns=["position"]).column(0).to_pylist()]


@given(length=st.integers(0, 399), size=st.sampled_from([1, 5, 50, 10_000]), chunk=st.sampled_from([1, 7, 1 << 20]))
@examples(0.7)
def test_a_stream_that_breaks_off(length: int, size: int, chunk: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What was read up to the damage are documents; the rest is one line of the quarantine, wherever it begins."""
    rng = np.random.default_rng(length)
    words = ["".join(chr(97 + letter) for letter in rng.integers(0, 26, 9)) for _ in range(60)]
    text = "".join(f"{a} {b}{ENDOFTEXT}" for a, b in zip(words[::2], words[1::2], strict=True)).encode()
    tokenizer = crossing([text.decode()], [ENDOFTEXT])
    folder = tmp_path_factory.mktemp("broken")
    missing = 1 + length % (len(gzip.compress(text, 1)) - 1)
    path = compressed(folder, text, missing)
    make = partial(
        Cutter,
        specials=SpecialTokens([ENDOFTEXT]),
        separators=frozenset({0}),
        pattern=get_pattern(None),
        patience=size,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_CHUNK", chunk)
        patch.setattr(stream, "open_stream", lambda path, _: Breaking(path))
        *pieces, last = cut_stream(path, "gzip", make, size)
    whole = b"".join(piece.text.tobytes() for piece in pieces if isinstance(piece, Piece))
    assert text.startswith(whole)
    assert whole == b"" or whole.endswith(ENDOFTEXT.encode())
    assert len(pieces) == sum(isinstance(piece, Piece) and piece.ends_document for piece in pieces)
    assert isinstance(last, Bad)
    assert (last.source, last.position, last.line) == (path, len(whole), None)
    assert "the text before it was read" in last.reason
    assert tokenizer.encode(whole) == [i for piece in pieces for i in tokenizer.encode(piece.text.tobytes())]  # type: ignore[union-attr]


class Breaking:
    """A gzip stream that says that it is damaged where it ends too early, after what can be read."""

    def __init__(self, path: str) -> None:
        self._file = gzip.open(path)  # noqa: SIM115

    def read(self, size: int) -> bytes:
        try:
            return self._file.read1(size)
        except (EOFError, gzip.BadGzipFile) as error:
            raise stream.CorruptError(f"damaged: {error}") from error

    def close(self) -> None:
        self._file.close()


def test_a_stream_that_breaks_off_is_encoded_up_to_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "open_stream", lambda path, _: Breaking(path))
    text = "".join(f"text number {number}{ENDOFTEXT}" for number in range(500))
    path = compressed(tmp_path, text.encode(), missing=300)
    tokenizer = crossing([text[:300]], [ENDOFTEXT])
    report = dask_bpe.encode_corpus(path, tokenizer, tmp_path / "out")
    assert report.n_quarantined == 1
    assert 0 < report.n_documents < 500
    read = "".join(text.split(ENDOFTEXT)[i] + ENDOFTEXT for i in range(report.n_documents))
    assert_encoded(tmp_path / "out", [read], tokenizer, ENDOFTEXT)
    assert report.n_bytes == len(read.encode())
    with pytest.raises(dask_bpe.BpeError, match=r"text\.txt\.gz at \d+: damaged"):
        dask_bpe.encode_corpus(path, tokenizer, tmp_path / "raised", on_error="raise")
    assert not (tmp_path / "raised").exists()


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window never holds much more than a piece, however long the text."""
    monkeypatch.setattr(stream, "_CHUNK", 1 << 12)
    text = f"some words of a text {ENDOFTEXT}" * 20_000
    tokenizer = crossing([text[:300]], [ENDOFTEXT])
    reading = reading_of(tokenizer, 1 << 14)
    longest = 0
    fill = stream._Window.fill

    def watched(self: stream._Window, size: int) -> None:
        nonlocal longest
        fill(self, size)
        longest = max(longest, len(self))

    monkeypatch.setattr(stream._Window, "fill", watched)
    contents = read_whole(compressed(tmp_path, text.encode()), reading)
    assert sum(content.stop - content.start for content in contents if isinstance(content, Content)) == len(text)
    assert longest < 4 * (1 << 14)


def test_counting_reads_compressed_text_in_large_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for no document's start, and was given a word at a time therefore."""
    sizes: list[int] = []

    def watched(path: str, compression: Any, make: Any, size: int) -> Iterator[Piece | Bad]:
        for piece in cut_stream(path, compression, make, size):
            assert isinstance(piece, Piece)
            sizes.append(len(piece.text))
            yield piece

    monkeypatch.setattr(blocks, "cut_stream", watched)
    monkeypatch.setattr(blocks, "_STREAMED", 1000)
    text = "one two three four " * 500
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(text.encode()))
    counts = dask_bpe.count_pretokens(tmp_path / "text.txt.gz")
    assert counts.total == 2001
    assert sum(sizes) == len(text)
    assert min(sizes[:-1]) >= 1000
