"""Results as pages: every shape drawn offline by a real browser, the layer of a trajectory on a slider."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import bertology
from bertology.results.charts.page import specification
from bertology.results.shapes import Trajectory
from drawn import EVERY, result

pytest.importorskip("altair", reason="the figures extra is not installed")
pytest.importorskip("vl_convert", reason="the figures extra is not installed")

READY = "html[data-ready]"


def test_every_shape_is_drawn_offline(opened: Any) -> None:
    """All in one page, for a page of its own takes seconds to begin."""
    page = opened(bertology.show(result(EVERY["Table"])), ready=READY)
    for name, shape in EVERY.items():
        figure = specification(result(shape), "light")
        page.evaluate(
            "async figure => void await vegaEmbed('#figure', figure, { logLevel: 1, renderer: 'svg' })", figure
        )
        assert page.locator("#figure svg [aria-roledescription]").count() > 2, name


@pytest.mark.parametrize("name", EVERY)
def test_every_page_holds_its_numbers_and_one_script(name: str) -> None:
    shown = bertology.show(result(EVERY[name]), "light").html()
    assert shown.count("</script>") == 1
    numbers = shown.partition("<script")[0]
    assert numbers.count("<tr>") == 1 + len(list(EVERY[name].rows()))


@pytest.mark.parametrize(("theme", "dark", "paper"), [("auto", True, 24), ("light", True, 255)])
def test_a_page_follows_the_theme_it_is_told(opened: Any, theme: Any, dark: bool, paper: int) -> None:
    page = opened(bertology.show(result(EVERY["Table"]), theme), dark=dark, width=360, ready=READY)
    colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert abs(int(re.findall(r"\d+", colour)[1]) - paper) < 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_trajectory_has_its_layer_on_a_slider(opened: Any) -> None:
    points = np.array([[[layer, item] for item in range(3)] for layer in range(5)], np.float64)
    page = opened(
        bertology.show(result(Trajectory(points=points, labels=("a", "b", "c"), groups=("g",) * 3))), ready=READY
    )
    slider = page.locator("input[type=range]")
    assert (slider.get_attribute("max"), slider.input_value()) == ("4", "4")
    last = page.locator("#figure .mark-text.role-mark text").first.get_attribute("transform")
    slider.fill("1")
    expect(page.locator(".mark-symbol.role-mark path")).to_have_count(6)
    moved = page.locator("#figure .mark-text.role-mark text").first.get_attribute("transform")
    assert moved != last
    slider.press("ArrowRight")
    expect(page.locator(".mark-symbol.role-mark path")).to_have_count(9)


def test_a_notebook_gets_the_page_in_a_frame() -> None:
    shown = bertology.show(result(EVERY["LayerCurve"]))._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert shown.startswith("<iframe srcdoc=") and 'title="group/name"' in shown
