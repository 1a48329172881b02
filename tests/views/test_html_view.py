"""Results as pages: every shape in a browser, tooltips, themes, the layer of a trajectory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import bertology
from bertology.results.shapes import Trajectory
from results.example_results import SHAPES, result

READY = "html[data-ready]"


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_shown_offline(opened: Any, name: str) -> None:
    page = opened(bertology.show(result(SHAPES[name])), ready=READY)
    assert page.locator("#figure svg.drawing").bounding_box()["height"] > 100
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("name", SHAPES)
def test_every_page_has_its_numbers_and_one_script(name: str) -> None:
    page = bertology.show(result(SHAPES[name]), "light").html()
    assert page.count("</script>") == 1
    assert page.partition("<script")[0].count("<tr>") == 1 + len(list(SHAPES[name].rows()))


@pytest.mark.parametrize(("theme", "dark", "green"), [("auto", True, 24), ("light", True, 255), ("dark", False, 24)])
def test_a_page_follows_its_theme(opened: Any, theme: Any, dark: bool, green: int) -> None:
    page = opened(bertology.show(result(SHAPES["Table"]), theme), dark=dark, width=360, ready=READY)
    for element, property_ in (("html", "backgroundColor"), (".drawing .background", "fill")):
        colour = page.locator(element).evaluate(f"e => getComputedStyle(e).{property_}")
        assert abs(int(re.findall(r"\d+", colour)[1]) - green) < 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_mark_shows_its_numbers_under_the_pointer(opened: Any) -> None:
    page = opened(bertology.show(result(SHAPES["HeadGrid"])), ready=READY)
    page.locator(".drawing rect:has(title)").first.hover()
    assert page.inner_text(".tip").startswith("head 1-1: 0.2 [0.15, 0.25], n = 7")
    page.mouse.move(1, 1)
    page.wait_for_selector(".tip", state="hidden")


def test_a_slider_selects_the_layer_of_a_trajectory(opened: Any) -> None:
    points = np.array([[[layer, point] for point in range(3)] for layer in range(5)], np.float64)
    trajectory = Trajectory(points=points, labels=("a", "b", "c"), groups=("g",) * 3)
    page = opened(bertology.show(result(trajectory)), ready=READY)
    slider = page.locator("input[type=range]")
    assert (slider.get_attribute("max"), slider.input_value()) == ("4", "4")
    last = page.locator(".ends text:visible").first.get_attribute("x")
    slider.fill("1")
    assert page.locator(".steps circle:visible").count() == 6 and page.locator(".ends circle:visible").count() == 3
    assert page.locator(".ends text:visible").first.get_attribute("x") != last
    slider.press("ArrowRight")
    assert page.locator(".steps circle:visible").count() == 9


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    html = bertology.show(result(SHAPES["LayerCurve"]))._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert html.startswith("<iframe srcdoc=") and 'title="group/name"' in html
