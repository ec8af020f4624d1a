"""What the tokens of a vocabulary are: whole characters or parts of them, letters of which script, digits ...

Two questions are answered for each token. Its *shape*, from its bytes:

    character    one whole character of UTF-8
    characters   several whole ones
    partial      a part of one character
    crossing     a part of a character, and something before or after that character
    not UTF-8    bytes that stand in no text, such as ff

and its *content*, from its whole characters: one of the kinds of `scripts.kinds_of`, where white space counts only if
there is nothing else (" the" is Latin), or "mixed"; "bytes" if it has no whole character.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.scripts import SHARED, WHITE_SPACE, kinds_of
from dask_bpe.vocabulary import Vocabulary

CHARACTER, CHARACTERS, PARTIAL, CROSSING, NO_TEXT = "character", "characters", "partial", "crossing", "not UTF-8"
SHAPES = (CHARACTER, CHARACTERS, PARTIAL, CROSSING, NO_TEXT)
MIXED, BYTES = "mixed", "bytes"

# The bytes of a character but its first one, of which it has three at most.
_LATER = bytes(range(0x80, 0xC0))
_MOST_LATER = 3


@dataclass(frozen=True, eq=False)
class TokenKinds:
    """Shape and content of the tokens that a vocabulary has learned, in the order in which it learned them.

    Attributes
    ----------
    ids : int64[n]; see `learned_tokens`.
    shapes, contents : of each, as the head of this module says.
    """

    ids: npt.NDArray[np.int64]
    shapes: tuple[str, ...]
    contents: tuple[str, ...]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> TokenKinds:
        """Those of all learned tokens."""
        ids = learned_tokens(vocabulary)
        tokens = [vocabulary.tokens[index] for index in ids.tolist()]
        return cls(ids, tuple(map(shape_of, tokens)), tuple(contents_of(tokens)))


def learned_tokens(vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    """The ids of all tokens of several bytes but special ones, in the order in which they were learned. int64[n].

    That is the order of the merges that make them, then of their ids for those that no merge makes; where ids are the
    ranks, that of the ids.
    """
    special = set(vocabulary.special_tokens.values())
    made = [] if vocabulary.ranks == "tokens" else vocabulary.merges[:, 2].tolist()
    others = [i for i, token in enumerate(vocabulary.tokens) if len(token) > 1 and i not in special]
    order = dict.fromkeys([*made, *others])
    return np.fromiter(order, np.int64, len(order))


def shape_of(token: bytes) -> str:
    """One of SHAPES."""
    rest = token.lstrip(_LATER)
    n_later = len(token) - len(rest)
    whole, beginning = rest, b""
    try:
        text = rest.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return NO_TEXT
        whole, beginning = rest[: error.start], rest[error.start :]
    if n_later > _MOST_LATER:
        return NO_TEXT
    if not n_later and not beginning:
        return CHARACTER if len(text) == 1 else CHARACTERS
    return CROSSING if whole or (n_later and beginning) else PARTIAL


def whole_characters(token: bytes) -> str:
    """The characters of which all bytes are in a token."""
    return token.decode("utf-8", "ignore")


def contents_of(tokens: Sequence[bytes]) -> list[str]:
    """The content of each token: a kind of `scripts.kinds_of`, MIXED or BYTES."""
    texts = [whole_characters(token) for token in tokens]
    kinds = kinds_of(character for text in texts for character in text)
    return [_content({kinds[character] for character in text}) for text in texts]


def _content(kinds: set[str]) -> str:
    if not kinds:
        return BYTES
    left = kinds - {WHITE_SPACE} or kinds
    left = left - {SHARED} or left
    return left.pop() if len(left) == 1 else MIXED


def is_script(content: str) -> bool:
    """Whether a content is that of letters of one script."""
    return content[:1].isupper()
