"""Encoded corpora for tests, made of documents and of the places where shards are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from layout_readers import END

from dask_bpe.io.manifest import Manifest
from dask_bpe.io.reader import TokenCorpus, open_tokens
from dask_bpe.io.shards import Span, open_writer

Documents = list[list[int]]


def write_corpus(
    folder: Path,
    documents: Documents,
    cuts: list[int] = [],  # noqa: B006 (nobody changes it)
    *,
    kind: str = "bin",
    dtype: str = "uint16",
    vocab_size: int = 300,
    separator: bool = True,
    source: str = "{}.txt",
) -> TokenCorpus:
    """A corpus in `folder`, its shards cut at token positions (1 to the number of tokens).

    Its documents come from `source`, in which the number of the shard may stand.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokens = [token for document in documents for token in document]
    ends = np.cumsum([len(document) for document in documents]).tolist()
    shards = []
    start = taken = 0
    for index, cut in enumerate([*cuts, len(tokens)]):
        here = [end for end in ends[taken:] if end <= cut]
        spans = [Span(f"{index}.txt", start, cut)]
        goes_on = start > 0 and start not in ends
        with open_writer(kind, folder, f"part-{index:05d}", dtype, sources=spans, continues=goes_on) as writer:
            numbers = range(taken, taken + len(here) + 1)
            writer.origins.add(source.format(index), np.array(numbers, np.int64), [str(number) for number in numbers])
            writer.write(np.array(tokens[start:cut], np.uint32), np.array(here, np.int64) - start)
            if shard := writer.close():
                shards.append(shard)
        taken += len(here)
        start = cut
    marks = {"end": {"text": "<|end|>", "id": END, "count": tokens.count(END)}} if separator else {}
    Manifest(kind, dtype, "f" * 64, vocab_size, {}, tuple(shards), marks=marks).write(folder)
    return open_tokens(folder)


@st.composite
def corpora(draw: st.DrawFn, most: int = 10) -> tuple[Documents, list[int]]:
    """Documents, some empty, some without the separator at their end, and cuts; there is at least one token."""
    ids = st.one_of(st.integers(0, END - 1), st.integers(END + 1, 299))
    body = st.lists(ids, max_size=8)
    document = st.builds(lambda tokens, ended: tokens + [END] * ended, body, st.sampled_from([True, True, True, False]))
    documents = draw(st.lists(document, min_size=1, max_size=most).filter(any))
    total = sum(map(len, documents))
    return documents, sorted(draw(st.lists(st.integers(1, total), max_size=5)))
