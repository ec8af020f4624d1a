"""The contestants of the benchmark. One job of one of them runs in a process of its own:

    bench_peers.py JOB PEER TASK.json RESULT.json

`CONTESTANTS[job][peer]` does the set-up and returns what is timed, a function of no arguments. The first call
warms up; a timed call follows for every line on standard input. Everybody reads the text from a file and
may use all cores; every encoder
writes the same to disk: uint16 ids, each document ended by the separator's id.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

SEPARATOR = "<|endoftext|>"
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
READ_BYTES = 1 << 22
# For those who take lists: all ids of a corpus as Python integers would fill the memory.
DOCUMENTS_PER_CALL = 1024

Learned = list[bytes]
Job = Callable[[], Any]


# What a process says on a line of its own when its warm-up or a timed run is over.
DONE = "--- done"


@dataclass(frozen=True)
class Task:
    """What to work on: the text ends with the separator; `vocabulary` is a folder with GPT-2's files."""

    text: str
    vocabulary: str
    folder: str
    vocab_size: int
    threads: int

    def documents(self) -> Iterator[str]:
        """The documents of the text, for those who cannot read a file; a block in memory at most."""
        rest = b""
        with Path(self.text).open("rb") as file:
            while block := file.read(READ_BYTES):
                *documents, rest = (rest + block).split(SEPARATOR.encode())
                for document in documents:
                    yield document.decode()

    def document_batches(self) -> Iterator[list[str]]:
        """The same, a list of documents at a time."""
        documents = self.documents()
        while batch := list(islice(documents, DOCUMENTS_PER_CALL)):
            yield batch

    @property
    def tokens(self) -> Path:
        """Where an encoder writes its ids."""
        return Path(self.folder) / "tokens.bin"


def train_dask_bpe(task: Task, ties: str = "huggingface") -> Callable[[], Learned]:
    """With the tie rule that others know too, so that the vocabularies can be compared token by token."""
    import dask_bpe

    def run() -> Learned:
        tokenizer = dask_bpe.train(task.text, task.vocab_size, special_tokens=[SEPARATOR], ties=ties)
        return list(tokenizer.vocabulary.tokens[257:])

    return run


def train_gigatoken(task: Task) -> Callable[[], Learned]:
    import gigatoken

    def run() -> Learned:
        source = gigatoken.TextFileSource([task.text], separator=SEPARATOR)
        vocab, _ = gigatoken.train_bpe(source, task.vocab_size, [SEPARATOR], "huggingface")
        return [vocab[i] for i in range(257, len(vocab))]

    return run


def train_rustbpe(task: Task) -> Callable[[], Learned]:
    import rustbpe

    def run() -> Learned:
        tokenizer = rustbpe.Tokenizer()
        # It has no special tokens: one id less.
        tokenizer.train_from_iterator(task.documents(), task.vocab_size - 1, pattern=GPT2_PATTERN)
        ranks = sorted(tokenizer.get_mergeable_ranks(), key=lambda item: item[1])
        return [bytes(token) for token, _ in ranks[256:]]

    return run


def train_tokenizers(task: Task) -> Callable[[], Learned]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    alphabet = byte_of_character()

    def run() -> Learned:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=task.vocab_size,
            special_tokens=[SEPARATOR],
            initial_alphabet=sorted(alphabet),
            show_progress=False,
        )
        tokenizer.train_from_iterator(task.documents(), trainer)
        vocab = sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
        return [bytes(alphabet[c] for c in token) for token, _ in vocab[257:]]

    return run


def encode_dask_bpe(task: Task) -> Job:
    import dask_bpe

    tokenizer = dask_bpe.Tokenizer.from_gpt2(*gpt2_files(task))
    out = Path(task.folder) / "shards"

    def run() -> None:
        shutil.rmtree(out, ignore_errors=True)
        dask_bpe.encode_corpus(task.text, tokenizer, out, "bin", dtype="uint16", separator=SEPARATOR)

    return run


def encode_gigatoken(task: Task) -> Job:
    import gigatoken
    import numpy as np

    tokenizer = gigatoken.Tokenizer(task.vocabulary)

    def run() -> None:
        # The file as one document: the separators are found in it as special tokens.
        rows = tokenizer.encode_files(task.text)
        np.asarray(rows.layout.content.data).astype(np.uint16).tofile(task.tokens)

    return run


def encode_tiktoken(task: Task) -> Job:
    import numpy as np
    import tiktoken
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks

    vocab, merges = gpt2_files(task)
    ranks = data_gym_to_mergeable_bpe_ranks(vocab_bpe_file=merges, encoder_json_file=vocab)
    end = len(ranks)
    encoding = tiktoken.Encoding("gpt2", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={SEPARATOR: end})

    def run() -> None:
        with task.tokens.open("wb") as file:
            for documents in task.document_batches():
                for ids in encoding.encode_ordinary_batch(documents, num_threads=task.threads):
                    file.write(np.array([*ids, end], np.uint16).tobytes())

    return run


def encode_tokenizers(task: Task) -> Job:
    import numpy as np
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(task.vocabulary) / "tokenizer.json"))
    end = tokenizer.token_to_id(SEPARATOR)

    def run() -> None:
        with task.tokens.open("wb") as file:
            for documents in task.document_batches():
                for encoded in tokenizer.encode_batch_fast(documents, add_special_tokens=False):
                    file.write(np.array([*encoded.ids, end], np.uint16).tobytes())

    return run


def start_dask_bpe(task: Task) -> Job:
    import dask_bpe

    tokenizer = dask_bpe.Tokenizer.from_gpt2(*gpt2_files(task))
    return lambda: list(tokenizer.encode("The first words of a text.")[:1])


def ready_dask_bpe(task: Task) -> Job:
    """All that is compiled: a vocabulary is trained, and its tokenizer used."""
    import dask_bpe

    text = Path(task.folder) / "text.txt"
    text.write_text("The first words of a text." + SEPARATOR)

    def run() -> bytes:
        tokenizer = dask_bpe.train(text, 300, special_tokens=[SEPARATOR])
        dask_bpe.encode_corpus(text, tokenizer, Path(task.folder) / "shards")
        return tokenizer.decode_bytes(tokenizer.encode("The first words of a text."))

    return run


def start_gigatoken(task: Task) -> Job:
    import gigatoken

    tokenizer = gigatoken.Tokenizer(task.vocabulary)
    return lambda: [int(i) for i in tokenizer.encode("The first words of a text.")[:1]]


def start_tiktoken(task: Task) -> Job:
    import tiktoken
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks

    vocab, merges = gpt2_files(task)
    ranks = data_gym_to_mergeable_bpe_ranks(vocab_bpe_file=merges, encoder_json_file=vocab)
    encoding = tiktoken.Encoding("gpt2", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={})
    return lambda: encoding.encode_ordinary("The first words of a text.")[:1]


def start_tokenizers(task: Task) -> Job:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(task.vocabulary) / "tokenizer.json"))
    return lambda: list(tokenizer.encode("The first words of a text.").ids[:1])


CONTESTANTS: dict[str, dict[str, Callable[[Task], Job]]] = {
    "train": {
        "dask_bpe": train_dask_bpe,
        "dask_bpe, ties=bytes": partial(train_dask_bpe, ties="bytes"),
        "gigatoken": train_gigatoken,
        "rustbpe": train_rustbpe,
        "tokenizers": train_tokenizers,
    },
    "encode": {
        "dask_bpe": encode_dask_bpe,
        "gigatoken": encode_gigatoken,
        "tiktoken": encode_tiktoken,
        "tokenizers": encode_tokenizers,
    },
    "start": {
        "dask_bpe": start_dask_bpe,
        "gigatoken": start_gigatoken,
        "tiktoken": start_tiktoken,
        "tokenizers": start_tokenizers,
    },
    "ready": {"dask_bpe": ready_dask_bpe},
}


def gpt2_files(task: Task) -> tuple[str, str]:
    """`vocab.json` and `merges.txt` of the task's vocabulary."""
    folder = Path(task.vocabulary)
    return str(folder / "vocab.json"), str(folder / "merges.txt")


def byte_of_character() -> dict[str, int]:
    """GPT-2's spelling of bytes: printable ones stand for themselves, the rest for what follows U+00FF."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def peak_memory() -> int:
    """Largest resident size so far of this process, or of the largest of its children, in bytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(own, children) * (1 if sys.platform == "darwin" else 1024)


def digest_of(result: Any, folder: Path) -> str:
    """Hash of what was made: the ids on disk, or else the value that the job returned."""
    digest = hashlib.sha256()
    made = sorted((folder / "shards").glob("part-*.bin")) or sorted(folder.glob("tokens.bin"))
    for path in made:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    if not made:
        digest.update(repr(result).encode())
    return digest.hexdigest()


def main() -> None:
    """Run one job; see the module's first lines."""
    job, peer, task_file, result_file = sys.argv[1:]
    task = Task(**json.loads(Path(task_file).read_text()))
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    run = CONTESTANTS[job][peer](task)
    began = time.perf_counter()
    made = run()
    first = time.perf_counter() - began
    # One job in a fresh process: the figure that a user sees. Later runs add what the allocator keeps.
    finished_at = time.time()
    peak = peak_memory()
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    # A line on standard input asks for a timed run, so that contestants can take turns; its end is the end.
    print(DONE, flush=True)
    while sys.stdin.readline():
        began, cpu_began = time.perf_counter(), time.process_time()
        made = run()
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(time.process_time() - cpu_began)
        print(DONE, flush=True)
    outcome: dict[str, Any] = {
        "finished_at": finished_at,
        "first_seconds": first,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_memory": peak,
        "peak_memory_of_all_runs": peak_memory(),
        "digest": digest_of(made, Path(task.folder)),
    }
    if job == "train":
        outcome["learned"] = [token.hex() for token in made]
    Path(result_file).write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
