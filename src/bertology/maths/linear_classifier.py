"""Linear classifiers of many problems at once, each solved to its own end; knows nothing of BERT.

The penalised loss is convex. Directions are those of L-BFGS (Nocedal & Wright 2006, chapter 7) with a short memory, put
together from the products of the few vectors it holds; steps along them go to where Newton's method sees the least
loss. Scores move in proportion to a step, so that looking along a direction takes no product with the features: an
iteration takes two, one for the scores of the direction and one for the gradient. Two classes have opposite scores, so
that one row of weights, the difference, says it all. Features carry a last column of ones for the bias, which has no
penalty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from bertology.maths.feature_axes import Axes, axes_of

Floats = NDArray[np.float32]
Ints = NDArray[np.integer[Any]]
Marks = NDArray[np.bool_]

UNUSED = -1
"""The label of an example that a problem leaves out."""

SCORES_AT_ONCE, FEATURES_AT_ONCE = 2**16, 3 * 2**19
"""Groups are solved together until their scores or their features have so many numbers: caches hold them."""

MEMORY = 2
"""So many steps are remembered. With steps that go far enough more of them save none."""

GRADIENT = 2 * MEMORY
"""Where the gradient is among the vectors that are held; before it are steps, each with how it changed the gradient."""

OVERSHOT = 0.5
CORRECTIONS = 10
"""A step is shortened, so many times at most, where the loss rises at its end by this share of how it fell before."""

HIGHEST = 80.0
"""Exponentials of higher scores overflow."""

WORTH = 0.8
"""What has ended is left out once no more than this share is at work: leaving out copies all the rest."""


class Solving(NamedTuple):
    """A problem ends after so many `iterations`, or once each class has a small gradient.

    Small: its length over the root of the number of features, which no turn of the axes changes, is within `tolerance`.
    """

    iterations: int
    tolerance: float


def groups_at_once(shape: tuple[int, ...], problems: int, classes: int) -> int:
    """How many groups to solve together that have (example, feature) features."""
    scores = problems * (1 if classes == 2 else classes) * max(shape)
    return max(1, min(SCORES_AT_ONCE // max(1, scores), FEATURES_AT_ONCE // max(1, shape[0] * shape[1])))


def solve(
    x: Floats, labels: Ints, classes: int, penalties: tuple[float, ...], end: Solving, used: Marks | None = None
) -> Floats:
    """(group, problem, penalty, class, feature and bias) where each loss is least.

    `x` is (group, example, feature), standardised, `labels` (problem, example), `UNUSED` where a problem leaves one
    out, `used` (problem, feature), those that a problem may use. All start from zero: what others have learned from
    might be what this one holds out.
    """
    kept = (labels != UNUSED).any(0)
    if classes < 2 or not kept.any():
        return np.zeros((len(x), len(labels), len(penalties), classes, x.shape[-1] + 1), np.float32)
    x, labels = (x, labels) if kept.all() else (x[:, kept], labels[:, kept])
    task = _task(labels, classes, penalties, used)
    at_once = groups_at_once(x.shape[1:], len(task.share), classes)
    parts: list[Floats] = []
    for first in range(0, len(x), at_once):
        some = x[first : first + at_once]
        axes = axes_of(some, classes, penalties, len(labels)) if used is None else None
        parts.append(_solved(some, task, end, axes))
    weights = np.concatenate(parts)
    if classes == 2:
        weights = np.concatenate([-weights, weights], 2) * np.float32(0.5)
    return weights.reshape(len(x), len(labels), len(penalties), classes, -1)


class _Task(NamedTuple):
    """(problem x penalty, row, ...): shares of examples in the loss, those of labels, penalties, features allowed."""

    share: Floats
    gold: Floats
    penalty: Floats
    used: Floats | None

    def of(self, problems: Marks) -> _Task:
        """Some problems."""
        used = None if self.used is None else self.used[problems]
        return _Task(self.share[problems], self.gold[problems], self.penalty[problems], used)


def _task(labels: Ints, classes: int, penalties: tuple[float, ...], used: Marks | None) -> _Task:
    count = len(penalties)
    label = np.repeat(labels, count, 0)[:, None]
    counted = (label != UNUSED).astype(np.float32)
    share = counted / np.maximum(counted.sum(-1, keepdims=True), 1)
    named = np.arange(classes)[1:] if classes == 2 else np.arange(classes)
    # Two rows of weights, each half of their difference, have half of its square.
    penalty = np.tile(np.array(penalties, np.float32), len(labels)) * np.float32(0.5 if classes == 2 else 1)
    may = None if used is None else np.pad(np.repeat(used, count, 0), ((0, 0), (0, 1)), constant_values=True)
    return _Task(
        share,
        np.where(label == named[:, None], share, np.float32(0)),
        penalty[:, None, None],
        None if may is None else may[:, None].astype(np.float32),
    )


def _solved(x: Floats, task: _Task, end: Solving, axes: Axes | None) -> Floats:
    """(group, problem, row, feature and bias)."""
    least = end.tolerance * x.shape[-1] ** 0.5
    inside = np.pad(x if axes is None else axes.inside(x), ((0, 0), (0, 0), (0, 1)), constant_values=1)
    work = _Work(inside, task, least, None if axes is None else axes.reach)
    for _ in range(end.iterations):
        if not work.advance():
            break
    found = work.answered()
    return found if axes is None else np.concatenate([axes.outside(found[..., :-1]), found[..., -1:]], -1)


class _Work:
    """The problems that are at work, along (group, problem, row, ...), and the answers so far."""

    def __init__(self, x: Floats, task: _Task, least: float, reach: Floats | None) -> None:
        """`reach` is (group, problem, 1, feature and bias): by how much each weight goes further than others."""
        self.x, self.task, self.least, self.reach = x, task, least, reach
        self.groups, self.problems = np.arange(len(x)), np.arange(len(task.share))
        shape = (len(x), len(task.share), task.gold.shape[1])
        self.answer = np.zeros((*shape, x.shape[-1]), np.float32)
        self.weights = self.answer.copy()
        self.scores = np.zeros((*shape, x.shape[1]), np.float32)
        self.vectors = np.zeros((*shape[:2], 2 * MEMORY + 1, self.weights[0, 0].size), np.float32)
        self.newest = 0
        self.chances, self.errors = self._seen(self.scores)
        self.vectors[:, :, GRADIENT], self.done = self._slope()

    def advance(self) -> bool:
        """One step of every problem that has not ended; whether there was one."""
        if self.done.all():
            return False
        self._leave_out()
        direction, falling = self._direction()
        ahead = direction.reshape(self.weights.shape)
        ahead = ahead if self.reach is None else ahead * self.reach
        length = self._searched(ahead, falling)
        self.weights += ahead * length[..., None, None]
        self.newest = (self.newest + 1) % MEMORY
        step, change = (self.vectors[:, :, 2 * self.newest + part] for part in (0, 1))
        gradient = self.vectors[:, :, GRADIENT]
        np.multiply(direction, length[..., None], out=step)
        slope, small = self._slope()
        np.subtract(slope, gradient, out=change)
        gradient[...] = slope
        self.done |= small
        return True

    def answered(self) -> Floats:
        """The answers of all problems so far."""
        self.answer[self.groups[:, None], self.problems] = self.weights
        return self.answer

    def _leave_out(self) -> None:
        groups, problems = ~self.done.all(1), ~self.done.all(0)
        if groups.sum() * problems.sum() > WORTH * self.done.size:
            return
        self.answered()

        def left(values: Any) -> Any:
            return values[groups][:, problems]

        self.x, self.task = self.x[groups], self.task.of(problems)
        self.reach = None if self.reach is None else left(self.reach)
        self.groups, self.problems = self.groups[groups], self.problems[problems]
        self.weights, self.scores, self.vectors = left(self.weights), left(self.scores), left(self.vectors)
        self.chances, self.errors, self.done = left(self.chances), left(self.errors), left(self.done)

    def _seen(self, scores: Floats) -> tuple[Floats, Floats]:
        """Chances of the classes (of the second of two) by each example's share, and these less those of the labels."""
        if scores.shape[2] == 1:
            made = np.exp(np.minimum(-scores, HIGHEST))
            made += 1
            made = np.divide(self.task.share, made, out=made)
        else:
            # The scores of an example sum to 0: its highest is not below, so that no sum vanishes.
            made = np.exp(scores if scores.max() < HIGHEST else scores - scores.max(2, keepdims=True))
            made *= self.task.share / made.sum(2, keepdims=True)
        return made, made - self.task.gold

    def _slope(self) -> tuple[Floats, Marks]:
        """(group, problem, parameter) the gradient, and where it is small."""
        flat = self.errors.reshape(len(self.x), -1, self.x.shape[1])
        slope = (flat @ self.x).reshape(self.weights.shape)
        slope[..., :-1] += self.task.penalty * self.weights[..., :-1]
        if self.task.used is not None:
            slope *= self.task.used
        small = _products(slope, slope).max(-1) <= self.least**2
        if self.reach is not None:
            slope *= self.reach
        return slope.reshape(*slope.shape[:2], -1), small

    def _direction(self) -> tuple[Floats, Floats]:
        """Minus the gradient times the inverse second derivative that the last steps tell, and how steep it falls.

        It is a sum of the vectors that are held: all that is asked about them is in their products.
        """
        products = np.zeros((*self.vectors.shape[:3], GRADIENT + 1), np.float32)
        # Not of an array with itself, which takes a slow path; the first step by itself is not asked for.
        products[:, :, 1:] = self.vectors[:, :, 1:] @ self.vectors.transpose(0, 1, 3, 2)
        products[:, :, 0, 1:] = products[:, :, 1:, 0]
        factors = np.zeros(products.shape[:3], np.float32)
        factors[..., GRADIENT] = 1
        ages = [(self.newest - age) % MEMORY * 2 for age in range(MEMORY)]
        curved = [products[..., step, step + 1] for step in ages]
        inverse = [np.divide(1, own, out=np.zeros_like(own), where=own > 0) for own in curved]
        shares: list[Floats] = []
        for step, over in zip(ages, inverse, strict=True):
            shares.append(over * _products(products[..., step, :], factors))
            factors[..., step + 1] -= shares[-1]
        bent = products[..., ages[0] + 1, ages[0] + 1]
        known = (curved[0] > 0) & (bent > 0)
        factors *= np.divide(curved[0], bent, out=np.ones_like(bent), where=known)[..., None]
        for step, over, share in reversed(list(zip(ages, inverse, shares, strict=True))):
            factors[..., step] += share - over * _products(products[..., step + 1, :], factors)
        falling = _products(products[..., GRADIENT, :], factors)
        return -(factors[:, :, None] @ self.vectors)[:, :, 0], -falling

    def _searched(self, ahead: Floats, falling: Floats) -> Floats:
        """(group, problem) how far to go; moves the scores there."""
        moving = self._moved(ahead)
        weighed = self.task.penalty[:, 0, 0] * _dot(ahead[..., :-1], ahead[..., :-1])
        held = self.task.penalty[:, 0, 0] * _dot(self.weights[..., :-1], ahead[..., :-1])
        bend = weighed + self._spread(moving)
        length = np.where(self.done | (bend <= 0), 0, -falling / np.maximum(bend, 1e-30)).astype(np.float32)
        start = self.scores
        for attempt in range(CORRECTIONS + 1):
            self.scores = moving * length[..., None, None]
            self.scores += start
            self.chances, self.errors = self._seen(self.scores)
            slope = _dot(self.errors, moving) + held + length * weighed
            over = ~self.done & (slope * falling < -OVERSHOT * falling**2)
            if attempt == CORRECTIONS or not over.any():
                break
            length = np.where(over, length * falling / np.where(over, falling - slope, 1), length)
        return length

    def _moved(self, weights: Floats) -> Floats:
        """(group, problem, row, example) the scores that weights give; this way round few rows take less time."""
        flat = weights.reshape(len(weights), -1, weights.shape[-1])
        made = self.x @ np.ascontiguousarray(flat.transpose(0, 2, 1))
        return np.ascontiguousarray(made.transpose(0, 2, 1)).reshape(*weights.shape[:3], -1)

    def _spread(self, moving: Floats) -> Floats:
        """(group, problem) the mean over examples of the variance of what moves, by the chances of the classes."""
        made = self.chances * moving
        middle = made.sum(2)
        share = self.task.share[:, 0]
        squared = np.square(middle, out=middle)
        squared = np.divide(squared, share, out=squared, where=share > 0)
        return _dot(made, moving) - squared.sum(-1)


def _products(left: Floats, right: Floats) -> Floats:
    """Of the vectors along the last axis."""
    return (left[..., None, :] @ right[..., None])[..., 0, 0]


def _dot(left: Floats, right: Floats) -> Floats:
    """(group, problem) sums of products."""
    return _products(left, right).sum(-1)


def likelihoods(x: Floats, weights: Floats, held: Ints) -> NDArray[np.float64]:
    """(group, problem, penalty) how likely each makes the (problem, example) labels `held`, as shares of all."""
    if weights.shape[2] == 1:
        return np.ones(weights.shape[:3])
    some = (held != UNUSED).any(0)
    x, held = x[:, some], held[:, some]
    found = np.zeros(weights.shape[:3])
    for problem, labels in enumerate(held):
        own = np.flatnonzero(labels != UNUSED)
        for penalty in range(weights.shape[2]):
            laid = weights[:, problem, penalty]
            scores = (x[:, own] @ laid[..., :-1].transpose(0, 2, 1) + laid[:, None, :, -1]).astype(np.float64)
            found[:, problem, penalty] = log_softmax(scores, -1)[:, np.arange(len(own)), labels[own]].sum(-1)
    return softmax(found, -1)
