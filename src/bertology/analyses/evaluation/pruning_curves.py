"""Which heads to remove at each pruning step, and the score after each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bertology.analyses.evaluation.score_change import Scores
from bertology.arrays import BoolArray, FloatArray
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import (
    bootstrap_sentences_and_seeds,
    exact_where_unanimous,
    ratio,
)

ImportanceFunction = Callable[[BoolArray], FloatArray]
"""(layer, head) importance in a model without the heads of a mask."""


def pruning_steps(n_heads: int, prune_fraction: float) -> list[int]:
    """The number of removed heads at each step: from none to all, a further fraction of all heads at a time."""
    fractions = np.arange(0, 1, max(prune_fraction, 1 / n_heads)).tolist()
    return sorted({0, n_heads, *(round(fraction * n_heads) for fraction in fractions)})


def prune_by_importance(
    importance: ImportanceFunction, shape: tuple[int, int], n_removed: Sequence[int], *, recompute_importance: bool
) -> list[BoolArray]:
    """The removed heads at each step, the least important first; importance is computed once or at every step.

    A head whose importance is NaN goes first; of equally important heads, the lowest.
    """
    removed = np.zeros(shape, np.bool_)
    values = importance(removed)
    steps: list[BoolArray] = []
    for step, count in enumerate(n_removed):
        if recompute_importance and step and removed.any() and not removed.all():
            values = importance(removed)
        ranking = np.argsort(np.where(removed, np.inf, np.nan_to_num(values, nan=-np.inf)).ravel(), kind="stable")
        removed = removed.copy()
        removed.ravel()[ranking[: count - int(removed.sum())]] = True
        steps.append(removed)
    return steps


def prune_at_random(shape: tuple[int, int], n_removed: Sequence[int], seed: int) -> list[BoolArray]:
    """The removed heads at each step, in random order."""
    values = np.random.default_rng([seed, *shape]).permutation(int(np.prod(shape))).reshape(shape).astype(np.float64)
    return prune_by_importance(lambda _: values, shape, n_removed, recompute_importance=False)


def curve_estimates(runs: Sequence[Sequence[Scores]], *, loss: bool, seed: int) -> Estimates:
    """(step,) score, or mean loss, of (run, step) scores, with intervals over examples and runs."""
    n_steps = len(runs[0])
    steps = [np.stack([numerator_and_denominator(run[step], loss=loss) for run in runs]) for step in range(n_steps)]
    estimates = Estimates.stack([bootstrap_sentences_and_seeds(sums, _score, seed=seed) for sums in steps])
    return estimates if loss else exact_where_unanimous(estimates)


def numerator_and_denominator(scores: Scores, *, loss: bool) -> FloatArray:
    """(example, 2) losses and ones, or correct and total."""
    if loss:
        return np.stack([scores.losses, np.ones_like(scores.losses)], -1)
    return np.stack([scores.counts.correct, scores.counts.total], -1)


def _score(sums: FloatArray) -> FloatArray:
    return ratio(sums[..., 0], sums[..., 1], empty=np.nan)
