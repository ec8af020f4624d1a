"""`Vocabulary`: the bytes of every id, the merges in rank order, the special tokens."""

from __future__ import annotations

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
from dask_bpe.io.atomic import atomic_write
from dask_bpe.normalizer import checked_steps
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.pretokenize.patterns import pattern_to_json
from dask_bpe.vocabulary import json_file
from dask_bpe.vocabulary.consistency import (
    Template,
    check_merges,
    check_special_tokens,
    check_tokens,
    checked_divisions,
    checked_template,
)
from dask_bpe.vocabulary.ids import merge_ids, tokens_and_special_ids, tokens_of_ranks

TIE_RULES = ("bytes", "ids", "huggingface", "first")
RANKS = ("merges", "tokens")

_NO_MERGES = np.empty((0, 3), np.int32)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Immutable; equal when the contents are; hashable; pickled without anything that can be derived.

    Two ids may spell the same bytes: a special token and a merge, or two merges.

    Attributes
    ----------
    tokens : tuple of bytes
        The bytes of ids 0, 1, 2, ...; empty where no token has the id, but never at the end.
    merges : int32[m, 3], read-only
        In rank order: left id, right id, resulting id. Derived if `ranks` is "tokens".
    special_tokens : read-only mapping of str to int
        The text and the id of every special token, in the order given. The bytes of its id are its UTF-8.
    pattern : str, None, or tuple of `Split`
        How text is split: the name of a pattern, a regular expression, None for not at all, or a sequence of
        splits one after the other.
    ties : str
        The tie rule of its training, one of `TIE_RULES`. Says where it comes from; encoding does not ask.
    normalizer : tuple of tuples of str
        What is done to text between special tokens before it is split; the steps of `dask_bpe.normalizer`.
    added_rules : read-only mapping of str to frozenset of str
        Of special tokens that are more than their text: which of `pretokenize.RULES` they follow.
    template : two tuples of int
        The ids before and after a text that is encoded with ``add_special_tokens=True``.
    whole_tokens : bool
        Whether a pre-token that is a token as a whole becomes it without merging: tiktoken does so, and Hugging
        Face with ``ignore_merges``.
    ranks : str
        "merges": the rank of a merge is its row, the last one if it is there twice. "tokens", the rule of tiktoken:
        any two neighbours whose bytes joined are a token, not a special one, merge; the lowest id first, the leftmost
        of equal ones. `merges` are then all ways to divide a token into two, by its id and the place where it is
        divided.

    Raises
    ------
    VocabularyError
        One of the 256 bytes has no id, the last id has no bytes, a merge does not spell the bytes of its id, ...
    ParameterError
        A tie rule, a step of the normalizer or a rule of a special token that does not exist, ...
    """

    tokens: tuple[bytes, ...]
    merges: npt.NDArray[np.int32]
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    pattern: PatternSpec = "gpt2"
    ties: str = "bytes"
    normalizer: tuple[tuple[str, ...], ...] = ()
    added_rules: Mapping[str, frozenset[str]] = field(default_factory=dict)
    template: Template = ((), ())
    whole_tokens: bool = False
    ranks: str = "merges"

    def __post_init__(self) -> None:
        merges = np.array(self.merges, np.int32, order="C")
        if merges.size and merges.shape[1:] != (3,):
            raise VocabularyError(f"merges have the shape {merges.shape}; (m, 3) was expected")
        merges = merges.reshape(-1, 3)
        self._set("tokens", tuple(self.tokens))
        self._set("special_tokens", MappingProxyType(dict(self.special_tokens)))
        self._set("pattern", _canonical(self.pattern))
        self._set("normalizer", checked_steps(self.normalizer))
        if self.ties not in TIE_RULES:
            raise ParameterError(f"unknown tie rule {self.ties!r}; known are {', '.join(TIE_RULES)}")
        if self.ranks not in RANKS:
            raise ParameterError(f"ranks is {self.ranks!r}: {' or '.join(map(repr, RANKS))} was expected")
        if not isinstance(self.whole_tokens, bool):
            raise ParameterError(f"whole_tokens is {self.whole_tokens!r}: True or False was expected")
        check_tokens(self.tokens)
        if self.ranks == "tokens":
            merges = checked_divisions(self.tokens, self.special_tokens, merges)
        else:
            check_merges(self.tokens, merges)
        merges.flags.writeable = False
        self._set("merges", merges)
        specials = SpecialTokens(tuple(self.special_tokens), self.added_rules)
        check_special_tokens(self.tokens, self.special_tokens, specials)
        self._set("added_rules", MappingProxyType(dict(specials.rules)))
        self._set("template", checked_template(self.template, self.tokens))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def from_tokens(
        cls,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]],
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        *,
        pattern: PatternSpec = "gpt2",
        ties: str = "bytes",
        gaps: bool = False,
        **fields: Any,
    ) -> Vocabulary:
        """A vocabulary from bytes alone: `vocab` is id -> bytes, `merges` are pairs of bytes in rank order.

        A special token that `vocab` spells keeps that id (the lowest one, but not that of a single byte if
        there is another); one that it does not spell gets the next id. A mapping of text to id says the ids.
        A merge means the lowest ids that spell its parts and its product, special tokens only if there is no
        other. With `gaps`, ids need not be contiguous. `fields` are further attributes of the vocabulary.

        Raises VocabularyError for ids that are not contiguous from 0, a byte without an id, a merge whose
        part or product has no id; ParameterError for a special token that is empty or given twice.
        """
        tokens, specials, lowest = tokens_and_special_ids(vocab, special_tokens, gaps)
        return cls(tuple(tokens), merge_ids(lowest, merges), specials, pattern, ties, **fields)

    @classmethod
    def from_ranks(
        cls,
        ranks: Mapping[bytes, int],
        special_tokens: Mapping[str, int] = MappingProxyType({}),
        *,
        pattern: PatternSpec,
        ties: str = "ids",
        **fields: Any,
    ) -> Vocabulary:
        """A vocabulary of tiktoken's kind: the bytes of every token and its rank, which is its id.

        Whole pre-tokens that are a token become it; else the neighbours merge that make the token of the lowest
        rank. Ranks and ids of special tokens may leave out numbers. `fields` are further attributes.

        Raises VocabularyError for a rank given twice, a byte without a rank, a special token with the id of
        another token, and what is no bytes or no id.
        """
        spelled = tuple(tokens_of_ranks(ranks, special_tokens))
        given: dict[str, Any] = {"whole_tokens": True, "ranks": "tokens"} | fields
        return cls(spelled, _NO_MERGES, dict(special_tokens), pattern, ties, **given)

    def __len__(self) -> int:
        """The largest id and one: how many ids there are, those that no token has included."""
        return len(self.tokens)

    def __repr__(self) -> str:
        return (
            f"<Vocabulary of {len(self)} ids, {len(self.merges)} merges, "
            f"{len(self.special_tokens)} special tokens, pattern {self.pattern!r}>"
        )

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_vocabulary

        return of_vocabulary(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __dask_tokenize__(self) -> tuple[str, str]:
        return (json_file.FORMAT, self.fingerprint())

    def __reduce__(self) -> tuple[Any, ...]:
        lengths = np.array([len(token) for token in self.tokens], np.uint32)
        texts = tuple(self.special_tokens.items())
        extra = json_file.extra_fields(self)
        state = (b"".join(self.tokens), lengths, self._stored_merges, texts, self.pattern, self.ties)
        return _unpickle, (*state, extra) if extra else state

    @property
    def _stored_merges(self) -> npt.NDArray[np.int32]:
        """The merges that cannot be derived."""
        return self.merges if self.ranks == "merges" else _NO_MERGES

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The smallest of uint16 and uint32 that holds every id."""
        return np.dtype(np.uint16 if len(self) <= 1 << 16 else np.uint32)

    def checked_dtype(self, dtype: npt.DTypeLike | None) -> np.dtype[Any]:
        """`dtype`, or the vocabulary's own for None. Raises ParameterError if it does not hold every id."""
        if dtype is None:
            return self.dtype
        try:
            wanted = np.dtype(dtype)
        except TypeError:
            raise ParameterError(f"dtype {dtype!r} is not known: uint16 or uint32 was expected") from None
        if wanted.kind not in "iu" or np.iinfo(wanted).max < len(self) - 1:
            raise ParameterError(f"{wanted} does not hold all ids up to {len(self) - 1}; use uint32")
        return wanted

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

    @property
    def cut_pattern(self) -> PatternSpec:
        """The pattern by which a text may be cut into parts that are encoded one by one.

        None with a normalizer, which may change a text on both sides of a place: then it is cut at special
        tokens only.
        """
        return None if self.normalizer else self.pattern

    def merge_bytes(self) -> list[tuple[bytes, bytes]]:
        """The merges as pairs of bytes, in rank order."""
        tokens = self.tokens
        return [(tokens[left], tokens[right]) for left, right, _ in self.merges.tolist()]

    def to_dict(self) -> dict[int, bytes]:
        """Id -> bytes, special tokens included."""
        return {index: token for index, token in enumerate(self.tokens) if token}

    def fingerprint(self) -> str:
        """SHA-256 of the contents in hexadecimal: equal for equal vocabularies, on every machine."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        names: list[Any] = [pattern_to_json(self.pattern), self.ties, list(self.special_tokens.items())]
        if extra := json_file.extra_fields(self):
            names.append(extra)
        merges = self._stored_merges
        digest = hashlib.sha256(json.dumps(names).encode() + b"\n")
        digest.update(np.array([len(self.tokens), len(merges)], "<i8").tobytes())
        digest.update(np.array([len(token) for token in self.tokens], "<i8").tobytes())
        digest.update(b"".join(self.tokens))
        digest.update(merges.astype("<i4").tobytes())
        return digest.hexdigest()

    def to_json(self) -> str:
        """The text of a vocabulary file (see `dask_bpe.vocabulary.json_file`)."""
        return self._json

    @cached_property
    def _json(self) -> str:
        # Kept: every job writes it, and the interpreter's lock, held for 0.1 s to make it of 50,000 tokens, is one
        # that the encoding threads wait for too.
        return json_file.to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Vocabulary:
        """The vocabulary that `to_json` wrote.

        Raises VocabularyError when it is anything else: not JSON, another format, a newer version, a field
        that is missing or of the wrong kind, contents that do not match the checksum.
        """
        return json_file.from_json(text, cls)

    def save(self, path: str | PathLike[str]) -> None:
        """Write `to_json` to `path`; the file appears whole or not at all."""
        with atomic_write(path) as file:
            file.write(self.to_json().encode("ascii"))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vocabulary:
        """Read what `save` wrote. Raises VocabularyError, naming the file, if that is not what it holds."""
        try:
            return cls.from_json(json_file.read_file(path))
        except VocabularyError as error:
            raise VocabularyError(f"{path}: {error}") from None


def _unpickle(
    values: bytes,
    lengths: npt.NDArray[np.uint32],
    merges: npt.NDArray[np.int32],
    special_tokens: tuple[tuple[str, int], ...],
    pattern: PatternSpec,
    ties: str,
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> Vocabulary:
    ends = np.cumsum(lengths, dtype=np.int64)
    bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    tokens = tuple(values[start:end] for start, end in bounds)
    return Vocabulary(tokens, merges, dict(special_tokens), pattern, ties, **extra)


def _canonical(pattern: PatternSpec) -> PatternSpec:
    """A pattern as it is kept: a sequence of splits as its pattern records it, a name or an expression as given."""
    return pattern if pattern is None or isinstance(pattern, str) else get_pattern(pattern).spec
