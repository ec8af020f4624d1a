"""The manifest of an encoding, from what its partitions have become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dask_bpe.errors import InputError
from dask_bpe.io.job import Part
from dask_bpe.io.manifest import Manifest
from dask_bpe.vocabulary import Vocabulary


def marks_of(options: Mapping[str, Any], vocabulary: Vocabulary) -> tuple[int | None, int | None]:
    """The ids that are put at the end and at the beginning of every document, or None."""
    ids = vocabulary.special_tokens
    ends = options["end_of_document"] and options["separator"] is not None
    begin = options["begin_of_document"]
    return ids[options["separator"]] if ends else None, None if begin is None else ids[begin]


def manifest_of(parts: Sequence[Part], options: Mapping[str, Any], vocabulary: Vocabulary) -> Manifest:
    """What was written, checked against what was read. Raises InputError when it is nothing."""
    shards = tuple(shard for part in parts for shard in part.shards)
    bad = sum(len(part.bad) for part in parts)
    if not shards:
        raise InputError(
            "the source holds no text: there is nothing to encode"
            + (f"; {bad} documents cannot be read" if bad else "")
        )
    marks = {}
    end, begin = marks_of(options, vocabulary)
    for name, index, count in (
        ("end", end, sum(part.n_ends for part in parts)),
        ("begin", begin, sum(part.n_begins for part in parts)),
    ):
        if index is not None:
            marks[name] = {"text": vocabulary.tokens[index].decode(), "id": index, "count": count}
    text = {
        "bytes": sum(part.n_bytes for part in parts),
        "documents": sum(part.n_documents for part in parts),
        "invalid": sum(part.n_invalid for part in parts),
        "quarantined": bad,
    }
    return Manifest(
        options["format"],
        options["dtype"],
        vocabulary.fingerprint(),
        len(vocabulary),
        dict(options),
        shards,
        text,
        marks,
    )
