"""The page of jobs in a real browser, on a cluster of two processes. `scripts/test --browser`

SHOTS=folder keeps a picture of every state that is looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import dask_bpe
from dask_bpe.monitor.publisher import page_link

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

END = "<|endoftext|>"
WIDE, NARROW = 1280, 390
# As root in a container, and without the network that Chromium looks for when it starts.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RUNNING = re.compile(r", running$")
SCRIPT = "<script>window.alert('corpus')</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Viewer:
    """A page in the browser; what goes wrong there is remembered."""

    def __init__(self, browser: Any, address: str, width: int = WIDE, scheme: str = "light") -> None:
        self.width, self.scheme = width, scheme
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = context.new_page()
        self.trouble: list[str] = []
        self.page.on("console", lambda message: message.type == "error" and self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.trouble.append(dialog.message), dialog.dismiss()))
        self.page.goto(address)

    def wait(self, condition: Callable[[], Any]) -> Any:
        """What the condition gives when it is true at last."""
        for _ in range(600):
            found = condition()
            if found:
                return found
            self.page.wait_for_timeout(100)
        raise AssertionError(f"not seen within a minute: {self.text()}")

    def text(self) -> str:
        """All that is to be read on the cards; they are in shadows, which the text of the body leaves out."""
        return "\n".join(self.page.locator(".bk-clearfix").all_inner_texts())

    def done(self, stage: str) -> int:
        """How far the bar of a stage is, in its units; 0 before there is one."""
        row = self.page.locator(f'[data-stage="{stage}"]')
        return int(row.get_attribute("data-done") or 0) if row.count() else 0

    def bar(self, stage: str) -> float:
        """How long the bar of a stage is, in percent."""
        style = self.page.locator(f'[data-stage="{stage}"] .fill').get_attribute("style")
        return float(style.removeprefix("width:").removesuffix("%"))

    def figure(self, label: str) -> int:
        """A figure of the job, with all its digits."""
        tile = self.page.locator(".tile", has=self.page.get_by_text(label, exact=True))
        return int(tile.locator("[title]").get_attribute("title").replace(",", ""))

    def look(self, name: str) -> None:
        """Nothing went wrong, nothing is wider than the screen; a picture is kept if it is asked for."""
        assert self.trouble == []
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        if folder := os.environ.get("SHOTS"):
            self.page.screenshot(path=f"{folder}/page-{name}-{self.width}-{self.scheme}.png", full_page=True)

    def close(self) -> None:
        self.page.context.close()


@pytest.fixture
def views(browser: Any, client: Client) -> Iterator[list[Viewer]]:
    """Of the page, wide and narrow, light and dark."""
    dask_bpe.train(dask_bpe.PretokenCounts.from_mapping({"ab": 2}), 257, client=client)  # the page is there now
    link = page_link(client)
    assert link is not None
    viewers = [Viewer(browser, link, width, scheme) for width in (WIDE, NARROW) for scheme in ("light", "dark")]
    yield viewers
    for viewer in viewers:
        viewer.close()


def started(work: Callable[[], Any]) -> Future[Any]:
    """The result of work that is done in a thread."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run).start()
    return future


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    shutil.copyfile(Path(dask_bpe.__file__).parent / "data" / "alice.txt", path)
    return path


@pytest.fixture
def slow_workers(client: Client) -> Iterator[None]:
    """Every partition takes a moment longer, so that there is time to look."""

    def hold() -> None:
        import time

        from dask_bpe.cluster import blocks

        read = blocks.read_at_once = blocks.read  # type: ignore[attr-defined]

        def slowly(*arguments: Any) -> Any:
            time.sleep(0.15)
            return read(*arguments)

        blocks.read = slowly

    def let_go() -> None:
        from dask_bpe.cluster import blocks

        blocks.read = blocks.read_at_once  # type: ignore[attr-defined]

    client.run(hold)
    yield
    client.run(let_go)


@pytest.mark.usefixtures("slow_workers")
def test_a_job_while_it_runs(client: Client, views: list[Viewer], text: Path, tmp_path: Path) -> None:
    first = views[0]
    training = started(
        lambda: dask_bpe.train(text, 3000, special_tokens=[END], block_bytes=5000, split_every=4, client=client)
    )
    once = first.wait(lambda: 0 < first.done("counting") < text.stat().st_size and first.done("counting"))
    length = first.bar("counting")
    first.wait(lambda: first.done("counting") > once)
    assert first.bar("counting") > length
    for view in views:
        view.look("counting")
    tokenizer = training.result(120)
    report = tokenizer.training
    first.wait(lambda: "finished" in first.text() and first.done("merging"))
    assert first.done("counting") == text.stat().st_size == report.n_bytes
    assert first.done("merging") == first.figure("merges") == report.n_merges
    assert first.figure("distinct pre-tokens") == report.n_distinct
    assert "Count of the merged pair" in first.text()
    for view in views:
        view.wait(lambda view=view: "finished" in view.text())
        view.look("trained")

    encoding = started(
        lambda: dask_bpe.encode_corpus(text, tokenizer, tmp_path / "out", block_bytes=4000, client=client)
    )
    once = first.wait(lambda: 0 < first.done("encoding") < text.stat().st_size and first.done("encoding"))
    first.wait(lambda: first.done("encoding") > once)
    for view in views:
        view.look("encoding")
    encoding.result(120)
    first.wait(lambda: "finished" in first.text() and first.done("writing"))
    manifest = dask_bpe.open_tokens(tmp_path / "out").manifest
    assert first.figure("tokens") == manifest.tokens
    assert first.figure("documents") == manifest.text["documents"]
    assert first.figure("shards") == len(manifest.shards)
    assert first.done("encoding") == manifest.text["bytes"]
    for view in views:
        view.wait(lambda view=view: "finished" in view.text())
        view.look("encoded")


def test_texts_of_the_corpus_are_texts(client: Client, views: list[Viewer], tmp_path: Path) -> None:
    """Of tokens, of names of files, and of what is wrong in them."""
    path = tmp_path / "<img src=x onerror=alert(1)>.jsonl"
    lines = [f'{{"text": "{SCRIPT}"}}' for _ in range(50)] + ['{"text": "<b>bold</b>", ', '{"text": 7}']
    path.write_text("\n".join(lines), encoding="utf-8")
    dask_bpe.train(path, 290, pattern=None, client=client)
    for view in views:
        view.wait(lambda view=view: view.page.locator(".pill.finished").count() and "not read" in view.text())
        assert "<img src=x onerror" in view.text()
        # What was merged last is the whole of it. The parts of the page change one after the other.
        view.wait(lambda view=view: "".join(view.page.locator(".token").all_inner_texts()[:2]) == SCRIPT)
        assert view.page.locator(".bk-clearfix").locator("script, img, b b").count() == 0
        view.look("quarantine")


@pytest.mark.usefixtures("slow_workers")
def test_several_jobs_at_once(client: Client, views: list[Viewer], text: Path) -> None:
    jobs = [
        started(lambda size=size: dask_bpe.train(text, size, block_bytes=5000, split_every=4, client=client))
        for size in (400, 500)
    ]
    first = views[0]
    first.wait(lambda: first.page.locator(".jobs a", has_text=RUNNING).count() == 2)
    for view in views:
        view.wait(lambda view=view: view.page.locator(".jobs a", has_text=RUNNING).count())
        view.look("two-jobs")
    for job in jobs:
        job.result(120)
    # Each has an address of its own.
    other = first.page.locator(".jobs a:not(.shown)").first
    address = other.get_attribute("href")
    other.click()
    first.wait(lambda: first.page.locator(".jobs a.shown").count())
    assert first.page.locator(".jobs a.shown").get_attribute("href") == address
    first.look("other-job")


def test_before_the_first_job(browser: Any) -> None:
    """On a scheduler that has the page from its start."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=0,
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"preload": ["dask_bpe.monitor.preload"]},
    ) as cluster:
        view = Viewer(browser, cluster.dashboard_link.replace("/status", "/dask-bpe"))
        view.wait(lambda: "No job yet" in view.text())
        view.look("nothing")
        view.page.get_by_role("link", name="Dask-Bpe").click()
        view.wait(lambda: "No job yet" in view.text())
        view.close()
