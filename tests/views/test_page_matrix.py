"""The matrix view in a browser: numbers, sorting, an overview of long texts, upright Chinese."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import bertology
from bertology.views.view import View
from browsing import wait_until
from views.shown_models import TEXT, attention, mini


@cache
def short() -> View:
    return bertology.view(mini(), TEXT)


def first_cell_on_screen(page: Any) -> tuple[int, int]:
    """The row and column at the upper left of the part on screen."""
    left, top = page.locator(".scroller").evaluate("e => [e.scrollLeft, e.scrollTop]")
    return round(top / 24), round(left / 41)


def test_it_sorts_and_copies(opened: Any) -> None:
    page, expected = opened(short(), "view=matrix&layer=1&heads=2"), attention()[0, 1]
    assert page.inner_text("[data-cell='4,7']").lstrip(".") == f"{expected[4, 7]:.2f}".split(".")[1]
    page.click("[data-column='3']")
    order = [int(row) for row in page.locator("[data-row]").evaluate_all("all => all.map(e => e.dataset.row)")]
    assert len(order) > 10 and order == sorted(range(len(expected)), key=lambda row: -expected[row, 3])[: len(order)]
    assert page.locator("[aria-sort=descending]").count() == 1
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
    page.click("text=Copy table")
    lines = [line.split("\t") for line in page.evaluate("window.copied").split("\n")]
    assert len(lines) == len(expected) + 1 and lines[0][1] == "[CLS]"
    np.testing.assert_allclose([float(cell) for cell in lines[1][1:]], expected[order[0]], atol=1e-4)


def test_numbers_have_one_format(opened: Any) -> None:
    page, expected = opened(short(), "view=matrix&layer=3&heads=8", width=1440), attention()[2, 7]
    for row, column in np.ndindex(6, 6):
        text = page.inner_text(f"[data-cell='{row},{column}']")
        value = expected[row, column]
        assert text == ("<.01" if value < 0.005 else f"{value:.2f}".removeprefix("0")), (row, column)


def test_the_chosen_cell_has_its_exact_number_and_rank(opened: Any) -> None:
    page, expected = opened(short(), "view=matrix&layer=1&heads=2"), attention()[0, 1]
    row, column = np.unravel_index(expected.argmax(), expected.shape)
    assert float(page.inner_text(".exact b")) == pytest.approx(expected[row, column], rel=1e-5)
    page.hover("[data-cell='4,7']")
    page.wait_for_selector(".exact:has-text('token 5 to token 8')")
    assert float(page.inner_text(".exact b")) == pytest.approx(expected[4, 7], rel=1e-5)
    assert f"rank {1 + (expected[4] > expected[4, 7]).sum()} of 18" in page.inner_text(".exact")
    page.mouse.move(1, 1)
    page.focus(".scroller")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.wait_for_selector(".exact:has-text('token 4 to token 9')")
    weights = [float(row.split("\t")[-1]) for row in page.locator(".targets tbody tr").all_inner_texts()]
    np.testing.assert_allclose(weights, np.sort(expected[3])[::-1][:8], atol=0.001)


def test_chinese_column_heads_stand_upright(opened: Any) -> None:
    tokens = ["[CLS]", "我", "cat", "学习", "[SEP]"]
    page = opened(bertology.head_view([np.full((1, 2, 5, 5), 0.2)], tokens, view="matrix"))
    styles = page.locator(".header button").evaluate_all(
        "all => all.map(e => [getComputedStyle(e).transform === 'none', getComputedStyle(e).textOrientation])"
    )
    upright = [stands and orientation == "upright" for stands, orientation in styles]
    assert upright == [False, True, False, True, False]


def test_a_frame_in_the_overview_moves_over_a_long_text(opened: Any) -> None:
    page = opened(bertology.view("tiny", "the cat " * 120), "view=matrix")
    assert first_cell_on_screen(page) == (0, 0)
    box = page.locator(".table-overview canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    scroller = "document.querySelector('[data-bertology-view]').shadowRoot.querySelector('.scroller')"
    wait_until(page, f"{scroller}.scrollTop > 500")
    row, column = first_cell_on_screen(page)
    assert 90 < row < 121 and 90 < column < 121
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 2)
    page.mouse.up()
    page.wait_for_selector(".table-overview:has-text('Rows 1–')")
    assert first_cell_on_screen(page)[0] == 0 and first_cell_on_screen(page)[1] > 200
    page.focus(".table-overview canvas")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".table-overview:not(:has-text('Rows 1–'))")
    assert first_cell_on_screen(page)[0] > 3
    assert "242 rows" in page.get_attribute(".table-overview canvas", "aria-label")


def test_weights_of_a_few_thousandths_can_be_distinguished(opened: Any) -> None:
    page = opened(bertology.view("tiny", "the cat " * 120), "view=matrix")
    cells = page.locator("[data-cell]").all_inner_texts()
    assert all(cell.startswith(".00") and len(cell) == 5 for cell in cells) and len(set(cells)) > 1


CHROMA = """selector => {
  const parts = getComputedStyle(document.querySelector('[data-bertology-view]').shadowRoot.querySelector(selector))
    .backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number);
  return Math.max(...parts) - Math.min(...parts);
}"""


def test_weights_of_special_tokens_are_faded_and_others_set_the_scale(opened: Any) -> None:
    """Head 5-5 attends mostly to the full stops and [SEP]."""
    page, expected = opened(short(), "view=matrix&layer=5&heads=5", width=1440), attention()[4, 4]
    last = len(expected) - 1
    ordinary = expected[1:-1, 1:-1]
    row, column = (int(axis) + 1 for axis in np.unravel_index(ordinary.argmax(), ordinary.shape))
    to_special = int(expected[1:-1, last].argmax()) + 1
    special, strongest = f"[data-cell='{to_special},{last}']", f"[data-cell='{row},{column}']"
    assert page.evaluate(CHROMA, special) < 20 and page.evaluate(CHROMA, strongest) > 60
    assert "Grey: from or to a special token" in page.inner_text(".panel")
    assert page.inner_text(".legend .colour-bar span span:last-child").startswith(f"{ordinary.max():.3f}"[:4])
    page.select_option("[data-choice='Special tokens']", "show")
    page.wait_for_selector(".panel:not(:has-text('Grey: from'))")
    assert page.evaluate(CHROMA, special) > 60
