"""Arcs, head labels, norm-weighted combination and two inputs side by side, in a browser."""

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
from bertology.views.model_run import SITES
from bertology.views.payload import dequantise
from bertology.views.view import View
from views.annotated_sentences import annotated_sentence, probe_result
from views.page_reader import exported, n_colours, weights_on

WORDS = ("The", "strawberries", "are", "here", ".")
GOVERNORS = (1, 3, 3, ROOT, 3)
RELATIONS = ("det", "nsubj", "cop", "root", "punct")
LABEL = "previous word (0.9 [0.8, 1], n = 30; uniform attention 0.1)"


@cache
def treebank() -> View:
    """A sentence with its tree, and one predicted edge: `The` and `here`."""
    sentence, probe = annotated_sentence(WORDS, GOVERNORS, RELATIONS), probe_result(WORDS, [(0, 3)])
    return bertology.view("mini", sentence, labels={"3-8": LABEL}, results=probe)


@cache
def word_weights() -> NDArray[np.float64]:
    """(layer, head, from, to) of words without special tokens: from a word the mean, to it the sum over its tokens."""
    run = treebank().payload.runs[0]
    is_in_word = np.array(
        [[token.word_index == word for token in run.tokens] for word in range(len(WORDS))], np.float64
    )
    weights = dequantise(run.quantities[0].weights).astype(np.float64)
    return (is_in_word / is_in_word.sum(1, keepdims=True)) @ weights @ is_in_word.T


def test_arcs_are_drawn_next_to_the_tokens_and_can_be_hidden(opened: Any) -> None:
    page = opened(treebank(), "layer=3&heads=8")
    assert page.locator("canvas.arcs").count() == 2 and n_colours(page, "canvas.arcs") > 3
    assert "4 arcs of gold" in page.locator("canvas.arcs").first.get_attribute("aria-label")
    page.hover("ol.from [data-position='1']")
    page.wait_for_selector(".details .note:has-text('gold: governor strawberries (det)')")
    assert "probes/structural: here" in page.inner_text(".details")
    assert "nsubj" in exported(page, "svg")
    page.select_option("[data-choice='Dependency arcs']", "gold")
    page.wait_for_selector("canvas.arcs:only-of-type >> nth=0")
    assert page.locator("canvas.arcs").count() == 1
    page.select_option("[data-choice='Dependency arcs']", "none")
    # Not `wait_for_function`: it may evaluate text, which the policy of the page forbids.
    expect(page.locator("canvas.arcs")).to_have_count(0)
    expect(page).to_have_url(re.compile("tree=none$"))


@pytest.mark.parametrize("units", ["tokens", "words"])
def test_the_weight_along_arcs_is_shown_with_uniform_attention(opened: Any, units: str) -> None:
    page = opened(treebank(), f"layer=3&heads=8&units={units}")
    weights = word_weights()[2, 7]
    pairs = [(word, governor) for word, governor in enumerate(GOVERNORS) if governor != ROOT]
    forward = 100 * np.mean([weights[word, governor] for word, governor in pairs])
    back = 100 * np.mean([weights[governor, word] for word, governor in pairs])
    text = page.locator(".arc-weights").first.inner_text()
    assert f"dependent to governor {forward:.1f} %, governor to dependent {back:.1f} %" in text


def test_the_cells_of_arcs_are_outlined(opened: Any) -> None:
    page = opened(treebank(), "view=matrix&layer=3&heads=8&units=words")
    edges = page.locator(".edge").evaluate_all("all => all.map(e => [e.dataset.cell, e.style.outlineStyle])")
    # Rows and columns begin with [CLS]; an undirected edge has two cells.
    gold = {f"{word + 1},{governor + 1}" for word, governor in enumerate(GOVERNORS) if governor != ROOT}
    assert {cell for cell, kind in edges if kind == "solid"} == gold
    assert {cell for cell, kind in edges if kind == "dashed"} == {"1,4", "4,1"}


def test_labels_are_shown_with_their_evidence(opened: Any) -> None:
    page = opened(treebank(), "layer=3&heads=8")
    assert "0.9 [0.8, 1], n = 30; uniform attention 0.1" in page.inner_text(".details .labels")
    assert page.locator(".chip .dot").count() == 4
    assert "previous word (0.9" in page.get_attribute("[data-chip='8']", "title")
    page.dblclick("[data-chip='2']")
    expect(page.locator(".labels")).to_have_count(0)
    page.click("[data-view=model]")
    page.wait_for_selector("[data-head='3-8'][aria-label*='previous word'] :is(.tag, .dot)")
    page.click("[data-head='3-8']")
    page.wait_for_selector(".enlarged .labels dd:has-text('previous word')")


@cache
def norms() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Attention and norm-weighted attention of the model."""
    recording = record(load("mini"), bertology.corpus([treebank().payload.title]), ["attention", SITES["norm"]])
    return np.asarray(recording["attention"][0], np.float64), np.asarray(recording[SITES["norm"]][0], np.float64)


def normalise_rows(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return weights / weights.sum(-1, keepdims=True)


def test_heads_and_layers_are_combined_by_norm(opened: Any) -> None:
    attention, weighted = norms()
    page = opened(treebank(), "layer=3&heads=2,5&fusion=norm&keep=all")
    (combined,) = weights_on(page).values()
    np.testing.assert_allclose(combined, normalise_rows(weighted[2, [1, 4]].sum(0)), atol=1e-3)
    assert np.abs(combined - attention[2, [1, 4]].mean(0)).max() > 0.01
    page.select_option("[data-choice='Combine layers']", "norm")
    page.wait_for_selector(".legend li:has-text('over layers')")
    (combined,) = weights_on(page).values()
    np.testing.assert_allclose(combined, normalise_rows(weighted[:, [1, 4]].sum((0, 1))), atol=1e-3)
    page.select_option("[data-choice='Combine heads']", "each")
    page.wait_for_selector(".legend li:has-text('head 2')")
    np.testing.assert_allclose(
        weights_on(page)["head 2, norm-weighted mean over layers"], normalise_rows(weighted[:, 1].sum(0)), atol=1e-3
    )


def test_rollout_can_be_norm_weighted(opened: Any) -> None:
    _, weighted = norms()
    page = opened(treebank(), "layer=2&heads=1,2,3&fusion=norm&across=rollout&keep=all")
    (rollout,) = weights_on(page).values()
    layers = [0.5 * normalise_rows(weighted[layer, :3].sum(0)) + 0.5 * np.eye(len(rollout)) for layer in range(2)]
    np.testing.assert_allclose(rollout, layers[1] @ layers[0], atol=1e-3)


def test_tensors_without_a_model_have_no_norms(opened: Any) -> None:
    attention = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 4))
    page = opened(
        bertology.head_view(list(attention), ["[CLS]", "a", "b", "[SEP]"]), "layer=1&heads=1,2,3&fusion=norm&keep=all"
    )
    assert page.locator("[data-choice='Combine heads'] option").all_inner_texts() == ["separate", "mean", "maximum"]
    np.testing.assert_allclose(next(iter(weights_on(page).values())), attention[0].mean(0), atol=1e-4)
