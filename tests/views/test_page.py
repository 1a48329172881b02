"""The page in a browser, offline: every view, all settings, the numbers it shows and exports."""

from __future__ import annotations

import csv
import io
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

import bertology
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.recording.recorder import record
from bertology.views import payload
from bertology.views.view import View
from views.page_reader import exported, n_colours, weights_on

FIRST = "I went to the store. At the store, I bought fresh strawberries."
SECOND = "They were red."
ALL_HEADS = "heads=1,2,3,4,5,6,7,8"
VIEWS = ("head", "model", "matrix", "neuron", "difference")


@cache
def mini() -> Encoder:
    """A trained model: the attention of an untrained one is so uniform that wrong numbers would look right."""
    return load("mini")


@cache
def single() -> View:
    return bertology.view(mini(), FIRST, quantities=("attention", "norm", "gradient"), labels={"1-2": "commas (n = 3)"})


@cache
def pair() -> View:
    return bertology.view(mini(), FIRST, SECOND, against="mini@10%")


def attention(text: str) -> NDArray[np.float32]:
    return np.asarray(record(mini(), bertology.corpus([text]), ["attention"])["attention"][0])


def as_number(text: str) -> float:
    """A number on the page; of a bound ("< 0.001") its half."""
    return float(text.removeprefix("< ")) / (2 if text.startswith("<") else 1)


@pytest.mark.parametrize(("width", "dark"), [(360, False), (2560, True)], ids=["narrow and light", "wide and dark"])
def test_every_view_renders_offline_in_every_size(opened: Any, width: int, dark: bool) -> None:
    page = opened(pair(), width=width, dark=dark)
    for view in VIEWS:
        page.click(f"[data-view={view}]")
        page.wait_for_selector(f".views[data-ready={view}]")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        if view != "matrix":
            assert n_colours(page) > 3, view
    background = page.locator(".views").evaluate("e => getComputedStyle(e).backgroundColor")
    assert background == ("rgb(22, 24, 28)" if dark else "rgb(255, 255, 255)")


def test_the_weights_shown_are_exactly_those_of_the_model(opened: Any) -> None:
    page, expected = opened(single(), f"{ALL_HEADS}&keep=all"), attention(FIRST)
    assert "exact" in page.inner_text(".about")
    for layer in (0, 4, 7):
        page.select_option("[data-choice=Layer]", index=layer)
        page.wait_for_selector(f".legend li:has-text('{layer + 1}-1')")
        weights = weights_on(page)
        for head in range(8):
            exported_weights = weights[f"{layer + 1}-{head + 1}"].astype(np.float32)
            np.testing.assert_array_equal(exported_weights, expected[layer, head])


def test_coarse_steps_are_within_the_promised_error(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MAX_EXACT_TOKENS", "MAX_FINE_VALUES", "MAX_COARSE_VALUES"):
        monkeypatch.setattr(payload, limit, 0)
    page, expected = opened(bertology.view(mini(), FIRST), f"layer=1&{ALL_HEADS}&keep=all"), attention(FIRST)
    assert "stored in steps of 1/128 of the largest weight of each row" in page.inner_text(".about")
    for head, weights in weights_on(page).items():
        exact = expected[0, int(head.split("-")[1]) - 1]
        error = np.abs(weights - exact) / exact.max(-1, keepdims=True)
        assert 1e-4 < error.max() <= 1 / 255


def test_a_token_shows_its_weights_as_numbers(opened: Any) -> None:
    page, expected = opened(single(), "layer=1&heads=3"), attention(FIRST)[0, 2]
    page.hover("ol.from [data-position='5']")
    numbers = [as_number(text) for text in page.locator("ol.to .number").all_inner_texts()]
    np.testing.assert_allclose(numbers, expected[5], atol=0.001)
    page.hover("ol.to [data-position='2']")
    numbers = [as_number(text) for text in page.locator("ol.from .number").all_inner_texts()]
    np.testing.assert_allclose(numbers, expected[:, 2], atol=0.001)
    rows = page.locator(".details tbody tr").all_inner_texts()
    assert len(rows) == len(expected)
    assert float(rows[0].split("\t")[-1]) == pytest.approx(expected[:, 2].max(), abs=0.001)


def test_a_click_pins_a_token_and_the_keyboard_moves_the_selection(opened: Any) -> None:
    page = opened(single(), "layer=1&heads=1")
    tokens = [token.text for token in single().payload.runs[0].tokens]
    page.click("ol.from [data-position='3']")
    page.mouse.move(1, 1)
    assert page.locator("ol.from [aria-pressed=true]").inner_text() == tokens[3]
    assert "token=3" in page.evaluate("location.hash")
    page.focus("ol.from [data-position='3']")
    page.keyboard.press("ArrowDown")
    assert page.locator(".details h2").first.inner_text() == f"from {tokens[4]} token 4"
    page.keyboard.press("ArrowRight")
    assert page.locator(".details h2").first.inner_text() == f"to {tokens[4]} token 4"
    page.keyboard.press("Enter")
    assert page.locator("ol.to [aria-pressed=true]").inner_text().startswith(tokens[4])


def test_heads_are_selected_one_by_one(opened: Any) -> None:
    page = opened(single(), f"layer=1&{ALL_HEADS}")
    assert page.locator(".legend li").count() == 8 + 2
    page.click("[data-chip='2']")
    assert sorted(weights_on(page)) == ["1-1", *(f"1-{head}" for head in range(3, 9))]
    page.dblclick("[data-chip='4']")
    assert page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["4"]
    assert "commas" in page.get_attribute("[data-chip='2']", "title")


@pytest.mark.parametrize("part", ["aa", "ab", "ba", "bb"])
def test_sentence_filters_select_the_attention_between_segments(opened: Any, part: str) -> None:
    view = pair()
    page = opened(view, "layer=1&heads=1&keep=all")
    page.select_option("[data-choice=Sentences]", part)
    page.wait_for_selector(".shown b:not(:has-text('100 %'))")
    segments = np.array([token.segment for token in view.payload.runs[0].tokens])
    rows, columns = (np.flatnonzero(segments == "ab".index(letter)) for letter in part)
    attention = payload.dequantise(view.payload.runs[0].quantities[0].weights)[0, 0]
    np.testing.assert_allclose(weights_on(page)["1-1"], attention[np.ix_(rows, columns)], atol=1e-4)
    percentage = float(page.inner_text(".shown b").split()[0])
    assert percentage == pytest.approx(100 * attention[np.ix_(rows, columns)].sum() / len(rows), abs=0.1)


def test_words_special_tokens_and_filters(opened: Any) -> None:
    page, expected = opened(single(), "layer=1&heads=1&units=words&keep=all"), attention(FIRST)[0, 0]
    words = np.array([token.word_index for token in single().payload.runs[0].tokens])
    groups = [np.flatnonzero(words == word) for word in range(words.max() + 1)]
    groups = [np.array([0]), *groups, np.array([len(words) - 1])]
    merged = np.array([[expected[np.ix_(a, b)].sum(1).mean() for b in groups] for a in groups])
    np.testing.assert_allclose(weights_on(page)["1-1"], merged, atol=1e-4)
    page.select_option("[data-choice='Special tokens']", "renormalise")
    page.wait_for_selector(".shown:has-text('renormalised')")
    words_only = merged[1:-1, 1:-1]
    np.testing.assert_allclose(weights_on(page)["1-1"], words_only / words_only.sum(1, keepdims=True), atol=1e-4)
    page.select_option("[data-choice='Special tokens']", "show")
    page.select_option("[data-choice=Weights]", "top")
    page.wait_for_selector(".shown:not(:has-text('renormalised'))")
    weights = weights_on(page)["1-1"]
    assert (np.isfinite(weights).sum(1) == 3).all()
    best = np.sort(merged, 1)[:, -3:].sum()
    assert float(page.inner_text(".shown b").split()[0]) == pytest.approx(100 * best / merged.sum(), abs=0.1)


@pytest.mark.parametrize(("across", "fusion"), [("mean", "mean"), ("max", "max"), ("one", "mean"), ("rollout", "mean")])
def test_heads_and_layers_are_combined(opened: Any, across: str, fusion: str) -> None:
    page, weights = opened(single(), f"layer=3&{ALL_HEADS}&across={across}&fusion={fusion}&keep=all"), attention(FIRST)
    if across == "rollout":
        layers = [0.5 * layer.mean(0) + 0.5 * np.eye(layer.shape[-1]) for layer in weights]
        expected = layers[2] @ layers[1] @ layers[0]
    else:
        fused = getattr(weights, fusion)(axis=1)
        expected = fused[2] if across == "one" else getattr(fused, across)(axis=0)
    (combined,) = weights_on(page).values()
    np.testing.assert_allclose(combined, expected, atol=2e-4)


def test_the_current_view_can_be_exported(opened: Any) -> None:
    page = opened(single(), "layer=1&heads=1,2&keep=all")
    records = list(csv.DictReader(io.StringIO(exported(page, "csv"))))
    expected = attention(FIRST)[0]
    assert len(records) == 2 * expected[0].size
    record = records[expected[0].size + len(expected[0]) + 4]
    assert (record["head"], record["from_token"], record["to"]) == ("1-2", "i", "4")
    assert float(record["weight"]) == pytest.approx(expected[1, 1, 4], abs=1e-4)
    for view in VIEWS[:4]:
        page.click(f"[data-view={view}]")
        page.wait_for_selector(f".views[data-ready={view}]")
        drawing = ElementTree.fromstring(exported(page, "svg"))
        words = "".join(drawing.itertext())
        assert drawing.tag.endswith("svg") and len(drawing) > 3 and "bought" in words and "of mini on" in words
    assert bytes.fromhex(exported(page, "png")).startswith(b"\x89PNG")


def test_a_link_opens_the_same_view(opened: Any) -> None:
    page = opened(single(), "layer=1&heads=1,2")
    page.select_option("[data-choice=Layer]", index=3)
    page.dblclick("[data-chip='3']")
    page.select_option("[data-choice=Weights]", "threshold")
    page.click("[data-view=matrix]")
    page.wait_for_selector(".views[data-ready=matrix]")
    hash = page.evaluate("location.hash").lstrip("#")
    assert dict(part.split("=") for part in hash.split("&")) == {
        "view": "matrix",
        "layer": "4",
        "heads": "3",
        "keep": "threshold",
    }
    reopened = opened(single(), hash)
    np.testing.assert_array_equal(weights_on(reopened)["4-3"], weights_on(page)["4-3"])


@pytest.mark.parametrize(
    "hash", ["view=nothing&layer=99&heads=0,77,x", "layer=&top=-3&keep=top", "run=9&quantity=5&token=999"]
)
def test_invalid_values_of_a_link_are_ignored(opened: Any, hash: str) -> None:
    assert weights_on(opened(single(), hash))


def test_other_quantities_can_be_shown(opened: Any) -> None:
    page = opened(single(), "layer=1&heads=1&keep=all")
    page.select_option("[data-choice=Quantity]", "2")
    page.wait_for_selector(".about:has-text('gradient')")
    page.wait_for_selector(".shown:has-text('absolute')")
    expected = payload.dequantise(single().payload.runs[0].quantities[2].weights)[0, 0]
    np.testing.assert_allclose(weights_on(page)["1-1"], expected, atol=1e-4 * np.abs(expected).max() + 1e-9)


def test_the_legend_explains_the_colours_of_each_view(opened: Any) -> None:
    page = opened(single(), f"layer=1&{ALL_HEADS}")
    legend = page.locator(".legend")
    assert "1-8" in legend.inner_text() and "line:" in legend.inner_text()
    page.click("[data-view=matrix]")
    page.wait_for_selector(".views[data-ready=matrix]")
    assert "1-8" not in legend.inner_text() and "cell: 0" in legend.inner_text()
    highest = page.locator(".legend > :first-child").inner_text().split()[-1]
    of_words = attention(FIRST)[0, 0, 1:-1, 1:-1]  # special tokens are faded and do not set the scale
    assert float(highest) == pytest.approx(of_words.max(), abs=0.001)
    page.click("[data-view=model]")
    page.wait_for_selector(".views[data-ready=model]")
    assert "the head's largest weight" in page.inner_text(".model-view > .note")
