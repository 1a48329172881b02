"""Many logistic regressions at once equal scikit-learn's, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from bertology.maths.linear_probe import UNUSED, fit


def made(n: int = 400, d: int = 6, classes: int = 3, seed: int = 0) -> tuple[np.ndarray[Any, Any], ...]:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, d)) * np.arange(1, d + 1) + 3
    labels = (x @ generator.normal(size=(d, classes)) + 4 * generator.normal(size=(n, classes))).argmax(1)
    return x, labels, generator.integers(0, classes, n)


def test_each_task_equals_sklearn() -> None:
    x, labels, other = made()
    partly = np.where(np.arange(len(labels)) % 3 == 0, UNUSED, labels)
    used = np.ones((4, x.shape[1]), bool)
    used[3, ::2] = False
    tasks = np.stack([labels, other, partly, labels])
    found = fit(x, tasks, 3, penalty=0.01, used=used, iterations=300)
    standard = (x - x.mean(0)) / x.std(0)
    for task, own in enumerate(tasks):
        kept = own != UNUSED
        model: Any = LogisticRegression(C=1 / (0.01 * kept.sum()), max_iter=2000, tol=1e-8)
        model.fit(standard[kept] * used[task], own[kept])
        weights = found.weights[task].numpy().T
        np.testing.assert_allclose(weights, model.coef_ * used[task], atol=2e-3)
        agreed = found.predict(x)[task] == model.predict(standard * used[task])
        assert agreed.mean() > 0.995


def test_it_finds_what_is_there_and_chance_where_nothing_is() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(600, 5))
    truth, noise = (x[:, 2] > 0).astype(int), generator.integers(0, 2, 600)
    found = fit(x[:400], np.stack([truth[:400], noise[:400]]), 2, penalty=1e-3)
    right = found.predict(x[400:]) == np.stack([truth, noise])[:, 400:]
    assert right[0].mean() > 0.95
    assert abs(right[1].mean() - 0.5) < 0.1


def test_constant_features_and_empty_tasks_do_no_harm() -> None:
    x, labels, _ = made(60)
    x[:, 1] = 7
    found = fit(x, np.stack([labels, np.full_like(labels, UNUSED)]), 3, penalty=0.01)
    assert np.isfinite(found.weights.numpy()).all()
    assert (found.weights[1].numpy() == 0).all()
