"""`scripts/bench`: what it makes of texts and figures. What it measures is not measured here."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks import texts
from benchmarks.bars import Bar, Measured, bars_table, faster_than
from benchmarks.contest import Bench, Entry, rank
from benchmarks.figures import Contest, Figures, Row
from benchmarks.report import comparison, notes, ratio, table, title

END = texts.SEPARATOR


@pytest.fixture
def document_file(tmp_path: Path) -> Path:
    """Some documents in two scripts, with something like a separator in them; the last one is not ended."""
    path = tmp_path / "documents.txt"
    path.write_text(
        END.join(f"{i} Wörter <| und 你好 <|endoftex {'x' * (i % 7)}" for i in range(300)), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("size", [1, 5, 14, 100, 1 << 20])
def test_blocks_are_the_file_and_cut_no_separator(document_file: Path, size: int) -> None:
    data = document_file.read_bytes()
    blocks = list(texts.blocks(document_file, size))
    assert b"".join(blocks) == data
    assert sum(block.count(END.encode()) for block in blocks) == data.count(END.encode())
    for block in blocks:
        block.decode()


def test_what_is_not_utf8_is_mended_wherever_a_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(b"a\xffb\xe4\xbd" * 9)
    assert b"".join(texts.blocks(path, 4)).decode() == path.read_bytes().decode("utf-8", "replace")


def test_a_prefix_ends_with_a_document(document_file: Path, tmp_path: Path) -> None:
    text = texts.write(tmp_path / "prefix", texts.blocks(document_file, 64), 3000)
    written = (tmp_path / "prefix").read_bytes()
    assert len(written) == text.n_bytes <= 3000
    assert written.endswith(END.encode())
    assert document_file.read_bytes().startswith(written)
    whole = texts.write(tmp_path / "whole", texts.blocks(document_file, 64), 1 << 20)
    assert whole.n_bytes == document_file.stat().st_size
    assert whole.sha256 != text.sha256


@pytest.mark.parametrize("limit", [10, 11, 12])
def test_a_prefix_of_one_document_ends_with_a_character(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "one.txt"
    path.write_text("你好" * 9, encoding="utf-8")
    text = texts.write(tmp_path / "prefix", texts.blocks(path), limit)
    assert text.n_bytes == limit // 3 * 3
    (tmp_path / "prefix").read_text(encoding="utf-8")


def test_chained_texts_are_all_files_in_three_variations(document_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(f"Hello{END}Ça va{END}", encoding="utf-8")
    chained = b"".join(texts.chained([document_file, other])).decode()
    assert chained.count(END) == 3 * (299 + 2)
    for word in ("Wörter", "wÖRTER", "Jöegre", "Hello", "hELLO", "Uryyb", "Ça va", "çA VA", "Çn in"):
        assert word in chained
    assert "<|ENDOFTEXT|>" not in chained


def test_short_strings_have_their_length(document_file: Path) -> None:
    strings = texts.short_strings(document_file, 50, 4)
    assert len(strings) == 50
    assert {len(string) for string in strings} == {4}
    assert not any("<" in string or "|" in string for string in strings)


def test_pathological_texts_are_always_the_same() -> None:
    first, again = ({name: b"".join(parts) for name, parts in texts.pathological(400)} for _ in range(2))
    assert first == again
    assert {len(text) for text in first.values()} == {400}
    assert first["digits"].isdigit()


def ranked(*rows: Row) -> Contest:
    """A contest in which all are compared with dask_bpe."""
    made = Contest("encode", {"text": "english"}, list(rows))
    rank(made, [Entry(row.name) for row in rows])
    return made


def test_speeds_are_compared_by_bytes_and_only_where_results_are_the_same() -> None:
    made = ranked(
        Row("dask_bpe", 100_000_000, 9.0, [1.0, 3.0, 2.0]),
        Row("gigatoken", 100_000_000, 9.0, [4.0, 4.0, 1.0], same=True),
        Row("tiktoken", 10_000_000, 5.0, same=True),
        Row("tokenizers", 10_000_000, 5.0, same=False),
        Row("rustbpe", error="exit status 1"),
    )
    assert [row.slower for row in made.rows] == [None, 2.0, 25.0, None, None]
    assert [ratio(row) for row in made.rows] == ["-", "2.00x", "25.00x", "OTHER RESULT", "failed"]
    lines = comparison(
        [made], ["dask_bpe"], ["gigatoken", "tokenizers"], "s", lambda row: f"{row.seconds}"
    ).splitlines()
    assert lines[0] == "| text | MB | dask_bpe, s | gigatoken, s | HF tokenizers, s |"
    assert lines[2] == "| english | 100 | 2.0 | 4.0 (2.00x) | OTHER RESULT |"
    assert notes([made]) == "tiktoken: once, without a warm-up, on the first 10 MB."


def test_bars_are_judged_by_the_worst_figure() -> None:
    good = ranked(Row("dask_bpe", 1, 1.0), Row("gigatoken", 1, 3.0, same=True))
    bad = ranked(Row("dask_bpe", 1, 1.0), Row("gigatoken", 1, 1.5, same=True))
    other = ranked(Row("dask_bpe", 1, 1.0), Row("gigatoken", 1, 9.0, same=False))
    assert faster_than("gigatoken", 2, "x", [good]).verdict == "reached"
    assert faster_than("gigatoken", 2, "x", [good, bad]).verdict == "MISSED"
    assert faster_than("gigatoken", 2, "x", [good, other]).worst == Measured(0.0, "english", "OTHER RESULT")
    assert faster_than("gigatoken", 2, "x", [good, other]).verdict == "MISSED"
    assert faster_than("rustbpe", 2, "x", [good]).verdict == "not measured"
    seconds = Bar("t", 2, "s", (Measured(1.0, "a"), Measured(2.5, "b")), most=True)
    assert (seconds.worst, seconds.verdict) == (Measured(2.5, "b"), "MISSED")
    assert bars_table([seconds]).splitlines()[2] == "| t | at most 2.00 s | 2.50 s | worst of 2: b | MISSED |"


def test_figures_come_back_from_json() -> None:
    figures = Figures(command="scripts/bench", options={"runs": 5}, broken={"train": "OSError"})
    figures.results["encode"] = [ranked(Row("dask_bpe", 5, 1.0, [2.0]), Row("tiktoken", 5, 1.0, same=False))]
    again = Figures.from_json(json.loads(json.dumps(figures.to_json())))
    assert again == figures
    assert list(again.problems()) == ["train: OSError", "encode, english: tiktoken: OTHER RESULT"]


def test_tables_and_titles() -> None:
    assert table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"
    assert [title(name) for name in ("tokenizers", "tiktoken encode")] == ["HF tokenizers", "tiktoken encode"]


@pytest.fixture
def bench(document_file: Path, tmp_path: Path) -> Bench:
    """A bench with one text and no vocabulary."""
    options = argparse.Namespace(
        texts=[document_file], vocabs=[], megabytes=0.005, slow_megabytes=0.001, peers=None, runs=2, limit=60.0
    )
    return Bench(options, tmp_path)


def test_contestants_take_turns_after_their_results_were_compared(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "scripts"))
    text = bench.texts[0]
    entries = [
        Entry("cat", text, same_as=None, against=None),
        Entry("cat", text, name="again", same_as="cat", against="cat"),
        Entry("cat", text, name="once", same_as="cat", against="cat", runs=0),
        Entry("cat", text, name="other", digest="0" * 64),
        Entry("cat", name="broken", same_as="cat"),
        Entry("nobody", text, name="missing"),
    ]
    found = bench.contest("count", {"text": "documents"}, entries)
    assert [len(row.runs) for row in found.rows] == [2, 2, 0, 0, 0, 0]
    assert [row.problem for row in found.rows] == ["", "", "", "OTHER RESULT", "failed", "failed"]
    assert [row.slower is not None for row in found.rows] == [False, True, True, False, False, False]
    assert "KeyError: 'nobody'" in found.rows[5].error
    assert "documents: again" in capsys.readouterr().err
    assert not [path for path in bench.folder.iterdir() if path.is_dir()]


def test_slow_peers_get_a_prefix_and_ours_works_on_it_too(bench: Bench) -> None:
    check, slow = bench.slow(["tiktoken"], bench.texts[0], bench.options.slow_megabytes)
    assert check.text is slow.text
    assert (check.row_name, slow.same_as, slow.against) == ("dask_bpe on the prefix", check.row_name, "dask_bpe")
    assert slow.text is not None
    assert slow.text.n_bytes <= 1000 < bench.texts[0].n_bytes
