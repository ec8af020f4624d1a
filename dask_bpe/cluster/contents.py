"""What is read of a corpus: text, taken apart into segments and the special tokens between them, and valid UTF-8."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import InputError, ParameterError
from dask_bpe.io import utf8
from dask_bpe.io.inputs import Bad, Documents, InputFormat
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.pretokenize.tables import tables_of
from dask_bpe.streaming import to_bytes

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Errors = Literal["strict", "replace", "skip"]
OnError = Literal["raise", "quarantine"]

# What follows a segment if not a special token: the end of its document, or more of it in the next block.
END, OPEN = -1, -2

# Texts that come one by one are counted or encoded when there are so many bytes of them.
TEXTS_BYTES = 8 << 20
_FEW = 8


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
    on_error : about documents that cannot be read: "raise" stops, "quarantine" leaves them out and lists them.
    how : the format of the files.
    special_tokens_in_text : what the text of a special token is in formats that hold documents: "text", or "encode",
        the special token.
    others : further patterns that must allow a cut within a document, where the text is for several vocabularies.
    """

    pattern: PatternSpec
    special_tokens: tuple[str, ...]
    separators: frozenset[int]
    errors: Errors
    patience: int
    rules: tuple[tuple[str, frozenset[str]], ...] = ()
    on_error: OnError = "raise"
    how: InputFormat = field(default_factory=InputFormat)
    special_tokens_in_text: str = "text"
    others: tuple[PatternSpec, ...] = ()

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "quarantine"):
            raise ParameterError(f"on_error is {self.on_error!r}: 'raise' or 'quarantine' was expected")
        if self.errors not in ("strict", "replace", "skip"):
            raise ParameterError(f"errors is {self.errors!r}: 'strict', 'replace' or 'skip' was expected")
        pattern = get_pattern(self.pattern)
        if pattern.name in ("regex", "sequence"):
            tables_of(pattern)  # that it has none is to be said here, not in the logs of workers

    @property
    def cut_pattern(self) -> PatternSpec:
        """The pattern that tells where text may be cut into blocks.

        A document that is not UTF-8 and left out is left out as a whole: then it must not lie in two blocks.
        """
        leaves_out = self.errors == "strict" and self.on_error == "quarantine"
        return None if leaves_out else self.pattern


@dataclass(frozen=True)
class Content:
    """What was read of a block.

    Attributes
    ----------
    text : uint8[n].
    segments : int64[2, k], bounds of the pieces of ordinary text before, between and after the special tokens.
    special : int64[k], what follows each segment: the index of a special token, END or OPEN.
    source : the file, or what else it was read from.
    positions : int64[d], where the documents stand in the source, a piece of one at the beginning included.
    ids : the documents' own ids, if they have any.
    continues : whether it begins inside a document.
    in_place : the text stands in its source just so, from byte `start` to `stop`. Else documents were taken from it:
        these are 0 and the bytes of their texts.
    n_invalid : invalid UTF-8 sequences that were replaced or dropped.
    """

    text: Text
    segments: Int64s
    special: Int64s
    source: str
    positions: Int64s
    ids: Sequence[str] | None = None
    continues: bool = False
    in_place: bool = False
    start: int = 0
    stop: int = 0
    n_invalid: int = 0

    @property
    def n_documents(self) -> int:
        """Documents that begin in it."""
        return len(self.positions) - self.continues


def ends_document_at(special: Int64s, separators: Collection[int]) -> npt.NDArray[np.bool_]:
    """Whether a document ends with each of these: END, and separators."""
    # Not `np.isin` for a few: it takes 80 us, and many files are that small.
    if len(separators) > _FEW:
        return np.isin(special, [END, *separators])
    ends: npt.NDArray[np.bool_] = special == END
    for separator in separators:
        ends |= special == separator
    return ends


def take_apart(text: Text, specials: SpecialTokens, separators: frozenset[int], *, ends_document: bool) -> Content:
    """Segments of text and the special tokens between them; `ends_document`: the last document ends here."""
    starts, ends, special = specials.find(text, 0, len(text))
    segments = np.empty((2, len(starts) + 1), np.int64)
    segments[0, 0], segments[1, -1] = 0, len(text)
    segments[0, 1:], segments[1, :-1] = ends, starts
    is_separator = ends_document_at(special, separators)
    positions = np.concatenate((np.zeros(1, np.int64), ends[is_separator]))
    positions = positions[positions < len(text)]
    last_has_text = len(text) > 0 and not (len(ends) and is_separator[-1] and ends[-1] == len(text))
    special = np.append(special, END if ends_document and last_has_text else OPEN)
    return Content(text, segments, special, "", positions)


def placed(content: Content, source: str, start: int, *, continues: bool) -> Content:
    """The same content, which begins at `start` of a source."""
    stop = start + len(content.text)
    return replace(
        content,
        source=source,
        positions=content.positions + start,
        continues=continues,
        in_place=True,
        start=start,
        stop=stop,
    )


def of_documents(documents: Documents, source: str, specials: SpecialTokens | None, reading: Reading) -> Content:
    """Documents as a content: each ends. With `specials` they are taken apart at special tokens, and what separators
    within them end counts as documents too, which stand at the same position."""
    text, bounds = documents.values, documents.offsets
    segments = np.array((bounds[:-1], bounds[1:]))
    special = np.full(len(bounds) - 1, END, np.int64)
    positions, ids = documents.positions, documents.ids
    if specials is not None and specials.tokens:
        pieces = [_pieces_of(text, start, end, specials) for start, end in segments.T.tolist()]
        which = np.repeat(np.arange(len(pieces)), [piece.shape[1] for piece in pieces])
        segments, special = np.split(np.concatenate(pieces, axis=1), [2]) if pieces else (segments, special)
        special = special.ravel()
        which = which[ends_document_at(special, reading.separators)]
        positions, ids = positions[which], None if ids is None else [ids[i] for i in which.tolist()]
    return Content(text, segments, special, source, positions, ids, stop=len(text))


def _pieces_of(text: Text, start: int, end: int, specials: SpecialTokens) -> Int64s:
    """Starts and ends of the segments of a document, and what follows each. int64[3, n]."""
    starts, ends, special = specials.find(text, start, end)
    return np.array((np.append(start, ends), np.append(starts, end), np.append(special, END)))


@lru_cache(maxsize=8)
def specials_of(reading: Reading) -> SpecialTokens:
    """The special tokens of all blocks of a job: with hundreds of them, making them takes longer than a block."""
    return SpecialTokens(reading.special_tokens, dict(reading.rules))


def specials_in_documents(reading: Reading) -> SpecialTokens | None:
    """The special tokens to look for in documents."""
    return specials_of(reading) if reading.special_tokens_in_text == "encode" else None


def make_valid(content: Content, reading: Reading) -> Iterator[Content | Bad]:
    """Mend invalid UTF-8 in the segments; under ``errors="strict"`` leave the documents out that have it."""
    at = utf8.invalid_at(content.text)
    if at < 0:
        yield content
    elif reading.errors == "strict":
        yield from _without_invalid(content, at, reading)
    else:
        yield _mended(content, reading.errors)


def _mended(content: Content, errors: Literal["replace", "skip"]) -> Content:
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


def _without_invalid(content: Content, at: int, reading: Reading) -> Iterator[Content | Bad]:
    """The content without the documents that are not UTF-8, the first of which is so at byte `at`; and these."""
    ends = np.flatnonzero(ends_document_at(content.special, reading.separators))
    if not len(ends) or ends[-1] < len(content.special) - 1:
        ends = np.append(ends, len(content.special) - 1)
    keep_segments = np.ones(len(content.special), np.bool_)
    keep = np.ones(len(content.positions), np.bool_)
    first = 0
    for number, last in enumerate(ends.tolist()):
        start, stop = int(content.segments[0, first]), int(content.segments[1, last])
        invalid = utf8.invalid_at(content.text[start:stop]) if stop > at else -1
        if invalid >= 0:
            keep_segments[first : last + 1] = False
            keep[number] = False
            which = f"byte {content.start + start + invalid}" if content.in_place else f"byte {invalid} of its text"
            found = f"{which} is not UTF-8 (0x{int(content.text[start + invalid]):02x})"
            advice = "mend it, or use errors='replace' or 'skip'"
            yield Bad(content.source, int(content.positions[number]), None, f"{found}: {advice}")
        first = last + 1
    if keep.any():
        yield replace(
            content,
            segments=np.ascontiguousarray(content.segments[:, keep_segments]),
            special=content.special[keep_segments],
            positions=content.positions[keep],
            ids=None if content.ids is None else [content.ids[i] for i in np.flatnonzero(keep).tolist()],
            continues=content.continues and bool(keep[0]),
        )


def texts_to_documents(texts: Iterable[str | bytes], size: int) -> Iterator[Documents]:
    """Documents given as texts, several of about `size` bytes at a time; their positions are their numbers.

    Raises
    ------
    InputError
        For what is neither str nor bytes.
    """
    parts: list[bytes] = []
    filled = number = 0
    for text in texts:
        parts.append(_encoded(text, number))
        filled += len(parts[-1])
        number += 1
        if filled >= size:
            yield _joined(parts, number)
            parts, filled = [], 0
    if parts:
        yield _joined(parts, number)


def texts_to_contents(
    texts: Iterable[str | bytes], source: str, reading: Reading, size: int
) -> Iterator[Content | Bad]:
    """The same as contents of a source. Raises InputError; under ``on_error="raise"`` also for invalid UTF-8."""
    specials = specials_in_documents(reading)
    for documents in texts_to_documents(texts, size):
        for item in make_valid(of_documents(documents, source, specials, reading), reading):
            if isinstance(item, Bad) and reading.on_error == "raise":
                raise InputError(describe(item))
            yield item


def _encoded(text: str | bytes, number: int) -> bytes:
    if not isinstance(text, str | bytes):
        raise InputError(f"document {number} is of type {type(text).__name__}: str or bytes was expected")
    return to_bytes(text)


def _joined(parts: list[bytes], number: int) -> Documents:
    bounds = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=bounds[1:])
    positions = np.arange(number - len(parts), number, dtype=np.int64)
    return Documents(np.frombuffer(b"".join(parts), np.uint8), bounds, positions, None)


def describe(bad: Bad) -> str:
    """One line about something that cannot be read."""
    where = "" if bad.position is None else f" at {bad.position}"
    line = "" if bad.line is None else f" (line {bad.line})"
    return f"{bad.source}{where}{line}: {bad.reason}"
