"""Arcs, labels, norm-weighted aggregation and two inputs side by side, in a real browser."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import expect

import bertology
from bertology.corpus.sentence import ROOT
from bertology.encoder.load import load
from bertology.recording.recorder import record
from bertology.views.payload import decoded
from bertology.views.quantities import SITES
from bertology.views.view import View
from looked_at import drawn, exported, weights_on
from views.trees import annotated, probed

WORDS = ("The", "strawberries", "are", "here", ".")
HEADS = (1, 3, 3, ROOT, 3)
RELATIONS = ("det", "nsubj", "cop", "root", "punct")
LABEL = "previous word (0.9 [0.8, 1], n = 30; even 0.1)"


@cache
def treebank() -> View:
    """A sentence with its tree, and one edge of a probe: `The` and `here`."""
    sentence, found = annotated(WORDS, HEADS, RELATIONS), probed(WORDS, [(0, 3)])
    return bertology.view("mini", sentence, labels={"3-8": LABEL}, results=found)


@cache
def word_weights() -> NDArray[np.float64]:
    """(layer, head, from, to) over the words, special tokens left out: from the mean, to the sum over pieces."""
    run = treebank().payload.runs[0]
    belongs = np.array([[piece.word == word for piece in run.pieces] for word in range(len(WORDS))], np.float64)
    maps = decoded(run.quantities[0].maps).astype(np.float64)
    return (belongs / belongs.sum(1, keepdims=True)) @ maps @ belongs.T


def test_arcs_are_drawn_beside_the_tokens_and_can_be_left_out(opened: Any) -> None:
    page = opened(treebank(), "layer=3&heads=8")
    assert page.locator("canvas.arcs").count() == 2 and drawn(page, "canvas.arcs") > 3
    assert "4 arcs of gold" in page.locator("canvas.arcs").first.get_attribute("aria-label")
    page.hover("ol.from [data-place='1']")
    page.wait_for_selector(".details .note:has-text('gold: head strawberries (det)')")
    assert "probes/structural: here" in page.inner_text(".details")
    assert "nsubj" in exported(page, "svg")
    page.select_option("[data-choice='Dependency arcs']", "gold")
    page.wait_for_selector("canvas.arcs:only-of-type >> nth=0")
    assert page.locator("canvas.arcs").count() == 1
    page.select_option("[data-choice='Dependency arcs']", "none")
    # Not `wait_for_function`: where it must wait it evaluates text, which the page's own policy forbids.
    expect(page.locator("canvas.arcs")).to_have_count(0)
    expect(page).to_have_url(re.compile("tree=none$"))


@pytest.mark.parametrize("units", ["pieces", "words"])
def test_the_weight_along_arcs_is_told_beside_even_attention(opened: Any, units: str) -> None:
    page = opened(treebank(), f"layer=3&heads=8&units={units}")
    weights = word_weights()[2, 7]
    pairs = [(word, head) for word, head in enumerate(HEADS) if head != ROOT]
    forward = np.mean([weights[word, head] for word, head in pairs])
    back = np.mean([weights[head, word] for word, head in pairs])
    told = page.locator(".along").first.inner_text()
    assert f"word to head {100 * forward:.1f} %, head to word {100 * back:.1f} %" in told


def test_arcs_outline_the_cells_they_stand_for(opened: Any) -> None:
    page = opened(treebank(), "view=matrix&layer=3&heads=8&units=words")
    edges = page.locator(".edge").evaluate_all("all => all.map(e => [e.dataset.cell, e.style.outlineStyle])")
    # Rows and columns begin with [CLS]; an edge without direction stands for two cells.
    gold = {f"{word + 1},{head + 1}" for word, head in enumerate(HEADS) if head != ROOT}
    assert {cell for cell, kind in edges if kind == "solid"} == gold
    assert {cell for cell, kind in edges if kind == "dashed"} == {"1,4", "4,1"}


def test_labels_stand_by_their_heads_with_their_evidence(opened: Any) -> None:
    page = opened(treebank(), "layer=3&heads=8")
    assert "0.9 [0.8, 1], n = 30; even 0.1" in page.inner_text(".details .labels")
    assert page.locator(".chip .dot").count() == 1
    assert "previous word (0.9" in page.get_attribute("[data-chip='8']", "title")
    page.dblclick("[data-chip='1']")
    expect(page.locator(".labels")).to_have_count(0)
    page.click("[data-view=model]")
    page.wait_for_selector("[data-head='3-8'] .tag:has-text('previous word')")
    page.click("[data-head='3-8']")
    page.wait_for_selector(".enlarged .labels dd:has-text('previous word')")


@cache
def norms() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Attention and the norms of what it takes over, of the model itself."""
    recording = record(load("mini"), bertology.read_text(treebank().payload.title), ["attention", SITES["norm"]])
    return np.asarray(recording["attention"][0], np.float64), np.asarray(recording[SITES["norm"]][0], np.float64)


def share(maps: NDArray[np.float64]) -> NDArray[np.float64]:
    return maps / maps.sum(-1, keepdims=True)


def test_aggregation_is_weighed_by_norms(opened: Any) -> None:
    attention, weighted = norms()
    page = opened(treebank(), "layer=3&heads=2,5&fusion=norm")
    (shown,) = weights_on(page).values()
    np.testing.assert_allclose(shown, share(weighted[2, [1, 4]].sum(0)), atol=1e-3)
    assert np.abs(shown - attention[2, [1, 4]].mean(0)).max() > 0.01
    page.select_option("[data-choice='Across layers']", "norm")
    page.wait_for_selector(".legend li:has-text('over layers')")
    (shown,) = weights_on(page).values()
    np.testing.assert_allclose(shown, share(weighted[:, [1, 4]].sum((0, 1))), atol=1e-3)
    page.select_option("[data-choice='Heads together']", "each")
    page.wait_for_selector(".legend li:has-text('head 2')")
    np.testing.assert_allclose(
        weights_on(page)["head 2, norm-weighted mean over layers"], share(weighted[:, 1].sum(0)), atol=1e-3
    )


def test_rollout_may_be_weighed_by_norms(opened: Any) -> None:
    _, weighted = norms()
    page = opened(treebank(), "layer=2&heads=1,2,3&fusion=norm&across=rollout")
    (shown,) = weights_on(page).values()
    layers = [0.5 * share(weighted[layer, :3].sum(0)) + 0.5 * np.eye(len(shown)) for layer in range(2)]
    np.testing.assert_allclose(shown, layers[1] @ layers[0], atol=1e-3)


def test_tensors_alone_have_no_norms_to_weigh_by(opened: Any) -> None:
    maps = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 4))
    page = opened(bertology.head_view(list(maps), ["[CLS]", "a", "b", "[SEP]"]), "fusion=norm")
    assert page.locator("[data-choice='Heads together'] option").all_inner_texts() == ["each by itself", "mean", "max"]
    np.testing.assert_allclose(next(iter(weights_on(page).values())), maps[0].mean(0), atol=1e-4)


def test_the_difference_names_the_tokens_of_both_inputs(opened: Any) -> None:
    view = bertology.view("mini", "I bought a fresh loaf.", against_text="She sold a fresh loaf.", view="difference")
    page = opened(view)
    assert page.locator(".inputs dd").all_inner_texts() == ["I bought a fresh loaf .", "She sold a fresh loaf ."]
    named = page.locator(".difference-view tbody th").all_inner_texts()
    assert "i / she" in named or "bought / sold" in named
    assert page.locator("[data-map]").count() == 3
    page.hover("[data-map='second − first']", position={"x": 150, "y": 130})
    page.wait_for_selector(".drawn:has-text('second − first')")
    told = page.inner_text(".drawn")
    first, second, difference = (float(part.rsplit(" ", 1)[1]) for part in told.split(": ")[1].split(", "))
    assert "from " in told and difference == pytest.approx(second - first, abs=0.0011)


def test_inputs_of_other_pieces_are_compared_by_words_or_stand_side_by_side(opened: Any) -> None:
    page = opened(bertology.view("mini", "I bought strawberries.", against_text="I bought bread."), "view=difference")
    assert page.locator("[data-map]").count() == 2
    words = page.locator(".difference-view tbody th").all_inner_texts()
    assert any("berries" in word for word in words) and "bread" in words
    page.click("[data-choice='Compare words']")
    page.wait_for_selector("[data-map='second − first']")
    assert any(word == "strawberries / bread" for word in page.locator("tbody th").all_inner_texts())
