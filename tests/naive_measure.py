"""What text costs in tokens, counted one character and one token at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex


@dataclass
class Naive:
    """Figures of a corpus with one tokenizer."""

    n_bytes: int = 0
    n_characters: int = 0
    n_documents: int = 0
    n_tokens: int = 0
    n_words: int = 0
    n_single: int = 0
    n_word_tokens: int = 0
    n_over: tuple[int, ...] = ()


def measured(
    documents: Sequence[str], tokens_of: Callable[[str], Sequence[bytes]], contexts: Sequence[int] = ()
) -> Naive:
    """The figures; `tokens_of` gives the bytes of the tokens of a document."""
    figures = Naive(n_over=(0,) * len(contexts))
    for document in documents:
        tokens = tokens_of(document)
        owner = [number for number, token in enumerate(tokens) for _ in token]
        spelled = b"".join(tokens).decode()
        figures.n_documents += 1
        figures.n_bytes += len(document.encode())
        figures.n_characters += len(document)
        figures.n_tokens += len(tokens)
        figures.n_over = tuple(n + (len(tokens) > most) for n, most in zip(figures.n_over, contexts, strict=True))
        for word in regex.finditer(r"[\p{L}\p{M}]+", spelled):
            start, end = (len(spelled[:at].encode()) for at in word.span())
            holders = len(set(owner[start:end]))
            figures.n_words += 1
            figures.n_single += holders == 1
            figures.n_word_tokens += holders
    return figures
