"""The characters of a corpus as the initial alphabet of a training.

The 256 bytes stay, so nothing is ever unknown. A character of several bytes becomes a token by the merges that join its
bytes from the left, which come before all that is learned: U+AC00, EA B0 80, is made of EA + B0 and of that + 80. No
merge reaches beyond a character, for only its first byte begins it and only the others go on with it; so the order of
these merges among themselves does not matter, and a character of the alphabet is one token wherever it stands. Any
other one falls back to bytes, the first of which may be one token where they begin a character of the alphabet too:
U+AC01 is then [EA B0] [81]. Every such beginning is an id of its own.

SentencePiece and Hugging Face's trainer have characters of no bytes instead (``character_coverage`` and
``byte_fallback``, ``limit_alphabet`` and ``initial_alphabet``): with tokens for those, what is learned would no more be
a vocabulary of byte-level BPE, which its users read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.kernels import characters

ALPHABETS = ("bytes", "characters")


def count_characters(counts: PretokenCounts) -> dict[str, int]:
    """How often each character stands in the pre-tokens, the most frequent first, equal ones by code point."""
    found = np.zeros(0x110000, np.int64)
    characters.count_characters(counts.strings.values, counts.strings.offsets, counts.counts, found)
    points = np.flatnonzero(found)
    points = points[np.argsort(-found[points], kind="stable")]
    return {chr(point): number for point, number in zip(points.tolist(), found[points].tolist(), strict=True)}


def character_merges(
    counts: PretokenCounts, min_character_count: int = 1, max_token_length: int | None = None
) -> npt.NDArray[np.int64]:
    """The merges that make the characters of a corpus tokens, the most frequent character first.

    Parameters
    ----------
    min_character_count : a character that occurs less often is left to its bytes.
    max_token_length : so is one of more bytes.

    Returns
    -------
    int64[k, 2], pairs of symbols as `Merger` takes them: bytes by value, then the products of these merges.
    """
    symbols = {bytes([byte]): byte for byte in range(256)}
    pairs: list[tuple[int, int]] = []
    for character, number in count_characters(counts).items():
        spelled = character.encode()
        if number < min_character_count or (max_token_length is not None and len(spelled) > max_token_length):
            continue
        for end in range(2, len(spelled) + 1):
            if spelled[:end] not in symbols:
                symbols[spelled[:end]] = 256 + len(pairs)
                pairs.append((symbols[spelled[: end - 1]], spelled[end - 1]))
    return np.array(pairs, np.int64).reshape(-1, 2)


def check_alphabet(alphabet: str, min_character_count: int) -> None:
    """Refuse an alphabet that is not known. Raises ParameterError."""
    if alphabet not in ALPHABETS:
        raise ParameterError(f"alphabet is {alphabet!r}: known are {', '.join(ALPHABETS)}")
    whole_number("min_character_count", min_character_count)
    if min_character_count > 1 and alphabet == "bytes":
        raise ParameterError(
            'min_character_count is about the alphabet "characters", and that of this training is bytes'
        )
