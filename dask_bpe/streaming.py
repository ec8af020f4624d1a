"""Cutting a stream so that its parts, encoded one by one, give the ids of the whole.

A part of the stream may end

- after a special token that nothing still to come can change: no longer one begins at the same place, and
  none that reaches past the end of what is here begins before it;
- inside ordinary text, where `last_safe_cut` of the pattern proves that a pre-token ends.

Everything after the last such place waits for more; where special tokens look at the text around them, that is
everything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from dask_bpe.pretokenize import Pattern, SpecialTokens
from dask_bpe.pretokenize.cut import last_safe_cut

# The least that is worth a call of the kernels, once the stream has shown that it goes on.
BLOCK_BYTES = 1 << 16
# Up to here a text without a safe end is looked at again with every chunk: the look costs less than the call.
SMALL_BYTES = 1 << 12


def safe_blocks(chunks: Iterable[str | bytes], pattern: Pattern, special_tokens: SpecialTokens) -> Iterator[bytes]:
    """Blocks of UTF-8 that add up to the chunks and encode independently, special tokens included.

    Lazy: the first block is out as soon as what was read holds a safe end, later ones when there are also
    enough bytes, a number that doubles up to `BLOCK_BYTES`. Text without a safe end is looked at again
    only when it has doubled: linear time. If the special tokens are `contextual` all is one block; for a
    vocabulary with a normalizer `pattern` must be its `cut_pattern`.

    Raises TypeError for a chunk that is neither str nor bytes.
    """
    beginnings = _Beginnings(special_tokens)
    if special_tokens.contextual:
        if whole := b"".join(_as_bytes(chunks)):
            yield whole
        return
    parts: list[bytes] = []
    size, wanted, least = 0, 1, 1
    for part in _as_bytes(chunks):
        parts.append(part)
        size += len(part)
        if size < wanted:
            continue
        buffer = b"".join(parts)
        end = _safe_end(buffer, pattern, special_tokens, beginnings)
        if end:
            yield buffer[:end]
            least = min(2 * least, BLOCK_BYTES)
        parts = [buffer[end:]]
        size -= end
        wanted = max(least, size + 1 if size < SMALL_BYTES else 2 * size)
    if size:
        yield b"".join(parts)


def to_bytes(text: str | bytes) -> bytes:
    """UTF-8 of a str, lone surrogates as U+FFFD; bytes as they are. Raises TypeError for anything else."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            # UTF-16 joins a high and a low surrogate that follow each other: they are one character.
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise TypeError(f"text must be str or bytes, not {type(text).__name__}")


def _as_bytes(chunks: Iterable[str | bytes]) -> Iterator[bytes]:
    """The chunks as UTF-8, none empty or much longer than a block, no pair of surrogates torn apart."""
    high = ""
    for piece in _pieces(chunks):
        if isinstance(piece, str):
            text = high + piece
            high = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
            data = to_bytes(text[:-1] if high else text)
        else:
            data = to_bytes(high) + to_bytes(piece)
            high = ""
        if data:
            yield data
    if high:
        yield to_bytes(high)


def _pieces(chunks: Iterable[str | bytes]) -> Iterator[str | bytes]:
    for chunk in chunks:
        if not isinstance(chunk, str | bytes):
            yield from _pieces([to_bytes(chunk)])
        elif len(chunk) <= BLOCK_BYTES:
            yield chunk
        else:
            for start in range(0, len(chunk), BLOCK_BYTES):
                yield chunk[start : start + BLOCK_BYTES]


class _Beginnings:
    """Says which suffixes of a text are the beginning of a special token that is longer."""

    def __init__(self, special_tokens: SpecialTokens) -> None:
        self._tokens = sorted(special_tokens.encoded)
        self._first = {token[0] for token in self._tokens}
        self._longest = special_tokens.longest

    def pending(self, text: bytes) -> Iterator[int]:
        """Ascending positions p such that some special token begins with text[p:] and goes on."""
        for position in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[position] in self._first:
                suffix = text[position:]
                # In sorted order what begins with the suffix, and is longer, follows it at once.
                after = bisect_right(self._tokens, suffix)
                if after < len(self._tokens) and self._tokens[after].startswith(suffix):
                    yield position


def _safe_end(text: bytes, pattern: Pattern, special_tokens: SpecialTokens, beginnings: _Beginnings) -> int:
    """The largest proven end of a block in `text`, 0 if there is none."""
    array = np.frombuffer(text, np.uint8)
    starts, ends, _ = special_tokens.find(array, 0, len(text))
    settled, open_from = len(starts), len(text)
    for position in beginnings.pending(text):
        before = int(np.searchsorted(starts, position))
        if before and ends[before - 1] > position:
            continue  # inside a special token that is certain, because it begins earlier
        settled, open_from = before, position
        break
    begin = int(ends[settled - 1]) if settled else 0
    stop = open_from - _unfinished(array[begin:open_from])
    return begin + last_safe_cut(array[begin:stop], pattern)


def _unfinished(text: npt.NDArray[np.uint8]) -> int:
    """How many bytes at the end of `text` may be the beginning of a character."""
    for back in range(1, min(4, len(text) + 1)):
        byte = text[len(text) - back]
        if byte >= 0xC0:
            return back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0
