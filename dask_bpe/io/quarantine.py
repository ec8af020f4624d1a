"""quarantine.jsonl: the documents that could not be read, one a line, beside what was made of the others."""

from __future__ import annotations

import json
from collections.abc import Iterable

from dask_bpe.io.inputs.documents import Bad

NAME = "quarantine.jsonl"


def to_lines(bad: Iterable[Bad]) -> bytes:
    """The content of the file: source, position, line and reason of each."""
    return b"".join(json.dumps(vars(item), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for item in bad)
