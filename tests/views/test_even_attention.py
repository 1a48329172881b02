"""What even attention would give along arcs, in a real browser: as much as a model gives whose attention is even."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from playwright.sync_api import expect

import bertology
import models
from bertology.corpus.sentence import ROOT
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.views.payload import Run, decoded
from bertology.views.view import View
from views.trees import annotated, probed

WORDS = ("The", "strawberries", "in", "the", "garden", "are", "here", ".")
HEADS = (1, 6, 4, 4, 1, 6, ROOT, 6)
EDGES = [(word, head) for word, head in enumerate(HEADS) if head != ROOT]
PROBED = ((0, 6), (3, 5))

FAMILIES = ("bert", "gpt2", "modernbert")
QUERIES = {"bert": r"query\.", "gpt2": r"c_attn\.", "modernbert": r"Wqkv\."}
"""The parameters that make queries: all of their rows, or the first third of what a projection gives."""
STATES = (
    "layer=2&heads=1,3",
    "layer=2&heads=1,3&units=words",
    "layer=2&special=hide",
    "layer=1&special=renormalise&units=words",
    "layer=2&fusion=mean&heads=1,2",
    "layer=2&fusion=norm&heads=1,2",
    "across=mean&heads=2&units=words",
    "across=max&heads=2",
    "across=norm&heads=1,2&special=renormalise",
    "across=rollout&layer=2&heads=1,2&units=words",
)


@cache
def looking_evenly(family: str) -> HuggingFaceEncoder:
    """A model whose queries are nothing, so that its softmax is even over whatever its masks let a piece see."""
    made = models.model(family)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if re.search(QUERIES[family], name):
                # GPT-2 keeps its weights the other way round: what comes out is the last axis.
                outputs = weight if family == "gpt2" else weight.movedim(0, -1)
                outputs[..., : models.WIDTH] = 0
    return models.wrapped(made, family)


@cache
def treebank(family: str, *, even: bool) -> View:
    """A sentence with its tree, and two edges without direction."""
    sentence, found = annotated(WORDS, HEADS, ("dep",) * len(WORDS)), probed(WORDS, PROBED)
    encoder = looking_evenly(family) if even else models.encoder(family)
    return bertology.view(encoder, sentence, results=found)


def told(page: Any) -> list[list[float]]:
    """Of each tree the percentages found, then those of even attention."""
    lines = page.locator(".along").all_inner_texts()
    return [[float(number) for number in re.findall(r"([\d.]+) %", line)] for line in lines]


@pytest.mark.parametrize("family", FAMILIES)
def test_even_heads_give_what_even_attention_would(opened: Any, family: str) -> None:
    page = opened(treebank(family, even=True))
    for state in STATES:
        before = page.get_attribute(".views", "data-shown")
        page.evaluate("state => { location.hash = state }", state)
        expect(page.locator(".views")).not_to_have_attribute("data-shown", before)
        (forward, back, even_forward, even_back), (both, even_both) = told(page)
        found = (even_forward, even_back, even_both)
        np.testing.assert_allclose(found, (forward, back, both), atol=0.1001, err_msg=f"{family}, {state}")


def seen(run: Run, layer: int) -> NDArray[np.float64]:
    """(from, to) whether a piece can see another."""
    count = len(run.pieces)
    apart = np.arange(count) - np.arange(count)[:, None]
    far = run.reach[layer] if run.reach else None
    near = np.abs(apart) <= (count if far is None else far)
    return (near & (apart <= 0) if run.causal else near).astype(np.float64)


def between_words(run: Run, layer: int, *, scaled: bool) -> NDArray[np.float64]:
    """(word, word) even attention, from a word the mean, to it the sum over its pieces; or shares of that on words."""
    belongs = np.array([[piece.word == word for piece in run.pieces] for word in range(len(WORDS))], np.float64)
    even = seen(run, layer)
    even /= even.sum(1, keepdims=True)
    words = belongs / belongs.sum(1, keepdims=True) @ even @ belongs.T
    return words / words.sum(1, keepdims=True) if scaled else words


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("special", ["hide", "renormalise"])
def test_even_attention_is_over_what_a_piece_can_see(opened: Any, family: str, special: str) -> None:
    view = treebank(family, even=False)
    run = view.payload.runs[0]
    assert (run.causal, run.reach) == {
        "bert": (False, []),
        "gpt2": (True, []),
        "modernbert": (False, [None, 3, 3]),
    }[family]
    expected = 100 * between_words(run, 1, scaled=special == "renormalise")
    # What is filtered out of the weights is not taken off what they are compared with.
    page = opened(view, f"layer=2&heads=2&units=words&special={special}&keep=top&top=2")
    assert page.locator(".along").first.inner_text().count("(even attention, unfiltered: ") == 1
    (_, _, forward, back), (_, both) = told(page)
    assert forward == pytest.approx(np.mean([expected[edge] for edge in EDGES]), abs=0.0501)
    assert back == pytest.approx(np.mean([expected[edge[::-1]] for edge in EDGES]), abs=0.0501)
    assert both == pytest.approx(np.mean([expected[edge] + expected[edge[::-1]] for edge in PROBED]) / 2, abs=0.0501)


@pytest.mark.parametrize("family", ["gpt2", "modernbert"])
def test_the_softmax_of_neurons_is_over_what_a_piece_can_see(opened: Any, family: str) -> None:
    page = opened(treebank(family, even=False), "view=neuron&layer=2&heads=3")
    run = treebank(family, even=False).payload.runs[0]
    page.click("[data-token='4']")
    page.wait_for_selector("[data-token='4'][aria-pressed=true]")
    row = decoded(run.quantities[0].maps)[1, 2, 4]
    assert (row > 0).tolist() == (seen(run, 1)[4] > 0).tolist()
    for column in (2, 3):  # the softmax made on the page, and the model's own weight
        texts = page.locator(f"[data-score='{column}']").all_inner_texts()
        np.testing.assert_allclose([float(text) for text in texts], row, atol=0.002)
    assert not page.locator(".neuron-view .note:has-text('adds more')").count()
