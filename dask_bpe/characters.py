"""`CharTokenizer`: one character, one id. The baseline that merges are compared with."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import InputError, ParameterError, VocabularyError
from dask_bpe.io.atomic import atomic_write
from dask_bpe.training.alphabet import count_characters
from dask_bpe.vocabulary.json_file import read_file

FORMAT, VERSION = "dask_bpe.characters", 1


class CharTokenizer:
    """Characters (Unicode code points) to ids and back. A character that it does not know is an error that names it.

    Immutable. A file of it is one JSON object: format, version, sha256 (of the characters in UTF-8), characters.

    Parameters
    ----------
    characters : str
        Those of ids 0, 1, 2, ...

    Raises
    ------
    ParameterError
        A character is there twice, or is half of a surrogate pair.

    Examples
    --------
    >>> tokenizer = CharTokenizer.from_text("abracadabra")
    >>> tokenizer.encode("cab")
    [2, 0, 1]
    """

    def __init__(self, characters: str) -> None:
        points = _points(characters)
        order = np.argsort(points, kind="stable")
        twice = np.flatnonzero(points[order][1:] == points[order][:-1])
        if len(twice):
            raise ParameterError(f"{_named(characters[order[twice[0]]])} is there twice: each character has one id")
        surrogate = np.flatnonzero((points >= 0xD800) & (points <= 0xDFFF))
        if len(surrogate):
            raise ParameterError(f"{_named(characters[surrogate[0]])} is half of a surrogate pair, not a character")
        self._characters, self._points = characters, points
        self._sorted, self._ids = points[order], order.astype(np.uint32)

    @classmethod
    def from_text(cls, text: str | Iterable[str]) -> CharTokenizer:
        """The characters of a text, or of several, in the order of their code points."""
        found: set[str] = set()
        for part in (text,) if isinstance(text, str) else text:
            found.update(part)
        return cls("".join(sorted(found)))

    @classmethod
    def from_counts(cls, counts: PretokenCounts) -> CharTokenizer:
        """The characters of the pre-tokens of a corpus: not those in special tokens, or that the pattern leaves out."""
        return cls("".join(sorted(count_characters(counts))))

    @property
    def characters(self) -> str:
        """The characters of ids 0, 1, 2, ..."""
        return self._characters

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return len(self._characters)

    def __len__(self) -> int:
        return len(self._characters)

    def __repr__(self) -> str:
        return f"CharTokenizer(vocab_size={len(self)})"

    def __eq__(self, other: object) -> bool:
        return self._characters == other._characters if isinstance(other, CharTokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._characters)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._characters,)

    def encode(self, text: str) -> list[int]:
        """The id of every character of `text`. Raises InputError as `encode_to_numpy` does."""
        ids: list[int] = self.encode_to_numpy(text).tolist()
        return ids

    def encode_to_numpy(self, text: str) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The ids of `text`, an id per character: uint16[n] if all ids fit, else uint32[n].

        Raises
        ------
        InputError
            A character has no id: the message names the first one and says where it stands (characters and bytes are
            counted from 0, lines from 1).
        """
        points = _points(text)
        places = np.searchsorted(self._sorted, points)
        known = places < len(self._sorted)
        known[known] = self._sorted[places[known]] == points[known]
        if not known.all():
            raise self._unknown(text, int(np.argmin(known)))
        return self._ids[places].astype(self._dtype)

    def decode(self, ids: Iterable[int] | npt.NDArray[np.integer[Any]]) -> str:
        """The text of the ids. Raises ParameterError naming the first unknown id and its position."""
        array = ids if isinstance(ids, np.ndarray) else np.array(list(ids) or np.empty(0, np.int64))
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ParameterError(f"token ids must be integers in one dimension, not {array.dtype} {array.shape}")
        outside = np.flatnonzero((array < 0) | (array >= len(self)))
        if len(outside):
            at = int(outside[0])
            raise ParameterError(f"id {array[at]} at position {at} is unknown: ids end at {len(self) - 1}")
        return self._points[array].tobytes().decode("utf-32-le")

    @cached_property
    def _dtype(self) -> type[np.unsignedinteger[Any]]:
        return np.uint16 if len(self) <= 1 << 16 else np.uint32

    def _unknown(self, text: str, at: int) -> InputError:
        before = text[:at]
        n_bytes = len(before.encode("utf-8", "surrogatepass"))
        line = before.count("\n") + 1
        return InputError(
            f"{_named(text[at])} at character {at} (byte {n_bytes}, line {line}) is none of the {len(self)} known ones:"
            " make the tokenizer of a text that has it"
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write one JSON file with everything, checksummed, whole or not at all."""
        fields = {
            "format": FORMAT,
            "version": VERSION,
            "sha256": _checksum(self._characters),
            "characters": self._characters,
        }
        with atomic_write(path) as file:
            file.write(json.dumps(fields).encode("ascii") + b"\n")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> CharTokenizer:
        """Read what `save` wrote. Raises VocabularyError for anything else, naming the file."""
        try:
            fields = json.loads(read_file(path))
        except VocabularyError as error:
            raise VocabularyError(f"{path}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise VocabularyError(f"{path}: not JSON ({error}); was it cut short?") from None
        if not isinstance(fields, dict) or (fields.get("format"), fields.get("version")) != (FORMAT, VERSION):
            raise VocabularyError(
                f'{path}: no characters of a tokenizer: "format" {FORMAT!r}, "version" 1 was expected'
            )
        characters = fields.get("characters")
        if not isinstance(characters, str) or _checksum(characters) != fields.get("sha256"):
            raise VocabularyError(f"{path}: damaged: its characters do not match its checksum")
        try:
            return cls(characters)
        except ParameterError as error:
            raise VocabularyError(f"{path}: {error}") from None


def _checksum(characters: str) -> str:
    return hashlib.sha256(characters.encode("utf-8", "surrogatepass")).hexdigest()


def _points(text: str) -> npt.NDArray[np.uint32]:
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)


def _named(character: str) -> str:
    """U+AC00 HANGUL SYLLABLE GA ('가')"""
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}{' ' * bool(name)}{name} ({character!r})"
