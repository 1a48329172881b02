"""The mixture puts its weight on the layer that has the answer."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from bertology.maths.classifier import UNUSED, Recipe
from bertology.maths.scalar_mix import fit_mixtures


def made(n: int = 500, layers: int = 5, told: int = 3) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, n)
    x = generator.normal(size=(layers, n, 8))
    x[told, np.arange(n), labels] += 3
    return x, labels


def test_the_weight_is_where_the_answer_is() -> None:
    x, labels = made()
    gold = np.stack([labels, labels])
    shown = np.where(np.arange(500) < 300, gold, UNUSED)
    found = fit_mixtures(x, shown, 3, Recipe(penalties=(1e-3,)), seeds=(0, 1))
    np.testing.assert_allclose(found.weights.sum(1), 1, rtol=1e-5)
    assert (found.weights.argmax(1) == 3).all() and (found.weights[:, 3] > 0.7).all()
    assert (found.predict(x) == gold)[:, 300:].mean() > 0.9


def test_one_layer_is_a_plain_classifier() -> None:
    x, labels = made()
    found = fit_mixtures(x[3:4], labels[None], 3, Recipe(penalties=(1e-2,), iterations=300, tolerance=1e-5), seeds=(0,))
    plain = LogisticRegression(C=1 / (1e-2 * 500), max_iter=1000).fit(x[3] - x[3].mean(0), labels)
    assert (found.predict(x[3:4])[0] == plain.predict(x[3] - x[3].mean(0))).mean() > 0.98
    np.testing.assert_allclose(found.weights, 1)


def test_long_vectors_weigh_more_unless_each_layer_is_scaled() -> None:
    x, labels = made(told=1)
    x[4] = 20 * x[1]  # the same answer in longer vectors
    recipe = Recipe(penalties=(1e-2,))
    raw = fit_mixtures(x, labels[None], 3, recipe, seeds=(0,)).weights[0]
    scaled = fit_mixtures(x, labels[None], 3, recipe, seeds=(0,), each_scaled=True).weights[0]
    assert raw[4] > raw[1] + 0.1
    np.testing.assert_allclose(scaled[1], scaled[4], atol=0.02)


def test_forms_with_hidden_units() -> None:
    x, labels = made()
    found = fit_mixtures(x, labels[None], 3, Recipe("mlp", (8,), penalties=(1e-3,)), seeds=(0,))
    assert found.weights[0].argmax() == 3
    assert (found.predict(x)[0] == labels).mean() > 0.9
