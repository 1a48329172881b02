"""The difference view in a browser: the most changed head first, both patterns and their difference, the ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bertology
from bertology.views import payload
from views.page_reader import exported
from views.shown_models import against_younger

COMPARED = ".ranking [data-ranked='1']"


def both() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    first, second = (payload.dequantise(run.quantities[0].weights) for run in against_younger().payload.runs)
    return first, second


def distances() -> NDArray[np.float32]:
    first, second = both()
    return np.abs(second - first).sum(-1).mean(-1) / 2


def test_it_opens_at_the_most_changed_head_and_ranks_the_others(opened: Any) -> None:
    page = opened(against_younger(), "view=difference", width=1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_selector(COMPARED)
    order = np.argsort(-distances().ravel(), kind="stable")
    names = [f"{index // 8 + 1}-{index % 8 + 1}" for index in order]
    page.wait_for_selector(f"h2:has-text('Head {names[0]} differs by'):has-text('rank 1 of 64')")
    ranked = [row.split("\t") for row in page.locator(".ranking tr").all_inner_texts()]
    assert [row[1] for row in ranked] == names[:8]
    np.testing.assert_allclose([float(row[2]) for row in ranked], distances().ravel()[order[:8]], atol=0.001)
    maps = [page.locator(f"[data-map='{index}']").bounding_box() for index in range(3)]
    assert all(box["y"] + box["height"] <= 900 for box in maps) and maps[0]["x"] < maps[1]["x"] < maps[2]["x"]


def test_a_head_is_chosen_and_kept_in_the_link(opened: Any) -> None:
    page = opened(against_younger(), "view=difference")
    page.wait_for_selector(COMPARED)
    label = page.get_attribute("[data-head='2-4']", "aria-label")
    assert float(label.split(": ")[1]) == pytest.approx(distances()[1, 3], abs=0.001)
    page.click("[data-head='2-4']")
    page.wait_for_selector("h2:has-text('Head 2-4')")
    first, second = both()
    change = (second - first)[1, 3]
    tables = [
        table.locator("tbody tr").first.inner_text().split("\t") for table in page.locator(".changes table").all()
    ]
    assert float(tables[0][-1]) == pytest.approx(change.max(), abs=0.001)
    assert float(tables[1][-1].replace("−", "-")) == pytest.approx(change.min(), abs=0.001)
    page.focus("[data-head='2-4']")
    page.keyboard.press("j")
    page.wait_for_selector("h2:has-text('Head 3-4')")
    again = opened(against_younger(), page.evaluate("location.hash").lstrip("#"))
    again.wait_for_selector(COMPARED)
    again.wait_for_timeout(300)
    assert again.inner_text("h2").startswith("Head 3-4")


def test_a_cell_shows_both_weights_and_their_difference(opened: Any) -> None:
    page = opened(against_younger(), "view=difference&layer=2&heads=4")
    page.wait_for_selector(COMPARED)
    page.focus("[data-map='2']")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    heading, *lines = page.locator(".tip > *").all_inner_texts()
    first, second = both()
    expected = [second[1, 3, 1, 1] - first[1, 3, 1, 1], first[1, 3, 1, 1], second[1, 3, 1, 1]]
    np.testing.assert_allclose([float(line.rsplit(" ", 1)[1]) for line in lines], expected, atol=0.001)
    assert heading == "i → i" and lines[1].startswith("mini ") and lines[2].startswith("mini@10% ")


def test_the_figure_names_both_runs_and_the_scale(opened: Any) -> None:
    page = opened(against_younger(), "view=difference&layer=2&heads=4")
    page.wait_for_selector(COMPARED)
    drawing = exported(page, "svg")
    first, second = both()
    largest = np.abs(second - first)[1, 3].max()
    assert "mini@10% − mini" in drawing and f"+{largest:.3f}" in drawing and "from ↓" in drawing


def test_the_tokens_of_both_inputs_are_shown(opened: Any) -> None:
    view = bertology.view("mini", "I bought a fresh loaf.", against_text="She sold a fresh loaf.", view="difference")
    page = opened(view)
    assert page.locator(".inputs dd").all_inner_texts() == ["I bought a fresh loaf .", "She sold a fresh loaf ."]
    texts = page.locator(".difference-view tbody th").all_inner_texts()
    assert "i / she" in texts or "bought / sold" in texts
    assert page.locator("[data-map]").count() == 3


def test_inputs_with_different_tokens_are_compared_by_words_or_shown_side_by_side(opened: Any) -> None:
    page = opened(bertology.view("mini", "I bought strawberries.", against_text="I bought bread."), "view=difference")
    assert page.locator("[data-map]").count() == 2
    words = page.locator(".difference-view tbody th").all_inner_texts()
    assert any("berries" in word for word in words) and "bread" in words
    page.select_option("[data-choice='Compared layer']", index=4)
    page.wait_for_selector("h2:has-text('Head 5-')")
    page.click("[data-choice='Compare words']")
    page.wait_for_selector("[data-map='2']")
    assert any(word == "strawberries / bread" for word in page.locator("tbody th").all_inner_texts())
