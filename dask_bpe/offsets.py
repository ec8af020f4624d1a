"""Where in a text each of its tokens stands: in bytes, and in the characters of a str."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError
from dask_bpe.normalizer import Normalizer
from dask_bpe.pretokenize import Scanner

Int64s = npt.NDArray[np.int64]
Text = npt.NDArray[np.uint8]


class Encoding(NamedTuple):
    """The ids of a text, and where their tokens stand in it.

    Attributes
    ----------
    ids : list of int
    byte_offsets : int64[n, 2]
        Token k is ``data[start:stop]``, where `data` is the text as UTF-8.
    char_offsets : int64[n, 2]
        Token k has bytes of the characters ``text[start:stop]``: where it ends inside a character, the next
        token begins with the same one. In bytes that are not UTF-8 an invalid byte is a character.
    """

    ids: list[int]
    byte_offsets: Int64s
    char_offsets: Int64s


def refuse_changed(data: bytes, segments: Int64s, normalizer: Normalizer) -> None:
    """Raise ParameterError if the normalizer changes a segment of a text. segments : int64[2, n]."""
    for start, end in segments.T.tolist():
        if normalizer(data[start:end]) != data[start:end]:
            raise ParameterError(
                f"the normalizer of this vocabulary changes the text in bytes {start} to {end}, so that its tokens"
                " have no place in it: encode() gives the ids without places"
            )


def tile(lengths: Int64s) -> Int64s:
    """Bounds of pieces of these lengths that follow each other. int64[n, 2]."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.stack((ends - lengths, ends), axis=1)


def kept_pieces(scanner: Scanner, text: Text, segments: Int64s, others: Int64s) -> Int64s:
    """Where the text is that became tokens: the pre-tokens of the segments, and the other pieces between them.

    segments : int64[2, n]. others : int64[2, k]. Returns int64[2, m], ascending.
    """
    spans = [batch.spans[:, : batch.n_spans].copy() for batch in scanner.scan(text, segments)]
    pieces = np.concatenate([*spans, others], axis=1)
    return pieces[:, np.argsort(pieces[0], kind="stable")]


def into_text(bounds: Int64s, pieces: Int64s) -> Int64s:
    """Bounds in the pieces laid end to end as bounds in the text: int64[n, 2], none across the end of a piece."""
    ends = np.cumsum(pieces[1] - pieces[0])
    which = np.searchsorted(ends, bounds[:, 0], side="right")
    moved: Int64s = bounds + (pieces[1] - ends)[which][:, np.newaxis]
    return moved


def to_characters(text: str | bytes, bounds: Int64s) -> Int64s:
    """Bounds in the UTF-8 of a text as bounds in its characters: those that have a byte between them. int64[n, 2]."""
    if text.isascii():
        return bounds.copy()
    characters = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    codes = np.frombuffer(characters.encode("utf-32-le", "surrogatepass"), np.uint32)
    widths = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000).astype(np.int64)
    second = np.zeros(len(codes) + 1, np.bool_)
    if isinstance(text, bytes):
        widths[(codes >= 0xDC80) & (codes < 0xDD00)] = 1
    else:
        # A high and a low surrogate that follow each other are one character: its bytes are those of both.
        second[1:-1] = (codes[:-1] >> 10 == 0x36) & (codes[1:] >> 10 == 0x37)
        widths[np.flatnonzero(second) - 1], widths[second[:-1]] = 0, 4
    starts = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(widths, out=starts[1:])
    first = np.searchsorted(starts, bounds[:, 0], side="right") - 1
    return np.stack((first - second[first], np.searchsorted(starts, bounds[:, 1])), axis=1)
