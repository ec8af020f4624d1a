"""Texts: prefixes of files, longer ones chained from them, and pathological ones.

Files are read in blocks throughout. A text is written as valid UTF-8 whatever its file holds, so that all contestants
read the same.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import random
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SEPARATOR = "<|endoftext|>"
READ_BYTES = 1 << 22
_END = SEPARATOR.encode()


@dataclass(frozen=True)
class Text:
    """A file that was written to be measured with."""

    name: str
    path: str
    n_bytes: int
    sha256: str


def blocks(path: Path, size: int = READ_BYTES) -> Iterator[bytes]:
    """A file in blocks of about this size. A block ends with a document, or where there is no end in it just
    anywhere, but not inside a separator or a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = b""
    with path.open("rb") as file:
        while data := file.read(size):
            block = rest + decoder.decode(data).encode()
            end = block.rfind(_END)
            if end >= 0:
                end += len(_END)
            else:
                begun = block.rfind(b"<", max(0, len(block) - len(_END) + 1))
                end = begun if begun >= 0 else len(block)
            if end:
                yield block[:end]
            rest = block[end:]
    rest += decoder.decode(b"", final=True).encode()
    if rest:
        yield rest


def swap_case(block: bytes) -> bytes:
    """Capitals for small letters and the other way round: other words to a tokenizer."""
    return block.decode().swapcase().encode().replace(SEPARATOR.swapcase().encode(), _END)


_ROT13 = bytes.maketrans(
    (string.ascii_lowercase + string.ascii_uppercase).encode(),
    "".join(letters[13:] + letters[:13] for letters in (string.ascii_lowercase, string.ascii_uppercase)).encode(),
)


def rot13(block: bytes) -> bytes:
    """Every letter of ASCII by the one 13 places on: words that no language has, with the lengths of real ones."""
    return block.translate(_ROT13).replace(_END.translate(_ROT13), _END)


VARIATIONS: tuple[Callable[[bytes], bytes], ...] = (bytes, swap_case, rot13)


def chained(files: Sequence[Path]) -> Iterator[bytes]:
    """All files, then all with swapped case, then all under rot13: nothing is there twice where letters have a case
    or are of ASCII. The files are mixed by their sizes, so that any prefix is of the same kind of text."""
    sizes = [path.stat().st_size for path in files]
    for vary in VARIATIONS:
        readers = [
            blocks(path, 1 + len(files) * READ_BYTES * size // max(sum(sizes), 1))
            for path, size in zip(files, sizes, strict=True)
        ]
        while readers:
            for reader in tuple(readers):
                block = next(reader, None)
                if block is None:
                    readers.remove(reader)
                else:
                    yield vary(block)


def write(path: Path, text: Iterator[bytes], limit: int, name: str = "") -> Text:
    """Write a text, if it is longer than `limit` bytes a prefix that ends with a document; or within one, where there
    is no end in the second half of it."""
    written = end = 0
    digest = hashlib.sha256()
    with path.open("w+b") as file:
        for block in text:
            part = block
            if written + len(block) > limit:
                part = block[: limit - written].decode("utf-8", "ignore").encode()
            file.write(part)
            # Blocks do not cut separators in two.
            found = part.rfind(_END)
            end = written + found + len(_END) if found >= 0 else end
            written += len(part)
            if part is not block:
                written = end if end > limit // 2 else written
                file.truncate(written)
                break
        file.seek(0)
        while data := file.read(READ_BYTES):
            digest.update(data)
    return Text(name or path.stem, str(path), written, digest.hexdigest())


def pathological(n_bytes: int) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Texts that are unlike any language. They are bytes; not all are UTF-8."""
    noise = random.Random(0)
    yield "a", iter([b"a" * n_bytes])
    yield "spaces", iter([b" " * n_bytes])
    yield "newlines", iter([b"\n" * n_bytes])
    yield "emoji", iter(["\N{GRINNING FACE}".encode() * (n_bytes // 4)])
    yield "random bytes", iter([noise.randbytes(n_bytes)])
    yield "digits", iter([noise.randbytes(n_bytes).translate(bytes(48 + byte % 10 for byte in range(256)))])
    yield "base64", iter([base64.b64encode(noise.randbytes(n_bytes * 3 // 4))])


def write_raw(path: Path, name: str, text: Iterator[bytes]) -> Text:
    """Write bytes as they are."""
    data = b"".join(text)
    path.write_bytes(data)
    return Text(name, str(path), len(data), hashlib.sha256(data).hexdigest())


def short_strings(path: Path, count: int, length: int) -> list[str]:
    """Strings of so many characters from the start of a text, none with a part of a separator."""
    start = next(blocks(path)).decode()
    strings = (start[at : at + length] for at in range(0, len(start) - length, length))
    return [piece for piece in strings if "<" not in piece and "|" not in piece][:count]
