"""What text costs in tokens: how much of it there is, how many tokens it takes, what becomes of its words.

A word is a run of letters and marks, whatever the tokenizer: so words are the same for all that are compared. A
token belongs to a word if it holds a byte of it, also when it begins with the space before. Where a script has no
spaces, as Chinese and Thai, such a run is a phrase. Tokens for a word are the "fertility", words of several tokens the
"continued words" of Rust et al., How Good is Your Tokenizer? (ACL 2021).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dask_bpe.decoding import TokenTable
from dask_bpe.encoder import slices
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.tokenizer import Tokenizer

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

WORD = r"[\p{L}\p{M}]+"
# The pattern by which text may be cut so that no word is.
WORDS = r"[\p{L}\p{M}]+|[^\p{L}\p{M}]"


@dataclass(frozen=True)
class Amount:
    """How much text: bytes, characters (code points) and documents."""

    n_bytes: int = 0
    n_characters: int = 0
    n_documents: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.n_bytes + other.n_bytes,
            self.n_characters + other.n_characters,
            self.n_documents + other.n_documents,
        )


@dataclass(frozen=True)
class Cost:
    """What text costs with one tokenizer.

    Attributes
    ----------
    n_tokens : tokens.
    n_words, n_single, n_word_tokens : words, those that lie in one token, tokens of all words: one that holds several
        words counts for each. Words of the text that the tokens spell, which a normalizer may have changed.
    n_over : for each context length, documents of more tokens.
    """

    n_tokens: int = 0
    n_words: int = 0
    n_single: int = 0
    n_word_tokens: int = 0
    n_over: tuple[int, ...] = ()

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.n_tokens + other.n_tokens,
            self.n_words + other.n_words,
            self.n_single + other.n_single,
            self.n_word_tokens + other.n_word_tokens,
            tuple(one + another for one, another in zip(self.n_over, other.n_over, strict=True)),
        )


@dataclass(frozen=True)
class Part:
    """What was measured of a part of a corpus, to be joined to its neighbours.

    Attributes
    ----------
    amount, costs : the text, and the cost with each tokenizer. Documents are those that lie in it as a whole.
    head : tokens (by tokenizer) of the document that began before it; None if it begins with a document.
    tail : tokens of the document that goes on after it; None if it ends with a document.
    through : the head is no end of a document: all of the part lies in one. There is no tail then.
    """

    amount: Amount
    costs: tuple[Cost, ...]
    head: tuple[int, ...] | None = None
    tail: tuple[int, ...] | None = None
    through: bool = False


def join(parts: Iterable[Part], n_tokenizers: int, contexts: Sequence[int]) -> tuple[Amount, tuple[Cost, ...]]:
    """All of a corpus from its parts in their order; what is open at its end ends there."""
    amount, costs = Amount(), [Cost(n_over=(0,) * len(contexts)) for _ in range(n_tokenizers)]
    carried: tuple[int, ...] | None = None

    def end(tokens: Sequence[int]) -> None:
        nonlocal amount
        amount += Amount(n_documents=1)
        for number, n in enumerate(tokens):
            costs[number] += Cost(n_over=tuple(int(n > most) for most in contexts))

    for part in parts:
        amount += part.amount
        costs = [one + other for one, other in zip(costs, part.costs, strict=True)]
        if part.head is not None:
            carried = tuple(map(sum, zip(part.head, carried or (0,) * n_tokenizers, strict=True)))
        if part.through:
            continue
        if carried is not None:
            end(carried)
        carried = part.tail
    if carried is not None:
        end(carried)
    return amount, tuple(costs)


class Meter:
    """Measures a part of a corpus, content by content, with several tokenizers.

    Parameters
    ----------
    tokenizers : no text is a special token to them.
    contexts : lengths in tokens that documents are compared with.
    """

    def __init__(self, tokenizers: Sequence[Tokenizer], contexts: Sequence[int]) -> None:
        self._spellings = [_spelling_of(tokenizer) for tokenizer in tokenizers]
        self._words = Scanner(get_pattern(WORD))
        self._contexts = np.array(contexts, np.int64)
        self._amount = Amount()
        self._costs = [Cost(n_over=(0,) * len(contexts)) for _ in tokenizers]
        # Tokens of the document that is not at its end; whether there is one, and whether it began before the part.
        self._open = np.zeros(len(tokenizers), np.int64)
        self._is_open = self._began_before = False
        self._head: tuple[int, ...] | None = None
        self._empty = True

    def add(self, text: Text, segments: Int64s, ends: npt.NDArray[np.bool_], *, continues: bool = False) -> None:
        """Measure a content.

        Parameters
        ----------
        text : uint8[n], UTF-8.
        segments : int64[2, k], bounds of pieces of documents.
        ends : bool[k], whether a document ends with each.
        continues : whether the first belongs to a document that began before this content.
        """
        if self._empty:
            self._empty, self._began_before, self._is_open = False, continues, continues
        tokens = np.zeros((len(self._costs), segments.shape[1]), np.int64)
        for first, last in slices(segments[0], segments[1]):
            start, end = int(segments[0, first]), int(segments[1, last - 1])
            tokens[:, first:last] = self._measure(text[start:end], segments[:, first:last] - start)
        self._end_documents(tokens, ends, bool(segments.shape[1] and segments[1, -1] > segments[0, -1]))

    def _measure(self, text: Text, segments: Int64s) -> Int64s:
        """Measure text but for its documents; the tokens of each segment, int64[tokenizers, k]."""
        lengths = segments[1] - segments[0]
        is_first = (text & 0xC0) != 0x80
        n_characters = int(np.count_nonzero(is_first))
        # What stands between the segments.
        for end, start in zip(segments[1, :-1].tolist(), segments[0, 1:].tolist(), strict=True):
            n_characters -= int(np.count_nonzero(is_first[end:start]))
        self._amount += Amount(int(lengths.sum()), n_characters)
        words = spans(self._words, text, segments)
        tokens = np.zeros((len(self._costs), len(lengths)), np.int64)
        for number, spelling in enumerate(self._spellings):
            tokens[number], in_words = spelling.measure(text, segments, words, self._words)
            self._costs[number] += Cost(int(tokens[number].sum()), *in_words, (0,) * len(self._contexts))
        return tokens

    def _end_documents(self, tokens: Int64s, ends: npt.NDArray[np.bool_], last_has_text: bool) -> None:
        """Count the documents that end with pieces of so many tokens, and carry what is open. int64[tokenizers, k]."""
        sums = np.concatenate((np.zeros((len(tokens), 1), np.int64), np.cumsum(tokens, axis=1)), axis=1)
        at = np.flatnonzero(ends) + 1
        documents = np.diff(sums[:, at], axis=1, prepend=0)
        if not len(at):
            self._open += sums[:, -1]
            self._is_open |= last_has_text
            return
        documents[:, 0] += self._open
        self._open = sums[:, -1] - sums[:, at[-1]]
        self._is_open = last_has_text and not ends[-1]
        if self._began_before and self._head is None:
            self._head = tuple(documents[:, 0].tolist())
            documents = documents[:, 1:]
        self._amount += Amount(n_documents=documents.shape[1])
        over = (documents[:, :, None] > self._contexts).sum(axis=1)
        for number, counts in enumerate(over.tolist()):
            self._costs[number] += Cost(n_over=tuple(counts))

    def part(self) -> Part:
        """What was measured."""
        tail = tuple(self._open.tolist()) if self._is_open else None
        if self._began_before and self._head is None:
            return Part(self._amount, tuple(self._costs), tail, through=True)
        return Part(self._amount, tuple(self._costs), self._head, tail)


class Spelling:
    """A tokenizer, and where in a text its tokens stand."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._encoder = tokenizer.encoder
        self._normalizes = bool(tokenizer.vocabulary.normalizer)
        self._table = TokenTable(tokenizer.vocabulary.tokens)

    def measure(
        self, text: Text, segments: Int64s, words: Int64s, scanner: Scanner
    ) -> tuple[Int64s, tuple[int, int, int]]:
        """Tokens of each segment, and the figures of words: how many, of one token, tokens of all.

        words : int64[2, n], those of the text; `scanner` finds them where the tokens spell another text.
        """
        ids, bounds = self._encoder.encode_segments(text, segments[0], segments[1])
        counts = np.diff(bounds)
        ends = np.cumsum(self._table.lengths[ids], dtype=np.int64)
        stops = np.concatenate((np.zeros(1, np.int64), ends))[bounds[1:]]
        if self._normalizes or not np.array_equal(np.diff(stops, prepend=0), segments[1] - segments[0]):
            text = np.frombuffer(self._table.decode(ids), np.uint8)
            segments = np.stack((np.concatenate((np.zeros(1, np.int64), stops[:-1])), stops))
            words = spans(scanner, text, segments)
        # Where each token begins, in the text: the segments have something between them.
        shift = segments[1] - stops
        begins = np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(ids)] + np.repeat(shift, counts)
        return counts, (words.shape[1], *_tokens_of(words, begins))


@lru_cache(maxsize=16)
def _spelling_of(tokenizer: Tokenizer) -> Spelling:
    """The one of this process: the table of a large vocabulary takes longer than a small text."""
    return Spelling(tokenizer)


def spans(scanner: Scanner, text: Text, segments: Int64s) -> Int64s:
    """All that a scanner finds: int64[2, n]."""
    found = [batch.spans[:, : batch.n_spans].copy() for batch in scanner.scan(text, segments)]
    return np.concatenate(found, axis=1) if found else np.zeros((2, 0), np.int64)


def _tokens_of(words: Int64s, begins: Int64s) -> tuple[int, int]:
    """Words that lie in one token, and tokens that words lie in, all together."""
    last = np.searchsorted(begins, words[1] - 1, side="right")
    tokens = last - np.searchsorted(begins, words[0], side="right") + 1
    return int(np.count_nonzero(tokens == 1)), int(tokens.sum())
