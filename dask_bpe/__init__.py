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
    from dask_bpe.analysis.segmentation import inspect_text
    from dask_bpe.analysis.shortest import count_shortest, encode_shortest
    from dask_bpe.characters import CharTokenizer
    from dask_bpe.cluster.compare import compare, compare_languages
    from dask_bpe.cluster.count import count_pretokens
    from dask_bpe.cluster.encode import EncodeReport, encode_corpus
    from dask_bpe.cluster.planning.plan import Plan, plan_corpus
    from dask_bpe.cluster.questions import (
        describe_vocabulary,
        measure_coverage,
        measure_usage,
        report_lab,
        report_vocabulary,
        trace_merges,
        vocab_curve,
    )
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
    "CharTokenizer": "dask_bpe.characters",
    "EncodeReport": "dask_bpe.cluster.encode",
    "InputFormat": "dask_bpe.io.inputs",
    "Plan": "dask_bpe.cluster.planning.plan",
    "PretokenCounts": "dask_bpe.counts",
    "Progress": "dask_bpe.progress",
    "ReshapeReport": "dask_bpe.io.reshape",
    "Tokenizer": "dask_bpe.tokenizer",
    "TrainingReport": "dask_bpe.cluster.train",
    "VerifyReport": "dask_bpe.cluster.verify",
    "Vocabulary": "dask_bpe.vocabulary",
    "compare": "dask_bpe.cluster.compare",
    "compare_languages": "dask_bpe.cluster.compare",
    "count_pretokens": "dask_bpe.cluster.count",
    "count_shortest": "dask_bpe.analysis.shortest",
    "describe_vocabulary": "dask_bpe.cluster.questions",
    "encode_corpus": "dask_bpe.cluster.encode",
    "encode_shortest": "dask_bpe.analysis.shortest",
    "inspect_text": "dask_bpe.analysis.segmentation",
    "measure_coverage": "dask_bpe.cluster.questions",
    "measure_usage": "dask_bpe.cluster.questions",
    "open_tokens": "dask_bpe.io.reader",
    "plan_corpus": "dask_bpe.cluster.planning.plan",
    "report_lab": "dask_bpe.cluster.questions",
    "report_vocabulary": "dask_bpe.cluster.questions",
    "reshape": "dask_bpe.io.reshape",
    "trace_merges": "dask_bpe.cluster.questions",
    "train": "dask_bpe.cluster.train",
    "train_bpe": "dask_bpe.cluster.train",
    "verify_corpus": "dask_bpe.cluster.verify",
    "verify_layout": "dask_bpe.io.layouts.record",
    "vocab_curve": "dask_bpe.cluster.questions",
}

__all__ = [
    "BpeError",
    "CharTokenizer",
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
    "compare",
    "compare_languages",
    "count_pretokens",
    "count_shortest",
    "describe_vocabulary",
    "encode_corpus",
    "encode_shortest",
    "inspect_text",
    "measure_coverage",
    "measure_usage",
    "open_tokens",
    "plan_corpus",
    "report_lab",
    "report_vocabulary",
    "reshape",
    "trace_merges",
    "train",
    "train_bpe",
    "verify_corpus",
    "verify_layout",
    "vocab_curve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dask_bpe' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
