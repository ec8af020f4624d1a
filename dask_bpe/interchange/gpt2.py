"""GPT-2's pair of files: ``vocab.json`` (token -> id) and ``merges.txt`` (a merge a line, in rank order).

Both write bytes as printable characters: a printable Latin-1 character stands for its own byte, the other
68 bytes are U+0100, U+0101, ... in the order of their values, so that a space is ``Ġ``. The scheme is
`bytes_to_unicode` of OpenAI's ``encoder.py`` (https://github.com/openai/gpt-2).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike

from dask_bpe.errors import VocabularyError
from dask_bpe.interchange.expressible import check_no_gaps, check_plain, check_read_back, check_whole_tokens, refused
from dask_bpe.io.atomic import atomic_write
from dask_bpe.pretokenize import get_pattern
from dask_bpe.vocabulary import Vocabulary
from dask_bpe.vocabulary.json_file import read_file

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PRINTABLE]

CHARACTER_OF_BYTE: dict[int, str] = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(0x100 + index) for index, byte in enumerate(_OTHERS)
}
BYTE_OF_CHARACTER: dict[str, int] = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}


def read_gpt2(
    vocab_path: str | PathLike[str],
    merges_path: str | PathLike[str],
    special_tokens: Sequence[str] = ("<|endoftext|>",),
    *,
    pattern: str | None = "gpt2",
) -> Vocabulary:
    """The vocabulary in the two files; special tokens that are not in it get the next ids.

    The files do not say how ties were broken; every merge made a new id, so `ties` is "ids".
    Raises VocabularyError, naming the file and the place, if one of them is missing, damaged or does not
    fit the other.
    """
    try:
        vocab = _parse_vocab(read_file(vocab_path), special_tokens)
    except (VocabularyError, ValueError, RecursionError) as error:
        raise VocabularyError(f"{vocab_path}: {error}") from None
    try:
        merges = _parse_merges(read_file(merges_path))
    except (VocabularyError, ValueError) as error:
        raise VocabularyError(f"{merges_path}: {error}") from None
    try:
        return Vocabulary.from_tokens(vocab, merges, special_tokens, pattern=pattern, ties="ids")
    except VocabularyError as error:
        raise VocabularyError(f"{vocab_path} with {merges_path}: {error}") from None


def write_gpt2(vocabulary: Vocabulary, vocab_path: str | PathLike[str], merges_path: str | PathLike[str]) -> None:
    """Write the two files, each whole or not at all.

    They hold neither the pattern, which readers take for GPT-2's, nor which tokens are special.

    Raises VocabularyError, before it writes, if readers would get other ids: another pattern, a normalizer, two
    tokens of the same text, ...
    """
    name = "vocab.json with merges.txt"
    check_plain(vocabulary, name)
    if get_pattern(vocabulary.pattern).name != "gpt2":
        raise refused(name, f"its pattern is {str(vocabulary.pattern)[:60]!r}, and readers split as GPT-2 does")
    check_no_gaps(vocabulary, name)
    check_whole_tokens(vocabulary, name)
    specials = {index: text for text, index in vocabulary.special_tokens.items()}
    merging = {index for row in vocabulary.merges.tolist() for index in row}
    ids: dict[str, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        text = _written(token)
        if specials.get(index, text) != text and index in merging:
            raise refused(name, f"the special token {specials[index]!r} takes part in merges")
        text = specials.get(index, text)
        if ids.setdefault(text, index) != index:
            raise refused(name, f"ids {ids[text]} and {index} are both written {text!r}")
    again = Vocabulary.from_tokens(vocabulary.to_dict(), vocabulary.merge_bytes(), list(vocabulary.special_tokens))
    check_read_back(vocabulary, again)
    merges = [f"{_written(left)} {_written(right)}" for left, right in vocabulary.merge_bytes()]
    with atomic_write(vocab_path) as vocab_file, atomic_write(merges_path) as merges_file:
        vocab_file.write(json.dumps(ids, ensure_ascii=False).encode() + b"\n")
        merges_file.write("\n".join(["#version: 0.2", *merges, ""]).encode())


def _written(token: bytes) -> str:
    return "".join(map(CHARACTER_OF_BYTE.__getitem__, token))


def _parse_vocab(data: bytes, special_tokens: Sequence[str]) -> dict[int, bytes]:
    content = json.loads(data)
    if not isinstance(content, dict):
        raise VocabularyError('an object {"!": 0, ...} of token and id was expected')
    vocab: dict[int, bytes] = {}
    for token, index in content.items():
        if not isinstance(index, int) or index in vocab:
            raise VocabularyError(f"token {token[:40]!r} has {index!r}, which is not an id, or the same id again")
        vocab[index] = token.encode("utf-8") if token in special_tokens else _bytes(token)
    return vocab


def _parse_merges(data: bytes) -> list[tuple[bytes, bytes]]:
    lines = [line.removesuffix("\r") for line in data.decode("utf-8").split("\n")]
    merges = []
    for number, line in enumerate(lines, 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        parts = line.split(" ")
        if len(parts) != 2:
            raise VocabularyError(f"line {number}: {line[:40]!r} is not two tokens with a space between them")
        merges.append((_bytes(parts[0]), _bytes(parts[1])))
    return merges


def _bytes(token: str) -> bytes:
    try:
        return bytes(map(BYTE_OF_CHARACTER.__getitem__, token))
    except KeyError as error:
        raise VocabularyError(
            f"token {token[:40]!r} holds {error.args[0]!r}, which stands for no byte; "
            "if it is a special token, name it as one"
        ) from None
