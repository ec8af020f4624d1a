"""A vocabulary from a text file, with all cores. Trainers break ties in different ways: each peer is compared with ours
under its own rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from benchmarks.bars import Bar, faster_than
from benchmarks.contest import Bench, Entry
from benchmarks.figures import OURS, Contest
from benchmarks.report import comparison, notes, seconds, section
from benchmarks.texts import SEPARATOR, Text
from benchmarks.work import SetUp, Task, Work

GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BY_BYTES, BY_IDS = "dask_bpe, ties=bytes", "dask_bpe, ties=ids"


def learned(tokens: Iterable[bytes]) -> Iterator[bytes]:
    """The tokens that merges made, in their order."""
    for token in tokens:
        yield len(token).to_bytes(8, "little") + token


def dask_bpe(task: Task, ties: str = "huggingface") -> Work:
    import dask_bpe

    def run() -> Any:
        size, pattern = task.settings["vocab_size"], task.settings.get("pattern", "gpt2")
        return dask_bpe.train(task.text, size, special_tokens=[SEPARATOR], pattern=pattern, ties=ties)

    return Work(run, lambda tokenizer: learned(tokenizer.vocabulary.tokens[257:]))


def gigatoken(task: Task) -> Work:
    import gigatoken

    def run() -> Any:
        source = gigatoken.TextFileSource([task.text], separator=SEPARATOR)
        vocab, _ = gigatoken.train_bpe(source, task.settings["vocab_size"], [SEPARATOR], "huggingface")
        return vocab

    return Work(run, lambda vocab: learned(vocab[i] for i in range(257, len(vocab))))


def rustbpe(task: Task) -> Work:
    import rustbpe

    def run() -> Any:
        tokenizer = rustbpe.Tokenizer()
        # It has no special tokens: one id less.
        size = task.settings["vocab_size"] - 1
        tokenizer.train_from_iterator(task.documents(), size, pattern=GPT2_PATTERN)
        return tokenizer

    def made(tokenizer: Any) -> Iterator[bytes]:
        ranks = sorted(tokenizer.get_mergeable_ranks(), key=lambda item: item[1])
        return learned(bytes(token) for token, _ in ranks[256:])

    return Work(run, made)


def tokenizers(task: Task) -> Work:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    alphabet = byte_of_character()

    def run() -> Any:
        tokenizer = Tokenizer(models.BPE())
        if task.settings.get("pattern", "gpt2") is None:
            # The bytes' characters without the split that the pre-tokenizer of this name makes.
            tokenizer.normalizer = normalizers.ByteLevel()
        else:
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=task.settings["vocab_size"],
            special_tokens=[SEPARATOR],
            initial_alphabet=sorted(alphabet),
            show_progress=False,
        )
        tokenizer.train_from_iterator(task.documents(), trainer)
        return tokenizer

    def made(tokenizer: Any) -> Iterator[bytes]:
        vocab = sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
        return learned(bytes(alphabet[character] for character in token) for token, _ in vocab[257:])

    return Work(run, made)


def byte_of_character() -> dict[str, int]:
    """GPT-2's spelling of bytes: printable ones stand for themselves, the rest for what follows U+00FF."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


CONTESTANTS: dict[str, SetUp] = {
    OURS: dask_bpe,
    BY_BYTES: partial(dask_bpe, ties="bytes"),
    BY_IDS: partial(dask_bpe, ties="ids"),
    "gigatoken": gigatoken,
    "rustbpe": rustbpe,
    "tokenizers": tokenizers,
}


def entries(bench: Bench, text: Text) -> list[Entry]:
    """Everybody on one text; the slow ones once."""
    settings = {"vocab_size": bench.options.vocab_size}
    made = [
        Entry(OURS, text),
        Entry(BY_BYTES, text, same_as=None),
        Entry(BY_IDS, text, same_as=None),
        Entry("gigatoken", text),
        Entry("rustbpe", text, same_as=BY_IDS, against=BY_IDS, runs=0),
        Entry("tokenizers", text, runs=0),
    ]
    return [Entry(**(vars(entry) | {"settings": settings})) for entry in made]


def measure(bench: Bench) -> Iterator[Contest]:
    """Every text."""
    for text in bench.texts:
        labels = {"text": text.name, "ids": f"{bench.options.vocab_size:,}"}
        yield bench.contest("train", labels, entries(bench, text))


def report(contests: list[Contest]) -> str:
    """Seconds."""
    peers = ["gigatoken", "rustbpe", "tokenizers"]
    body = comparison(contests, [OURS, BY_BYTES, BY_IDS], peers, "s", seconds, peaks=(OURS, *peers))
    note = f"{OURS}: ties as gigatoken and HF tokenizers break them; rustbpe is compared with ties=ids, its own rule."
    return section("Training from a text file", body, f"{note} {notes(contests)}".strip())


def bars(contests: list[Contest]) -> Iterator[Bar]:
    """On every text."""
    for peer, wanted in (("gigatoken", 3), ("rustbpe", 6), ("tokenizers", 12)):
        yield faster_than(peer, wanted, "training", contests)
