"""Every problem reaches its optimum in any axes, and rounding of the features changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from bertology.numerics import preconditioning
from bertology.numerics.batched_classifier import ClassifierConfig, fit_classifiers
from bertology.numerics.logistic_regression import UNUSED_LABEL, SolverLimits, solve_logistic, validation_likelihoods

Array = np.ndarray[Any, Any]
EXACT = SolverLimits(400, 1e-6)


def examples(classes: int, problems: int, count: int = 60, width: int = 5) -> tuple[Array, Array]:
    """Features of two groups, and labels of problems that use different subsets of the examples."""
    generator = np.random.default_rng(0)
    x = (generator.normal(size=(2, count, width)) * np.geomspace(1, 0.1, width)).astype(np.float32)
    gold = (x[0] @ generator.normal(size=(width, classes)) + generator.gumbel(size=(count, classes))).argmax(1)
    is_unused = generator.random((problems, count)) < 0.15
    return x, np.where(is_unused, UNUSED_LABEL, gold)


def gradient(x: Array, labels: Array, weights: Array, penalty: float) -> Array:
    """(class, feature and bias) gradient of one problem's penalised loss, in double precision."""
    is_used = labels != UNUSED_LABEL
    with_bias = np.pad(x[is_used].astype(np.float64), ((0, 0), (0, 1)), constant_values=1)
    probabilities = np.exp(log_softmax(with_bias @ weights.T.astype(np.float64), 1))
    probabilities[np.arange(is_used.sum()), labels[is_used]] -= 1
    gradients = probabilities.T @ with_bias / is_used.sum()
    gradients[:, :-1] += penalty * weights[:, :-1]
    return gradients


@pytest.mark.parametrize("rotated", [False, True], ids=["features", "rotated"])
@pytest.mark.parametrize("classes", [2, 3, 8])
def test_gradient_vanishes_at_the_solution(classes: int, rotated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def saves_time(*_: object) -> bool:
        return rotated

    monkeypatch.setattr(preconditioning, "_saves_time", saves_time)
    x, labels = examples(classes, 3)
    penalties = (1e-3, 0.05, 3.0)
    weights = solve_logistic(x, labels, classes, penalties, EXACT)
    assert weights.shape == (2, 3, 3, classes, 6)
    for group in range(2):
        for problem, problem_labels in enumerate(labels):
            for index, penalty in enumerate(penalties):
                residual = gradient(x[group], problem_labels, weights[group, problem, index], penalty)
                np.testing.assert_allclose(residual, 0, atol=2e-5, err_msg=f"{group} {problem} {penalty}")


@pytest.mark.parametrize(("classes", "iterations"), [(2, 15), (3, 15), (8, 60)])
def test_few_iterations_are_enough(classes: int, iterations: int) -> None:
    """The remembered steps and the changes of the gradient belong together: mixed up, twice as many are needed."""
    x, labels = examples(classes, 3)
    penalties = (1e-3, 0.05)
    weights = solve_logistic(x, labels, classes, penalties, SolverLimits(iterations, 1e-9))
    for index, penalty in enumerate(penalties):
        np.testing.assert_allclose(gradient(x[0], labels[0], weights[0, 0, index], penalty), 0, atol=1e-6)


@pytest.mark.parametrize("penalty", [1e-3, 0.05, 3.0])
@pytest.mark.parametrize(("classes", "numerator"), [(2, 2), (3, 1), (8, 1)])
def test_the_penalty_of_scikit_learn(classes: int, numerator: int, penalty: float) -> None:
    """C is 1 / (penalty n), and twice that for two classes, where only the difference of the rows is penalised."""
    x, labels = examples(classes, 1)
    is_used = labels[0] != UNUSED_LABEL
    weights = solve_logistic(x[:1], labels, classes, (penalty,), EXACT)[0, 0, 0]
    c = numerator / (penalty * is_used.sum())
    features, gold = x[0][is_used].astype(np.float64), labels[0][is_used]
    expected: Any = LogisticRegression(C=c, max_iter=5000, tol=1e-10).fit(features, gold)
    other: Any = LogisticRegression(C=c * 3 / numerator - c, max_iter=5000, tol=1e-10).fit(features, gold)
    rows = (weights[1:] - weights[:1] if classes == 2 else weights)[:, :-1]
    # The gradient is 0 up to 2e-5 (see above), so that the weights are exact up to 2e-5 / penalty.
    np.testing.assert_allclose(rows, expected.coef_, atol=2e-5 / penalty)
    assert np.abs(rows - other.coef_).max() > 2 * 2e-5 / penalty, "with the other factor, weights differ"


def test_scores_that_would_overflow_give_finite_weights() -> None:
    x = np.linspace(-1, 1, 40, dtype=np.float32)[None, :, None]
    labels = (x[0, :, 0] > 0).astype(int)[None]
    for classes, gold in ((2, labels), (3, labels * 2)):
        weights = solve_logistic(x * 1e4, gold, classes, (1e-12,), SolverLimits(50, 1e-9))
        assert np.isfinite(weights).all()
        scores = (x[0] * 1e4) @ weights[0, 0, 0, :, :-1].T + weights[0, 0, 0, :, -1]
        assert (scores.argmax(1) == gold[0]).all()


def test_problems_without_information_have_zero_weights() -> None:
    x, labels = examples(3, 1)
    for classes, unused in ((3, np.full_like(labels, UNUSED_LABEL)), (1, np.zeros_like(labels))):
        assert not solve_logistic(x, unused, classes, (0.1,), EXACT).any()


def test_no_rotation_for_few_weights() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1, 300, 40)).astype(np.float32)
    assert preconditioning.feature_axes(x, 2, (0.05,), 1) is None
    rotated = preconditioning.feature_axes(x, 20, (1e-3, 0.05), 6)
    assert rotated is not None and rotated.step_scale is not None
    np.testing.assert_allclose(rotated.axes[0].T @ rotated.axes[0], np.eye(40), atol=1e-5)
    few_rows = preconditioning.feature_axes(x[:, :9], 2, (0.05,), 1)
    assert few_rows is not None and few_rows.axes.shape == (1, 40, 9)


def test_likelihoods_are_those_of_the_validation_examples() -> None:
    x, labels = examples(3, 2)
    validation = np.where(labels == UNUSED_LABEL, 1, UNUSED_LABEL)
    weights = solve_logistic(x, labels, 3, (0.01, 1.0), EXACT)
    likelihoods = validation_likelihoods(x, weights, validation)
    rows = validation[1] != UNUSED_LABEL
    log_likelihoods = [
        log_softmax(x[0, rows] @ penalty_weights[:, :-1].T + penalty_weights[:, -1], 1)[:, 1].sum(dtype=np.float64)
        for penalty_weights in weights[0, 1]
    ]
    np.testing.assert_allclose(likelihoods[0, 1], np.exp(log_likelihoods) / np.exp(log_likelihoods).sum(), rtol=1e-4)


def test_rounding_does_not_decide_between_equal_penalties() -> None:
    """A light and a heavy penalty with the same validation likelihood, on features that differ by rounding."""
    generator = np.random.default_rng(3)
    samples = generator.normal(size=(1, 200, 20))
    x = ((samples - samples.mean(1)) / samples.std(1)).astype(np.float32)
    gold = (x[0, :, 0] + generator.normal(size=200) > 0).astype(int)
    is_validation = generator.random(200) < 0.3
    train, validation = (np.where(mask, gold, UNUSED_LABEL)[None] for mask in (~is_validation, is_validation))
    low, high = np.log(0.1), np.log(100.0)
    for _ in range(24):
        middle = (low + high) / 2
        weights = solve_logistic(x, train, 2, (1e-3, float(np.exp(middle))), SolverLimits(300, 1e-6))
        heavy_is_better = validation_likelihoods(x, weights, validation)[0, 0, 1] > 0.5
        low, high = (middle, high) if heavy_is_better else (low, middle)
    config = ClassifierConfig(l2_penalties=(1e-3, float(np.exp(low))), max_iterations=300, tolerance=1e-6)
    predictions, light_likelihoods = [], []
    for _ in range(8):
        rounded = x * (1 + 1e-6 * generator.normal(size=x.shape)).astype(np.float32)
        predictions.append(
            fit_classifiers(rounded, train, 2, config, validation_labels=validation).predict_log_proba(x)
        )
        light_likelihoods.append(
            validation_likelihoods(rounded, solve_logistic(rounded, train, 2, config.l2_penalties, EXACT), validation)[
                0, 0, 0
            ]
        )
    assert min(light_likelihoods) < 0.5 < max(light_likelihoods) and abs(light_likelihoods[0] - 0.5) < 1e-3, (
        "the same penalty is always better"
    )
    solutions = solve_logistic(x, train, 2, config.l2_penalties, EXACT)[0, 0]
    assert np.abs(solutions[0] - solutions[1]).max() > 0.1, "both penalties give the same weights"
    assert np.ptp(predictions, 0).max() < 1e-4


@pytest.mark.parametrize("seed", [23, 51, 60])
def test_axes_of_features_that_vary_only_by_rounding(seed: int) -> None:
    """As in the embedding of [CLS], which is the same in all sentences, minus a mean with a rounding error."""
    generator = np.random.default_rng(seed)
    rounding = np.spacing(generator.normal(size=48).astype(np.float32))
    offset = (rounding * generator.integers(-3, 4, size=48)).astype(np.float32)
    rotation = preconditioning.feature_axes(np.tile(offset, (1, 32, 1)), 6, (1e-3, 1e-2, 0.1, 1.0), 8)
    assert rotation is not None
    product = rotation.axes[0].T @ rotation.axes[0]
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)
    assert rotation.step_scale is not None and np.isfinite(rotation.step_scale).all()


def test_steps_are_longer_along_axes_of_low_variance() -> None:
    """The scale is one over the root of the curvature, which grows with the variance along the axis."""
    x, _ = examples(6, 1, count=400, width=12)
    rotation = preconditioning.feature_axes(30 * x, 6, (1e-3,), 40)
    assert rotation is not None and rotation.step_scale is not None
    variance = np.square(rotation.project(30 * x)).mean(1)
    expected = (5 / 36 * variance + 1e-3) ** -0.5
    np.testing.assert_allclose(rotation.step_scale[:, 0, 0, :-1], expected, rtol=1e-3)
    assert expected.max() > 3 * expected.min()


@pytest.mark.parametrize(("classes", "share"), [(6, 1.0), (2, 0.5)])
def test_the_penalty_bounds_the_steps_along_axes_without_variance(classes: int, share: float) -> None:
    """Half of the penalty for two classes, which have one row of weights."""
    x, _ = examples(6, 1, count=400, width=12)
    rotation = preconditioning.feature_axes(np.float32(1e-3) * x, classes, (0.04,), 400)
    assert rotation is not None and rotation.step_scale is not None
    np.testing.assert_allclose(rotation.step_scale[:, 0, 0, :-1], (share * 0.04) ** -0.5, rtol=1e-3)


def test_one_example_far_away_has_the_probabilities_of_its_scores() -> None:
    """Its scores would overflow; those of the other examples are small."""
    x, labels = examples(3, 1)
    x[:, 0, 0], labels[:, 0] = 400.0, labels[0].max()
    weights = solve_logistic(x[:1], labels, 3, (0.01,), EXACT)[0, 0, 0]
    assert (x[0] @ weights[:, :-1].T).max() > 80
    np.testing.assert_allclose(gradient(x[0], labels[0], weights, 0.01), 0, atol=1e-4)


def test_examples_that_no_problem_uses_may_have_any_features() -> None:
    x, labels = examples(3, 2)
    labels[:, 7] = UNUSED_LABEL
    expected = solve_logistic(x, labels, 3, (0.1,), EXACT)
    x[:, 7] = np.nan
    np.testing.assert_array_equal(solve_logistic(x, labels, 3, (0.1,), EXACT), expected)


def test_features_that_are_not_finite_are_an_error() -> None:
    x, labels = examples(3, 2)
    x[1, 4, 2] = np.inf
    with pytest.raises(FloatingPointError, match="not finite"):
        solve_logistic(x, labels, 3, (0.1,), EXACT)
