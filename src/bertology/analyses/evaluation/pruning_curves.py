"""The order in which heads are removed, and the scores after each pruning step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bertology.analyses.evaluation.score_change import Scores
from bertology.arrays import BoolArray, FloatArray, IntArray
from bertology.encoder.encoder import Head
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import (
    bootstrap_sentences_and_seeds,
    exact_where_unanimous,
    percentile_interval,
    ratio,
    resampled_sums,
    widen_by_rule_of_three,
)

ImportanceFunction = Callable[[BoolArray], FloatArray]
"""(layer, head) importance in a model without the heads of a mask."""


def pruning_steps(n_heads: int, prune_fraction: float) -> list[int]:
    """The number of removed heads at each step: from none to all, a further fraction of all heads at a time."""
    if not 0 < prune_fraction <= 1:
        raise Refusal(
            f"--prune-fraction was given {prune_fraction:g}",
            "a fraction of all heads above 0 and up to 1",
            f"Write for example 0.1; {1 / n_heads:.4f} removes one head at a time",
        )
    fractions = np.arange(0, 1, max(prune_fraction, 1 / n_heads)).tolist()
    return sorted({0, n_heads, *(round(fraction * n_heads) for fraction in fractions)})


def order_by_importance(
    importance: ImportanceFunction, shape: tuple[int, int], n_removed: Sequence[int], *, recompute_importance: bool
) -> tuple[IntArray, FloatArray]:
    """All heads as indices, the least important first, and the importance of each when it was removed.

    Importance is computed once, or after each of the steps that remove `n_removed` heads. A head whose importance is
    NaN goes first; of equally important heads, the lowest.
    """
    removed = np.zeros(shape, np.bool_)
    values = importance(removed)
    order, when_removed = np.zeros(removed.size, np.int64), np.full(removed.size, np.nan)
    for start, end in zip((0, *n_removed), (*n_removed, removed.size), strict=True):
        if recompute_importance and 0 < start < end:
            values = importance(removed)
        ranking = np.argsort(np.where(removed, np.inf, np.nan_to_num(values, nan=-np.inf)).ravel(), kind="stable")
        order[start:end] = ranking[: end - start]
        when_removed[start:end] = values.ravel()[order[start:end]]
        removed = removed.copy()
        removed.ravel()[order[start:end]] = True
    return order, when_removed


def random_order(shape: tuple[int, int], seed: int) -> IntArray:
    """All heads as indices, in random order."""
    return np.argsort(np.random.default_rng([seed, *shape]).permutation(int(np.prod(shape))), kind="stable")


def removed_heads(order: IntArray, shape: tuple[int, int], n_removed: Sequence[int]) -> list[BoolArray]:
    """The (layer, head) masks of the removed heads at each step."""
    rank = np.argsort(order, kind="stable").reshape(shape)
    return [rank < count for count in n_removed]


def head_names(indices: IntArray, shape: tuple[int, int]) -> tuple[str, ...]:
    """The names of heads given by their indices, such as 3-10."""
    return tuple(str(Head(*divmod(int(index), shape[1]))) for index in indices)


def curve_estimates(runs: Sequence[Sequence[Scores]], *, loss: bool, seed: int) -> Estimates:
    """(step,) score, or mean loss, of (run, step) scores, with intervals over examples and runs."""
    n_steps = len(runs[0])
    steps = [_sums([run[step] for run in runs], loss=loss) for step in range(n_steps)]
    estimates = Estimates.stack([bootstrap_sentences_and_seeds(sums, _score, seed=seed) for sums in steps])
    return estimates if loss else exact_where_unanimous(estimates)


def curve_differences(
    first: Sequence[Sequence[Scores]], second: Sequence[Sequence[Scores]], *, loss: bool, seed: int
) -> Estimates:
    """(step,) mean of the first minus mean of the second of (run, step) scores on the same examples.

    Intervals resample the examples, the same for both, and the runs of each; as many runs are resampled as pairs. If
    none of n predictions changed, that of another example still may: intervals reach at least 3/n to either side.
    """
    estimates: list[Estimates] = []
    is_different: list[bool] = []
    for step in range(len(first[0])):
        runs = [[run[step] for run in side] for side in (first, second)]
        sums = [resampled_sums(_sums(scores, loss=loss), seed=seed) for scores in runs]
        value, resampled = (_score(left) - _score(right) for left, right in zip(*sums, strict=True))
        low, high = percentile_interval(resampled)
        n = len(runs[0][0].losses)
        estimates.append(Estimates(value=value, low=np.fmin(low, value), high=np.fmax(high, value), n=np.array(n)))
        pairs = [[side[i % len(side)] for side in runs] for i in range(max(map(len, runs)))]
        is_different.append(any(not np.array_equal(left.losses, right.losses) for left, right in pairs))
    stacked = Estimates.stack(estimates)
    return stacked if loss else widen_by_rule_of_three(stacked, np.array(is_different))


def _sums(runs: Sequence[Scores], *, loss: bool) -> FloatArray:
    """(run, example, 2) losses and ones, or correct and total."""
    if loss:
        return np.stack([np.stack([scores.losses, np.ones_like(scores.losses)], -1) for scores in runs])
    return np.stack([np.stack([scores.counts.correct, scores.counts.total], -1) for scores in runs])


def _score(sums: FloatArray) -> FloatArray:
    return ratio(sums[..., 0], sums[..., 1], empty=np.nan)
