"""Are our ids those of tiktoken and of Hugging Face's tokenizers? Prints a table; any difference is a failure.

Every vocabulary below the folder --vocabs takes part: each tokenizer.json beside `tokenizers`; each vocab.json with
merges.txt, and each NAME.tiktoken that tiktoken has an encoding of, beside `tiktoken`. They meet on

    the first --megabytes of every text, in pieces of some 64 KB that end with a line,
    --ugly: every document of JSON lines (their "text"); other files are decoded, what is not UTF-8 replaced,
    --strings random strings of characters from all over Unicode, of what is easy to get wrong, and of the special
      tokens. Of characters, those that Python's `unicodedata` knows: each library brings its own version of
      Unicode, and they differ about newer ones.

Special tokens in a text become their ids everywhere. Lone surrogates are U+FFFD to us and to tiktoken; `tokenizers`
does not take them and gets U+FFFD.
"""

from __future__ import annotations

import argparse
import codecs
import json
import os
import random
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

PIECE_BYTES = 1 << 16
LONGEST_DOCUMENT = 1 << 20  # characters; longer ones are taken apart, for the peers' sake
GROUP_BYTES = 1 << 22

HARD_STRINGS = [
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\xa0", "\u2003", "\u2028", "\u3000", "\x85", "\x0b", "\x1c",
    "\u200b", "\u200d", "\ufeff", "\x00", "'s", "'S", "'ll", "'LL", "'Re", "'\u017f", "\u2019s", "'", "a", "Z",
    "the", " the", "ab", "A\u0301", "\u0301", "\ufe0f", "\u093f", "0", "1234", "12345678", "\u0663", "\xbd",
    "\u2167", ".", "...", "!?", "/", "//\n", "_", "-", "$", "\u20ac", "\u3002", "\U0001f600",
    "\U0001f469\u200d\U0001f4bb", "\u4e2d\u6587", "\u3042", "\u30fc", "\ud55c", "\u212a", "\u01c6", "\u0130",
    "\ufb01", "HTTPServer", "camelCase", "=" * 40, " " * 40,
]  # fmt: skip


@dataclass(frozen=True)
class Peer:
    """A vocabulary in two hands.

    Attributes
    ----------
    tokenizer, library : what to call the vocabulary, and who else encodes.
    ours, theirs : documents to lists of ids.
    special_tokens : their texts.
    """

    tokenizer: str
    library: str
    ours: Callable[[list[str]], list[list[int]]]
    theirs: Callable[[list[str]], list[list[int]]]
    special_tokens: Sequence[str]


@dataclass
class Result:
    """What one vocabulary made of one text."""

    text: str
    tokenizer: str
    library: str
    documents: int = 0
    n_bytes: int = 0
    ids: int = 0
    differences: int = 0
    first: str = ""


def peers(folder: Path) -> Iterator[tuple[str, Callable[[], Peer]]]:
    """The name of every vocabulary below the folder, and what loads it."""
    for path in sorted(folder.rglob("tokenizer.json")):
        yield f"{_name(path.parent, folder)}/tokenizer.json", partial(huggingface, path, folder)
    for path in sorted(folder.rglob("merges.txt")):
        if path.with_name("vocab.json").is_file():
            yield f"{_name(path.parent, folder)}/merges.txt", partial(gpt2, path, folder)
    from tiktoken_ext import openai_public

    for path in sorted(folder.rglob("*.tiktoken")):
        if path.stem in openai_public.ENCODING_CONSTRUCTORS:
            yield path.name, partial(published, path)


def _name(path: Path, folder: Path) -> str:
    return path.name if path == folder else path.relative_to(folder).as_posix()


def huggingface(path: Path, folder: Path) -> Peer:
    """A tokenizer.json."""
    import tokenizers

    from dask_bpe import Tokenizer

    ours = Tokenizer.from_huggingface(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.no_truncation()
    theirs.no_padding()

    def encode(texts: list[str]) -> list[list[int]]:
        mended = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
        return [encoding.ids for encoding in theirs.encode_batch_fast(mended, add_special_tokens=False)]

    return Peer(_name(path.parent, folder), "tokenizers", ours.encode_batch, encode, list(ours.special_tokens))


def gpt2(merges: Path, folder: Path) -> Peer:
    """A vocab.json with merges.txt, in the form of GPT-2's."""
    import tiktoken
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks
    from tiktoken_ext import openai_public

    from dask_bpe import Tokenizer

    os.environ["TIKTOKEN_CACHE_DIR"] = ""  # it would keep a copy by name, for ever
    vocab = merges.with_name("vocab.json")
    ranks = data_gym_to_mergeable_bpe_ranks(str(merges), str(vocab))
    ours = Tokenizer.from_gpt2(vocab, merges)
    theirs = tiktoken.Encoding(
        "gpt2",
        pat_str=openai_public.r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens=ours.special_tokens,
    )
    return Peer(
        _name(merges.parent, folder), "tiktoken", ours.encode_batch, _by_tiktoken(theirs), list(ours.special_tokens)
    )


def published(path: Path) -> Peer:
    """Ranks of an encoding whose pattern and special tokens tiktoken knows."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe
    from tiktoken_ext import openai_public

    from dask_bpe import Tokenizer

    os.environ["TIKTOKEN_CACHE_DIR"] = ""
    ranks = load_tiktoken_bpe(str(path))
    openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
    theirs = tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[path.stem]())
    ours = Tokenizer.from_tiktoken(theirs)
    return Peer(path.stem, "tiktoken", ours.encode_batch, _by_tiktoken(theirs), list(ours.special_tokens))


def _by_tiktoken(encoding: Any) -> Callable[[list[str]], list[list[int]]]:
    threads = os.cpu_count() or 1
    return lambda texts: encoding.encode_batch(texts, num_threads=threads, allowed_special="all")


def pieces(text: str) -> Iterator[str]:
    """A text in pieces that end with a line where there is one."""
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + PIECE_BYTES) + 1
        end = end if end > start else start + PIECE_BYTES
        yield text[start:end]
        start = end


def prefix(path: Path, n_bytes: int) -> Iterator[str]:
    """The first bytes of a file, in pieces."""
    with path.open("rb") as file:
        # A decoder that is not told of the end holds back a character that was cut.
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(file.read(n_bytes))
    return pieces(text)


def ugly(path: Path) -> Iterator[str]:
    """The documents of a file that is not easy to take."""
    if path.suffix != ".jsonl":
        yield from pieces(path.read_bytes().decode("utf-8", "replace"))
        return
    with path.open("rb") as file:
        for line in file:
            text = _document(line)
            for start in range(0, max(len(text), 1), LONGEST_DOCUMENT):
                yield text[start : start + LONGEST_DOCUMENT]


def _document(line: bytes) -> str:
    try:
        text = json.loads(line)["text"]
    except (ValueError, KeyError, TypeError):
        text = None
    return text if isinstance(text, str) else line.decode("utf-8", "replace")


def random_strings(count: int, seed: int, special_tokens: Sequence[str]) -> Iterator[str]:
    """Strings of characters, of what is easy to get wrong, and of special tokens."""
    draw = random.Random(seed)
    # A letter in lower case to some versions, to others a letter without case.
    known = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs") and code != 0x295
    ]
    ascii_only = [chr(code) for code in range(128)]
    pools: list[Sequence[str]] = [
        known,
        HARD_STRINGS,
        HARD_STRINGS,
        ascii_only,
        [character for character in known if ord(character) < 0x800],
    ]
    specials = list(special_tokens)[:50]
    for _ in range(count):
        parts = [draw.choice(pools[draw.randrange(len(pools))]) for _ in range(draw.randint(1, 40))]
        if specials and draw.random() < 0.2:
            parts.insert(draw.randrange(len(parts) + 1), draw.choice(specials))
        yield "".join(parts)


def groups(documents: Iterable[str]) -> Iterator[list[str]]:
    """Documents in groups of a few megabytes."""
    group: list[str] = []
    size = 0
    for document in documents:
        group.append(document)
        size += len(document)
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def compare(peer: Peer, text: str, documents: Iterable[str]) -> Result:
    """The ids of both for every document."""
    result = Result(text, peer.tokenizer, peer.library)
    for group in groups(documents):
        ours, theirs = peer.ours(group), peer.theirs(group)
        for document, our_ids, their_ids in zip(group, ours, theirs, strict=True):
            if our_ids != their_ids:
                result.first = result.first or _difference(result.documents, document, our_ids, their_ids)
                result.differences += 1
            result.documents += 1
            result.ids += len(their_ids)
            result.n_bytes += len(document.encode("utf-8", "replace"))
    return result


def _difference(number: int, document: str, ours: list[int], theirs: list[int]) -> str:
    at = next((place for place, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), -1)
    at = min(len(ours), len(theirs)) if at < 0 else at
    shown = repr(document) if len(document) <= 200 else f"{document[:200]!r}..."
    around = slice(max(at - 2, 0), at + 5)
    return f"document {number} ({shown}), id {at}: ours {ours[around]}, theirs {theirs[around]}"


def table(results: Sequence[Result]) -> str:
    """Markdown."""
    lines = ["| text | tokenizer | peer | documents | bytes | ids | differences |", "|---|---|---|--:|--:|--:|--:|"]
    lines += [
        f"| {result.text} | {result.tokenizer} | {result.library} | {result.documents:,} | {result.n_bytes:,} "
        f"| {result.ids:,} | {result.differences:,} |"
        for result in results
    ]
    return "\n".join(lines)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/parity", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="*", type=Path, metavar="TEXT", help="text files")
    parser.add_argument("--vocabs", type=Path, required=True, metavar="FOLDER", help="vocabularies, at any depth")
    parser.add_argument("--megabytes", type=float, default=20, help="of every text, from its start (20)")
    parser.add_argument("--ugly", nargs="+", type=Path, default=[], metavar="PATH", help="files, or folders of them")
    parser.add_argument("--strings", type=int, default=100_000, metavar="N", help="random strings (100000); 0: none")
    parser.add_argument("--seed", type=int, default=0, help="of the random strings (0)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="vocabularies whose path holds one of these")
    options = parser.parse_args(arguments)
    for path in (*options.texts, *options.ugly, options.vocabs):
        if not path.exists():
            parser.error(f"{path} does not exist")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, print the table, and fail at any difference."""
    options = parse(arguments)
    nasty = [[path] if path.is_file() else sorted(filter(Path.is_file, path.iterdir())) for path in options.ugly]
    results: list[Result] = []
    for name, load in peers(options.vocabs):
        if options.only and not any(part in name for part in options.only):
            continue
        say(f"{name}: loading")
        peer = load()
        texts: list[tuple[str, Iterable[str]]] = []
        texts += [(path.name, prefix(path, int(options.megabytes * 10**6))) for path in options.texts]
        texts += [(path.name, ugly(path)) for path in chain.from_iterable(nasty)]
        if options.strings:
            strings = random_strings(options.strings, options.seed, peer.special_tokens)
            texts.append((f"{options.strings:,} random strings", strings))
        for text, documents in texts:
            say(f"{name}: {text}")
            results.append(compare(peer, text, documents))
            if results[-1].first:
                say(f"  differs: {results[-1].first}")
    if not results:
        sys.exit("Nothing was compared: no vocabulary was found below --vocabs, or there was no text.")
    print(table(results))
    different = next((result for result in results if result.first), None)
    if different:
        sys.exit(f"Other ids: {different.tokenizer} by {different.library} on {different.text}, {different.first}")


def say(line: str) -> None:
    """Where the work is, apart from the table."""
    print(line.encode("ascii", "backslashreplace").decode(), file=sys.stderr)


if __name__ == "__main__":
    main()
