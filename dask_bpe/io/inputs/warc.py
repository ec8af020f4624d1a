r"""Documents of WARC files that hold text, as Common Crawl's WET files do.

A file is a row of records, often each a gzip member of its own:

    WARC/1.0 \r\n
    WARC-Type: conversion \r\n
    WARC-Record-ID: <urn:uuid:...> \r\n
    Content-Type: text/plain \r\n
    Content-Length: 270 \r\n
    \r\n
    270 bytes \r\n \r\n

Documents are the records of type ``conversion`` and ``resource`` whose Content-Type is ``text/plain``; what else
there is (``warcinfo``, ``request``, ``metadata`` ...) is skipped. ``response`` records are HTML and what else
servers send, which is no text: of a file of those it is said that it holds none.

What lost are the libraries for the format (FastWARC 2.0, warcio 1.8): a record that is cut short they take for a
short one, and one whose length is wrong or missing for one with fewer bytes or none, without a word. Here the
length is kept to and the next record must follow, so nothing can get lost unseen.

Measured on one core (a busy one; English, documents of 5 kB), in MB of text a second: 250, FastWARC 1,500, warcio
134. WET files come in gzip, which takes longer than this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from dask_bpe.errors import CorruptError
from dask_bpe.io import utf8
from dask_bpe.io.inputs.compression import ByteReader, Compression, open_stream
from dask_bpe.io.inputs.documents import Bad, Batch, Documents

_VERSION = re.compile(rb"WARC/\d+\.\d+\r?\n")
_BLANK = (b"\r\n", b"\n")
_TYPES = ("conversion", "resource")
_PIECE = 1 << 20
_LONGEST_LINE = 1 << 20


class _Damage(Exception):
    """The file does not go on as a WARC file; says how."""


def read_warc(
    path: str, compression: Compression | None, id_field: str | None, batch_bytes: int
) -> Iterator[Documents | Bad]:
    """Documents of a WARC file; `id_field` names the header with their ids, upper or lower case.

    What is damaged costs the rest of the file. Raises InputError when the storage fails.
    """
    batch = Batch(batch_bytes, id_field is not None)
    types: Counter[str] = Counter()
    records = _Records(open_stream(path, compression))
    n_texts = 0
    try:
        while (headers := records.next()) is not None:
            types[headers.get("warc-type", "no type")] += 1
            if not _is_text(headers):
                continue
            n_texts += 1
            if wrong := _wrong(records.body, headers, id_field):
                yield Bad(path, records.start, None, wrong)
                continue
            if not batch.fits(len(records.body)):
                yield from _taken(batch)
            values = np.frombuffer(records.body, np.uint8)
            ids = None if id_field is None else [headers[id_field.lower()]]
            batch.add(values, np.array([len(values)]), np.array([records.start]), ids)
        damage = None
    except (CorruptError, _Damage) as error:
        damage = str(error).removeprefix(f"{path}: ")
    finally:
        records.close()
    yield from _taken(batch)
    if damage is not None:
        whole = not types and not records.start
        what = "not a WARC file: " if whole else f"the record at byte {records.start} and what follows cannot be read: "
        yield Bad(path, None if whole else records.start, None, what + damage)
    elif types and not n_texts:
        found = ", ".join(f"{count} {name}" for name, count in types.most_common())
        yield Bad(
            path, None, None, f"holds no text, only records of these types: {found}; extract their text first, as WET"
        )


def _taken(batch: Batch) -> Iterator[Documents]:
    if documents := batch.take():
        yield documents


def _is_text(headers: dict[str, str]) -> bool:
    if headers.get("warc-type") not in _TYPES:
        return False
    return headers.get("content-type", "text/plain").split(";")[0].strip().lower() == "text/plain"


def _wrong(body: bytes, headers: dict[str, str], id_field: str | None) -> str | None:
    """What is wrong with a document, if anything is."""
    if id_field is not None and id_field.lower() not in headers:
        return f"the record has no header {id_field!r}"
    at = utf8.invalid_at(np.frombuffer(body, np.uint8))
    return None if at < 0 else f"byte {at} of the text is not UTF-8 (0x{body[at]:02x})"


class _Records:
    """The records of a file, one after the other.

    Attributes
    ----------
    start : the byte where the last record starts, or what should have been one.
    body : what it holds, when that is text.
    """

    def __init__(self, reader: ByteReader) -> None:
        self.start = 0
        self.body = b""
        self._reader = reader
        self._data = b""
        self._at = 0  # in `_data`
        self._before = 0  # bytes of the file before `_data`

    def next(self) -> dict[str, str] | None:
        """Headers of the next record, their names in lower case; None after the last.

        Raises _Damage, and CorruptError for damaged compression.
        """
        self.body = b""
        version = b"\n"
        while version in _BLANK:
            self.start = self._before + self._at
            version = self._line()
        if not version:
            return None
        if not _VERSION.fullmatch(version):
            raise _Damage(f"'WARC/1.0' or the like was expected, not {version[:40]!r}")
        headers = self._headers()
        length = headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal()):
            raise _Damage(f"its Content-Length is {length or 'missing'!r}, a number was expected")
        self.body = self._bytes(int(length), keep=_is_text(headers))
        # Two line ends like all the others, unless the file ends: a length that is wrong shows here.
        end = b"\r\n" if version.endswith(b"\r\n") else b"\n"
        for _ in range(2):
            line = self._line()
            if not end.startswith(line):
                raise _Damage(f"after the {length} bytes of its Content-Length two line ends were expected")
        return headers

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        name = ""
        while (line := self._line()) not in _BLANK:
            if not line.endswith(b"\n"):
                raise _Damage("it is cut short within its headers")
            text = line.decode(errors="replace")
            if name and text[0] in " \t":  # an old way to go on with the line before
                headers[name] += " " + text.strip()
                continue
            name, colon, value = text.partition(":")
            if not colon:
                raise _Damage(f"a header must be a name, a colon and a value, not {line[:40]!r}")
            name = name.strip().lower()
            headers[name] = value.strip()
        return headers

    def _line(self) -> bytes:
        """The next line with its end, which only the last of a file may lack; b"" at the end."""
        while not (end := self._data.find(b"\n", self._at) + 1):
            if len(self._data) - self._at > _LONGEST_LINE:
                raise _Damage(f"a header line has more than {_LONGEST_LINE} bytes")
            if not self._more():
                end = len(self._data)
                break
        line = self._data[self._at : end]
        self._at = end
        return line

    def _bytes(self, n: int, keep: bool) -> bytes:
        """The next `n` bytes; b"" if they are only to be skipped."""
        parts: list[bytes] = []
        left = n
        while left:
            part = self._data[self._at : self._at + left]
            if not part and not self._more():
                raise _Damage(f"it is cut short, {n - left} of the {n} bytes of its Content-Length are there")
            self._at += len(part)
            left -= len(part)
            if keep:
                parts.append(part)
        return b"".join(parts)

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        piece = self._reader.read(_PIECE)
        self._data = self._data[self._at :] + piece
        self._before += self._at
        self._at = 0
        return bool(piece)
