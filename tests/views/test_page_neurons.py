"""The neuron view in a browser: the model's attention computed from query and key, neuron by neuron."""

from __future__ import annotations

from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import bertology
from bertology.recording.recorder import record
from bertology.views.view import View
from views.page_reader import exported
from views.shown_models import TEXT, attention, mini


@cache
def neurons() -> View:
    return bertology.view(mini(), TEXT)


def number(text: str) -> float:
    return float(text.removeprefix("<").strip())


def test_it_computes_the_models_attention(opened: Any) -> None:
    page, expected = opened(neurons(), "view=neuron&layer=2&heads=3"), attention()[1, 2]
    page.click("[data-token='4']")
    page.wait_for_selector("[data-token='4'][aria-pressed=true]")
    columns = [page.locator(f"[data-score='{column}']").all_inner_texts() for column in (2, 3)]
    for texts in columns:  # the softmax computed on the page, and the weight in the model
        np.testing.assert_allclose([number(text) for text in texts], expected[4], atol=0.001)
    assert columns[0] == columns[1]
    largest = page.inner_text(".neuron-view .note:has-text('differ by at most')").split("at most ")[1].split()[0]
    assert float(largest) < 1e-5


def test_a_neuron_shows_query_key_and_product(opened: Any) -> None:
    recorded = record(mini(), bertology.corpus([TEXT]), ["query", "key"])
    query, key = (np.asarray(recorded[site][0])[1, 2] for site in ("query", "key"))
    page = opened(neurons(), "view=neuron&layer=2&heads=3&token=4")
    page.focus(".strips canvas")
    for key_name in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key_name)
    heading, product, of_query, of_key = page.locator(".tip > *").all_inner_texts()
    assert heading == f"neuron 4 of {query.shape[-1]}"
    assert _last_number(of_query) == pytest.approx(query[4, 3], abs=0.001)
    assert _last_number(of_key) == pytest.approx(key[2, 3], abs=0.001)
    assert _last_number(product) == pytest.approx(query[4] @ key[2], abs=0.002)
    assert float(product.split()[4].replace("−", "-")) == pytest.approx(query[4, 3] * key[2, 3], abs=0.002)
    page.mouse.move(*_middle_of_first_key(page))
    page.wait_for_selector(".tip:has-text('key of [CLS]')")


def _middle_of_first_key(page: Any) -> tuple[float, float]:
    box = page.locator(".strips canvas").bounding_box()
    return box["x"] + 40, box["y"] + 40


def _last_number(line: str) -> float:
    return float(line.split()[-1].replace("−", "-"))


def test_the_computation_collapses_to_lines(opened: Any) -> None:
    page = opened(neurons(), "view=neuron&layer=2&heads=3&token=4")
    assert page.locator(".strips").count() == 1
    page.click("[data-choice=Computation]")
    page.wait_for_selector(".strips", state="detached")
    weights = [number(text) for text in page.locator("[data-score]").all_inner_texts()]
    np.testing.assert_allclose(weights, attention()[1, 2, 4], atol=0.001)
    page.click("[data-choice=Computation]")
    page.wait_for_selector(".strips")


def test_all_numbers_fit_on_a_phone(opened: Any) -> None:
    page, wide = (
        opened(neurons(), "view=neuron&layer=3&heads=3", width=400),
        opened(neurons(), "view=neuron&layer=3&heads=3"),
    )
    scroller = page.locator(".neuron-view .scroll")
    assert scroller.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    numbers = [
        [number(text.replace("−", "-")) for text in each.locator("[data-score]").all_inner_texts()]
        for each in (page, wide)
    ]
    assert numbers[0] == numbers[1] and max(numbers[0]) > 50
    page.click(".more")
    words = set(ElementTree.fromstring(exported(page, "svg")).itertext())
    assert {"q·k", "scaled", "softmax", "attention"} <= words
