"""Blocks of text: how a corpus is divided, and what a worker makes of its part.

A block is a range of nominal positions. The worker that has it finds its true ends (`pretokenize.cut`),
reads what lies between and takes it apart into segments of ordinary text and the special tokens between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import InputError, ParameterError, whole_number
from dask_bpe.io import utf8
from dask_bpe.io.source import TextFile, read_range
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.pretokenize.cut import Cutter
from dask_bpe.pretokenize.tables import tables_of
from dask_bpe.streaming import to_bytes

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Errors = Literal["strict", "replace", "skip"]

# Texts that come one by one are counted or encoded when there are so many bytes of them.
TEXTS_BYTES = 8 << 20
_LEAST, _USUAL, _MOST = 1 << 20, 32 << 20, 256 << 20
_MANY_BLOCKS = 10_000


@dataclass(frozen=True)
class Reading:
    """How text is read, the same for all blocks of a job.

    Attributes
    ----------
    pattern : what `get_pattern` takes; for encoding, the `cut_pattern` of the vocabulary.
    special_tokens : the texts that are special tokens.
    separators : indices of those that end a document.
    errors : what is done about invalid UTF-8: "strict" refuses it, "replace" puts U+FFFD, "skip" drops it.
    patience : bytes after a block's nominal end in which a document start is preferred to any other cut.
    rules : those of special tokens that have any. If some look at the text around them a file is one block.
    """

    pattern: PatternSpec
    special_tokens: tuple[str, ...]
    separators: frozenset[int]
    errors: Errors
    patience: int
    rules: tuple[tuple[str, frozenset[str]], ...] = ()

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace", "skip"):
            raise ParameterError(f"errors is {self.errors!r}: 'strict', 'replace' or 'skip' was expected")
        pattern = get_pattern(self.pattern)
        if pattern.name in ("regex", "sequence"):
            tables_of(pattern)  # that it has none is to be said here, not in the logs of workers


@dataclass(frozen=True)
class Block:
    """A range of nominal positions in one file. `origin` is where the file begins in the corpus."""

    index: int
    path: str
    size: int
    start: int
    stop: int
    origin: int


@dataclass(frozen=True)
class Content:
    """What was read of a block.

    Attributes
    ----------
    text : uint8[n], the bytes of the block.
    segments : int64[2, k + 1], bounds of the ordinary text before, between and after the special tokens.
    special : int64[k], which special token follows segment 0, 1, ... k - 1. Of documents given as texts: int64[k + 1],
        which one follows each segment, -1 where a document ends.
    start, stop : where the block lies in its file.
    continues : whether it begins inside a document.
    ends_document : whether a document ends with the block.
    n_documents : documents that start in it.
    n_invalid : invalid UTF-8 sequences that were replaced or dropped.
    """

    text: Text
    segments: Int64s
    special: Int64s
    start: int = 0
    stop: int = 0
    continues: bool = False
    ends_document: bool = True
    n_documents: int = 0
    n_invalid: int = 0
    where: str = field(default="", compare=False)


def block_size(total: int, n_threads: int, asked: int | None) -> int:
    """Bytes of a block: four or more for every thread, but not many thousands of blocks.

    Raises
    ------
    ParameterError
        When `asked` is not a whole number of at least 1.
    """
    if asked is not None:
        return whole_number("block_bytes", asked)
    usual = min(max(total // (4 * n_threads), _LEAST), _USUAL)
    return min(max(usual, total // _MANY_BLOCKS), _MOST)


def divide(files: Iterable[TextFile], size: int, limit: int | None = None) -> list[Block]:
    """Blocks of about `size` bytes; of all files together only the first `limit` bytes, if given."""
    blocks: list[Block] = []
    origin = 0
    for file in files:
        end = file.size if limit is None else min(file.size, limit - origin)
        if 0 < end < file.size:
            end = _character_start(file.path, end)
        for start in range(0, max(end, 0), size):
            blocks.append(Block(len(blocks), file.path, end, start, min(start + size, end), origin))
        origin += file.size
    return blocks


def _character_start(path: str, position: int) -> int:
    """The last position up to `position` where a character of a file starts, if it is within reach."""
    start = max(position - 3, 0)
    before = read_range(path, start, position + 1)
    for at in range(len(before) - 1, -1, -1):
        if before[at] & 0xC0 != 0x80:
            return start + at
    return position


@lru_cache(maxsize=8)
def _specials(tokens: tuple[str, ...], rules: tuple[tuple[str, frozenset[str]], ...]) -> SpecialTokens:
    """The special tokens of all blocks of a job: with hundreds of them, making them takes longer than a block."""
    return SpecialTokens(tokens, dict(rules))


def load(block: Block, reading: Reading) -> Content:
    """Read a block and take it apart. It may be empty: all of it then belongs to its neighbours.

    Raises
    ------
    InputError
        For invalid UTF-8 under ``errors="strict"``, naming file and byte.
    """
    specials = _specials(reading.special_tokens, reading.rules)
    cutter = Cutter(
        partial(read_range, block.path),
        block.size,
        specials,
        reading.separators,
        get_pattern(reading.pattern),
        reading.patience,
    )
    first, last = cutter.at_or_after(block.start), cutter.at_or_after(block.stop)
    text = read_range(block.path, first.position, last.position)
    content = take_apart(text, specials)
    n_separators = int(np.isin(content.special, list(reading.separators)).sum())
    inner = n_separators - (1 if last.starts_document and _ends_with(content, reading.separators) else 0)
    content = replace(
        content,
        start=first.position,
        stop=last.position,
        continues=not first.starts_document,
        ends_document=last.starts_document,
        n_documents=int(len(text) > 0 and first.starts_document) + inner,
        where=block.path,
    )
    return make_valid(content, reading.errors)


def _ends_with(content: Content, separators: frozenset[int]) -> bool:
    """Whether the last thing in a block is a separator."""
    begin, end = content.segments[:, -1].tolist()
    return bool(begin == end and len(content.special) and int(content.special[-1]) in separators)


def take_apart(text: Text, specials: SpecialTokens) -> Content:
    """Segments of text and the special tokens between them."""
    starts, ends, special = specials.find(text, 0, len(text))
    segments = np.empty((2, len(starts) + 1), np.int64)
    segments[0, 0], segments[1, -1] = 0, len(text)
    segments[0, 1:], segments[1, :-1] = ends, starts
    return Content(text, segments, special)


def make_valid(content: Content, errors: Errors) -> Content:
    """Mend invalid UTF-8 in the segments, or refuse it."""
    at = utf8.invalid_at(content.text)
    if at < 0:
        return content
    if errors == "strict":
        raise InputError(
            f"{content.where or 'the text'}: byte {content.start + at} is not UTF-8"
            f" (0x{int(content.text[at]):02x}): mend the file, or use errors='replace' or 'skip'"
        )
    parts: list[bytes] = []
    segments = np.empty_like(content.segments)
    n_invalid = position = 0
    for k, (start, end) in enumerate(content.segments.T.tolist()):
        part, count = utf8.repair(content.text[start:end].data, errors)
        segments[:, k] = position, position + len(part)
        parts.append(part)
        position += len(part)
        n_invalid += count
    return replace(content, text=np.frombuffer(b"".join(parts), np.uint8), segments=segments, n_invalid=n_invalid)


def texts_to_contents(
    texts: Iterable[str | bytes], specials: SpecialTokens | None, errors: Errors, size: int
) -> Iterator[Content]:
    """Documents given as texts, several in a `Content` of about `size` bytes.

    With `specials` they are taken apart at special tokens, and the segments of all follow each other; without,
    segment k is document k. ``special`` tells where documents end.

    Raises
    ------
    InputError
        For what is neither str nor bytes; for invalid UTF-8 under ``errors="strict"``.
    """
    parts: list[bytes] = []
    filled = number = 0
    for text in texts:
        parts.append(_encoded(text, number))
        filled += len(parts[-1])
        number += 1
        if filled >= size:
            yield _join(parts, specials, errors, number)
            parts, filled = [], 0
    if parts:
        yield _join(parts, specials, errors, number)


def _encoded(text: str | bytes, number: int) -> bytes:
    if not isinstance(text, str | bytes):
        raise InputError(f"document {number} is of type {type(text).__name__}: str or bytes was expected")
    return to_bytes(text)


def _join(parts: list[bytes], specials: SpecialTokens | None, errors: Errors, number: int) -> Content:
    bounds = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=bounds[1:])
    text = np.frombuffer(b"".join(parts), np.uint8)
    segments = np.array((bounds[:-1], bounds[1:]))
    special = np.full(len(parts), -1, np.int64)
    if specials is not None and specials.tokens:
        pieces = [_pieces_of(text, start, end, specials) for start, end in segments.T.tolist()]
        segments, special = np.split(np.concatenate(pieces, axis=1), [2])
    where = f"documents {number - len(parts)} to {number - 1}"
    content = Content(text, segments, special.ravel(), n_documents=len(parts), where=where)
    return make_valid(content, errors)


def _pieces_of(text: Text, start: int, end: int, specials: SpecialTokens) -> Int64s:
    """Starts and ends of the segments of a document, and what follows each. int64[3, n]."""
    starts, ends, special = specials.find(text, start, end)
    return np.array((np.append(start, ends), np.append(starts, end), np.append(special, -1)))
