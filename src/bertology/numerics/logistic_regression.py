"""L2-penalised logistic regression for many problems at once, each solved to convergence.

The loss is convex. Directions are those of L-BFGS (Nocedal & Wright 2006, chapter 7) with a short memory, computed from
the inner products of the few stored vectors; the step along a direction is that of Newton's method. Scores are linear
in the step, so that the line search needs no product with the features: an iteration takes two, for the scores of the
direction and for the gradient. Two classes have opposite scores and need one row of weights, their difference. The last
feature is a column of ones for the bias, which has no penalty.

The loss of n examples is their mean cross-entropy plus penalty / 2 times the squared weights of all classes, whatever
their number. scikit-learn's `LogisticRegression` penalises all rows for three or more classes, so that its C is
1 / (penalty n), but only the difference of the rows for two classes: the same solution has C = 2 / (penalty n) there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from bertology.arrays import BoolArray
from bertology.numerics.preconditioning import FeatureAxes, feature_axes

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.integer[Any]]

UNUSED_LABEL = -1
"""The label of an example that a problem does not use."""

CHUNK_SCORES, CHUNK_FEATURES = 2**16, 3 * 2**19
"""Maximum number of scores and features of the groups that are solved together: they fit into the CPU's caches."""

MEMORY = 2
"""Number of remembered steps. With Newton steps a longer memory saves no iterations."""

GRADIENT_INDEX = 2 * MEMORY
"""Index of the gradient among the stored vectors; before it are the steps, each with the change of the gradient."""

MAX_OVERSHOOT = 0.5
MAX_BACKTRACKS = 10
"""A step is shortened, at most this often, if the slope at its end exceeds this fraction of the initial descent."""

MAX_EXPONENT = 80.0
"""Exponentials of higher scores overflow."""

COMPACT_BELOW = 0.8
"""Converged problems are removed when at most this fraction is active: removing copies the rest."""


class SolverLimits(NamedTuple):
    """A problem stops after `max_iterations`, or when the gradient of each class is at most `tolerance`.

    The gradient is measured as norm / sqrt(number of features), which does not depend on the axes.
    """

    max_iterations: int
    tolerance: float


def groups_per_chunk(shape: tuple[int, ...], problems: int, classes: int) -> int:
    """The number of groups with (example, feature) features to solve together."""
    scores = problems * (1 if classes == 2 else classes) * max(shape)
    return max(1, min(CHUNK_SCORES // max(1, scores), CHUNK_FEATURES // max(1, shape[0] * shape[1])))


def solve_logistic(
    x: FloatArray,
    labels: IntArray,
    classes: int,
    penalties: tuple[float, ...],
    limits: SolverLimits,
    feature_mask: BoolArray | None = None,
) -> FloatArray:
    """(group, problem, penalty, class, feature and bias) weights at the minimum of each loss.

    `x` is (group, example, feature), standardised; `labels` is (problem, example), `UNUSED_LABEL` for unused examples;
    `feature_mask` is (problem, feature), the features that a problem may use. All start from zero: a warm start from
    another problem could leak its training examples.
    """
    used = (labels != UNUSED_LABEL).any(0)
    if classes < 2 or not used.any():
        return np.zeros((len(x), len(labels), len(penalties), classes, x.shape[-1] + 1), np.float32)
    x, labels = (x, labels) if used.all() else (x[:, used], labels[:, used])
    if not np.isfinite(x).all():
        raise FloatingPointError("Logistic regression was given features that are not finite.")
    problems = _label_problems(labels, classes, penalties, feature_mask)
    chunk_size = groups_per_chunk(x.shape[1:], len(problems.weights), classes)
    parts: list[FloatArray] = []
    # OpenBLAS sometimes flags a product of finite numbers as invalid (numpy issue 24067).
    with np.errstate(invalid="ignore"):
        for first in range(0, len(x), chunk_size):
            chunk = x[first : first + chunk_size]
            axes = feature_axes(chunk, classes, penalties, len(labels)) if feature_mask is None else None
            parts.append(_solve_chunk(chunk, problems, limits, axes))
    weights = np.concatenate(parts)
    if classes == 2:
        weights = np.concatenate([-weights, weights], 2) * np.float32(0.5)
    return weights.reshape(len(x), len(labels), len(penalties), classes, -1)


class _LabelledProblems(NamedTuple):
    """(problem x penalty, row, ...): weights of examples, weights at their labels, penalties, and feature mask."""

    weights: FloatArray
    gold: FloatArray
    penalty: FloatArray
    feature_mask: FloatArray | None

    def subset(self, problems: BoolArray) -> _LabelledProblems:
        """The selected problems."""
        feature_mask = None if self.feature_mask is None else self.feature_mask[problems]
        return _LabelledProblems(self.weights[problems], self.gold[problems], self.penalty[problems], feature_mask)


def _label_problems(
    labels: IntArray, classes: int, penalties: tuple[float, ...], feature_mask: BoolArray | None
) -> _LabelledProblems:
    count = len(penalties)
    label = np.repeat(labels, count, 0)[:, None]
    is_used = (label != UNUSED_LABEL).astype(np.float32)
    weights = is_used / np.maximum(is_used.sum(-1, keepdims=True), 1)
    row_classes = np.arange(classes)[1:] if classes == 2 else np.arange(classes)
    # Two rows of weights, each half of their difference, have half of its square.
    penalty = np.tile(np.array(penalties, np.float32), len(labels)) * np.float32(0.5 if classes == 2 else 1)
    gold = np.where(label == row_classes[:, None], weights, np.float32(0))
    mask = None
    if feature_mask is not None:
        with_bias = np.pad(np.repeat(feature_mask, count, 0), ((0, 0), (0, 1)), constant_values=True)
        mask = with_bias[:, None].astype(np.float32)
    return _LabelledProblems(weights, gold, penalty[:, None, None], mask)


def _solve_chunk(
    x: FloatArray, labelled_problems: _LabelledProblems, limits: SolverLimits, axes: FeatureAxes | None
) -> FloatArray:
    """(group, problem, row, feature and bias) weights."""
    max_norm = limits.tolerance * x.shape[-1] ** 0.5
    features = np.pad(x if axes is None else axes.project(x), ((0, 0), (0, 0), (0, 1)), constant_values=1)
    solver = _LogisticSolver(features, labelled_problems, max_norm, None if axes is None else axes.step_scale)
    for _ in range(limits.max_iterations):
        if not solver.advance():
            break
    weights = solver.solution()
    return weights if axes is None else np.concatenate([axes.unproject(weights[..., :-1]), weights[..., -1:]], -1)


class _LogisticSolver:
    """The active problems, along (group, problem, row, ...), and the weights so far."""

    def __init__(
        self,
        x: FloatArray,
        labelled_problems: _LabelledProblems,
        max_gradient_norm: float,
        step_scale: FloatArray | None,
    ) -> None:
        """`step_scale` is (group, problem, 1, feature and bias): the relative step size of each weight."""
        self.x, self.labelled_problems = x, labelled_problems
        self.max_gradient_norm, self.step_scale = max_gradient_norm, step_scale
        self.groups, self.problems = np.arange(len(x)), np.arange(len(labelled_problems.weights))
        shape = (len(x), len(labelled_problems.weights), labelled_problems.gold.shape[1])
        self.all_weights = np.zeros((*shape, x.shape[-1]), np.float32)
        self.weights = self.all_weights.copy()
        self.scores = np.zeros((*shape, x.shape[1]), np.float32)
        self.vectors = np.zeros((*shape[:2], 2 * MEMORY + 1, self.weights[0, 0].size), np.float32)
        self.newest = 0
        self.probabilities, self.errors = self._probabilities_and_errors(self.scores)
        self.vectors[:, :, GRADIENT_INDEX], self.done = self._gradient()

    def advance(self) -> bool:
        """Make one step of every active problem; false if there is none."""
        if self.done.all():
            return False
        self._drop_finished()
        direction, slope = self._direction()
        scaled = direction.reshape(self.weights.shape)
        scaled = scaled if self.step_scale is None else scaled * self.step_scale
        length = self._line_search(scaled, slope)
        self.weights += scaled * length[..., None, None]
        self.newest = (self.newest + 1) % MEMORY
        step, change = (self.vectors[:, :, 2 * self.newest + part] for part in (0, 1))
        gradient = self.vectors[:, :, GRADIENT_INDEX]
        np.multiply(direction, length[..., None], out=step)
        new_gradient, converged = self._gradient()
        np.subtract(new_gradient, gradient, out=change)
        gradient[...] = new_gradient
        self.done |= converged
        return True

    def solution(self) -> FloatArray:
        """The weights of all problems so far."""
        self.all_weights[self.groups[:, None], self.problems] = self.weights
        return self.all_weights

    def _drop_finished(self) -> None:
        groups, problems = ~self.done.all(1), ~self.done.all(0)
        if groups.sum() * problems.sum() > COMPACT_BELOW * self.done.size:
            return
        self.solution()

        def select(values: Any) -> Any:
            return None if values is None else values[groups][:, problems]

        self.x, self.labelled_problems = self.x[groups], self.labelled_problems.subset(problems)
        self.step_scale = select(self.step_scale)
        self.groups, self.problems = self.groups[groups], self.problems[problems]
        self.weights, self.scores, self.vectors = select(self.weights), select(self.scores), select(self.vectors)
        self.probabilities, self.errors, self.done = select(self.probabilities), select(self.errors), select(self.done)

    def _probabilities_and_errors(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Class probabilities (of the second of two) times example weights, and their difference from the labels."""
        if scores.shape[2] == 1:
            probabilities = np.exp(np.minimum(-scores, MAX_EXPONENT))
            probabilities += 1
            probabilities = np.divide(self.labelled_problems.weights, probabilities, out=probabilities)
        else:
            # The scores of an example sum to 0, so that the highest is not negative, and no sum underflows.
            probabilities = np.exp(scores if scores.max() < MAX_EXPONENT else scores - scores.max(2, keepdims=True))
            probabilities *= self.labelled_problems.weights / probabilities.sum(2, keepdims=True)
        return probabilities, probabilities - self.labelled_problems.gold

    def _gradient(self) -> tuple[FloatArray, BoolArray]:
        """(group, problem, parameter) the gradient, and (group, problem) whether it has converged."""
        flat = self.errors.reshape(len(self.x), -1, self.x.shape[1])
        gradient = (flat @ self.x).reshape(self.weights.shape)
        gradient[..., :-1] += self.labelled_problems.penalty * self.weights[..., :-1]
        if self.labelled_problems.feature_mask is not None:
            gradient *= self.labelled_problems.feature_mask
        converged = _products(gradient, gradient).max(-1) <= self.max_gradient_norm**2
        if self.step_scale is not None:
            gradient *= self.step_scale
        return gradient.reshape(*gradient.shape[:2], -1), converged

    def _direction(self) -> tuple[FloatArray, FloatArray]:
        """The L-BFGS direction, and the slope of the loss along it.

        The direction is a linear combination of the stored vectors, and follows from their inner products.
        """
        products = np.zeros((*self.vectors.shape[:3], GRADIENT_INDEX + 1), np.float32)
        # NumPy is slow for the product of an array with its own transpose; the norm of the first step is not needed.
        products[:, :, 1:] = self.vectors[:, :, 1:] @ self.vectors.transpose(0, 1, 3, 2)
        products[:, :, 0, 1:] = products[:, :, 1:, 0]
        factors = np.zeros(products.shape[:3], np.float32)
        factors[..., GRADIENT_INDEX] = 1
        ages = [(self.newest - age) % MEMORY * 2 for age in range(MEMORY)]
        curvatures = [products[..., step, step + 1] for step in ages]
        inverse = [np.divide(1, value, out=np.zeros_like(value), where=value > 0) for value in curvatures]
        coefficients: list[FloatArray] = []
        for step, over in zip(ages, inverse, strict=True):
            coefficients.append(over * _products(products[..., step, :], factors))
            factors[..., step + 1] -= coefficients[-1]
        change_norm = products[..., ages[0] + 1, ages[0] + 1]
        is_defined = (curvatures[0] > 0) & (change_norm > 0)
        factors *= np.divide(curvatures[0], change_norm, out=np.ones_like(change_norm), where=is_defined)[..., None]
        for step, over, coefficient in reversed(list(zip(ages, inverse, coefficients, strict=True))):
            factors[..., step] += coefficient - over * _products(products[..., step + 1, :], factors)
        slope = _products(products[..., GRADIENT_INDEX, :], factors)
        return -(factors[:, :, None] @ self.vectors)[:, :, 0], -slope

    def _line_search(self, direction: FloatArray, initial_slope: FloatArray) -> FloatArray:
        """(group, problem) step sizes; updates the scores."""
        score_change = self._linear_scores(direction)
        penalty_curvature = self.labelled_problems.penalty[:, 0, 0] * _dot(direction[..., :-1], direction[..., :-1])
        penalty_slope = self.labelled_problems.penalty[:, 0, 0] * _dot(self.weights[..., :-1], direction[..., :-1])
        curvature = penalty_curvature + self._score_variance(score_change)
        newton = -initial_slope / np.maximum(curvature, 1e-30)
        length = np.where(self.done | (curvature <= 0), 0, newton).astype(np.float32)
        start = self.scores
        for attempt in range(MAX_BACKTRACKS + 1):
            self.scores = score_change * length[..., None, None]
            self.scores += start
            self.probabilities, self.errors = self._probabilities_and_errors(self.scores)
            slope = _dot(self.errors, score_change) + penalty_slope + length * penalty_curvature
            over = ~self.done & (slope * initial_slope < -MAX_OVERSHOOT * initial_slope**2)
            if attempt == MAX_BACKTRACKS or not over.any():
                break
            length = np.where(over, length * initial_slope / np.where(over, initial_slope - slope, 1), length)
        return length

    def _linear_scores(self, weights: FloatArray) -> FloatArray:
        """(group, problem, row, example) scores of these weights; this order of factors is faster for few rows."""
        flat = weights.reshape(len(weights), -1, weights.shape[-1])
        scores = self.x @ np.ascontiguousarray(flat.transpose(0, 2, 1))
        return np.ascontiguousarray(scores.transpose(0, 2, 1)).reshape(*weights.shape[:3], -1)

    def _score_variance(self, score_change: FloatArray) -> FloatArray:
        """(group, problem) variance of the score change under the class probabilities, mean over examples."""
        weighted = self.probabilities * score_change
        mean = weighted.sum(2)
        weights = self.labelled_problems.weights[:, 0]
        squared = np.square(mean, out=mean)
        squared = np.divide(squared, weights, out=squared, where=weights > 0)
        return _dot(weighted, score_change) - squared.sum(-1)


def _products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Inner products along the last axis."""
    return (left[..., None, :] @ right[..., None])[..., 0, 0]


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    """(group, problem) inner products over rows and features."""
    return _products(left, right).sum(-1)


def validation_likelihoods(x: FloatArray, weights: FloatArray, validation_labels: IntArray) -> NDArray[np.float64]:
    """(group, problem, penalty) likelihoods of the (problem, example) validation labels, normalised over penalties."""
    if weights.shape[2] == 1:
        return np.ones(weights.shape[:3])
    used = (validation_labels != UNUSED_LABEL).any(0)
    x, validation_labels = x[:, used], validation_labels[:, used]
    log_likelihoods = np.zeros(weights.shape[:3])
    for problem, labels in enumerate(validation_labels):
        indices = np.flatnonzero(labels != UNUSED_LABEL)
        for penalty in range(weights.shape[2]):
            w = weights[:, problem, penalty]
            scores = (x[:, indices] @ w[..., :-1].transpose(0, 2, 1) + w[:, None, :, -1]).astype(np.float64)
            log_probs = log_softmax(scores, -1)[:, np.arange(len(indices)), labels[indices]]
            log_likelihoods[:, problem, penalty] = log_probs.sum(-1)
    return softmax(log_likelihoods, -1)
