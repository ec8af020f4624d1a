"""Every row of a shard says where its text stands: reading the source there gives the text that its tokens spell."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import dask.bag
import pyarrow.parquet as pq
import pytest
import strategies
from asserts import trained_on
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import dask_bpe
from dask_bpe import Tokenizer
from dask_bpe.io.shards import Shard

END = "<|endoftext|>"
TOKENIZER = trained_on(["one two three four five six, the end of the text"], [END, "<|a|>"])

Row = tuple[str, str, int]


def origins_of(out: Path, shard: Shard) -> list[Row]:
    """The columns of the file that keeps them: the shard itself, or one beside it."""
    name = shard.files[-1].name
    columns = pq.read_table(out / name, columns=["doc_id", "source", "position"]).columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def rows_of(out: Path, tokenizer: Tokenizer) -> list[tuple[Row, bytes]]:
    """Origin and text of every row of the shards: documents, and pieces of those that go on in the next one."""
    corpus = dask_bpe.open_tokens(out)
    rows: list[tuple[Row, bytes]] = []
    for number, shard in enumerate(corpus.shards):
        ids, offsets = corpus._files.load(number)
        origins = origins_of(out, shard)
        assert len(origins) == shard.documents == len(offsets) - 1
        for origin, start, stop in zip(origins, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            rows.append((origin, b"".join(tokenizer.vocabulary.tokens[i] for i in ids[start:stop].tolist())))
    return rows


@given(
    texts=st.lists(
        st.lists(st.sampled_from([END, END, "<|a|>"]) | strategies.text(3), min_size=1, max_size=8).map("".join),
        min_size=1,
        max_size=4,
    ),
    block_bytes=st.one_of(st.none(), st.integers(1, 60)),
    fmt=st.sampled_from(["bin", "parquet"]),
    shard_tokens=st.integers(1, 60),
)
@examples(0.8)
def test_files(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], block_bytes: int | None, fmt: str, shard_tokens: int
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "text").mkdir()
    texts = [*texts, "a"]
    contents = {}
    for number, text in enumerate(texts):
        path = folder / "text" / f"{number}.txt"
        path.write_text(text, encoding="utf-8", newline="")
        contents[str(path)] = text.encode()
    out = folder / "out"
    dask_bpe.encode_corpus(folder / "text", TOKENIZER, out, fmt, block_bytes=block_bytes, shard_tokens=shard_tokens)
    rows = rows_of(out, TOKENIZER)
    found: dict[str, list[tuple[int, bytes]]] = {}
    for (doc_id, source, position), text in rows:
        assert doc_id == f"{source}:{position}"
        found.setdefault(source, []).append((position, text))
    assert list(found) == [path for path, content in contents.items() if content]
    for path, pieces in found.items():
        content = contents[path]
        # The end of the file ends its last document.
        whole = content if content.endswith(END.encode()) else content + END.encode()
        bounds = [*(position for position, _ in pieces), len(whole)]
        assert bounds[0] == 0
        assert [text for _, text in pieces] == [whole[a:b] for a, b in pairwise(bounds)]


@pytest.mark.parametrize("fmt", ["bin", "parquet"])
@pytest.mark.parametrize("how", ["text", "encode"])
def test_documents(how: str, fmt: str, tmp_path: Path) -> None:
    """Their positions are their numbers; what separators within them end stands at the same one."""
    texts = ["one", "", f"two{END}three", f"{END}", "four"]
    bag = dask.bag.from_sequence(texts, npartitions=2)
    dask_bpe.encode_corpus(bag, TOKENIZER, tmp_path / "out", fmt, special_tokens_in_text=how, shard_tokens=2)  # type: ignore[arg-type]
    expected = []
    # from_sequence gives the first partition three of five.
    for partition, part in enumerate((texts[:3], texts[3:])):
        for number, text in enumerate(part):
            pieces = [text + END] if how == "text" else [piece + END for piece in text.split(END)]
            for piece in pieces:
                source = f"partition {partition}"
                expected.append(((f"{source}:{number}", source, number), piece.encode()))
    assert rows_of(tmp_path / "out", TOKENIZER) == expected


def test_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "text-\udcff.txt"
    path.write_text(f"one{END}two", encoding="utf-8")
    for _ in range(2):  # and again, from the record
        dask_bpe.encode_corpus(path, TOKENIZER, tmp_path / "out")
    corpus = dask_bpe.open_tokens(tmp_path / "out")
    assert corpus.shards[0].sources[0].path == str(path)
    assert [source for _, source, _ in origins_of(tmp_path / "out", corpus.shards[0])] == [
        str(path).replace("\udcff", "\ufffd")
    ] * 2
