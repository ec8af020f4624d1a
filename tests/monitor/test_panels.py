"""The words and numbers of the page: every text of a job and of a corpus is escaped, whatever it is."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("bokeh")

from dask_bpe.monitor.page import panels, plots
from dask_bpe.progress import JobState, Snapshot

PANELS = [
    lambda snapshot: panels.head(snapshot, False),
    lambda snapshot: panels.job_links([snapshot, snapshot], snapshot["id"]),
    panels.tiles,
    panels.stages,
    panels.memory,
    lambda snapshot: panels.partitions(snapshot["partitions"]),
    panels.merges,
    panels.quarantine,
    panels.said,
]


class Read(HTMLParser):
    """The elements and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        assert all(not name.startswith("on") for name, _ in attributes)

    def handle_data(self, data: str) -> None:
        self.text += data


def job_with(text: str) -> Snapshot:
    """A job in which a text stands wherever one may stand."""
    job = JobState("encode", text)
    job.start(text, 10, text)
    job.say(text)
    job.quarantine(text, 3, text)
    job.merged(1, np.array([4]), np.array([9]), [(text.encode("utf-8", "replace"), b"x", 4)])
    job.add({"bytes": 5, "tokens": 2, "documents": 1, "quarantined": 1})
    job.divide(3)
    job.partition(1, "done", 1.0, text)
    job.partition(2, "failed", 1.0, text)
    row: Any = {"name": text, "done": 1, "rate": 1.0, "memory": 1, "memory_limit": 2}
    job.see_workers(1, [row], 1, 2, {text: 1.0})
    job.end(ValueError(text or "error"))
    return job.snapshot()


@given(st.text(max_size=40))
def test_texts_stay_texts(text: str) -> None:
    evil = f'{text}<script>alert("1")</script><img src=x onerror=\'a()\'>"'
    plain, found = job_with("plain"), job_with(evil)
    for panel in PANELS:
        assert Read(panel(found)).elements == Read(panel(plain)).elements
    assert "<script>" not in plots.throughput().title(found["curves"])


def test_a_script_is_shown_as_it_is_written() -> None:
    found = job_with("<script>alert(1)</script>")
    for panel in (panels.quarantine, panels.said, PANELS[0]):
        assert "<script>alert(1)</script>" in Read(panel(found)).text


def test_figures_are_those_of_the_snapshot() -> None:
    job = JobState("encode", "text")
    job.settle({"bytes": 12_345_678, "documents": 1234, "tokens": 3_000_000, "shards": 2, "quarantined": 7})
    text = Read(panels.tiles(job.snapshot())).text
    for shown in ("12.3 MB", "1,234", "3.00 M", "7", "4.12"):
        assert shown in text


def test_a_cell_for_each_partition() -> None:
    job = JobState("encode", "text")
    job.divide(5)
    for number, fate in ((0, "done"), (3, "failed"), (4, "resumed")):
        job.partition(number, fate)  # type: ignore[arg-type]
    html = panels.partitions(job.snapshot()["partitions"])
    assert Read(html.split('class="legend"')[0]).elements.count("i") == 5
    assert "1 done" in Read(html).text
    assert "1 failed" in Read(html).text
    assert "2 to do" in Read(html).text


def test_a_logarithmic_axis_gets_no_zeros() -> None:
    job = JobState("train")
    job.merged(1, np.array([5, 3, 0]), np.array([9, 8, 8]))
    plot = plots.merge_counts()
    assert plot.show(job.snapshot()["curves"])
    assert plot.source.data == {"x": [1, 2], "y": [5, 3]}
    assert not plots.growth().show(job.snapshot()["curves"])
