"""Head labels of the built-in models: up to date, and what a new run of their analyses gives."""

from __future__ import annotations

import pytest

import bertology
from bertology.analyses import registry
from bertology.corpus.read import load_corpus
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.views.head_labels import labels_from_results
from bertology.views.payload import HeadLabel
from bertology.views.shipped_labels import ANALYSES, CORPUS, MODELS, ShippedLabels, compute_labels, shipped_labels


def shipped(model: str) -> ShippedLabels:
    labels = shipped_labels(load(model))
    assert labels is not None
    return labels


@pytest.mark.parametrize("model", MODELS)
def test_labels_are_of_the_current_model_corpus_and_analyses(model: str) -> None:
    labels, corpus = shipped(model), load_corpus(CORPUS)
    assert (labels.corpus_fingerprint, labels.n) == (corpus.fingerprint, len(corpus))
    versions = {source.name: source.version for source in labels.analyses}
    assert versions == {analysis.name: analysis.version for analysis in map(registry.get, ANALYSES)}
    assert labels.labels and all(label.effect and label.effect >= 0.1 for label in labels.labels)


def test_fewer_than_a_third_of_the_heads_are_labelled() -> None:
    heads = {(label.layer, label.head) for label in shipped("mini").labels}
    assert 10 <= len(heads) <= 64 // 3
    by_head = {(label.layer + 1, label.head + 1, label.label): label.score for label in shipped("mini").labels}
    assert by_head[4, 4, "object → verb"] == pytest.approx(0.887, abs=0.001)


@pytest.mark.slow
def test_a_new_run_gives_the_same_labels() -> None:
    analysis = "attention/word_patterns"
    computed = {_key(label): label.score for label in compute_labels("mini", [analysis]).labels}
    stored = {_key(label): label.score for label in shipped("mini").labels if label.evidence.endswith(analysis)}
    # A label that an analysis of a higher rank gives too is stored with the evidence of that one.
    assert stored and stored.items() <= computed.items()
    assert {key for key in computed if key not in stored} <= {_key(label) for label in shipped("mini").labels}


def _key(label: HeadLabel) -> tuple[int, int, str]:
    return label.layer, label.head, label.label


def test_views_of_built_in_models_have_labels_and_open_on_the_clearest() -> None:
    payload = bertology.view("mini", "The cat sat on the mat.").payload
    (run,) = payload.runs
    assert run.labels == shipped("mini").labels and "of 64 heads are labelled" in run.labelling
    clearest = max(run.labels, key=lambda label: label.effect or 0)
    assert payload.state == f"layer={clearest.layer + 1}&heads={clearest.head + 1}"
    assert {citation.key for citation in payload.citations} >= {"voita2019", "vig2019deconstructing"}


def test_changed_and_untrained_models_have_none() -> None:
    encoder = load("mini")
    assert isinstance(encoder, HuggingFaceEncoder)
    assert shipped_labels(encoder.without("3-8")) is None
    assert shipped_labels(load("random:mini@3")) is None
    results = bertology.run("attention/word_patterns", "tiny", bertology.corpus(["A cat sat.", "It slept."] * 3))
    assert labels_from_results([results], 2, 4) == []
