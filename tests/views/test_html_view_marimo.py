"""Views and figures in a marimo notebook: the frame is as high as its page, and the widget runs.

marimo is no dependency of the tests; without it they are skipped.
"""

from __future__ import annotations

import math
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

import bertology
from bertology.views.html_view import MAX_HEIGHT, MIN_HEIGHT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("marimo", reason="marimo is not installed: `pip install marimo` runs these tests")
pytestmark = pytest.mark.slow

TEXTS = ("The strawberries are here.", "They are red.")
NOTEBOOK = """
import marimo

app = marimo.App()

@app.cell
def _():
    import bertology
    view = bertology.view("tiny", *{texts})
    view
    return bertology, view

@app.cell
def _(view):
    view.widget()
    return

@app.cell
def _(bertology):
    bertology.show(bertology.run("attention/entropy", "tiny", bertology.corpus(["The cat sat.", "It is here."])))
    return
"""
TIMEOUT_MS = 60_000


@pytest.fixture
def notebook(tmp_path: Path) -> Generator[str]:
    """The address of a marimo server that runs the notebook."""
    file = tmp_path / "notebook.py"
    file.write_text(NOTEBOOK.replace("{texts}", repr(TEXTS)), "utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "-q", "run", str(file), "--headless", "--no-token", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    try:
        _wait_for(address)
        yield address
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str) -> None:
    for _ in range(120):
        try:
            with urlopen(address):
                return
        except URLError:
            time.sleep(1)
    raise AssertionError("marimo did not start")


def test_frames_follow_their_pages_and_the_widget_runs(browser: Browser, notebook: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(notebook)
    widget = page.locator("[data-bertology-widget] .views")
    expect(widget).not_to_have_attribute("data-ready", "", timeout=TIMEOUT_MS)
    n_tokens = len(bertology.view("tiny", *TEXTS).arrays()["tokens"])
    expect(widget.locator("ol.tokens.from li")).to_have_count(n_tokens, timeout=TIMEOUT_MS)
    outer = page.locator("iframe")
    expect(outer).to_have_count(2, timeout=TIMEOUT_MS)
    for index, content in enumerate((".views:not([data-ready=''])", "svg.drawing")):
        inner = page.frame_locator("iframe").nth(index).frame_locator("iframe")
        inner.locator(content).first.wait_for()
        height = inner.locator("body").evaluate("body => body.getBoundingClientRect().height")
        frame = page.frame_locator("iframe").nth(index).locator("iframe")
        expect(frame).to_have_css("height", f"{min(MAX_HEIGHT, max(MIN_HEIGHT, math.ceil(height))):g}px")
        shown = outer.nth(index).evaluate("frame => [frame.clientHeight, frame.contentDocument.body.scrollHeight]")
        assert shown[0] >= shown[1]
    page.close()
