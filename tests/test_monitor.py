"""What a long job shows: bars on a terminal, lines in a log, nothing when quiet."""

from __future__ import annotations

import io
import sys
import threading

import pytest
from rich.console import Console

from dask_bpe.monitor import (
    PlainProgress,
    QuietProgress,
    RichProgress,
    View,
    format_amount,
    format_rate,
    terminal_progress,
)


def run_two_stages(view: View) -> None:
    """A job that counts everything it announced, and merges less than that."""
    view.start("counting", 4_000_000, "B")
    view.advance("counting", 1_500_000)
    view.advance("counting", 2_500_000)
    view.finish("counting")
    view.start("merging", 1000, "merges")
    view.advance("merging", 300)
    view.finish("merging")


def screen() -> Console:
    """A terminal that remembers what it was shown."""
    return Console(file=io.StringIO(), force_terminal=True, width=120)


def shown(console: Console) -> str:
    """Everything that the terminal was shown."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_lines_say_what_was_done_when_a_stage_ends() -> None:
    stream = io.StringIO()
    run_two_stages(PlainProgress(stream, interval=60))
    counting, merging = stream.getvalue().splitlines()
    assert counting.startswith("counting: 4.0 MB in ")
    assert counting.endswith("MB/s")
    assert merging.startswith("merging: 300 merges in ")


def test_a_fact_is_a_line() -> None:
    stream, console = io.StringIO(), screen()
    for view in (PlainProgress(stream, interval=60), RichProgress(console), QuietProgress()):
        view.say("merging takes about 3.1 GB of memory, of [16] GB")
    assert stream.getvalue() == "merging takes about 3.1 GB of memory, of [16] GB\n"
    assert "merging takes about 3.1 GB of memory, of [16] GB" in shown(console)


def test_lines_come_at_most_once_an_interval() -> None:
    stream = io.StringIO()
    view = PlainProgress(stream, interval=3600)
    view.start("counting", 10_000, "B")
    for _ in range(1000):
        view.advance("counting", 10)
    assert stream.getvalue() == ""
    eager = PlainProgress(stream, interval=0)
    eager.start("counting", 10_000, "B")
    eager.advance("counting", 5_000)
    assert stream.getvalue().startswith("counting: 5.0 kB of 10.0 kB, ")


def test_bars_show_the_stage_and_end_full() -> None:
    console = screen()
    with RichProgress(console) as view:
        run_two_stages(view)
    assert "4.0 MB" in shown(console)
    # The stage ended with less than it announced: its last line holds no total.
    assert "300 merges" in shown(console).splitlines()[-1] + shown(console).splitlines()[-2]


def test_bars_are_put_away_when_the_job_fails() -> None:
    console = screen()
    with pytest.raises(RuntimeError), RichProgress(console) as view:
        view.start("counting", None, "B")
        raise RuntimeError("the job failed")
    assert shown(console).endswith("\x1b[?25h")  # the cursor is visible again


@pytest.mark.parametrize("kind", ["rich", "plain", "quiet"])
def test_unknown_stages_are_overlooked(kind: str) -> None:
    stream = io.StringIO()
    views = {
        "rich": RichProgress(Console(file=stream)),
        "plain": PlainProgress(stream),
        "quiet": QuietProgress(),
    }
    with views[kind] as view:
        view.advance("never started", 3)
        view.finish("never started")
        view.close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize("kind", ["rich", "plain"])
def test_threads_lose_nothing(kind: str) -> None:
    console = screen()
    stream = console.file if kind == "rich" else io.StringIO()
    assert isinstance(stream, io.StringIO)
    view = RichProgress(console) if kind == "rich" else PlainProgress(stream, interval=60)
    view.start("encoding", 4 * 2500, "documents")
    threads = [threading.Thread(target=lambda: [view.advance("encoding", 1) for _ in range(2500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view.finish("encoding")
    assert "10,000 documents" in stream.getvalue()


def test_the_view_suits_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert isinstance(terminal_progress(quiet=False), PlainProgress)
    assert isinstance(terminal_progress(quiet=True), QuietProgress)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(terminal_progress(quiet=False), RichProgress)


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [
        (0, "B", "0 B"),
        (999, "B", "999 B"),
        (1500, "B", "1.5 kB"),
        (150_000_000, "B", "150.0 MB"),
        (2_500_000_000_000, "B", "2.5 TB"),
        (31_743, "merges", "31,743 merges"),
    ],
)
def test_amounts(amount: int, unit: str, text: str) -> None:
    assert format_amount(amount, unit) == text


def test_rates() -> None:
    assert format_rate(1_234_500_000, "B") == "1,234.5 MB/s"
    assert format_rate(2_500, "B") == "2.5 kB/s"
    assert format_rate(24_000.4, "merges") == "24,000 merges/s"
