"""Every problem ends at its own optimum, on whatever axes, and nothing hangs on the last digit of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from bertology.numerics import preconditioning
from bertology.numerics.batched_classifier import ClassifierConfig, fit_classifiers
from bertology.numerics.logistic_regression import UNUSED_LABEL, SolverLimits, solve_logistic, validation_likelihoods

Array = np.ndarray[Any, Any]
EXACT = SolverLimits(400, 1e-6)


def examples(classes: int, problems: int, count: int = 60, width: int = 5) -> tuple[Array, Array]:
    """Features of two groups, and labels of problems that each leave out some others."""
    generator = np.random.default_rng(0)
    x = (generator.normal(size=(2, count, width)) * np.geomspace(1, 0.1, width)).astype(np.float32)
    gold = (x[0] @ generator.normal(size=(width, classes)) + generator.gumbel(size=(count, classes))).argmax(1)
    left_out = generator.random((problems, count)) < 0.15
    return x, np.where(left_out, UNUSED_LABEL, gold)


def slopes(x: Array, labels: Array, weights: Array, penalty: float) -> Array:
    """(class, feature and bias) the gradient of one problem's penalised loss, in double precision."""
    used = labels != UNUSED_LABEL
    wide = np.pad(x[used].astype(np.float64), ((0, 0), (0, 1)), constant_values=1)
    chances = np.exp(log_softmax(wide @ weights.T.astype(np.float64), 1))
    chances[np.arange(used.sum()), labels[used]] -= 1
    found = chances.T @ wide / used.sum()
    found[:, :-1] += penalty * weights[:, :-1]
    return found


@pytest.mark.parametrize("rotated", [False, True], ids=["features", "rotated"])
@pytest.mark.parametrize("classes", [2, 3, 8])
def test_gradient_vanishes_at_the_solution(classes: int, rotated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def saves_time(*_: object) -> bool:
        return rotated

    monkeypatch.setattr(preconditioning, "_saves_time", saves_time)
    x, labels = examples(classes, 3)
    penalties = (1e-3, 0.05, 3.0)
    found = solve_logistic(x, labels, classes, penalties, EXACT)
    assert found.shape == (2, 3, 3, classes, 6)
    for group in range(2):
        for problem, own in enumerate(labels):
            for place, penalty in enumerate(penalties):
                left = slopes(x[group], own, found[group, problem, place], penalty)
                np.testing.assert_allclose(left, 0, atol=2e-5, err_msg=f"{group} {problem} {penalty}")


def test_scores_that_would_overflow_do_no_harm() -> None:
    x = np.linspace(-1, 1, 40, dtype=np.float32)[None, :, None]
    labels = (x[0, :, 0] > 0).astype(int)[None]
    for classes, gold in ((2, labels), (3, labels * 2)):
        found = solve_logistic(x * 1e4, gold, classes, (1e-12,), SolverLimits(50, 1e-9))
        assert np.isfinite(found).all()
        scores = (x[0] * 1e4) @ found[0, 0, 0, :, :-1].T + found[0, 0, 0, :, -1]
        assert (scores.argmax(1) == gold[0]).all()


def test_what_tells_nothing_stays_at_zero() -> None:
    x, labels = examples(3, 1)
    for classes, own in ((3, np.full_like(labels, UNUSED_LABEL)), (1, np.zeros_like(labels))):
        assert not solve_logistic(x, own, classes, (0.1,), EXACT).any()


def test_no_rotation_for_few_weights() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1, 300, 40)).astype(np.float32)
    assert preconditioning.feature_axes(x, 2, (0.05,), 1) is None
    rotated = preconditioning.feature_axes(x, 20, (1e-3, 0.05), 6)
    assert rotated is not None and rotated.step_scale is not None
    np.testing.assert_allclose(rotated.axes[0].T @ rotated.axes[0], np.eye(40), atol=1e-5)
    few = preconditioning.feature_axes(x[:, :9], 2, (0.05,), 1)
    assert few is not None and few.axes.shape == (1, 40, 9)


def test_likelihoods_are_those_of_what_is_held_out() -> None:
    x, labels = examples(3, 2)
    held = np.where(labels == UNUSED_LABEL, 1, UNUSED_LABEL)
    weights = solve_logistic(x, labels, 3, (0.01, 1.0), EXACT)
    found = validation_likelihoods(x, weights, held)
    rows = held[1] != UNUSED_LABEL
    each = [
        log_softmax(x[0, rows] @ own[:, :-1].T + own[:, -1], 1)[:, 1].sum(dtype=np.float64) for own in weights[0, 1]
    ]
    np.testing.assert_allclose(found[0, 1], np.exp(each) / np.exp(each).sum(), rtol=1e-4)


def test_rounding_does_not_decide_between_equal_penalties() -> None:
    """A light and a heavy penalty that make what is held out just as likely, on features that differ by rounding."""
    generator = np.random.default_rng(3)
    drawn = generator.normal(size=(1, 200, 20))
    x = ((drawn - drawn.mean(1)) / drawn.std(1)).astype(np.float32)
    gold = (x[0, :, 0] + generator.normal(size=200) > 0).astype(int)
    out = generator.random(200) < 0.3
    learned, held = (np.where(which, gold, UNUSED_LABEL)[None] for which in (~out, out))
    low, high = np.log(0.1), np.log(100.0)
    for _ in range(24):
        middle = (low + high) / 2
        weights = solve_logistic(x, learned, 2, (1e-3, float(np.exp(middle))), SolverLimits(300, 1e-6))
        heavy_is_better = validation_likelihoods(x, weights, held)[0, 0, 1] > 0.5
        low, high = (middle, high) if heavy_is_better else (low, middle)
    config = ClassifierConfig(l2_penalties=(1e-3, float(np.exp(low))), max_iterations=300, tolerance=1e-6)
    logs, shares = [], []
    for _ in range(8):
        rounded = x * (1 + 1e-6 * generator.normal(size=x.shape)).astype(np.float32)
        logs.append(fit_classifiers(rounded, learned, 2, config, validation_labels=held).predict_log_proba(x))
        shares.append(
            validation_likelihoods(rounded, solve_logistic(rounded, learned, 2, config.l2_penalties, EXACT), held)[
                0, 0, 0
            ]
        )
    assert min(shares) < 0.5 < max(shares) and abs(shares[0] - 0.5) < 1e-3, "the better one is always the same"
    each = solve_logistic(x, learned, 2, config.l2_penalties, EXACT)[0, 0]
    assert np.abs(each[0] - each[1]).max() > 0.1, "it does not matter which is taken"
    assert np.ptp(logs, 0).max() < 1e-4


@pytest.mark.parametrize("seed", [23, 51, 60])
def test_axes_of_features_that_vary_only_by_rounding(seed: int) -> None:
    """As the embedding of [CLS] has: the same in all sentences, less a mean that is off by its last digit."""
    generator = np.random.default_rng(seed)
    last = np.spacing(generator.normal(size=48).astype(np.float32))
    offset = (last * generator.integers(-3, 4, size=48)).astype(np.float32)
    found = preconditioning.feature_axes(np.tile(offset, (1, 32, 1)), 6, (1e-3, 1e-2, 0.1, 1.0), 8)
    assert found is not None
    product = found.axes[0].T @ found.axes[0]
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)
    assert found.step_scale is not None and np.isfinite(found.step_scale).all()


def test_steps_are_longer_along_axes_of_low_variance() -> None:
    """One over the root of how much the loss bends there: by the variance along the axis, and by the penalty."""
    x, _ = examples(6, 1, count=400, width=12)
    found = preconditioning.feature_axes(30 * x, 6, (1e-3,), 40)
    assert found is not None and found.step_scale is not None
    variance = np.square(found.project(30 * x)).mean(1)
    expected = (5 / 36 * variance + 1e-3) ** -0.5
    np.testing.assert_allclose(found.step_scale[:, 0, 0, :-1], expected, rtol=1e-3)
    assert expected.max() > 3 * expected.min()
