"""What a long job shows: bars on a terminal, lines in a log, JSON for machines, nothing when quiet."""

from __future__ import annotations

import io
import json
import sys
import threading
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console

import dask_bpe
from dask_bpe.monitor import CHOICES, View, terminal_progress
from dask_bpe.monitor.amounts import format_amount, format_part, format_rate, format_seconds
from dask_bpe.monitor.bars import Bars
from dask_bpe.monitor.json_lines import JsonLines
from dask_bpe.monitor.lines import Lines
from dask_bpe.monitor.view import Quiet
from dask_bpe.progress import Snapshot, watch


def run_two_stages(view: View) -> None:
    """A job that counts everything it announced, and merges less than that."""
    with watch("train", "text", view) as job:
        job.start("counting", 4_000_000, "B")
        job.advance("counting", 1_500_000)
        job.advance("counting", 2_500_000)
        job.finish("counting")
        job.say("merging takes about 3.1 GB of memory, of [16] GB")
        job.start("merging", 1000, "merges")
        job.advance("merging", 300)
        job.merged(1, np.full(300, 7), np.full(300, 70))
        job.finish("merging")


def screen() -> Console:
    """A terminal that remembers what it was shown."""
    return Console(file=io.StringIO(), force_terminal=True, width=120)


def shown(console: Console) -> str:
    """Everything that the terminal was shown."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_lines_say_what_was_done_when_a_stage_ends() -> None:
    stream = io.StringIO()
    with Lines(stream) as view:
        run_two_stages(view)
    counting, fact, merging = stream.getvalue().splitlines()
    assert counting.startswith("counting: 4.0 MB in ")
    assert counting.endswith("B/s")
    assert fact == "merging takes about 3.1 GB of memory, of [16] GB"
    assert merging.startswith("merging: 300 merges in ")


def test_a_line_while_a_stage_runs() -> None:
    stream = io.StringIO()
    view = Lines(stream)
    with watch("count", "text", view) as job:
        job.start("counting", 10_000, "B")
        job.advance("counting", 5_000)
        view.show(job.snapshot())  # a minute has passed
        assert stream.getvalue().startswith("counting: 5.0 kB of 10.0 kB")
        assert len(stream.getvalue().splitlines()) == 1


def test_a_stage_that_was_stopped_says_so() -> None:
    stream = io.StringIO()
    with pytest.raises(RuntimeError), watch("count", "text", Lines(stream)) as job:
        job.start("counting", None, "B")
        raise RuntimeError("the job failed")
    assert stream.getvalue().endswith("(failed)\n")


def test_every_view_shows_by_itself() -> None:
    seen = threading.Event()

    class Seen(View):
        interval: ClassVar[float] = 0.01

        def show(self, snapshot: Snapshot) -> None:
            if snapshot["stages"]:
                seen.set()

    with watch("count", "text", Seen()) as job:
        job.start("counting", None, "B")
        assert seen.wait(60)


def test_bars_show_the_stage_and_end_full() -> None:
    console = screen()
    with Bars(console) as view:
        run_two_stages(view)
    assert "4.0 MB" in shown(console)
    assert "of memory, of [16] GB" in shown(console)
    # The stage ended with less than it announced: its last line holds no total.
    last = [line for line in shown(console).splitlines() if "merging" in line][-1]
    assert "300 merges" in last
    assert "1,000" not in last


def test_bars_are_put_away_when_the_job_fails() -> None:
    console = screen()
    with pytest.raises(RuntimeError), Bars(console) as view, watch("count", "text", view) as job:
        job.start("counting", None, "B")
        raise RuntimeError("the job failed")
    assert "\x1b[?25h" in shown(console)  # the cursor is visible again
    assert shown(console).rindex("\x1b[?25h") > shown(console).rindex("\x1b[?25l")


def test_json_lines_are_snapshots() -> None:
    stream = io.StringIO()
    with JsonLines(stream) as view:
        run_two_stages(view)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["stages"][-1]["name"] for line in lines] == ["counting", "merging", "merging"]
    assert [line["state"] for line in lines] == ["running", "running", "finished"]
    assert lines[-1].keys() == Snapshot.__annotations__.keys()
    assert lines[0].keys() == lines[-1].keys() - {"curves"}
    assert lines[-1]["figures"] == {"merges": 300}
    assert lines[-1]["curves"]["merges"]["rank"][-1] == 300


def test_one_view_shows_one_job_after_the_other() -> None:
    stream = io.StringIO()
    with JsonLines(stream) as view:
        run_two_stages(view)
        run_two_stages(view)
    ids = [json.loads(line)["id"] for line in stream.getvalue().splitlines()]
    assert len(set(ids)) == 2
    assert ids == sorted(ids, key=ids.index)


def test_a_job_through_all_of_it() -> None:
    """A training of this process: its last line holds the figures of its result."""
    stream = io.StringIO()
    texts = ["the cat sat on the mat", "the dog sat on the log"] * 5
    with JsonLines(stream) as view:
        tokenizer = dask_bpe.train(texts.copy().__iter__(), 290, progress=view)
    last = json.loads(stream.getvalue().splitlines()[-1])
    report = tokenizer.training
    assert report is not None
    assert last["figures"] == {
        "bytes": report.n_bytes,
        "documents": report.n_documents,
        "invalid": 0,
        "quarantined": 0,
        "pretokens": report.n_pretokens,
        "distinct": report.n_distinct,
        "merges": report.n_merges,
    }
    curve = last["curves"]["merges"]
    assert curve["count"][0] == report.log.count[0]
    assert curve["tokens_left"][-1] == report.log.tokens_after[-1]
    assert last["curves"]["growth"]["distinct"][-1] == report.n_distinct


def test_the_view_suits_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"bars": Bars, "lines": Lines, "json": JsonLines, "none": Quiet}
    assert set(CHOICES) == {"auto", *kinds}
    for choice, kind in kinds.items():
        assert type(terminal_progress(choice)) is kind
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert isinstance(terminal_progress(), Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(terminal_progress(), Bars)


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [
        (0, "B", "0 B"),
        (999, "B", "999 B"),
        (1500, "B", "1.5 kB"),
        (150_000_000, "B", "150.0 MB"),
        (2_500_000_000_000, "B", "2.5 TB"),
        (31_743, "merges", "31,743 merges"),
        (1, "merges", "1 merge"),
    ],
)
def test_amounts(amount: int, unit: str, text: str) -> None:
    assert format_amount(amount, unit) == text


def test_parts() -> None:
    assert format_part(12_000_000, 150_000_000, "B") == "12.0 MB of 150.0 MB"
    assert format_part(3, 31_743, "merges") == "3 of 31,743 merges"
    assert format_part(3, None, "merges") == "3 merges"


def test_rates() -> None:
    assert format_rate(1_234_500_000, "B") == "1,234.5 MB/s"
    assert format_rate(2_500, "B") == "2.5 kB/s"
    assert format_rate(24_000.4, "merges") == "24,000 merges/s"
    assert format_rate(0.25, "sums") == "0.2 sums/s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.9, "59.9 s"),
        (59.97, "1 min 00 s"),
        (187, "3 min 07 s"),
        (18_720, "5 h 12 min"),
        (180_000, "2 d 02 h"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
