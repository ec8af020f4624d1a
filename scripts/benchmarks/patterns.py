"""How fast every named split pattern is, in one thread, text and ids in memory: `scripts/bench --patterns`.

For each pattern: counting pre-tokens, and encoding with GPT-2's merges under that pattern. The patterns take turns,
so that all see the same machine, and every run begins with an empty cache. tiktoken and Hugging Face's tokenizers, with
the same merges and the same pattern, get the first megabytes of each text once, in pieces of some 64 KB; all of their
ids must be ours.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dask_bpe import Tokenizer
from dask_bpe.count_table import CountTable
from dask_bpe.encoder import Encoder
from dask_bpe.pretokenize import PATTERNS, Scanner, get_pattern
from dask_bpe.vocabulary import Vocabulary

PIECE_BYTES = 1 << 16
PEER_BYTES = 2_000_000
NAMES = [name for name in PATTERNS if name != "none"]

Text = npt.NDArray[np.uint8]
Result = TypeVar("Result")


@dataclass
class Figures:
    """Seconds of every run of one pattern on one text."""

    count: list[float] = field(default_factory=list)
    encode: list[float] = field(default_factory=list)
    tiktoken: list[float] = field(default_factory=list)
    tokenizers: list[float] = field(default_factory=list)


def run(options: argparse.Namespace) -> None:
    """Measure and print a Markdown table for every text; the process fails where a peer has other ids."""
    os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    plain = Tokenizer.from_gpt2(options.vocabs[0] / "vocab.json", options.vocabs[0] / "merges.txt").vocabulary
    ours = {name: replace(plain, pattern=name) for name in NAMES}
    measured = {}
    for path in options.patterns:
        text = np.fromfile(path, np.uint8, count=int(options.megabytes * 1e6))
        measured[path.stem] = measure(text, ours, options, path.stem), len(text)
    report(measured)


def measure(text: Text, ours: dict[str, Vocabulary], options: argparse.Namespace, title: str) -> dict[str, Figures]:
    """The figures of all patterns on one text."""
    figures = {name: Figures() for name in NAMES}
    pieces = [
        text[start : start + PIECE_BYTES].tobytes().decode("utf-8", "replace")
        for start in range(0, min(PEER_BYTES, len(text)), PIECE_BYTES)
    ]
    for name in NAMES:
        say(f"{title}: the peers under {name}")
        expected = Tokenizer(ours[name]).encode_batch(pieces, disallowed_special=())
        for peer, encode in make_peers(name, options.vocabs[0]).items():
            seconds, ids = timed(partial(encode, pieces))
            getattr(figures[name], peer).append(seconds)
            if ids != expected:
                sys.exit(f"Other ids than ours from {peer} under the pattern {name}, in {title}")
    for turn in range(options.runs + 1):
        say(f"{title}: run {turn} of {options.runs}")
        for name in NAMES if turn % 2 else reversed(NAMES):
            encoder = Encoder(ours[name])  # a new one for every run: no pre-token has been met before
            seconds_to_count, _ = timed(partial(count, text, name))
            seconds_to_encode, _ = timed(partial(encode_all, text, encoder))
            if turn > 0:  # the first one is the warm-up
                figures[name].count.append(seconds_to_count)
                figures[name].encode.append(seconds_to_encode)
    return figures


def say(line: str) -> None:
    """Progress, on standard error."""
    print(f"  {line}", file=sys.stderr, flush=True)


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Wall clock seconds, and what came of it."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def count(text: Text, name: str) -> int:
    """Distinct pre-tokens of the text."""
    table = CountTable()
    table.add_segments(text, np.array([[0], [len(text)]], np.int64), Scanner(get_pattern(name)), 0)
    return len(table.in_order()[0])


def encode_all(text: Text, encoder: Encoder) -> int:
    """Tokens of the text."""
    ids, _ = encoder.encode_segments(text, np.zeros(1, np.int64), np.array([len(text)], np.int64))
    return len(ids)


def make_peers(name: str, vocab: Path) -> dict[str, Callable[[list[str]], list[list[int]]]]:
    """Functions from pieces to their ids."""
    import tokenizers
    from tiktoken import Encoding
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks

    files = str(vocab / "vocab.json"), str(vocab / "merges.txt")
    splits = PATTERNS[name]
    made: dict[str, Callable[[list[str]], list[list[int]]]] = {}
    if len(splits) == 1:
        ranks = data_gym_to_mergeable_bpe_ranks(vocab_bpe_file=files[1], encoder_json_file=files[0])
        encoding = Encoding(name, pat_str=splits[0].regex, mergeable_ranks=ranks, special_tokens={})
        made["tiktoken"] = lambda pieces: [encoding.encode_ordinary(piece) for piece in pieces]
    hugging_face = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*files))
    steps = [tokenizers.pre_tokenizers.Split(tokenizers.Regex(_oniguruma(split.regex)), "isolated") for split in splits]
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    hugging_face.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([*steps, byte_level])
    made["tokenizers"] = lambda pieces: [found.ids for found in hugging_face.encode_batch_fast(pieces)]
    return made


def _oniguruma(expression: str) -> str:
    # Its {1,3}+ is a repeat of a repeat, and its $ is also before a newline.
    return expression.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}").replace(r"\s++$", r"\s++\z")


def report(measured: dict[str, tuple[dict[str, Figures], int]]) -> None:
    """Print the tables, and whether a pattern falls off."""
    speeds: dict[tuple[str, str, str], float] = {}
    for title, (figures, n_bytes) in measured.items():
        for name, seconds in figures.items():
            speeds[title, name, "count"] = n_bytes / 1e6 / median(seconds.count)
            speeds[title, name, "encode"] = n_bytes / 1e6 / median(seconds.encode)
    first = next(iter(measured))
    for title, (figures, n_bytes) in measured.items():
        print(f"\n{title}, {n_bytes / 1e6:.0f} MB\n")
        print(f"| pattern | count, MB/s | of gpt2 | encode, MB/s | of gpt2 | of {first} | tiktoken | HF tokenizers |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for name, seconds in figures.items():
            counted, encoded = speeds[title, name, "count"], speeds[title, name, "encode"]
            peers = [
                f"{min(PEER_BYTES, n_bytes) / 1e6 / peer[0]:.1f}" if peer else ""
                for peer in (seconds.tiktoken, seconds.tokenizers)
            ]
            print(
                f"| {name} | {counted:.0f} | {counted / speeds[title, 'gpt2', 'count']:.2f} | {encoded:.0f} "
                f"| {encoded / speeds[title, 'gpt2', 'encode']:.2f} | {encoded / speeds[first, name, 'encode']:.2f} "
                f"| {' | '.join(peers)} |"
            )
    of_gpt2 = min(speed / speeds[title, "gpt2", work] for (title, _, work), speed in speeds.items())
    of_first = min(speed / speeds[first, name, work] for (_, name, work), speed in speeds.items())
    print(f"\nSlowest pattern: {of_gpt2:.2f} of gpt2 on the same text (bar 0.50).")
    print(f"Slowest text: {of_first:.2f} of {first} under the same pattern (bar 0.33).")
