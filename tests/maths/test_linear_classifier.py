"""Every problem ends at its own optimum, on whatever axes, and nothing hangs on the last digit of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from bertology.maths import feature_axes
from bertology.maths.classifier import Recipe, fit
from bertology.maths.linear_classifier import UNUSED, Solving, likelihoods, solve

Array = np.ndarray[Any, Any]
EXACT = Solving(400, 1e-6)


def examples(classes: int, problems: int, count: int = 60, width: int = 5) -> tuple[Array, Array]:
    """Features of two groups, and labels of problems that each leave out some others."""
    generator = np.random.default_rng(0)
    x = (generator.normal(size=(2, count, width)) * np.geomspace(1, 0.1, width)).astype(np.float32)
    gold = (x[0] @ generator.normal(size=(width, classes)) + generator.gumbel(size=(count, classes))).argmax(1)
    left_out = generator.random((problems, count)) < 0.15
    return x, np.where(left_out, UNUSED, gold)


def slopes(x: Array, labels: Array, weights: Array, penalty: float) -> Array:
    """(class, feature and bias) the gradient of one problem's penalised loss, in double precision."""
    used = labels != UNUSED
    wide = np.pad(x[used].astype(np.float64), ((0, 0), (0, 1)), constant_values=1)
    chances = np.exp(log_softmax(wide @ weights.T.astype(np.float64), 1))
    chances[np.arange(used.sum()), labels[used]] -= 1
    found = chances.T @ wide / used.sum()
    found[:, :-1] += penalty * weights[:, :-1]
    return found


@pytest.mark.parametrize("turned", [False, True], ids=["features", "turned"])
@pytest.mark.parametrize("classes", [2, 3, 8])
def test_no_gradient_is_left(classes: int, turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def worthwhile(*_: object) -> bool:
        return turned

    monkeypatch.setattr(feature_axes, "_worthwhile", worthwhile)
    x, labels = examples(classes, 3)
    penalties = (1e-3, 0.05, 3.0)
    found = solve(x, labels, classes, penalties, EXACT)
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
        found = solve(x * 1e4, gold, classes, (1e-12,), Solving(50, 1e-9))
        assert np.isfinite(found).all()
        scores = (x[0] * 1e4) @ found[0, 0, 0, :, :-1].T + found[0, 0, 0, :, -1]
        assert (scores.argmax(1) == gold[0]).all()


def test_what_tells_nothing_stays_at_zero() -> None:
    x, labels = examples(3, 1)
    for classes, own in ((3, np.full_like(labels, UNUSED)), (1, np.zeros_like(labels))):
        assert not solve(x, own, classes, (0.1,), EXACT).any()


def test_turning_is_left_where_few_weights_are_sought() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1, 300, 40)).astype(np.float32)
    assert feature_axes.axes_of(x, 2, (0.05,), 1) is None
    turned = feature_axes.axes_of(x, 20, (1e-3, 0.05), 6)
    assert turned is not None and turned.reach is not None
    np.testing.assert_allclose(turned.axes[0].T @ turned.axes[0], np.eye(40), atol=1e-5)
    few = feature_axes.axes_of(x[:, :9], 2, (0.05,), 1)
    assert few is not None and few.axes.shape == (1, 40, 9)


def test_likelihoods_are_those_of_what_is_held_out() -> None:
    x, labels = examples(3, 2)
    held = np.where(labels == UNUSED, 1, UNUSED)
    weights = solve(x, labels, 3, (0.01, 1.0), EXACT)
    found = likelihoods(x, weights, held)
    rows = held[1] != UNUSED
    each = [
        log_softmax(x[0, rows] @ own[:, :-1].T + own[:, -1], 1)[:, 1].sum(dtype=np.float64) for own in weights[0, 1]
    ]
    np.testing.assert_allclose(found[0, 1], np.exp(each) / np.exp(each).sum(), rtol=1e-4)


def test_two_penalties_that_are_alike_are_not_decided_by_the_last_digit() -> None:
    """A light and a heavy penalty that make what is held out just as likely, on features that differ by rounding."""
    generator = np.random.default_rng(3)
    drawn = generator.normal(size=(1, 200, 20))
    x = ((drawn - drawn.mean(1)) / drawn.std(1)).astype(np.float32)
    gold = (x[0, :, 0] + generator.normal(size=200) > 0).astype(int)
    out = generator.random(200) < 0.3
    learned, held = (np.where(which, gold, UNUSED)[None] for which in (~out, out))
    low, high = np.log(0.1), np.log(100.0)
    for _ in range(24):
        middle = (low + high) / 2
        weights = solve(x, learned, 2, (1e-3, float(np.exp(middle))), Solving(300, 1e-6))
        heavy_is_better = likelihoods(x, weights, held)[0, 0, 1] > 0.5
        low, high = (middle, high) if heavy_is_better else (low, middle)
    recipe = Recipe(penalties=(1e-3, float(np.exp(low))), iterations=300, tolerance=1e-6)
    logs, shares = [], []
    for _ in range(8):
        rounded = x * (1 + 1e-6 * generator.normal(size=x.shape)).astype(np.float32)
        logs.append(fit(rounded, learned, 2, recipe, held=held).log_chances(x))
        shares.append(likelihoods(rounded, solve(rounded, learned, 2, recipe.penalties, EXACT), held)[0, 0, 0])
    assert min(shares) < 0.5 < max(shares) and abs(shares[0] - 0.5) < 1e-3, "the better one is always the same"
    each = solve(x, learned, 2, recipe.penalties, EXACT)[0, 0]
    assert np.abs(each[0] - each[1]).max() > 0.1, "it does not matter which is taken"
    assert np.ptp(logs, 0).max() < 1e-4


@pytest.mark.parametrize("seed", [23, 51, 60])
def test_features_that_vary_by_rounding_alone_have_axes(seed: int) -> None:
    """As the embedding of [CLS] has: the same in all sentences, less a mean that is off by its last digit."""
    generator = np.random.default_rng(seed)
    last = np.spacing(generator.normal(size=48).astype(np.float32))
    offset = (last * generator.integers(-3, 4, size=48)).astype(np.float32)
    found = feature_axes.axes_of(np.tile(offset, (1, 32, 1)), 6, (1e-3, 1e-2, 0.1, 1.0), 8)
    assert found is not None
    product = found.axes[0].T @ found.axes[0]
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)
    assert found.reach is not None and np.isfinite(found.reach).all()


def test_weights_reach_farther_along_axes_that_vary_less() -> None:
    """One over the root of how much the loss bends there: by the variance along the axis, and by the penalty."""
    x, _ = examples(6, 1, count=400, width=12)
    found = feature_axes.axes_of(30 * x, 6, (1e-3,), 40)
    assert found is not None and found.reach is not None
    variance = np.square(found.inside(30 * x)).mean(1)
    expected = (5 / 36 * variance + 1e-3) ** -0.5
    np.testing.assert_allclose(found.reach[:, 0, 0, :-1], expected, rtol=1e-3)
    assert expected.max() > 3 * expected.min()
