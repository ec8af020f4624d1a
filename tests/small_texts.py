"""Small real texts in English, Chinese and Korean, and mixed, and their counts by the oracle."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import reference

import dask_bpe
from dask_bpe import PretokenCounts

DATA = Path(dask_bpe.__file__).parent / "data"


@cache
def texts() -> dict[str, str]:
    """By name: "en", "zh", "ko" and "mixed"."""
    lines = map(json.loads, (DATA / "udhr.jsonl").read_text(encoding="utf-8").splitlines())
    rights = {line["lang"]: line["text"] for line in lines}
    found = {
        "en": (DATA / "alice.txt").read_text(encoding="utf-8")[:4000],
        "zh": (DATA / "poems.txt").read_text(encoding="utf-8")[:1500],
        "ko": rights["ko"][:1200],
    }
    found["mixed"] = "".join(
        text[:600] for text in [*found.values(), rights["ru"], rights["ar"], "12 😀 3,4\n\n  x = 'é'\n"]
    )
    return found


def counted(name: str) -> dict[bytes, int]:
    """Pre-tokens of a text as the oracle counts them."""
    return reference.count([texts()[name]])


def counts_of(name: str) -> PretokenCounts:
    """The same as counts."""
    return PretokenCounts.from_mapping(counted(name))


def n_tokens(counts: dict[bytes, int], trained: reference.Trained) -> int:
    """Tokens of a corpus, every pre-token encoded by the oracle."""
    return sum(n * len(reference.encode_pretoken(pretoken, trained)) for pretoken, n in counts.items())
