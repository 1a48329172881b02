"""The model view in a browser: all heads on one screen, coloured and sorted by a measure, one of them enlarged."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import bertology
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid
from bertology.views.view import View
from views.page_reader import exported, n_colours, weights_on
from views.shown_models import TEXT, attention, mini

MEASURED = ".model-view [data-head='8-8']:not([aria-label*='not measured'])"


@cache
def entropies() -> Result:
    return bertology.run("attention/entropy", mini(), bertology.corpus([TEXT, "They were red.", "It is here now."]))


@cache
def atlas() -> View:
    return bertology.view(mini(), TEXT, results=entropies(), labels={"2-3": "commas (n = 3)"})


def heads_in_order(page: Any) -> list[str]:
    return page.locator(".model-view .grid button").evaluate_all("all => all.map(e => e.dataset.head)")


def head_names(order: Any, heads: int = 8) -> list[str]:
    return [f"{index // heads + 1}-{index % heads + 1}" for index in order]


@pytest.mark.parametrize("shape", [(8, 8), (12, 12), (24, 16)], ids=str)
def test_all_heads_fit_on_one_screen(opened: Any, shape: tuple[int, int]) -> None:
    layers, heads = shape
    weights = np.random.default_rng(0).dirichlet(np.ones(14), size=(layers, 1, heads, 14)).astype(np.float32)
    page = opened(bertology.model_view(list(weights), [f"token{i}" for i in range(14)]), width=1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_selector(f"[data-head='{layers}-{heads}']:not([aria-label*='not measured'])")
    boxes = page.locator(".model-view .grid button").evaluate_all("all => all.map(e => e.getBoundingClientRect())")
    assert len(boxes) == layers * heads
    assert max(box["bottom"] for box in boxes) <= 900 and min(box["width"] for box in boxes) >= 20
    enlarged = page.locator(".enlarged canvas").bounding_box()
    assert enlarged["x"] > max(box["right"] for box in boxes) and enlarged["y"] + enlarged["height"] <= 900
    assert enlarged["width"] > 350


def test_measures_of_the_text_are_those_of_its_attention(opened: Any) -> None:
    page, weights = opened(atlas(), "view=model&layer=3&heads=8"), attention()
    page.wait_for_selector(MEASURED)
    n = weights.shape[-1]
    plogp = weights * np.log(np.where(weights > 0, weights, 1))
    entropy = -plogp.sum(-1).mean(-1)
    # Layers are measured one after the other, and the ranks grow with them.
    rank = 1 + int((entropy > entropy[2, 7]).sum())
    page.wait_for_selector(f".card table tr:has(:text-is('entropy')) td:last-child:text-is('{rank}')")
    rows = [row.split("\t") for row in page.locator(".card table").first.locator("tbody tr").all_inner_texts()]
    shown = {name: (value, uniform, int(rank)) for name, value, uniform, rank in rows}
    expected = {
        "largest weight": weights.max(-1).mean(-1),
        "entropy": entropy,
        "to previous token": np.diagonal(weights, -1, 2, 3).mean(-1),
        "to next token": np.diagonal(weights, 1, 2, 3).mean(-1),
        "to itself": np.diagonal(weights, 0, 2, 3).mean(-1),
        "to [CLS]": weights[..., 0].mean(-1),
        "to [SEP]": weights[..., -1].mean(-1),
    }
    assert list(shown) == list(expected)
    for name, values in expected.items():
        value, uniform, rank = shown[name]
        assert float(value) == pytest.approx(values[2, 7], rel=0.06, abs=1e-6), name
        assert float(uniform) == pytest.approx(np.log(n) if name == "entropy" else 1 / n, rel=0.02), name
        assert rank == 1 + (values > values[2, 7]).sum(), name


def test_heads_are_sorted_by_a_measure_and_back(opened: Any) -> None:
    page, largest = opened(atlas(), "view=model&measure=largest+weight"), attention().max(-1).mean(-1)
    page.wait_for_selector(MEASURED)
    page.select_option("[data-choice='Order of heads']", "all")
    page.wait_for_selector(".model-view .grid button:first-of-type[data-head='3-8']")
    assert heads_in_order(page)[:20] == head_names(np.argsort(-largest.ravel(), kind="stable"))[:20]
    page.select_option("[data-choice='Order of heads']", "layers")
    page.wait_for_selector(".model-view .grid button:first-of-type[data-head^='1-']")
    within = (np.argsort(-largest, axis=1, kind="stable") + 8 * np.arange(8)[:, None]).ravel()
    assert heads_in_order(page) == head_names(within)
    assert "order=layers" in page.evaluate("location.hash")
    page.select_option("[data-choice='Order of heads']", "model")
    page.wait_for_selector(".model-view .grid button:first-of-type[data-head='1-1']")
    assert heads_in_order(page) == head_names(range(64))


def test_a_result_colours_heads_and_its_card_has_interval_n_baseline_and_rank(opened: Any) -> None:
    grid = entropies().data
    assert isinstance(grid, HeadGrid)
    name = next(iter(grid.measures))
    page = opened(atlas(), "view=model&cells=values&measure=largest+weight")
    page.wait_for_selector(MEASURED)
    grid_by_text = page.locator(".model-view .grid").screenshot()
    options = page.locator("[data-choice='Colour by'] option").evaluate_all("all => all.map(e => e.value)")
    page.select_option(
        "[data-choice='Colour by']", next(option for option in options if option.startswith(f"{name} · "))
    )
    page.hover("[data-head='2-3']")
    page.wait_for_selector(f".tip:has-text('{name}: ')")
    heading, label, value, sample, *baselines = page.locator(".tip > *").all_inner_texts()
    estimate = grid.measures[name][1, 2]
    assert heading == "Head 2-3" and label == "commas"
    numbers = [float(part.strip("[],")) for part in value.removeprefix(f"{name}: ").split()[:3]]
    np.testing.assert_allclose(numbers, [estimate.value, estimate.low, estimate.high], rtol=0.01)
    rank = 1 + int((grid.measures[name].value > estimate.value).sum())
    assert sample == f"n = {estimate.n} · rank {rank} of 64"
    assert [line.rsplit(" ", 1)[0] for line in baselines] == list(grid.baselines_of(name))
    page.mouse.move(1, 1)
    page.wait_for_selector(".tip", state="detached")
    assert page.locator(".model-view .grid").screenshot() != grid_by_text


def test_the_keyboard_moves_over_heads_and_opens_one(opened: Any) -> None:
    page = opened(atlas(), "view=model&layer=3&heads=3")
    page.wait_for_selector(MEASURED)
    page.focus("[data-head='3-3']")
    for key, head in [("ArrowDown", "4-3"), ("l", "4-4"), ("k", "3-4"), ("ArrowLeft", "3-3"), ("j", "4-3")]:
        page.keyboard.press(key)
        page.wait_for_selector(f".enlarged h2:has-text('Head {head}')")
        page.wait_for_selector(f".tip:has-text('Head {head}')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".views[data-ready=head]")
    assert list(weights_on(page)) == ["4-3"]


def test_cells_of_the_enlarged_map_show_their_number(opened: Any) -> None:
    page, weights = opened(atlas(), "view=model"), attention()[1, 2]
    page.wait_for_selector(MEASURED)
    page.click("[data-head='2-3']")
    page.wait_for_selector(".enlarged h2:has-text('2-3')")
    page.focus(".enlarged canvas")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_selector(".enlarged .tip")
    heading, value, position = page.locator(".enlarged .tip > *").all_inner_texts()
    assert heading == "i → i" and position == "token 2 to token 2"
    assert float(value) == pytest.approx(weights[1, 1], abs=0.001)
    page.keyboard.press("Escape")
    page.wait_for_selector(".enlarged .tip", state="detached")
    page.click(".enlarged button:has-text('Numbers')")
    page.wait_for_selector(".views[data-ready=matrix] .matrix-view b:has-text('2-3')")


def test_lines_and_values_replace_maps(opened: Any) -> None:
    page = opened(atlas(), "view=model&measure=none", width=1440)
    page.wait_for_selector(".model-view .grid canvas")
    pictures = set[bytes]()
    for cells in ("maps", "lines", "values"):
        page.select_option("[data-choice=Cells]", cells)
        page.wait_for_timeout(800)
        pictures.add(page.locator(".model-view .grid").screenshot())
    assert len(pictures) == 3
    page.select_option("[data-choice='Colour by']", "to previous token")
    page.wait_for_selector(MEASURED)
    drawing = exported(page, "svg")
    assert "to previous token, share of attention" in drawing and "uniform attention" in drawing


def test_long_texts_have_thumbnails_of_their_strongest_weights(opened: Any) -> None:
    page = opened(bertology.view("tiny", "the cat " * 150), "view=model")
    page.wait_for_selector(".model-view [data-head='2-4']:not([aria-label*='not measured'])")
    assert "strongest weight of up to" in page.inner_text(".model-view > .note")
    assert n_colours(page, ".model-view .grid canvas") > 20


COLUMN_CHROMA = """([head, column, count]) => {
  const root = document.querySelector('[data-bertology-view]').shadowRoot;
  const [canvas, button] = [root.querySelector('.grid canvas'), root.querySelector(`[data-head='${head}']`)];
  const scale = canvas.width / canvas.getBoundingClientRect().width;
  const [frame, cell] = [canvas.getBoundingClientRect(), button.getBoundingClientRect()];
  const side = cell.width - 3;
  const x = cell.left - frame.left + 1.5 + (column + 0.5) * side / count;
  const [y, height] = [cell.top - frame.top + 1.5, side];
  const [left, top, length] = [x, y, height].map((value) => Math.round(value * scale));
  const { data } = canvas.getContext('2d').getImageData(left, top, 1, length);
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) {
    sum += Math.max(...data.slice(i, i + 3)) - Math.min(...data.slice(i, i + 3));
  }
  return sum / length;
}"""
"""The mean chroma of a column of pixels: lines between other tokens may cross it, so that its maximum says little."""


@pytest.mark.parametrize("cells", ["maps", "lines"])
def test_special_tokens_are_faded_in_the_thumbnails(opened: Any, cells: str) -> None:
    """Head 5-5 attends mostly to [SEP], the last column."""
    n_tokens = len(attention()[0, 0])
    chroma: dict[str, float] = {}
    for special in ("fade", "show"):
        state = f"view=model&measure=none&cells={cells}&special={special}"
        page = opened(bertology.view(mini(), TEXT), state, width=1440)
        page.wait_for_timeout(600)  # thumbnails are made one after the other
        chroma[special] = page.evaluate(COLUMN_CHROMA, ["5-5", n_tokens - 1, n_tokens])
        noted = "Grey: from or to a special token" in page.inner_text(".model-view > .note")
        assert noted == (special == "fade")
    assert chroma["show"] > 1.25 * chroma["fade"] and (cells == "lines" or chroma["fade"] < 20)
