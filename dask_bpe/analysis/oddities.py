"""Tokens that a vocabulary is not helped by: doubles, ones that cannot appear, ones that no text uses, mojibake."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import regex

from dask_bpe.analysis.token_kinds import whole_characters
from dask_bpe.analysis.usage import TokenUsage
from dask_bpe.encoder import Encoder
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Oddity:
    """A kind of odd tokens.

    Attributes
    ----------
    name : of the kind.
    meaning : what such a token is.
    ids : int64[n], ascending.
    """

    name: str
    meaning: str
    ids: Int64s

    def __len__(self) -> int:
        return len(self.ids)


def oddities_of(vocabulary: Vocabulary, usage: TokenUsage | None = None, rare: int = 100) -> tuple[Oddity, ...]:
    """All kinds of odd tokens; those about a corpus only if its usage is given.

    rare : tokens used less often than that are one kind.
    """
    found = [
        Oddity("duplicate", "another id spells the same bytes", duplicates(vocabulary)),
        Oddity("unreachable", "its own bytes, alone, are encoded by other ids", unreachable(vocabulary)),
        Oddity("mojibake", "UTF-8 that was read as Windows-1252 or Latin-1", mojibake(vocabulary)),
    ]
    if usage is not None:
        found += [
            Oddity("unused", "the corpus never uses it (bytes aside)", _of_several_bytes(vocabulary, usage, 1)),
            Oddity("rare", f"the corpus uses it less than {rare} times", _of_several_bytes(vocabulary, usage, rare)),
        ]
    return tuple(found)


def duplicates(vocabulary: Vocabulary) -> Int64s:
    """Ids whose bytes another id spells too, special tokens included. int64[n], ascending."""
    by_bytes: dict[bytes, list[int]] = {}
    for index, token in enumerate(vocabulary.tokens):
        if token:
            by_bytes.setdefault(token, []).append(index)
    return _ids(index for ids in by_bytes.values() if len(ids) > 1 for index in ids)


def unreachable(vocabulary: Vocabulary) -> Int64s:
    """Ids, special ones left out, whose bytes, as one pre-token, are encoded as anything but that id. int64[n].

    Such a token is in no encoding at all: what is merged within its bytes does not depend on what stands around them.
    (Vocabularies with `whole_tokens` aside, where a token may be met only alone.) Whether the pattern ever leaves the
    bytes of a token together is another question.
    """
    special = set(vocabulary.special_tokens.values())
    ids = _ids(index for index, token in enumerate(vocabulary.tokens) if token and index not in special)
    texts = Ragged.from_list(vocabulary.tokens[index] for index in ids.tolist())
    encoder = Encoder(replace(vocabulary, pattern=None, normalizer=()))
    encoded, bounds = encoder.encode_segments(texts.values, texts.offsets[:-1], texts.offsets[1:])
    reached = (np.diff(bounds) == 1) & (encoded[bounds[:-1]] == ids)
    return np.compress(~reached, ids)


# What stands for the bytes 80 to BF where they are read as Windows-1252 or Latin-1.
_LATER = "[\x80-\xbf" + bytes(set(range(0x80, 0xA0)) - {0x81, 0x8D, 0x8F, 0x90, 0x9D}).decode("cp1252") + "]"
# Two bytes by their first one, of which Â and Ã are seldom met elsewhere, and of others two in a row; three; four; and
# what is left of text that was spoilt more than once.
_MOJIBAKE = regex.compile(
    f"[ÂÃ]{_LATER}|(?:[\xc4-\xdf]{_LATER}){{2}}|[\xe0-\xef]{_LATER}{{2}}|[\xf0-\xf4]{_LATER}{{3}}|[ÂÃ]{{2}}"
)


def is_mojibake(text: str) -> bool:
    """Whether a text looks like UTF-8 that was read as Windows-1252 or Latin-1: "Ã©" for "é", "â€™" for "’", "ÃÂ".

    A rule of thumb: Â or Ã before a character that stands for a later byte (80 to BF); two pairs of another first byte
    and a later one; a first byte of three or four with all its later ones; Â and Ã side by side.
    """
    return _MOJIBAKE.search(text) is not None


def mojibake(vocabulary: Vocabulary) -> Int64s:
    """Ids of the tokens whose whole characters look so. int64[n], ascending."""
    special = set(vocabulary.special_tokens.values())
    tokens = enumerate(vocabulary.tokens)
    return _ids(i for i, token in tokens if i not in special and is_mojibake(whole_characters(token)))


def _of_several_bytes(vocabulary: Vocabulary, usage: TokenUsage, times: int) -> Int64s:
    """Tokens that are used less often than that, without the bytes, which are there for any text."""
    return _ids(index for index in usage.used_less_than(times).tolist() if len(vocabulary.tokens[index]) > 1)


def _ids(found: Iterable[int]) -> Int64s:
    return np.array(sorted(found), np.int64)
