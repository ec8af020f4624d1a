"""What a trained tokenizer knows: the bytes of every id, the merges in rank order, the special tokens.

A vocabulary file is one JSON object, a field a line, ASCII, the same bytes for the same vocabulary:

    format, version   "dask_bpe.vocabulary", 1; 2 if there is a field of the second table
    sha256            `Vocabulary.fingerprint`, the checksum of all that follows
    pattern, ties     how text is split; how ties were broken in training
    special_tokens    {text: id} in the order given
    tokens            base64 of the bytes of ids 0, 1, 2, ...; "" for an id that no token has
    merges            [left id, right id, resulting id] in rank order; not there if `ranks` is "tokens"

and before the tokens, where they are not what they are by default (what each means: `Vocabulary`):

    normalizer        [[step, argument, ...], ...]
    added_rules       {text: [rule, ...]}
    template          [[id, ...], [id, ...]]
    whole_tokens      true
    ranks             "tokens"

A pattern that is a sequence of splits is a list of [regex, behavior, invert].
"""

from __future__ import annotations

import binascii
import hashlib
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
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
from dask_bpe.normalizer import checked_steps
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.pretokenize.patterns import pattern_from_json, pattern_to_json
from dask_bpe.ragged import Ragged

FORMAT = "dask_bpe.vocabulary"
# A file has the lowest version that says all: plain vocabularies are read by every release.
PLAIN_VERSION, VERSION = 1, 2
TIE_RULES = ("bytes", "ids", "huggingface", "first")
RANKS = ("merges", "tokens")

Template = tuple[tuple[int, ...], tuple[int, ...]]

# A larger id is taken for a mistake: every id below it costs memory, be it a token or not.
_LARGEST_ID = (1 << 26) - 1
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
        "merges": the rank of a merge is its row. "tokens", the rule of tiktoken: any two neighbours whose bytes
        joined are a token, not a special one, merge; the lowest id first, the leftmost of equal ones. `merges`
        are then all ways to divide a token into two, by its id and the place where it is divided.

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
        _check_tokens(self.tokens)
        if self.ranks == "tokens":
            merges = _checked_divisions(self.tokens, self.special_tokens, merges)
        else:
            _check_merges(self.tokens, merges)
        merges.flags.writeable = False
        self._set("merges", merges)
        specials = SpecialTokens(tuple(self.special_tokens), self.added_rules)
        _check_special_tokens(self.tokens, self.special_tokens, specials)
        self._set("added_rules", MappingProxyType(dict(specials.rules)))
        self._set("template", _checked_template(self.template, self.tokens))

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
        tokens = _with_gaps(vocab) if gaps else _contiguous(vocab)
        if isinstance(special_tokens, Mapping):
            known = {index: token for index, token in enumerate(tokens) if token}
            known = _with_specials(known, special_tokens)
            tokens = _with_gaps(known) if gaps else _contiguous(known)
            specials, lowest = dict(special_tokens), _lowest_ids(tokens, special_tokens.values())
        else:
            specials, lowest = _find_specials(tokens, SpecialTokens(special_tokens))
        return cls(tuple(tokens), _merge_ids(lowest, merges), specials, pattern, ties, **fields)

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
        tokens: dict[int, bytes] = {}
        for token, rank in ranks.items():
            index = _as_id(rank, token)
            if index in tokens:
                raise VocabularyError(
                    f"rank {index} is given to {_shown(tokens[index])} and to {_shown(token)}: each needs its own"
                )
            tokens[index] = token
        for text, special in special_tokens.items():
            index = _as_id(special, text)
            if index in tokens:
                raise VocabularyError(
                    f"special token {text!r} has id {index}, which is the rank of {_shown(tokens[index])}: "
                    "leave one of them out, or give it an id of its own"
                )
        spelled = tuple(_with_gaps(_with_specials(tokens, special_tokens)))
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
        extra = self._extra()
        state = (b"".join(self.tokens), lengths, self._stored_merges, texts, self.pattern, self.ties)
        return _unpickle, (*state, extra) if extra else state

    @property
    def _stored_merges(self) -> npt.NDArray[np.int32]:
        """The merges that cannot be derived."""
        return self.merges if self.ranks == "merges" else _NO_MERGES

    def _extra(self) -> dict[str, Any]:
        """The fields that plain vocabularies do without, where they are not the default: as JSON has them."""
        rules = {text: sorted(self.added_rules[text]) for text in self.special_tokens if text in self.added_rules}
        extra = {
            "normalizer": [list(step) for step in self.normalizer],
            "added_rules": rules,
            "template": [list(ids) for ids in self.template] if any(self.template) else [],
            "whole_tokens": self.whole_tokens,
            "ranks": "" if self.ranks == "merges" else self.ranks,
        }
        return {name: value for name, value in extra.items() if value}

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

    @property
    def _version(self) -> int:
        plain = not self._extra() and not isinstance(self.pattern, tuple) and all(self.tokens)
        return PLAIN_VERSION if plain else VERSION

    @cached_property
    def _fingerprint(self) -> str:
        names: list[Any] = [pattern_to_json(self.pattern), self.ties, list(self.special_tokens.items())]
        if extra := self._extra():
            names.append(extra)
        merges = self._stored_merges
        digest = hashlib.sha256(json.dumps(names).encode() + b"\n")
        digest.update(np.array([len(self.tokens), len(merges)], "<i8").tobytes())
        digest.update(np.array([len(token) for token in self.tokens], "<i8").tobytes())
        digest.update(b"".join(self.tokens))
        digest.update(merges.astype("<i4").tobytes())
        return digest.hexdigest()

    def to_json(self) -> str:
        """The text of a vocabulary file (see the head of this module)."""
        fields: dict[str, Any] = {
            "format": FORMAT,
            "version": self._version,
            "sha256": self.fingerprint(),
            "pattern": pattern_to_json(self.pattern),
            "ties": self.ties,
            "special_tokens": dict(self.special_tokens),
            **self._extra(),
            "tokens": [binascii.b2a_base64(token, newline=False).decode() for token in self.tokens],
        }
        if self.ranks == "merges":
            fields["merges"] = self.merges.tolist()
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
        if fields.get("version") not in (PLAIN_VERSION, VERSION):
            raise VocabularyError(
                f"vocabulary of version {fields.get('version')!r}, and this dask_bpe reads {PLAIN_VERSION} "
                f"to {VERSION}: a newer release may read it"
            )
        vocabulary = cls._from_fields(fields)
        if vocabulary.fingerprint() != fields.get("sha256") or vocabulary._version != fields["version"]:
            raise VocabularyError(
                "damaged vocabulary: its contents do not match its checksum; it was changed or cut after it was written"
            )
        return vocabulary

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Vocabulary:
        try:
            pattern = _pattern_from_json(fields["pattern"])
            ties, specials = fields["ties"], dict(fields["special_tokens"])
            extra = {name: fields[name] for name in _EXTRA if name in fields}
            tokens = tuple(binascii.a2b_base64(token, strict_mode=True) for token in fields["tokens"])
            merges = _NO_MERGES if extra.get("ranks") == "tokens" else np.array(fields["merges"], np.int32)
            return cls(tokens, merges, specials, pattern, ties, **extra)
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


def _pattern_from_json(value: Any) -> PatternSpec:
    if not (value is None or isinstance(value, str | list)):
        raise TypeError(f"pattern is {value!r}")
    return pattern_from_json(value) if isinstance(value, list) else value


def _as_id(value: object, whose: object) -> int:
    """`value` as an id; VocabularyError, naming the token or the text of the special token, if it is none."""
    if type(value) is int and 0 <= value <= _LARGEST_ID:
        return value
    try:
        index = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        index = -1
    if not 0 <= index <= _LARGEST_ID:
        name = f"special token {whose!r}" if isinstance(whose, str) else repr(whose)[:60]
        raise VocabularyError(f"{name} has id {value!r}: a whole number from 0 to {_LARGEST_ID} was expected")
    return index


def _with_gaps(vocab: Mapping[int, bytes]) -> list[bytes]:
    """The bytes of ids 0, 1, 2, ... up to the largest, b"" for those that are not in `vocab`."""
    tokens = [b""] * (max((_as_id(index, token) for index, token in vocab.items()), default=-1) + 1)
    for index, token in vocab.items():
        if not isinstance(token, bytes) or not token:
            raise _no_bytes(index, token)
        tokens[index] = token
    return tokens


def _with_specials(tokens: Mapping[int, bytes], special_tokens: Mapping[str, int]) -> dict[int, bytes]:
    """The tokens, and the special tokens at their ids where nothing is."""
    checked = SpecialTokens(tuple(special_tokens))
    found = dict(tokens)
    for text, token in zip(checked.tokens, checked.encoded, strict=True):
        index = _as_id(special_tokens[text], text)
        found.setdefault(index, token)
    return found


def _find_specials(tokens: list[bytes], checked: SpecialTokens) -> tuple[dict[str, int], dict[bytes, int]]:
    """Ids of special tokens, new ones appended to `tokens`; and the lowest ids of bytes, special ones last."""
    lowest = dict(zip(reversed(tokens), reversed(range(len(tokens))), strict=True))
    highest = dict(zip(tokens, range(len(tokens)), strict=True))
    specials: dict[str, int] = {}
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
    return specials, lowest


def _lowest_ids(tokens: Sequence[bytes], special_ids: Iterable[int]) -> dict[bytes, int]:
    """The lowest id of bytes, that of a special token only if there is no other."""
    reserved = set(special_ids)
    lowest = {tokens[index]: index for index in sorted(reserved, reverse=True)}
    lowest.update((tokens[index], index) for index in reversed(range(len(tokens))) if index not in reserved)
    return lowest


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
            raise _no_bytes(index, token)


def _no_bytes(index: int, token: object) -> VocabularyError:
    return VocabularyError(f"id {index} has {str(token)[:40]!r} where one byte or more was expected")


def _check_tokens(tokens: tuple[bytes, ...]) -> None:
    for index, token in enumerate(tokens):
        if not isinstance(token, bytes):
            raise _no_bytes(index, token)
    if tokens and not tokens[-1]:
        raise _no_bytes(len(tokens) - 1, b"")
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
    if lengths.all() and (lengths[:, 0] + lengths[:, 1] == lengths[:, 2]).all():
        parts, products = _joined(ragged, merges[:, :2].ravel()), _joined(ragged, merges[:, 2])
        if np.array_equal(parts, products):
            return
    for rank, (left, right, product) in enumerate(merges.tolist()):
        gap = next((index for index in (left, right, product) if not tokens[index]), None)
        if gap is not None:
            raise VocabularyError(f"merge {rank} is {[left, right, product]}, and no token has the id {gap}")
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


def _checked_divisions(
    tokens: tuple[bytes, ...], special_tokens: Mapping[str, int], given: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """All ways to divide a token into two, special tokens left aside. int32[m, 3]: left, right, the token.

    Raises VocabularyError when two tokens spell the same, or when `given` is neither empty nor these.
    """
    reserved = set(special_tokens.values())
    ids: dict[bytes, int] = {}
    for index, token in enumerate(tokens):
        if token and index not in reserved and ids.setdefault(token, index) != index:
            raise VocabularyError(
                f"ids {ids[token]} and {index} both spell {_shown(token)}: where ranks are those of tokens, "
                "a token has one id"
            )
    missing = next((byte for byte in range(256) if bytes([byte]) not in ids), None)
    if missing is not None:
        raise VocabularyError(f"the byte 0x{missing:02x} has no id but that of a special token; every byte needs one")
    rows: list[int] = []
    find = ids.get
    for token, index in ids.items():
        for place in range(1, len(token)):
            # The right part first: at the first place there always is a left one.
            right = find(token[place:])
            if right is not None and (left := find(token[:place])) is not None:
                rows += (left, right, index)
    merges = np.array(rows, np.int32).reshape(-1, 3)
    if given.size and not np.array_equal(given, merges):
        raise VocabularyError(
            f"{len(given)} merges were given, and the tokens have {len(merges)} other ones: "
            "where ranks are those of tokens, leave the merges out"
        )
    return merges


def _check_special_tokens(
    tokens: tuple[bytes, ...], special_tokens: Mapping[str, int], specials: SpecialTokens
) -> None:
    for (text, index), token in zip(special_tokens.items(), specials.encoded, strict=True):
        if not 0 <= index < len(tokens) or tokens[index] != token:
            raise VocabularyError(f"special token {text!r} has id {index}, which does not spell it")


def _checked_template(template: Any, tokens: tuple[bytes, ...]) -> Template:
    try:
        before, after = (tuple(operator.index(index) for index in ids) for ids in template)
    except (TypeError, ValueError):
        raise ParameterError(
            f"template is {template!r}: two sequences of ids were expected, those before and after a text"
        ) from None
    for index in (*before, *after):
        if not 0 <= index < len(tokens) or not tokens[index]:
            raise VocabularyError(f"the template names id {index}, and no token has it")
    return before, after


# In the order in which they stand in a file.
_EXTRA = ("normalizer", "added_rules", "template", "whole_tokens", "ranks")
