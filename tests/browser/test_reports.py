"""Reports and the outputs of notebooks in a real browser: no network, no script, no error, nothing wider than a phone.

SHOTS=folder keeps a picture of each.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dask_bpe
from dask_bpe.pages.html import render_output

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

END = "<|endoftext|>"
SCRIPT = "<script>document.title='hacked'</script>"
# As root in a container, and without the network that Chromium looks for when it starts.
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
# What the background and the text of a page look like, by the reader's choice.
COLOURS = {"light": ("rgb(255, 255, 255)", "rgb(27, 31, 36)"), "dark": ("rgb(20, 23, 26)", "rgb(230, 233, 236)")}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, alice: str) -> dict[str, Path]:
    """Reports of a training and an encoding with a document that cannot be read, of a vocabulary and of the lab, and
    outputs of a notebook."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "a.txt").write_text(alice + END)
    (folder / "b.jsonl").write_text('{"text": "good"}\n{"' + SCRIPT + '": 1}\n')
    tokenizer = dask_bpe.train(folder / "a.txt", 500, special_tokens=[END, SCRIPT])
    report = dask_bpe.encode_corpus(
        [folder / "a.txt", folder / "b.jsonl"], tokenizer, folder / SCRIPT.replace("/", "_")
    )
    made = {"training": tokenizer.training.report().to_html(), "encoding": report.report().to_html()}
    corpora = {SCRIPT: folder / "a.txt", "b": iter([SCRIPT * 9, "자유 自由 Freiheit"])}
    made["vocabulary"] = dask_bpe.report_vocabulary(tokenizer, corpora, name=SCRIPT).to_html()
    made["lab"] = dask_bpe.report_lab(iter(["자유와 평화, 자유와 정의"]), iter([alice[:2000]])).to_html()
    shown = [dask_bpe.vocab_curve(folder / "a.txt", [300, 400]), dask_bpe.measure_usage(tokenizer, folder / "a.txt")]
    shown += [tokenizer, tokenizer.training, dask_bpe.open_tokens(report.path), render_output(SCRIPT, [])]
    outputs = "".join(item if isinstance(item, str) else item._repr_html_() for item in shown)
    made["outputs"] = (
        f'<!DOCTYPE html><meta charset="utf-8"><meta name="viewport" content="width=device-width">{outputs}'
    )
    for name, html in made.items():
        (folder / f"{name}.html").write_text(html)
    return {name: folder / f"{name}.html" for name in made}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["training", "encoding", "vocabulary", "lab", "outputs"])
def test_a_page_is_whole(browser: Any, pages: dict[str, Path], name: str, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    trouble: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages[name].as_uri())
    assert trouble == [] and asked == [pages[name].as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() != "hacked" and page.locator("script").count() == 0
    assert name == "encoding" or page.locator("svg").count() >= 1  # so short an encoding makes no curve
    for drawing in page.locator("svg").all():
        box = drawing.bounding_box()
        assert box["width"] > 300 and box["height"] > 90  # two bars that lie are the least
    if name != "outputs":
        colours = page.evaluate("[document.documentElement, document.body].map(x => getComputedStyle(x))"
                                ".map((style, i) => i ? style.color : style.backgroundColor)")  # fmt: skip
        assert tuple(colours) == COLOURS[scheme]
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/report-{name}-{width}-{scheme}.png", full_page=True)
    context.close()
