"""Classifiers fitted together equal those fitted alone, and those of scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bertology.numerics.batched_classifier import (
    UNUSED_LABEL,
    BatchedClassifiers,
    ClassifierConfig,
    ClassifierForm,
    fit_classifiers,
    fit_each_penalty,
)

Array = np.ndarray[Any, Any]


def sample_data(n: int = 400, d: int = 6, classes: int = 3, seed: int = 0) -> tuple[Array, Array, Array]:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, d)) * np.arange(1, d + 1) + 3
    labels = (x @ generator.normal(size=(d, classes)) + 4 * generator.normal(size=(n, classes))).argmax(1)
    return x, labels, generator.integers(0, classes, n)


EXACT = ClassifierConfig(l2_penalties=(0.01,), max_iterations=300, tolerance=1e-6)


def test_each_problem_equals_sklearn() -> None:
    x, all_labels, noise_labels = sample_data()
    groups = np.stack([x, x[:, ::-1] ** 2])
    partial_labels = np.where(np.arange(len(all_labels)) % 3 == 0, UNUSED_LABEL, all_labels)
    tasks = np.stack([all_labels, noise_labels, partial_labels])
    classifiers = fit_classifiers(groups, tasks, 3, EXACT)
    for group, features in enumerate(groups):
        standard = (features - features.mean(0)) / features.std(0)
        for task, labels in enumerate(tasks):
            is_used = labels != UNUSED_LABEL
            model: Any = LogisticRegression(C=1 / (0.01 * is_used.sum()), max_iter=2000, tol=1e-8)
            model.fit(standard[is_used], labels[is_used])
            np.testing.assert_allclose(classifiers.weights[group, task].numpy(), model.coef_, atol=2e-3)
            agreed = classifiers.predict(groups)[group, task] == model.predict(standard)
            assert agreed.mean() > 0.995


def test_all_penalties_together_equal_each_alone() -> None:
    x, labels, noise_labels = sample_data()
    tasks = np.stack([np.where(np.arange(len(labels)) % 3 == 0, UNUSED_LABEL, labels), noise_labels])
    penalties = (0.01, 0.3, 10.0)
    together = fit_each_penalty(x[None], tasks, 3, replace(EXACT, l2_penalties=penalties))
    for penalty, fitted in zip(penalties, together, strict=True):
        alone = fit_classifiers(x[None], tasks, 3, replace(EXACT, l2_penalties=(penalty,)))
        np.testing.assert_allclose(fitted.weights.numpy(), alone.weights.numpy(), atol=2e-3)
        assert (fitted.l2_penalty == penalty).all()


def test_masked_features_have_no_weight() -> None:
    x, labels, _ = sample_data()
    feature_mask = np.ones((2, x.shape[1]), bool)
    feature_mask[1, ::2] = False
    classifiers = fit_classifiers(x[None], np.stack([labels, labels]), 3, EXACT, feature_mask=feature_mask)
    standard = (x - x.mean(0)) / x.std(0)
    model: Any = LogisticRegression(C=1 / (0.01 * len(x)), max_iter=2000, tol=1e-8).fit(
        standard * feature_mask[1], labels
    )
    np.testing.assert_allclose(classifiers.weights[0, 1].numpy(), model.coef_ * feature_mask[1], atol=2e-3)


def test_accuracy_equals_sklearn_with_many_features() -> None:
    generator = np.random.default_rng(3)
    mixing = generator.normal(size=(100, 100)) * np.geomspace(1, 1e-3, 100)  # anisotropic, as hidden states are
    x = generator.normal(size=(900, 100)) @ mixing
    labels = (x @ generator.normal(size=(100, 4)) + generator.normal(size=(900, 4))).argmax(1)
    train_labels = np.where(np.arange(900) < 600, labels, UNUSED_LABEL)
    classifiers = fit_classifiers(x[None], train_labels[None], 4, ClassifierConfig(l2_penalties=(1e-3,)))
    standard = (x - x[:600].mean(0)) / x[:600].std(0)
    model: Any = LogisticRegression(C=1 / (1e-3 * 600), max_iter=5000).fit(standard[:600], labels[:600])
    accuracy = (classifiers.predict(x[None])[0, 0] == labels)[600:].mean()
    assert abs(accuracy - (model.predict(standard) == labels)[600:].mean()) < 0.01


def score(classifiers: BatchedClassifiers, x: Array, gold: Array) -> Array:
    return (classifiers.predict(x[None])[0] == gold).mean(-1)


def test_fewer_examples_than_features() -> None:
    generator = np.random.default_rng(3)
    x, labels = generator.normal(size=(2, 25, 60)), generator.integers(0, 3, 25)
    classifiers = fit_classifiers(x, labels[None], 3, EXACT)
    for group, features in enumerate(x):
        standard = (features - features.mean(0)) / features.std(0)
        model: Any = LogisticRegression(C=1 / (0.01 * 25), max_iter=2000, tol=1e-8).fit(standard, labels)
        np.testing.assert_allclose(classifiers.weights[group, 0].numpy(), model.coef_, atol=2e-3)
    unseen = generator.normal(size=(2, 9, 60))
    assert classifiers.predict_log_proba(unseen).shape == (2, 1, 9, 3)


@pytest.mark.parametrize(
    ("form", "sizes"), [("linear", ()), ("rank", (3,)), ("mlp", (16,)), ("mlp", (16, 8)), ("bilinear", (8,))]
)
def test_problems_are_independent(form: ClassifierForm, sizes: tuple[int, ...]) -> None:
    x, labels, noise_labels = sample_data(200)
    validation = np.where(np.arange(200) < 150, UNUSED_LABEL, labels)
    config = ClassifierConfig(form, sizes, l2_penalties=(1e-3, 1e-1), max_iterations=30)
    tasks = np.stack([labels, noise_labels])
    together = fit_classifiers(
        np.stack([x, x**2]), tasks, 3, config, validation_labels=np.stack([validation, validation]), seeds=(1, 2)
    )
    for group, features in enumerate((x, x**2)):
        for task in range(2):
            alone = fit_classifiers(
                features[None], tasks[task][None], 3, config, validation_labels=validation[None], seeds=(task + 1,)
            )
            expected = alone.predict_log_proba(features[None])[0, 0]
            np.testing.assert_allclose(
                together.predict_log_proba(np.stack([x, x**2]))[group, task],
                expected,
                5e-3,
                2e-2,
                err_msg=f"{group} {task}",
            )


def test_planted_labels_are_learned_and_noise_is_at_chance() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(900, 6))
    linear, product = (x[:, 2] > 0).astype(int), (x[:, 0] * x[:, 3] > 0).astype(int)
    noise = generator.integers(0, 2, 900)
    gold = np.stack([linear, product, noise])
    train, validation = (
        np.where(mask, gold, UNUSED_LABEL) for mask in (np.arange(900) < 500, np.arange(900) // 100 == 5)
    )
    forms: tuple[tuple[ClassifierForm, tuple[int, ...]], ...] = (("linear", ()), ("mlp", (20,)), ("bilinear", (6,)))
    for form, sizes in forms:
        config = ClassifierConfig(form, sizes, l2_penalties=(1e-3, 1e-1))
        classifiers = fit_classifiers(x[None], train, 2, config, validation_labels=validation, seeds=(0, 0, 0))
        accuracy = (classifiers.predict(x[None])[0] == gold)[:, 600:].mean(1)
        assert abs(accuracy[2] - 0.5) < 0.1, form
        assert (accuracy[0] > 0.93) == (form != "bilinear"), (form, accuracy)
        assert (accuracy[1] > 0.9) == (form != "linear"), (form, accuracy)


def test_penalty_is_chosen_on_validation_examples() -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(300, 80))
    gold = np.stack([(x[:, 0] > 0).astype(int), generator.integers(0, 2, 300)])
    train, validation = (np.where(mask, gold, UNUSED_LABEL) for mask in (np.arange(300) < 200, np.arange(300) >= 200))
    classifiers = fit_classifiers(
        x[None], train, 2, ClassifierConfig(l2_penalties=(1e-4, 1e-2, 1e2)), validation_labels=validation
    )
    assert classifiers.l2_penalty[0, 0] < 1 and abs(classifiers.l2_penalty[0, 1] - 100) < 1e-6
    probabilities = np.exp(classifiers.predict_log_proba(x[None])[0, 1])
    np.testing.assert_allclose(probabilities, np.broadcast_to(probabilities[:1], probabilities.shape), atol=0.02)


def test_constant_features_and_empty_problems_give_finite_weights() -> None:
    x, labels, _ = sample_data(60)
    x[:, 1] = 7
    classifiers = fit_classifiers(x[None], np.stack([labels, np.full_like(labels, UNUSED_LABEL)]), 3, EXACT)
    assert np.isfinite(classifiers.weights.numpy()).all()
    assert (classifiers.weights[0, 1].numpy() == 0).all()
