"""What a trained tokenizer knows: the bytes of every id, the merges in rank order, the special tokens.

A vocabulary file is one JSON object, a field a line, ASCII, the same bytes for the same vocabulary:

    format, version   "dask_bpe.vocabulary", 1
    sha256            `Vocabulary.fingerprint`, the checksum of all that follows
    pattern, ties     how text is split; how ties were broken in training
    special_tokens    {text: id} in the order given
    tokens            base64 of the bytes of ids 0, 1, 2, ...
    merges            [left id, right id, resulting id] in rank order
"""

from __future__ import annotations

import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.io import paths
from dask_bpe.io.atomic import atomic_write
from dask_bpe.pretokenize import SpecialTokens
from dask_bpe.ragged import Ragged

FORMAT = "dask_bpe.vocabulary"
VERSION = 1
TIE_RULES = ("bytes", "ids", "huggingface", "first")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Immutable; equal when the contents are; hashable; pickled without anything that can be derived.

    Two ids may spell the same bytes: a special token and a merge, or two merges.

    Attributes
    ----------
    tokens : tuple of bytes
        The bytes of every id; ids are contiguous from 0.
    merges : int32[m, 3], read-only
        In rank order: left id, right id, resulting id.
    special_tokens : read-only mapping of str to int
        The text and the id of every special token, in the order given. The bytes of its id are its UTF-8.
    pattern : str or None
        How text is split: the name of a pattern, a regular expression, or None for not at all.
    ties : str
        The tie rule of its training, one of `TIE_RULES`. Says where it comes from; encoding does not ask.

    Raises
    ------
    VocabularyError
        One of the 256 bytes has no id, an id has no bytes, a merge does not spell the bytes of its id, ...
    """

    tokens: tuple[bytes, ...]
    merges: npt.NDArray[np.int32]
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    pattern: str | None = "gpt2"
    ties: str = "bytes"

    def __post_init__(self) -> None:
        merges = np.array(self.merges, np.int32, order="C")
        if merges.size and merges.shape[1:] != (3,):
            raise VocabularyError(f"merges have the shape {merges.shape}; (m, 3) was expected")
        merges = merges.reshape(-1, 3)
        merges.flags.writeable = False
        object.__setattr__(self, "tokens", tuple(self.tokens))
        object.__setattr__(self, "merges", merges)
        object.__setattr__(self, "special_tokens", MappingProxyType(dict(self.special_tokens)))
        if self.ties not in TIE_RULES:
            raise ParameterError(f"unknown tie rule {self.ties!r}; known are {', '.join(TIE_RULES)}")
        _check_tokens(self.tokens)
        _check_merges(self.tokens, merges)
        _check_special_tokens(self.tokens, self.special_tokens)

    @classmethod
    def from_tokens(
        cls,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]],
        special_tokens: Sequence[str] = (),
        *,
        pattern: str | None = "gpt2",
        ties: str = "bytes",
    ) -> Vocabulary:
        """A vocabulary from bytes alone: `vocab` is id -> bytes, `merges` are pairs of bytes in rank order.

        A special token that `vocab` spells keeps that id (the lowest one, but not that of a single byte if
        there is another); one that it does not spell gets the next id. A merge means the lowest ids that
        spell its parts and its product, special tokens only if there is no other.

        Raises VocabularyError for ids that are not contiguous from 0, a byte without an id, a merge whose
        part or product has no id; ParameterError for a special token that is empty or given twice.
        """
        tokens = _contiguous(vocab)
        lowest = dict(zip(reversed(tokens), reversed(range(len(tokens))), strict=True))
        highest = dict(zip(tokens, range(len(tokens)), strict=True))
        specials: dict[str, int] = {}
        checked = SpecialTokens(special_tokens)
        for text, token in zip(checked.tokens, checked.encoded, strict=True):
            if token not in lowest:
                lowest[token] = highest[token] = len(tokens)
                tokens.append(token)
            special = lowest[token]
            if special < highest[token]:
                another = tokens.index(token, special + 1)
                if len(token) == 1:
                    special = another
                else:
                    lowest[token] = another
            specials[text] = special
        return cls(tuple(tokens), _merge_ids(lowest, merges), specials, pattern, ties)

    def __len__(self) -> int:
        """Number of ids; the largest is one less."""
        return len(self.tokens)

    def __repr__(self) -> str:
        return (
            f"<Vocabulary of {len(self)} ids, {len(self.merges)} merges, "
            f"{len(self.special_tokens)} special tokens, pattern {self.pattern!r}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __dask_tokenize__(self) -> tuple[str, str]:
        return (FORMAT, self.fingerprint())

    def __reduce__(self) -> tuple[Any, ...]:
        lengths = np.array([len(token) for token in self.tokens], np.uint32)
        texts = tuple(self.special_tokens.items())
        return _unpickle, (b"".join(self.tokens), lengths, self.merges, texts, self.pattern, self.ties)

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The smallest of uint16 and uint32 that holds every id."""
        return np.dtype(np.uint16 if len(self) <= 1 << 16 else np.uint32)

    @cached_property
    def byte_ids(self) -> npt.NDArray[np.int32]:
        """The lowest id of every byte, a special token only if there is no other. int32[256], read-only."""
        reserved = set(self.special_tokens.values())
        single = [index for index, token in enumerate(self.tokens) if len(token) == 1]
        ids = np.empty(256, np.int32)
        for index in sorted(single, key=lambda index: (index in reserved, index), reverse=True):
            ids[self.tokens[index][0]] = index
        ids.flags.writeable = False
        return ids

    def merge_bytes(self) -> list[tuple[bytes, bytes]]:
        """The merges as pairs of bytes, in rank order."""
        tokens = self.tokens
        return [(tokens[left], tokens[right]) for left, right, _ in self.merges.tolist()]

    def to_dict(self) -> dict[int, bytes]:
        """Id -> bytes, special tokens included."""
        return dict(enumerate(self.tokens))

    def fingerprint(self) -> str:
        """SHA-256 of the contents in hexadecimal: equal for equal vocabularies, on every machine."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        names = [self.pattern, self.ties, list(self.special_tokens.items())]
        digest = hashlib.sha256(json.dumps(names).encode() + b"\n")
        digest.update(np.array([len(self.tokens), len(self.merges)], "<i8").tobytes())
        digest.update(np.array([len(token) for token in self.tokens], "<i8").tobytes())
        digest.update(b"".join(self.tokens))
        digest.update(self.merges.astype("<i4").tobytes())
        return digest.hexdigest()

    def to_json(self) -> str:
        """The text of a vocabulary file (see the head of this module)."""
        fields: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "sha256": self.fingerprint(),
            "pattern": self.pattern,
            "ties": self.ties,
            "special_tokens": dict(self.special_tokens),
            "tokens": [binascii.b2a_base64(token, newline=False).decode() for token in self.tokens],
            "merges": self.merges.tolist(),
        }
        lines = [f'"{name}":{json.dumps(value, separators=(",", ":"))}' for name, value in fields.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Vocabulary:
        """The vocabulary that `to_json` wrote.

        Raises VocabularyError when it is anything else: not JSON, another format, a newer version, a field
        that is missing or of the wrong kind, contents that do not match the checksum.
        """
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise VocabularyError(f"not a vocabulary: not JSON ({error}); was it cut short?") from None
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise VocabularyError(f'not a vocabulary: "format" is not "{FORMAT}"')
        if fields.get("version") != VERSION:
            raise VocabularyError(
                f"vocabulary of version {fields.get('version')!r}, and this dask_bpe reads {VERSION}: "
                "a newer release may read it"
            )
        vocabulary = cls._from_fields(fields)
        if vocabulary.fingerprint() != fields.get("sha256"):
            raise VocabularyError(
                "damaged vocabulary: its contents do not match its checksum; it was changed or cut after it was written"
            )
        return vocabulary

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Vocabulary:
        try:
            pattern, ties, specials = fields["pattern"], fields["ties"], dict(fields["special_tokens"])
            if not (pattern is None or isinstance(pattern, str)):
                raise TypeError(f"pattern is {pattern!r}")
            tokens = tuple(binascii.a2b_base64(token, strict_mode=True) for token in fields["tokens"])
            merges = np.array(fields["merges"], np.int32)
            return cls(tokens, merges, specials, pattern, ties)
        except KeyError as error:
            raise VocabularyError(f"damaged vocabulary: field {error} is missing") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise VocabularyError(f"damaged vocabulary: {error}") from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write `to_json` to `path`; the file appears whole or not at all."""
        with atomic_write(path) as file:
            file.write(self.to_json().encode("ascii"))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vocabulary:
        """Read what `save` wrote. Raises VocabularyError, naming the file, if that is not what it holds."""
        try:
            return cls.from_json(read_file(path))
        except VocabularyError as error:
            raise VocabularyError(f"{path}: {error}") from None


def read_file(path: str | PathLike[str]) -> bytes:
    """The bytes of a file that belongs to a vocabulary; VocabularyError if they cannot be read."""
    try:
        with paths.open_to_read(paths.normalise(path)) as file:
            return bytes(file.read())
    except OSError as error:
        raise VocabularyError(f"cannot read the file: {paths.one_line(error)}") from None


def _unpickle(
    values: bytes,
    lengths: npt.NDArray[np.uint32],
    merges: npt.NDArray[np.int32],
    special_tokens: tuple[tuple[str, int], ...],
    pattern: str | None,
    ties: str,
) -> Vocabulary:
    ends = np.cumsum(lengths, dtype=np.int64)
    bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    tokens = tuple(values[start:end] for start, end in bounds)
    return Vocabulary(tokens, merges, dict(special_tokens), pattern, ties)


def _contiguous(vocab: Mapping[int, bytes]) -> list[bytes]:
    ids = range(len(vocab))
    missing = next((index for index in ids if index not in vocab), None)
    if missing is not None:
        stranger = next(key for key in vocab if key not in ids)
        raise VocabularyError(
            f"id {missing} is missing while there is {stranger!r}; "
            f"the {len(vocab)} ids must be the integers 0 to {len(vocab) - 1}"
        )
    tokens = [vocab[index] for index in ids]
    _check_bytes(tokens)
    return tokens


def _merge_ids(lowest: Mapping[bytes, int], merges: Sequence[tuple[bytes, bytes]]) -> npt.NDArray[np.int32]:
    try:
        lefts = [lowest[left] for left, _ in merges]
        rights = [lowest[right] for _, right in merges]
        products = [lowest[left + right] for left, right in merges]
    except KeyError:
        rank, (left, right) = next(
            (rank, pair)
            for rank, pair in enumerate(merges)
            if not (pair[0] in lowest and pair[1] in lowest and pair[0] + pair[1] in lowest)
        )
        unknown = next(token for token in (left, right, left + right) if token not in lowest)
        raise VocabularyError(
            f"merge {rank} joins {_shown(left)} and {_shown(right)}, and no id spells {_shown(unknown)}"
        ) from None
    return np.array([lefts, rights, products], np.int32).T


def _shown(token: bytes) -> str:
    return repr(token) if len(token) <= 40 else f"{token[:40]!r}... of {len(token)} bytes"


def _check_bytes(tokens: Sequence[bytes]) -> None:
    for index, token in enumerate(tokens):
        if not isinstance(token, bytes) or not token:
            raise VocabularyError(f"id {index} has {str(token)[:40]!r} where one byte or more was expected")


def _check_tokens(tokens: tuple[bytes, ...]) -> None:
    _check_bytes(tokens)
    missing = set(range(256)).difference(token[0] for token in tokens if len(token) == 1)
    if missing:
        raise VocabularyError(
            f"{len(missing)} of the 256 single bytes have no id, 0x{min(missing):02x} among them; "
            "every byte needs one, or some text could not be encoded"
        )


def _check_merges(tokens: tuple[bytes, ...], merges: npt.NDArray[np.int32]) -> None:
    outside = np.flatnonzero(((merges < 0) | (merges >= len(tokens))).any(axis=1))
    if outside.size:
        rank = int(outside[0])
        raise VocabularyError(f"merge {rank} is {merges[rank].tolist()}, and ids end at {len(tokens) - 1}")
    # Equal lengths row by row, then equal bytes all in one: a tenth of the time of comparing row by row.
    ragged = Ragged.from_list(tokens)
    lengths = np.diff(ragged.offsets)[merges]
    if (lengths[:, 0] + lengths[:, 1] == lengths[:, 2]).all():
        parts, products = _joined(ragged, merges[:, :2].ravel()), _joined(ragged, merges[:, 2])
        if np.array_equal(parts, products):
            return
    for rank, (left, right, product) in enumerate(merges.tolist()):
        if tokens[left] + tokens[right] != tokens[product]:
            raise VocabularyError(
                f"merge {rank} joins {_shown(tokens[left])} and {_shown(tokens[right])}, "
                f"and its id {product} spells {_shown(tokens[product])}"
            )


def _joined(ragged: Ragged, indices: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    starts, stops = ragged.offsets[indices], ragged.offsets[indices + 1]
    ends = np.cumsum(stops - starts)
    places = np.repeat(stops - ends, stops - starts)
    places += np.arange(len(places))
    return ragged.values[places]


def _check_special_tokens(tokens: tuple[bytes, ...], special_tokens: Mapping[str, int]) -> None:
    encoded = SpecialTokens(tuple(special_tokens)).encoded
    for (text, index), token in zip(special_tokens.items(), encoded, strict=True):
        if not 0 <= index < len(tokens) or tokens[index] != token:
            raise VocabularyError(f"special token {text!r} has id {index}, which does not spell it")
