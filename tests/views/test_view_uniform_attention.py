"""The uniform-attention baseline along arcs, in a browser: equal to a model whose attention is uniform."""

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
import tiny_models
from bertology.corpus.sentence import ROOT
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.views.payload import ModelRun, dequantise
from bertology.views.view import View
from views.annotated_sentences import annotated_sentence, probe_result

WORDS = ("The", "strawberries", "in", "the", "garden", "are", "here", ".")
GOVERNORS = (1, 6, 4, 4, 1, 6, ROOT, 6)
EDGES = [(word, governor) for word, governor in enumerate(GOVERNORS) if governor != ROOT]
PREDICTED_EDGES = ((0, 6), (3, 5))

FAMILIES = ("bert", "gpt2", "modernbert")
QUERIES = {"bert": r"query\.", "gpt2": r"c_attn\.", "modernbert": r"Wqkv\."}
"""The parameters that compute queries: all rows, or the first third of the projection's output."""
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
def uniform_encoder(family: str) -> HuggingFaceEncoder:
    """A model whose queries are zero, so that its softmax is uniform over the visible tokens."""
    model = tiny_models.model(family)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if re.search(QUERIES[family], name):
                # GPT-2 stores its weights transposed: the output is the last axis.
                outputs = weight if family == "gpt2" else weight.movedim(0, -1)
                outputs[..., : tiny_models.WIDTH] = 0
    return tiny_models.wrap_model(model, family)


@cache
def treebank(family: str, *, uniform: bool) -> View:
    """A sentence with its tree, and two predicted edges."""
    sentence = annotated_sentence(WORDS, GOVERNORS, ("dep",) * len(WORDS))
    probe = probe_result(WORDS, PREDICTED_EDGES)
    encoder = uniform_encoder(family) if uniform else tiny_models.encoder(family)
    return bertology.view(encoder, sentence, results=probe)


def arc_weights(page: Any) -> list[list[float]]:
    """For each tree the percentages of the model, then those of uniform attention."""
    lines = page.locator(".arc-weights").all_inner_texts()
    return [[float(number) for number in re.findall(r"([\d.]+) %", line)] for line in lines]


@pytest.mark.parametrize("family", FAMILIES)
def test_uniform_heads_equal_the_baseline(opened: Any, family: str) -> None:
    page = opened(treebank(family, uniform=True))
    for state in STATES:
        before = page.get_attribute(".views", "data-shown")
        page.evaluate("state => { location.hash = state }", state)
        expect(page.locator(".views")).not_to_have_attribute("data-shown", before)
        (forward, back, uniform_forward, uniform_back), (mean, uniform_mean) = arc_weights(page)
        baseline = (uniform_forward, uniform_back, uniform_mean)
        np.testing.assert_allclose(baseline, (forward, back, mean), atol=0.1001, err_msg=f"{family}, {state}")


def visibility(run: ModelRun, layer: int) -> NDArray[np.float64]:
    """(from, to) whether a token is visible to another."""
    count = len(run.tokens)
    offsets = np.arange(count) - np.arange(count)[:, None]
    window = run.attention_windows[layer] if run.attention_windows else None
    near = np.abs(offsets) <= (count if window is None else window)
    return (near & (offsets <= 0) if run.causal else near).astype(np.float64)


def uniform_between_words(run: ModelRun, layer: int, *, renormalised: bool) -> NDArray[np.float64]:
    """(word, word) uniform attention: from a word the mean, to it the sum over its tokens."""
    is_in_word = np.array(
        [[token.word_index == word for token in run.tokens] for word in range(len(WORDS))], np.float64
    )
    uniform = visibility(run, layer)
    uniform /= uniform.sum(1, keepdims=True)
    words = is_in_word / is_in_word.sum(1, keepdims=True) @ uniform @ is_in_word.T
    return words / words.sum(1, keepdims=True) if renormalised else words


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("special", ["hide", "renormalise"])
def test_uniform_attention_is_over_the_visible_tokens(opened: Any, family: str, special: str) -> None:
    view = treebank(family, uniform=False)
    run = view.payload.runs[0]
    assert (run.causal, run.attention_windows) == {
        "bert": (False, []),
        "gpt2": (True, []),
        "modernbert": (False, [None, 3, 3]),
    }[family]
    expected = 100 * uniform_between_words(run, 1, renormalised=special == "renormalise")
    # The filter applies to the lines, not to the means and their baseline.
    page = opened(view, f"layer=2&heads=2&units=words&special={special}&keep=top&top=2")
    assert page.locator(".arc-weights").first.inner_text().count("(uniform attention: ") == 1
    (_, _, forward, back), (_, mean) = arc_weights(page)
    assert forward == pytest.approx(np.mean([expected[edge] for edge in EDGES]), abs=0.0501)
    assert back == pytest.approx(np.mean([expected[edge[::-1]] for edge in EDGES]), abs=0.0501)
    assert mean == pytest.approx(
        np.mean([expected[edge] + expected[edge[::-1]] for edge in PREDICTED_EDGES]) / 2, abs=0.0501
    )


@pytest.mark.parametrize("family", ["gpt2", "modernbert"])
def test_the_softmax_of_the_neuron_view_is_over_the_visible_tokens(opened: Any, family: str) -> None:
    page = opened(treebank(family, uniform=False), "view=neuron&layer=2&heads=3")
    run = treebank(family, uniform=False).payload.runs[0]
    page.click("[data-token='4']")
    page.wait_for_selector("[data-token='4'][aria-pressed=true]")
    row = dequantise(run.quantities[0].weights)[1, 2, 4]
    assert (row > 0).tolist() == (visibility(run, 1)[4] > 0).tolist()
    for column in (2, 3):  # the softmax computed on the page, and the weight in the model
        texts = page.locator(f"[data-score='{column}']").all_inner_texts()
        np.testing.assert_allclose([float(text) for text in texts], row, atol=0.002)
    assert not page.locator(".neuron-view .note:has-text('adds other terms')").count()
