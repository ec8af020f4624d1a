"""Origins come back in the order in which they were added, however they are taken."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe.errors import OutputError
from dask_bpe.io.origins import COLUMNS, Origins, OriginsFile

runs = st.lists(
    st.tuples(
        st.sampled_from(["a.txt", "b\udcff.txt", "中.jsonl", ""]),
        st.lists(st.tuples(st.integers(0, 1 << 40), st.text(max_size=4)), max_size=5),
        st.booleans(),
    ),
    max_size=6,
)


def rows(columns: list[pa.Array]) -> list[tuple[str, str, int]]:
    assert [column.type for column in columns] == [kind for _, kind in COLUMNS]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


@given(runs, st.lists(st.integers(0, 4), max_size=12), st.booleans())
def test_a_queue(added, taken, first_all):
    """They may be added until they are taken; whatever is missing then is unknown."""
    origins = Origins()
    expected, found = [], []
    waiting = list(taken)
    for source, documents, own_ids in added:
        positions = np.array([position for position, _ in documents], np.int64)
        origins.add(source, positions, [name for _, name in documents] if own_ids else None)
        valid = source.replace("\udcff", "\ufffd")
        expected += [(name if own_ids else f"{valid}:{position}", valid, position) for position, name in documents]
        if not first_all and waiting and waiting[0] <= len(expected) - len(found):
            found += rows(origins.take(waiting.pop(0)))
    for n in waiting:
        found += rows(origins.take(n))
    missing = max(sum(taken) - len(expected), 0)
    assert found == (expected + [("", "", -1)] * missing)[: sum(taken)]


def test_the_file(tmp_path):
    file = OriginsFile(str(tmp_path / "part-00000.docs.parquet"), durable=True)
    origins = Origins()
    origins.add("a.txt", np.array([0, 9]))
    origins.add("b.jsonl", np.array([4]), ["x-1"])
    file.write(origins.take(3))
    file.file.commit()
    table = pq.read_table(tmp_path / "part-00000.docs.parquet")
    assert table.schema.equals(pa.schema(COLUMNS))
    assert table.to_pydict() == {
        "doc_id": ["a.txt:0", "a.txt:9", "x-1"],
        "source": ["a.txt", "a.txt", "b.jsonl"],
        "position": [0, 9, 4],
    }
    assert file.file.record().name == "part-00000.docs.parquet"


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(OutputError, match="cannot write"):
        OriginsFile(str(tmp_path / "missing" / "part-00000.docs.parquet"), durable=True)
