"""Byte-pair encoding too simple to be wrong: the oracle that the tests compare with.

It recounts everything at every step, knows nothing of arrays, heaps or caches, and imports nothing of the
package it judges. Quadratic at best: give it small inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# tiktoken's openai_public.py
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"
    r"\s*[\r\n]|\s+(?!\S)|\s"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# The tokenizer.json of the models
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN3_5 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
OLMO = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)
PUNCTUATION = r"[\r\n]|\p{P}|[^\r\n\p{P}]+"
WHITESPACE = r" ?\S+|\s+(?!\S)|\s+"

# One step of cutting: a regular expression, what becomes of its matches, and whether what lies between them
# changes places with them.
Step = tuple[str, str, bool]
NAMED: dict[str, tuple[Step, ...]] = {
    "gpt2": ((GPT2, "matches", False),),
    "cl100k": ((CL100K, "matches", False),),
    "o200k": ((O200K, "matches", False),),
    "llama3": ((LLAMA3, "matches", False),),
    "qwen2": ((QWEN2, "matches", False),),
    "qwen3.5": ((QWEN3_5, "matches", False),),
    "deepseek": tuple((step, "isolated", False) for step in DEEPSEEK),
    "olmo": ((OLMO, "matches", False),),
    "starcoder": ((r"\p{N}", "isolated", False), (GPT2, "isolated", False)),
    "punctuation": ((PUNCTUATION, "matches", False),),
    "whitespace": ((WHITESPACE, "matches", False),),
    "none": (),
}
BEHAVIORS = ("matches", "isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")
TIES = ("bytes", "ids", "first", "huggingface")


@dataclass(frozen=True)
class Trained:
    """The bytes of every id, the merges `(left id, right id, resulting id)` by rank, and how they came."""

    tokens: list[bytes]
    merges: list[tuple[int, int, int]]
    log: list[tuple[int, int, int, int]]  # left id, right id, how often the pair occurs, tokens after its merge
    special_tokens: dict[str, int]
    pattern: str | None = GPT2

    def lowest_ids(self) -> dict[bytes, int]:
        """Token bytes -> the lowest id that spells them and is not special."""
        special = self.special_tokens.values()
        return {token: i for i, token in reversed([*enumerate(self.tokens)]) if i not in special}

    @property
    def merge_bytes(self) -> list[tuple[bytes, bytes]]:
        return [(self.tokens[left], self.tokens[right]) for left, right, _ in self.merges]


def characters(text: str | bytes) -> str:
    """The code points that a pattern sees: an invalid byte is one of no class, a lone surrogate is U+FFFD."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "surrogateescape")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut(text: str, special_tokens: Iterable[str]) -> list[tuple[str, bool]]:
    """The pieces of the text, each with whether it is a special token: the leftmost, then the longest."""
    pieces, start, here = [], 0, 0
    while here < len(text):
        found = max((token for token in special_tokens if text.startswith(token, here)), key=len, default="")
        if found:
            pieces += [(text[start:here], False), (found, True)]
            start = here + len(found)
        here += len(found) or 1
    return [(piece, special) for piece, special in [*pieces, (text[start:], False)] if piece]


def split(text: str, pattern: str | None) -> list[bytes]:
    """The pre-tokens of a text without special tokens."""
    pieces = [text] if pattern is None else [match[0] for match in regex.finditer(pattern, text)]
    return [piece.encode("utf-8", "surrogateescape") for piece in pieces if piece]


def parts(text: str, expression: str, invert: bool) -> list[tuple[int, int, bool]]:
    """The matches and what lies between them: where each begins and ends, and whether it is a match."""
    found, seen = [], 0
    for match in regex.finditer(expression, text):
        start, end = match.span()
        if start < end:
            found += [(seen, start, invert), (start, end, not invert)]
            seen = end
    return [part for part in [*found, (seen, len(text), invert)] if part[0] < part[1]]


def step_spans(text: str, step: Step) -> list[tuple[int, int]]:
    """Where the pieces of a text begin and end after one step, as Hugging Face's `Split` cuts it.

    "matches" is what it lacks: the matches alone.
    """
    expression, behavior, invert = step
    pieces = parts(text, expression, invert)
    if behavior in ("matches", "removed"):
        return [(start, end) for start, end, match in pieces if match == (behavior == "matches")]
    joined: list[list[tuple[int, int, bool]]] = []
    for piece in pieces:
        before, now = joined and joined[-1][-1][2], piece[2]
        joins = {
            "isolated": False,
            "contiguous": before == now,
            "merged_with_previous": now and not before,
            "merged_with_next": before and not now,
        }[behavior]
        if joined and joins:
            joined[-1].append(piece)
        else:
            joined.append([piece])
    return [(run[0][0], run[-1][1]) for run in joined]


def spans(text: str, steps: Iterable[Step]) -> list[tuple[int, int]]:
    """Where the pre-tokens begin and end, in code points: every step cuts the pieces that the one before left."""
    found = [(0, len(text))] if text else []
    for step in steps:
        found = [
            (start + begin, start + stop) for start, end in found for begin, stop in step_spans(text[start:end], step)
        ]
    return found


def split_sequence(text: str, steps: Iterable[Step]) -> list[bytes]:
    """The pre-tokens of a text without special tokens, cut step by step."""
    return [text[start:end].encode("utf-8", "surrogateescape") for start, end in spans(text, steps)]


def byte_spans(data: bytes, steps: Iterable[Step]) -> list[tuple[int, int]]:
    """Where the pre-tokens of a text begin and end, in bytes. A byte that is not UTF-8 is a code point of its own."""
    text = characters(data)
    found = spans(text, steps)
    if len(text) == len(data):
        return found
    result, seen, at = [], 0, 0
    for start, end in found:
        begin = at + len(text[seen:start].encode("utf-8", "surrogateescape"))
        seen, at = end, begin + len(text[start:end].encode("utf-8", "surrogateescape"))
        result.append((begin, at))
    return result


def count(
    documents: Iterable[str | bytes], pattern: str | None = GPT2, special_tokens: Sequence[str] = ()
) -> dict[bytes, int]:
    """How often each pre-token occurs, in the order of their first occurrence."""
    counts: Counter[bytes] = Counter()
    for document in documents:
        for piece, special in cut(characters(document), special_tokens):
            counts.update([] if special else split(piece, pattern))
    return dict(counts)


def byte_to_character() -> dict[int, str]:
    """GPT-2's printable stand-in of every byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def tie_rule(ties: str, tokens: list[bytes]) -> Callable[[list[tuple[int, int]]], tuple[int, int]]:
    """Which of the most frequent pairs is merged, of those given in the order in which they occur."""
    if ties == "first":
        return lambda pairs: pairs[0]
    if ties == "ids":
        return min
    if ties == "bytes":
        return lambda pairs: max(pairs, key=lambda pair: (tokens[pair[0]], tokens[pair[1]]))
    stand_in = byte_to_character()
    place = {byte: i for i, byte in enumerate(sorted(range(256), key=lambda byte: ord(stand_in[byte])))}
    return lambda pairs: min(pairs, key=lambda pair: [place.get(symbol, symbol) for symbol in pair])


def merged(symbols: list[int], pair: tuple[int, int], product: int) -> list[int]:
    """The symbols with every occurrence of the pair replaced, greedily from the left."""
    result: list[int] = []
    here = 0
    while here < len(symbols):
        found = tuple(symbols[here : here + 2]) == pair
        result.append(product if found else symbols[here])
        here += 2 if found else 1
    return result


def train(
    counts: Mapping[bytes, int],
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    ties: str = "bytes",
    min_frequency: int = 1,
    max_token_length: int | None = None,
    pattern: str | None = GPT2,
    given: Sequence[tuple[int, int]] = (),
) -> Trained:
    """Merge the most frequent pair of symbols again and again, counting all pairs anew each time.

    `given` are pairs of ids that are merged first, whatever the rules say.
    """
    tokens = [bytes([byte]) for byte in range(256)] + [token.encode() for token in special_tokens]
    special = {token: 256 + i for i, token in enumerate(special_tokens)}
    spelled = {tokens[byte]: byte for byte in range(256)}
    words = [(list(word), n) for word, n in counts.items()]
    choose = tie_rule(ties, tokens)
    merges, log = [], []
    while len(tokens) < vocab_size:
        pairs: Counter[tuple[int, int]] = Counter()
        for symbols, n in words:
            for pair in pairwise(symbols):
                pairs[pair] += n
        if len(merges) < len(given):
            left, right = given[len(merges)]
            most = pairs[left, right]
        else:
            longest = max_token_length or float("inf")
            pairs = Counter({p: n for p, n in pairs.items() if len(tokens[p[0]] + tokens[p[1]]) <= longest})
            most = max(pairs.values(), default=0)
            if most < max(min_frequency, 1):
                break
            left, right = choose([pair for pair, n in pairs.items() if n == most])
        product = tokens[left] + tokens[right]
        symbol = len(tokens)
        if ties in ("bytes", "huggingface"):  # symbols are their bytes: one that exists already is used again
            symbol = spelled.setdefault(product, symbol)
        if symbol == len(tokens) or ties != "huggingface":  # and only huggingface then makes no new id
            tokens.append(product)
        words = [(merged(symbols, (left, right), symbol), n) for symbols, n in words]
        merges.append((left, right, symbol))
        log.append((left, right, most, sum(len(symbols) * n for symbols, n in words)))
    return Trained(tokens, merges, log, special, pattern)


def vocabulary(
    tokens: Mapping[int, bytes], merges: Sequence[tuple[bytes, bytes]], special_tokens: Sequence[str] = ()
) -> Trained:
    """From bytes alone: a merge means the lowest ids that spell its bytes and are not special."""
    spell = [tokens[i] for i in range(len(tokens))]
    spell += [token.encode() for token in special_tokens if token.encode() not in spell]
    special = {token: spell.index(token.encode()) for token in special_tokens}
    ids = {bytes_: i for i, bytes_ in reversed(list(enumerate(spell))) if i not in special.values()}
    triples = [(ids[left], ids[right], ids[left + right]) for left, right in merges]
    return Trained(spell, triples, [], special)


def encode_pretoken(pretoken: bytes, trained: Trained) -> list[int]:
    """Merge the pair of lowest rank, the leftmost of equals, until no merge applies.

    The rank of a pair that is listed twice is its last one, as in OpenAI's ``encoder.py`` and Hugging Face's BPE.
    """
    ranks = {(left, right): rank for rank, (left, right, _) in enumerate(trained.merges)}
    ids = trained.lowest_ids()
    symbols = [ids[bytes([byte])] for byte in pretoken]
    while True:
        pairs = pairwise(symbols)
        found = [(ranks[pair], place) for place, pair in enumerate(pairs) if pair in ranks]
        if not found:
            return symbols
        rank, place = min(found)
        symbols[place : place + 2] = [trained.merges[rank][2]]


def encode(text: str | bytes, trained: Trained, special_tokens: Iterable[str] | None = None) -> list[int]:
    """The ids of a text; its special tokens are the vocabulary's unless others (or none) are given."""
    ids: list[int] = []
    known = trained.special_tokens if special_tokens is None else special_tokens
    for piece, special in cut(characters(text), known):
        if special:
            ids.append(trained.special_tokens[piece])
        else:
            for pretoken in split(piece, trained.pattern):
                ids += encode_pretoken(pretoken, trained)
    return ids
