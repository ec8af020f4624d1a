"""Text to be encoded: several files of documents, each of them known by what it holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dask_bpe

END = "<|endoftext|>"
_ALICE = Path(dask_bpe.__file__).parent / "data" / "alice.txt"
# Of the corpus. A small file among others, and one whose last document has no end.
_SHARES = (0.45, 0.3, 0.2, 0.001, 0.049)


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk.

    Attributes
    ----------
    folder : its files, text-0.txt and so on.
    vocabulary : a tokenizer that was trained on some of it.
    documents : its documents in order; no two are equal.
    """

    folder: Path
    vocabulary: Path
    documents: Sequence[str]


def make(folder: Path, n_bytes: int, seed: int) -> Corpus:
    """Files of about so many bytes together; the same for the same seed."""
    draw = random.Random(seed)
    texts = folder / "texts"
    texts.mkdir(parents=True)
    paragraphs = _ALICE.read_text(encoding="utf-8").replace(END, "").split("\n\n")
    documents: list[str] = []
    for number, share in enumerate(_SHARES):
        written = _documents(draw, paragraphs, len(documents), int(share * n_bytes))
        last = END if number % 2 else ""
        (texts / f"text-{number}.txt").write_text(END.join(written) + last, encoding="utf-8", newline="")
        documents += written
    vocabulary = folder / "vocabulary.json"
    dask_bpe.train(_ALICE, 1000, special_tokens=[END]).save(vocabulary)
    return Corpus(texts, vocabulary, documents)


def _documents(draw: random.Random, paragraphs: Sequence[str], first: int, n_bytes: int) -> list[str]:
    """Paragraphs in another order with some words replaced, below a line that no other document has."""
    made: list[str] = []
    size = 0
    while size < n_bytes or not made:
        # Most are short; one in forty is longer than a block.
        length = 200 if draw.random() < 1 / 40 else draw.randint(1, 12)
        chosen = [_varied(draw, draw.choice(paragraphs)) for _ in range(length)]
        document = "\n\n".join([f"Document {first + len(made)}", *chosen])
        made.append(document)
        size += len(document)
    return made


def _varied(draw: random.Random, paragraph: str) -> str:
    words = paragraph.split(" ")
    for _ in range(len(words) // 20):
        words[draw.randrange(len(words))] = f"{draw.choice(words)}{draw.randrange(100)}"
    return " ".join(words)
