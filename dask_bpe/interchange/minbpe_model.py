"""minbpe's ``.model`` (https://github.com/karpathy/minbpe), a text file:

    minbpe v1
    the pattern         empty for its BasicTokenizer, which does not split
    2                   how many special tokens
    <|endoftext|> 512   text and id of each
    101 32              the merges: two ids, which become 256, 257, ...

Ids 0 to 255 are the bytes. minbpe's RegexTokenizer reads the pattern, but splits by the one that it was made with:
``RegexTokenizer(pattern)``.
"""

from __future__ import annotations

import re
from itertools import count
from os import PathLike

import numpy as np
import regex

from dask_bpe.errors import ParameterError, VocabularyError
from dask_bpe.interchange import dialects
from dask_bpe.interchange.expressible import (
    check_plain,
    check_whole_tokens,
    divided_merges,
    ordinary_tokens,
    refused,
    shorter_first,
)
from dask_bpe.interchange.tiktoken_ranks import pattern_for
from dask_bpe.io.atomic import atomic_write
from dask_bpe.pretokenize import get_pattern
from dask_bpe.vocabulary import Vocabulary
from dask_bpe.vocabulary.ids import as_id
from dask_bpe.vocabulary.json_file import read_file

FIRST_LINE = "minbpe v1"
_NAME = "minbpe"
_NUMBER = "[0-9]{1,30}"


def read_minbpe(path: str | PathLike[str]) -> Vocabulary:
    """The vocabulary in a ``.model`` file. Ids that minbpe leaves out before its special tokens stay free.

    Raises VocabularyError, naming the file and the line, when it is damaged or of another kind.
    """
    try:
        return _parsed(read_file(path).decode("utf-8"))
    except (UnicodeDecodeError, VocabularyError) as error:
        raise VocabularyError(f"{path}: {error}") from None


def _parsed(text: str) -> Vocabulary:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[0].strip() != FIRST_LINE:
        raise VocabularyError(f"line 1 is {lines[0][:40]!r}; {FIRST_LINE!r} was expected")
    if len(lines) < 3 or not re.fullmatch(_NUMBER, lines[2].strip()):
        raise VocabularyError("line 3 is not the number of special tokens; was the file cut short?")
    pattern = lines[1].strip()
    first_merge = 3 + int(lines[2])
    if len(lines) < first_merge:
        raise VocabularyError(
            f"line 3 announces {int(lines[2])} special tokens, and {len(lines) - 3} lines follow; "
            "was the file cut short?"
        )
    specials: dict[str, int] = {}
    for number, line in enumerate(lines[3:first_merge], 4):
        parts = line.split()
        if len(parts) != 2 or not re.fullmatch(_NUMBER, parts[1]) or parts[0] in specials:
            raise VocabularyError(f"line {number}: {line[:40]!r} is not a special token and its id")
        specials[parts[0]] = int(parts[1])
    if pair := shorter_first(list(specials)):
        raise VocabularyError(
            f"special token {pair[0]!r} stands before {pair[1]!r}, and minbpe takes the shorter one in a text; "
            "the longer one must come first"
        )
    return _built(lines[first_merge:], first_merge + 1, specials, pattern)


def _built(lines: list[str], number: int, specials: dict[str, int], pattern: str) -> Vocabulary:
    tokens = {index: bytes([index]) for index in range(256)}
    rows: list[tuple[int, int, int]] = []
    for place, line in enumerate(lines, number):
        if not line.strip():
            continue
        parts = line.split()
        if len(parts) != 2 or not all(re.fullmatch(_NUMBER, part) for part in parts):
            raise VocabularyError(f"line {place}: {line[:40]!r} is not a merge of two ids")
        left, right = map(int, parts)
        product = len(tokens)
        if max(left, right) >= product:
            raise VocabularyError(f"line {place}: merge {line!r} refers to id {max(left, right)}, which comes later")
        tokens[product] = tokens[left] + tokens[right]
        rows.append((left, right, product))
    for text, index in specials.items():
        if index in tokens:
            raise VocabularyError(f"special token {text!r} has id {index}, which is that of {tokens[index]!r} too")
        tokens[as_id(index, text)] = text.encode()
    spelled = [tokens.get(index, b"") for index in range(max(tokens) + 1)]
    spec = dialects.plain_regex(pattern) if pattern else None
    return Vocabulary(tuple(spelled), np.array(rows, np.int32).reshape(-1, 3), specials, spec, "ids")


def write_minbpe(vocabulary: Vocabulary, path: str | PathLike[str]) -> None:
    """Write a ``.model`` file.

    Raises
    ------
    VocabularyError
        Before anything is written, if minbpe would give other ids: bytes that are not ids 0 to 255, merges that do
        not make ids 256, 257, ... in rank order, ...
    ParameterError
        The name does not end with ".model"; minbpe asks for that.
    """
    if not str(path).endswith(".model"):
        raise ParameterError(f'{path} does not end with ".model", and minbpe reads only names that do')
    check_plain(vocabulary, _NAME)
    ids = ordinary_tokens(vocabulary, _NAME)
    strange = next((byte for byte in range(256) if ids[bytes([byte])] != byte), None)
    if strange is not None:
        raise refused(_NAME, f"the byte 0x{strange:02x} has id {ids[bytes([strange])]} and not {strange}")
    rows = divided_merges(vocabulary, ids)
    for (_, _, product), expected in zip(rows, count(256), strict=False):
        if product != expected:
            raise refused(_NAME, f"the merge that makes id {product} is where that of id {expected} was expected")
    if len(rows) + 256 != len(ids):
        unmade = next(index for index in ids.values() if index >= 256 + len(rows))
        raise refused(_NAME, f"no merge makes id {unmade}, {vocabulary.tokens[unmade]!r}")
    check_whole_tokens(vocabulary, _NAME)
    lines = [FIRST_LINE, _pattern_line(vocabulary), *_special_lines(vocabulary)]
    lines += [f"{left} {right}" for left, right, _ in rows]
    text = "\n".join(lines).encode() + b"\n"
    with atomic_write(path) as file:
        file.write(text)


def _pattern_line(vocabulary: Vocabulary) -> str:
    if not get_pattern(vocabulary.pattern).splits and not vocabulary.special_tokens:
        return ""
    pattern = pattern_for(vocabulary, _NAME, "regex")
    if pattern != pattern.strip():
        pattern = f"(?:{pattern})"
    if len(pattern.splitlines()) > 1:
        raise refused(_NAME, "its pattern has a line end, and there is place for one line")
    if regex.compile(pattern).groups:
        raise refused(_NAME, "its pattern has a group in round brackets that captures; write (?:...)")
    return pattern


def _special_lines(vocabulary: Vocabulary) -> list[str]:
    specials = list(vocabulary.special_tokens)
    # minbpe takes the first that fits, not the longest.
    if shorter_first(specials):
        specials.sort(key=len, reverse=True)
    for text in specials:
        if len(text.split()) != 1 or text != text.strip():
            raise refused(_NAME, f"the special token {text!r} holds white space")
    return [str(len(specials)), *(f"{text} {vocabulary.special_tokens[text]}" for text in specials)]
