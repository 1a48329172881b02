"""`geometry/tensor_products`: planted roles fit better than other schemes, and noise is no better than the mean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.geometry.tensor_products.analysis import TREE_GAIN
from bertology.analyses.geometry.tensor_products.role_schemes import SCHEMES
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.read import as_corpus
from bertology.corpus.sentence import ROOT, sentence_from_words
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.results.shapes import LayerCurve

NAME = "geometry/tensor_products"
WIDTH = 3
TREES = ((ROOT, 0, 1, 2), (1, ROOT, 1, 2), (3, 0, 0, ROOT), (2, 2, ROOT, 2))


def make_corpus(count: int) -> Corpus:
    generator = np.random.default_rng(0)
    sentences = [
        replace(
            sentence_from_words([f"w{word}" for word in generator.integers(8, size=4)]),
            governors=TREES[int(generator.integers(4))],
        )
        for _ in range(count)
    ]
    return corpus_from_sentences(sentences, name="planted")


def planted_vector(scheme: str, recorded: RecordedInput) -> FloatArray:
    """The sum over tokens of a random vector per token, mapped by a random matrix per role of the scheme."""
    total = np.zeros(WIDTH)
    for token_id, role in zip(recorded.tokens.ids.tolist(), SCHEMES[scheme](recorded), strict=True):
        seed = int.from_bytes(hashlib.sha256(repr(role).encode()).digest()[:4], "little")
        matrix = np.random.default_rng(seed).normal(size=(100, WIDTH))
        total += np.random.default_rng(token_id).normal(size=100) @ matrix / 10
    return total


def curve(hidden: Callable[[RecordedInput], FloatArray], **options: object) -> LayerCurve:
    recording = planted.make_recording(make_corpus(500), [[planted.uniform_head]], hidden)
    options = {"learning_rate": 0.01, "epochs": 40, **options}
    data = run_analysis(registry.get(NAME), RunInputs(recording=recording), options).data
    assert isinstance(data, LayerCurve)
    return data


def test_planted_roles_reconstruct_the_vector() -> None:
    schemes = ("bag of words", "left to right", "tree")

    def hidden(recorded: RecordedInput) -> FloatArray:
        return np.stack([np.tile(planted_vector(name, recorded), (len(recorded.tokens), 1)) for name in schemes])

    data = curve(hidden)
    mean_error = data.baselines["mean vector"]["tree"].value
    errors = {name: data.measures[name].value / mean_error for name in SCHEMES}
    assert errors["bag of words"][0] < 0.1  # every scheme can fit a bag of words
    assert errors["left to right"][1] < 0.1 and errors["right to left"][1] < 0.1  # all sentences have four words
    assert errors["bag of words"][1] > 0.3
    assert errors["tree"][2] < 0.5 * min(errors["bag of words"][2], errors["left to right"][2])
    assert data.baselines["random tree"]["tree"].value[2] / mean_error[2] > 2 * errors["tree"][2]
    for name, error in errors.items():
        np.testing.assert_allclose(data.measures[f"R² ({name})"].value, 1 - error, atol=1e-6)
    gain = data.measures[TREE_GAIN]
    random_tree = data.baselines["random tree"]["R² (tree)"].value
    np.testing.assert_allclose(gain.value, data.measures["R² (tree)"].value - random_tree, atol=1e-9)
    assert gain.low[2] > 0.2  # tree roles were planted in layer 2 only
    assert abs(gain.value[0]) < 0.1


def test_noise_cannot_be_reconstructed() -> None:
    def hidden(recorded: RecordedInput) -> FloatArray:
        return np.random.default_rng([recorded.example_index, 7]).normal(size=(1, len(recorded.tokens), WIDTH))

    data = curve(hidden, epochs=15)
    mean_error = data.baselines["mean vector"]["tree"].value[0]
    for name in SCHEMES:
        estimates = data.measures[name]
        assert estimates.value[0] > 0.9 * mean_error, name
        assert estimates.value[0] < 1.5 * mean_error, name  # the epoch with the best validation error is used
        assert data.measures[f"R² ({name})"].value[0] < 0.1
    assert data.measures[TREE_GAIN].low[0] < 0.02
    assert data.measures[TREE_GAIN].value[0] < 0.1


def test_r_squared_is_missing_where_all_vectors_are_equal() -> None:
    def hidden(recorded: RecordedInput) -> FloatArray:
        noise = np.random.default_rng(recorded.example_index).normal(size=(len(recorded.tokens), WIDTH))
        return np.stack([np.full((len(recorded.tokens), WIDTH), 0.1), noise])

    data = curve(hidden, epochs=2)
    r_squared = data.measures["R² (tree)"].value
    assert np.isnan(r_squared[0]) and np.isfinite(r_squared[1])


def test_too_few_sentences_and_missing_trees_are_refused() -> None:
    recording = planted.make_recording(
        make_corpus(2), [[planted.uniform_head]], lambda recorded: np.zeros((1, len(recorded.tokens), 2))
    )
    with pytest.raises(Refusal, match="too few sentences"):
        run_analysis(registry.get(NAME), RunInputs(recording=recording))
    with pytest.raises(Refusal, match="governors"):
        run_analysis(registry.get(NAME), RunInputs(as_corpus(["No tree."]), load("tiny")))
