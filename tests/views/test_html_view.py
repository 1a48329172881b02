"""Results as pages: every shape in a browser, tooltips, themes, the layer of a trajectory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import bertology
from bertology.results.illustrations import Trajectory
from results.example_results import SHAPES, result

READY = "html[data-ready]"


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_shown_offline(opened: Any, name: str) -> None:
    page = opened(bertology.show(result(SHAPES[name])), ready=READY)
    assert page.locator("#figure svg.drawing").first.bounding_box()["height"] > 50
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("name", SHAPES)
def test_every_page_has_its_numbers_and_two_scripts(name: str) -> None:
    page = bertology.show(result(SHAPES[name]), "light").html()
    assert page.count("</script>") == 2  # tooltips, and the height in a frame
    assert page.partition("<script")[0].count("<tr>") == 1 + len(list(SHAPES[name].rows()))


@pytest.mark.parametrize(("theme", "dark", "green"), [("auto", True, 24), ("light", True, 255), ("dark", False, 24)])
def test_a_page_follows_its_theme(opened: Any, theme: Any, dark: bool, green: int) -> None:
    page = opened(bertology.show(result(SHAPES["Table"]), theme), dark=dark, width=360, ready=READY)
    colour = page.locator("html").evaluate("e => getComputedStyle(e).backgroundColor")
    assert abs(int(re.findall(r"\d+", colour)[1]) - green) < 3
    text = page.locator(".drawing text:not([class])").first.evaluate("e => getComputedStyle(e).fill")
    assert (int(re.findall(r"\d+", text)[1]) > 128) == (green < 128)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_mark_shows_its_numbers_under_the_pointer(opened: Any) -> None:
    page = opened(bertology.show(result(SHAPES["HeadGrid"])), ready=READY)
    page.locator(".drawing rect:has(title)").first.hover()
    assert page.inner_text(".tip").startswith("head 1-1: 20 % [15, 25], n = 7")
    page.mouse.move(1, 1)
    page.wait_for_selector(".tip", state="hidden")


def test_the_arrow_keys_move_between_marks(opened: Any) -> None:
    page = opened(bertology.show(result(SHAPES["HeadGrid"])), ready=READY)
    page.keyboard.press("Tab")
    assert page.inner_text(".tip").startswith("head 1-1:")
    for key, head in (("ArrowDown", "2-1"), ("ArrowRight", "2-2"), ("ArrowRight", "2-3"), ("ArrowUp", "1-3")):
        page.keyboard.press(key)
        assert page.inner_text(".tip").startswith(f"head {head}:")
    assert "uniform attention" in page.inner_text(".tip") and page.locator(".current").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector(".tip", state="hidden")
    page.keyboard.press("Tab")  # one stop for each drawing
    assert page.evaluate("document.activeElement === document.querySelectorAll('.drawing')[1]")


def test_a_tap_shows_the_numbers_of_a_mark(opened: Any) -> None:
    page = opened(bertology.show(result(SHAPES["LayerCurve"])), width=390, ready=READY)
    page.locator(".drawing circle:has(title)").first.dispatch_event("pointerdown", {"bubbles": True})
    assert page.inner_text(".tip").startswith("layer 1: 20 %")
    page.locator("h1").dispatch_event("pointerdown", {"bubbles": True})
    page.wait_for_selector(".tip", state="hidden")


@pytest.mark.parametrize("name", SHAPES)
def test_no_page_is_wider_than_a_phone(opened: Any, name: str) -> None:
    page = opened(bertology.show(result(SHAPES[name])), width=390, ready=READY)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert all(box["x"] + box["width"] <= 390 for box in (d.bounding_box() for d in page.locator(".drawing").all()))


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
