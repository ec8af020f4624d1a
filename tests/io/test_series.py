"""A partition's shards hold what was written, cut between documents only."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from dask_bpe.io.job import part_name
from dask_bpe.io.manifest import Manifest
from dask_bpe.io.reader import open_tokens
from dask_bpe.io.series import ShardSeries
from dask_bpe.io.shards import FORMATS, Span, open_writer


def series_in(folder, kind: str, limit: int, *, continues: bool = False) -> ShardSeries:
    def open_next(number, origins, continues):
        return open_writer(kind, folder, part_name(0, number), "uint16", origins=origins, continues=continues)

    return ShardSeries(open_next, limit, continues=continues)


def corpus_of(folder, kind: str, shards):
    Manifest(kind, "uint16", "f", 1 << 16, {}, shards).write(folder)
    corpus = open_tokens(folder)
    corpus.verify()
    return corpus


def positions_in(folder, kind: str, shards) -> list[list[int]]:
    """Per shard, where its documents stand."""
    suffix = ".docs.parquet" if kind == "bin" else ".parquet"
    names = [shard.name.partition(".")[0] + suffix for shard in shards]
    return [pq.read_table(folder / name, columns=["position"]).column(0).to_pylist() for name in names]


@st.composite
def writes(draw):
    """Documents, none of them empty, and the places at which the calls of `write` cut their tokens."""
    documents = draw(st.lists(st.lists(st.integers(0, 65535), min_size=1, max_size=12), min_size=1, max_size=10))
    total = sum(map(len, documents))
    return documents, sorted(draw(st.lists(st.integers(0, total), max_size=6)))


@pytest.mark.parametrize("kind", list(FORMATS))
@given(drawn=writes(), limit=st.integers(1, 30), has_end=st.booleans())
@examples(0.5)
def test_any_writes_and_any_limit(tmp_path_factory, kind, drawn, limit, has_end):
    documents, cuts = drawn
    folder = tmp_path_factory.mktemp("series")
    tokens = np.array([token for document in documents for token in document], np.uint32)
    ends = np.cumsum([len(document) for document in documents]).astype(np.int64)
    places = np.arange(0, 7 * len(documents), 7, dtype=np.int64)
    written = ends if has_end else ends[:-1]
    series = series_in(folder, kind, limit)
    start = taken = 0
    for cut in [*cuts, len(tokens)]:
        last = int(np.searchsorted(written, cut, "right"))
        series.begin(Span("a", start, cut))
        # Origins come with the first token of a document, or earlier.
        series.origins.add("a", places[: last + 1][taken:])
        taken = max(taken, min(last + 1, len(places)))
        here = written[int(np.searchsorted(written, start, "right")) : last]
        series.write(tokens[start:cut], here - start)
        start = cut
    shards = series.close()

    corpus = corpus_of(folder, kind, shards)
    assert [document.tolist() for document in corpus.documents] == documents
    assert corpus.tokens(0, len(tokens)).tolist() == tokens.tolist()
    assert [shard.open_end for shard in shards] == [False] * (len(shards) - 1) + [not has_end]
    assert not any(shard.continues for shard in shards)
    assert [shard.name for shard in shards] == [f"{part_name(0, number)}.{kind}" for number in range(len(shards))]
    # Greedy: a shard ends with the document that fills it, no sooner and no later.
    expected, room = [[]], limit
    for length, place in zip(map(len, documents), places.tolist(), strict=True):
        if room <= 0:
            expected.append([])
            room = limit
        expected[-1].append(place)
        room -= length
    assert positions_in(folder, kind, shards) == expected
    assert not [path.name for path in folder.iterdir() if ".tmp-" in path.name]


@pytest.mark.parametrize("kind", list(FORMATS))
def test_an_oversized_document_is_a_shard_of_its_own(tmp_path, kind):
    series = series_in(tmp_path, kind, 4)
    series.begin(Span("a", 0, 30))
    for _ in range(5):  # a document in five calls
        series.write(np.arange(6, dtype=np.uint32), np.empty(0, np.int64))
    series.write(np.array([7, 8, 9], np.uint32), np.array([1, 2, 3]))
    shards = series.close()
    assert [(shard.tokens, shard.documents) for shard in shards] == [(31, 1), (2, 2)]
    assert corpus_of(tmp_path, kind, shards).n_documents == 3


@pytest.mark.parametrize("kind", list(FORMATS))
def test_the_first_shard_continues_what_was_begun_before(tmp_path, kind):
    series = series_in(tmp_path, kind, 2, continues=True)
    series.begin(Span("a", 10, 20))
    series.write(np.array([1, 2, 3, 4], np.uint32), np.array([2, 4]))
    assert [shard.continues for shard in series.close()] == [True, False]


def test_spans_of_a_shard(tmp_path):
    """A span from which two shards were made stands in both."""
    series = series_in(tmp_path, "bin", 3)
    spans = [Span("a", 0, 5), Span("a", 5, 9), Span("b", 0, 4)]
    for span in spans:
        series.begin(span)
        series.write(np.array([1, 2], np.uint32), np.array([2]))
    assert [shard.sources for shard in series.close()] == [(spans[0], spans[1]), (spans[2],)]
    series = series_in(tmp_path, "bin", 1)
    series.begin(spans[0])
    series.write(np.array([1, 2], np.uint32), np.array([1, 2]))
    assert [shard.sources for shard in series.close()] == [(spans[0],), (spans[0],)]


@pytest.mark.parametrize("kind", list(FORMATS))
def test_documents_without_tokens_stay_with_the_one_before(tmp_path, kind):
    series = series_in(tmp_path, kind, 2)
    series.begin(Span("a", 0, 9))
    series.origins.add("a", np.arange(5))
    series.write(np.array([1, 2, 3], np.uint32), np.array([0, 2, 2, 2, 3]))
    shards = series.close()
    assert positions_in(tmp_path, kind, shards) == [[0, 1, 2, 3], [4]]
    assert [d.tolist() for d in corpus_of(tmp_path, kind, shards).documents] == [[], [1, 2], [], [], [3]]


def test_nothing_was_written(tmp_path):
    series = series_in(tmp_path, "bin", 2)
    assert not series.begun
    assert series.close() == ()
    series.begin(Span("a", 0, 0))
    assert series.begun
    series.write(np.empty(0, np.uint32), np.empty(0, np.int64))
    assert series.close() == ()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", list(FORMATS))
def test_aborted(tmp_path, kind):
    """What is complete stays, what is not goes."""
    series = series_in(tmp_path, kind, 2)
    series.begin(Span("a", 0, 9))
    series.write(np.array([1, 2, 3], np.uint32), np.array([2]))
    series.abort()
    series.abort()
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"part-00000"}
    assert not [path.name for path in tmp_path.iterdir() if ".tmp-" in path.name]
