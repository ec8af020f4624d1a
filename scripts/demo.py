"""From text to tokens: the whole of dask_bpe on two small texts, in a few seconds.

Trains a vocabulary on the bundled English and Chinese, encodes both to Parquet and to uint16, reads them
back, and compares every byte. The files are left in `demo/` beside the checkout's other folders.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from importlib.resources import as_file, files
from pathlib import Path

import dask_bpe
from dask_bpe.monitor import terminal_progress

VOCAB_SIZE = 4096
SEPARATOR = "<|endoftext|>"
FOLDER = Path(__file__).parent.parent / "demo"


def main() -> None:
    """Run the demo; exits with 1 when the round trip fails."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    with as_file(files("dask_bpe") / "data") as data:
        texts = [data / "alice.txt", data / "poems.txt"]
        print("1. Train a vocabulary of", f"{VOCAB_SIZE:,}", "ids on", " and ".join(text.name for text in texts))
        with terminal_progress() as progress:
            tokenizer = dask_bpe.train(texts, VOCAB_SIZE, special_tokens=[SEPARATOR], progress=progress)
        describe(tokenizer)
        print("\n2. Encode them")
        intact = [encode(tokenizer, texts, shard_format) for shard_format in ("parquet", "bin")]
    show_files()
    if not all(intact):
        sys.exit("The round trip FAILED: decoded bytes differ from the text.")


def describe(tokenizer: dask_bpe.Tokenizer) -> None:
    """Print what was learned, save it, and show it on a sentence."""
    report = tokenizer.training
    assert report is not None
    path = FOLDER / "vocabulary.json"
    tokenizer.save(path)
    print(
        f"   {report.n_bytes:,} bytes, {report.n_documents} documents, {report.n_pretokens:,} pre-tokens"
        f" ({report.n_distinct:,} distinct)"
    )
    seconds = sum(report.seconds.values())
    print(f"   {report.n_merges:,} merges in {seconds:.2f} s; longest token {report.longest_token!r}")
    for sentence in ("`Curiouser and curiouser!' cried Alice", "春眠不覺曉，處處聞啼鳥。"):
        pieces = [tokenizer.decode_bytes([token]) for token in tokenizer.encode(sentence)]
        print("   " + " | ".join(readable(piece) for piece in pieces))


def readable(piece: bytes) -> str:
    """The token as text; as hexadecimal when it ends inside a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return f"[{piece.hex(' ')}]"


def encode(tokenizer: dask_bpe.Tokenizer, texts: list[Path], shard_format: str) -> bool:
    """Encode the texts into `demo/<format>`; whether decoding gives back every byte, with the separators."""
    folder = FOLDER / shard_format
    with terminal_progress() as progress:
        report = dask_bpe.encode_corpus(texts, tokenizer, folder, format=shard_format, progress=progress)
    tokens = dask_bpe.open_tokens(folder)
    decoded = b"".join(tokenizer.decode_bytes(document) for document in tokens.documents)
    text = b"".join(map(with_separator, texts))
    same = decoded == text
    print(
        f"   {shard_format:8} {report.n_tokens:,} tokens ({report.dtype}),"
        f" {report.n_bytes / report.n_tokens:.2f} bytes a token;"
        f" decoded again: {'identical' if same else 'DIFFERENT'}"
        f" (sha256 {hashlib.sha256(decoded).hexdigest()[:12]})"
    )
    return same


def with_separator(path: Path) -> bytes:
    """A text with the separator at its end, as the last document gets it too."""
    text, separator = path.read_bytes(), SEPARATOR.encode()
    return text if text.endswith(separator) else text + separator


def show_files() -> None:
    """List what the demo leaves behind."""
    print("\n3. The files")
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            print(f"   {path.stat().st_size:>9,}  {path.relative_to(FOLDER.parent)}")
    print("\nTo look at them:")
    print("   source .venv/bin/activate")
    print(f"   dask-bpe info {FOLDER.name}/vocabulary.json")
    print(f"   dask-bpe info {FOLDER.name}/bin --verify")


if __name__ == "__main__":
    main()
