"""Hostile text is shown as text and breaks neither pages nor exports."""

from __future__ import annotations

import csv
import io
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import bertology
from bertology.views.view import View
from views.page_reader import exported

HOSTILE_TOKENS = [
    "<b>bold</b>",
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "&lt;i&gt; &amp; &#60;",
    "\u202eright to left override",
    "שלום עולם",
    "مرحبا",
    "👩‍👩‍👧‍👦",
    "e\u0301\u0301\u0301",
    "\u0000\u0007\u001b[31m",
    "\ud800",
    "",
    " ",
    "\n\t",
    "${alert(1)}{{7*7}}",
    "=1+1",
    '"quoted", with commas',
    "x" * 400,
    "汉字",
]


def random_view(tokens: list[str], seed: int = 0, layers: int = 1, heads: int = 2) -> View:
    n = len(tokens)
    attention = np.random.default_rng(seed).dirichlet(np.full(n, 0.1), size=(layers, heads, n))
    return bertology.head_view(list(attention), tokens)


@pytest.mark.parametrize("width", [360, 1280])
def test_tokens_are_shown_as_text(opened: Any, width: int) -> None:
    page = opened(random_view(HOSTILE_TOKENS), width=width)
    texts = page.locator("ol.from bdi").all_text_contents()
    visible = {
        "": "∅",
        " ": "␣",
        "\n\t": "␊␉",
        "\u0000\u0007\u001b[31m": "␀␇␛[31m",
        "\u202eright to left override": "⟨202E⟩right to left override",
        "x" * 400: f"{'x' * 59}…",
    }
    assert texts == [visible.get(token, token) for token in HOSTILE_TOKENS]
    assert "x" * 400 in page.get_attribute("ol.from [data-position='18']", "title")
    for view in ("model", "matrix", "head"):
        page.click(f"[data-view={view}]")
        page.wait_for_selector(f".views[data-ready={view}]")
    page.hover("ol.from [data-position='2']")
    assert page.title() != "owned" and page.locator("b:has-text('bold')").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_exports_are_well_formed(opened: Any) -> None:
    page = opened(random_view(HOSTILE_TOKENS), "layer=1&heads=1,2&keep=all")
    assert "<b>bold</b>" in "".join(ElementTree.fromstring(exported(page, "svg")).itertext())
    rows = list(csv.DictReader(io.StringIO(exported(page, "csv"), newline="")))
    assert len(rows) == 2 * len(HOSTILE_TOKENS) ** 2
    assert {row["from_token"] for row in rows} >= {'"quoted", with commas', "<b>bold</b>"}


def test_512_tokens_without_spaces(opened: Any) -> None:
    tokens = ["[CLS]", *(f"##{'ab'[i % 2]}" for i in range(510)), "[SEP]"]
    page = opened(random_view(tokens, layers=2), "layer=1&heads=1,2&keep=all")
    assert page.locator("ol.from button").count() < 200
    assert "strongest of" in page.inner_text(".hint")
    page.evaluate("window.scrollTo(0, 5000)")
    page.wait_for_selector("ol.from [data-position='270']")
    page.hover("ol.from [data-position='270']")
    page.wait_for_selector("ol.to .number")
    page.evaluate("window.scrollTo(0, 0)")
    page.click("[aria-label='Next layer']")
    page.wait_for_selector(".legend li:has-text('2-1')")
    page.select_option("[data-choice=Tokens]", "words")
    page.wait_for_selector("ol.from li:nth-child(3):last-child")


@pytest.mark.parametrize("text", ["", "   ", "<script>alert(1)</script> שלום 👩‍👩‍👧‍👦"])
def test_models_accept_any_text(opened: Any, text: str) -> None:
    page = opened(bertology.view("tiny", text))
    assert page.locator("ol.from button").count() >= 2


def test_an_empty_selection_is_explained(opened: Any) -> None:
    page = opened(bertology.view("tiny", ""), "special=hide")
    assert "no token is left" in page.inner_text("main")
