"""Tokenizers that come to a process in pickles: one for each vocabulary, however many pickles bring it."""

from __future__ import annotations

import pickle
import threading
import zlib
from typing import TYPE_CHECKING

from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dask_bpe.tokenizer import Tokenizer

# The one that was used last at the end.
_RESTORED: dict[tuple[type[Tokenizer], str], Tokenizer] = {}
_MOST_RESTORED = 8
_RESTORING = threading.Lock()


def pack(vocabulary: Vocabulary) -> bytes:
    """The vocabulary in few bytes, which a process that has it need not look into."""
    return zlib.compress(pickle.dumps(vocabulary, pickle.HIGHEST_PROTOCOL), 1)


def restore(kind: type[Tokenizer], fingerprint: str, packed: bytes) -> Tokenizer:
    """The tokenizer of a pickle; the one that was made of it before, if it is among the last ones."""
    with _RESTORING:
        tokenizer = _RESTORED.pop((kind, fingerprint), None)
        if tokenizer is None:
            tokenizer = kind(pickle.loads(zlib.decompress(packed)))
            if len(_RESTORED) >= _MOST_RESTORED:
                del _RESTORED[next(iter(_RESTORED))]
        _RESTORED[kind, fingerprint] = tokenizer
    return tokenizer
