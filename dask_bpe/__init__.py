"""dask_bpe: byte-level BPE for corpora that outgrow one machine, and faster on one than what is used today.

    >>> import dask_bpe
    >>> tokenizer = dask_bpe.train("corpus/*.txt", 32_000, special_tokens=["<|endoftext|>"])
    >>> dask_bpe.encode_corpus("corpus/*.txt", tokenizer, "tokens/")
    >>> dask_bpe.open_tokens("tokens/").windows(1024)[0]

Names are loaded when they are first used: ``import dask_bpe`` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dask_bpe.cluster.count import count_pretokens
    from dask_bpe.cluster.encode import EncodeReport, encode_corpus
    from dask_bpe.cluster.planning.plan import Plan, plan_corpus
    from dask_bpe.cluster.train import TrainingReport, train, train_bpe
    from dask_bpe.cluster.verify import VerifyReport, verify_corpus
    from dask_bpe.counts import PretokenCounts
    from dask_bpe.errors import BpeError
    from dask_bpe.io.inputs import InputFormat
    from dask_bpe.io.layouts.record import verify_layout
    from dask_bpe.io.reader import open_tokens
    from dask_bpe.io.reshape import ReshapeReport, reshape
    from dask_bpe.progress import Progress
    from dask_bpe.tokenizer import Tokenizer
    from dask_bpe.vocabulary import Vocabulary

__version__ = "0.1.0"

_HOME = {
    "BpeError": "dask_bpe.errors",
    "InputFormat": "dask_bpe.io.inputs",
    "EncodeReport": "dask_bpe.cluster.encode",
    "Plan": "dask_bpe.cluster.planning.plan",
    "PretokenCounts": "dask_bpe.counts",
    "Progress": "dask_bpe.progress",
    "ReshapeReport": "dask_bpe.io.reshape",
    "Tokenizer": "dask_bpe.tokenizer",
    "TrainingReport": "dask_bpe.cluster.train",
    "VerifyReport": "dask_bpe.cluster.verify",
    "Vocabulary": "dask_bpe.vocabulary",
    "count_pretokens": "dask_bpe.cluster.count",
    "encode_corpus": "dask_bpe.cluster.encode",
    "open_tokens": "dask_bpe.io.reader",
    "plan_corpus": "dask_bpe.cluster.planning.plan",
    "reshape": "dask_bpe.io.reshape",
    "train": "dask_bpe.cluster.train",
    "train_bpe": "dask_bpe.cluster.train",
    "verify_corpus": "dask_bpe.cluster.verify",
    "verify_layout": "dask_bpe.io.layouts.record",
}

__all__ = [
    "BpeError",
    "EncodeReport",
    "InputFormat",
    "Plan",
    "PretokenCounts",
    "Progress",
    "ReshapeReport",
    "Tokenizer",
    "TrainingReport",
    "VerifyReport",
    "Vocabulary",
    "__version__",
    "count_pretokens",
    "encode_corpus",
    "open_tokens",
    "plan_corpus",
    "reshape",
    "train",
    "train_bpe",
    "verify_corpus",
    "verify_layout",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dask_bpe' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
