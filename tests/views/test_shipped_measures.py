"""Measures of the heads of the built-in models: up to date, what a new run gives, and the first colour of the atlas."""

from __future__ import annotations

from typing import Any

import pytest

import bertology
from bertology.analyses import registry
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.views.shipped_labels import MODELS
from bertology.views.shipped_measures import (
    ShippedMeasures,
    ShippedRun,
    compute_measures,
    shipped_measures,
    shipped_runs,
)
from views.shown_models import TEXT, mini

ENTROPY = ShippedRun("attention/entropy", {"entropy": "entropy"})


@pytest.mark.parametrize("model", MODELS)
def test_measures_are_of_the_current_model_corpora_and_analyses(model: str) -> None:
    from bertology.views.shipped_measures import _by_fingerprint  # pyright: ignore[reportPrivateUsage]

    encoder = load(model)
    shipped: ShippedMeasures = _by_fingerprint()[encoder.fingerprint]
    requests = shipped_runs(model)
    assert [source.name for source in shipped.analyses] == [request.analysis for request in requests]
    for source, request in zip(shipped.analyses, requests, strict=True):
        analysis, corpus = registry.find(source.name), load_corpus(request.corpus)
        assert analysis is not None and source.version == analysis.version
        assert (source.corpus_fingerprint, source.n) == (corpus.fingerprint, len(corpus))
        assert source.against == request.against
    names = [measure.name for measure in shipped.measures]
    assert names == [name for request in requests for name in request.names.values()]
    assert all(measure.baselines and len(measure.values) == encoder.layers for measure in shipped.measures)


def test_effect_of_removal_and_change_are_known_for_a_fine_tuned_model() -> None:
    by_name = {measure.name: measure for measure in shipped_measures(load("mini-pairs"))}
    change = by_name["change by fine-tuning (divergence from mini)"]
    largest = max(value or 0 for row in change.values for value in row)
    assert (
        largest == pytest.approx(0.2808, abs=1e-4) and change.source == "attention/model_similarity on english.conllu"
    )
    assert by_name["effect of removal (change in loss)"].source.endswith("on generated:nli@0:1000")


@pytest.mark.slow
def test_a_new_run_gives_the_same_entropies() -> None:
    (computed,) = compute_measures("mini", [ENTROPY]).measures
    assert computed == shipped_measures(mini())[0]


def test_changed_and_untrained_models_have_none() -> None:
    assert shipped_measures(load("random:mini@3")) == []


def test_results_of_the_user_come_before_shipped_measures() -> None:
    result = bertology.run("attention/distance", mini(), bertology.corpus([TEXT, "It is here now."]))
    measures = bertology.view(mini(), TEXT, results=result).payload.runs[0].measures
    assert measures[0].source.startswith("attention/distance") and measures[-1].name.startswith("change by fine-tuning")


def test_the_atlas_opens_coloured_by_entropy_beside_uniform_attention(opened: Any) -> None:
    page = opened(bertology.view(mini(), TEXT), "view=model", width=1440)
    assert page.input_value("[data-choice='Colour by']") == "entropy · attention/entropy on english.conllu"
    assert "2.86 uniform attention" in page.locator(".colour-bar").first.get_attribute("aria-label")
    page.hover("[data-head='4-4']")
    tip = page.inner_text(".tip")
    value = shipped_measures(mini())[0].values[3][3]
    assert f"entropy: {value:.3g}"[:12] in tip and "n = 356" in tip and "untrained model" in tip
