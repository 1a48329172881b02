"""Select on one half of the units and score on the other, over many random splits, and combine the splits.

No number depends on one split. Value and ends of the interval are means over splits: the standard error of a mean is
at most the mean of the standard errors, however the splits depend on each other. The p value is e times the
geometric mean of the p values, which is valid for any dependence as well (Vovk and Wang 2020). Means change little with
the random seed of the splits; medians jump where two candidates are selected about equally often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Array, BoolArray, FloatArray
from bertology.estimates.estimate import Estimate
from bertology.estimates.hypothesis_tests import MIN_UNITS, paired_test
from bertology.estimates.resampling import LEVEL, resampled_deviations, unanimous_margin

N_SPLITS = 100


def random_halves(texts: Sequence[str], *, seed: int, n_splits: int = N_SPLITS) -> BoolArray:
    """(split, unit) whether each unit is in the first half; equal texts stay together, their order does not matter."""
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    generator = np.random.default_rng(seed)
    halves = np.stack([generator.permutation(len(ranks)) % 2 == 0 for _ in range(n_splits)])
    return halves[:, [ranks[text] for text in texts]]


@dataclass(frozen=True)
class CrossFit:
    """The candidates selected in each split.

    `halves` is (split, unit): the first half of each split. `selected` is (split, 2): the candidate with the highest
    score on the first half, and that on the second. A candidate is scored on the half it was not selected on.
    """

    halves: BoolArray
    selected: NDArray[np.intp]

    def scores(self, candidate_scores: Array) -> FloatArray:
        """(split, unit) the score of the candidate selected on the other half, from (unit, candidate) scores."""
        candidates = np.where(self.halves, self.selected[:, 1:], self.selected[:, :1])
        return candidate_scores[np.arange(len(candidate_scores)), candidates].astype(np.float64)

    @property
    def most_selected(self) -> tuple[int, float]:
        """The candidate selected most often, the first one if there are ties, and the proportion of selections."""
        counts = np.bincount(self.selected.ravel())
        return int(counts.argmax()), float(counts.max() / self.selected.size)


def cross_fit(halves: BoolArray, total: Array, half_scores: Callable[[FloatArray], FloatArray]) -> CrossFit | None:
    """Select a candidate on each half; None if no split has measurements in both halves.

    `total` is (unit,) or (unit, kind): splits without any of a kind in one of the halves are left out. `half_scores`
    gives (split, candidate) scores of (split, unit) halves, which are 1 for the units of a half and 0 for others.
    """
    measured = (total.reshape(len(total), -1) > 0).astype(np.float64)
    n_first = halves @ measured
    usable = halves[((n_first > 0) & (n_first < measured.sum(0))).all(1)]
    if not len(usable):
        return None
    selected = [half_scores(half.astype(np.float64)).argmax(1) for half in (usable, ~usable)]
    return CrossFit(usable, np.stack(selected, 1))


def cross_fitted_ratio(numerators: Array, denominators: Array, *, lowest: float = 0.0) -> Estimate:
    """Sum of (split, unit) numerators over sum of (unit,) denominators, between `lowest` and 1."""
    total = float(denominators.sum())
    values = numerators.sum(1) / total
    influences = (numerators - values[:, None] * denominators) / total
    return combine_splits(values, influences[:, denominators > 0], lowest=lowest)


def resampled_cross_fit(numerators: Array, denominators: Array, *, seed: int, resamples: int) -> FloatArray:
    """(resample,) values of `cross_fitted_ratio` with units resampled, by the mean influence of each over splits."""
    total = float(denominators.sum())
    values = numerators.sum(1) / total
    influences = ((numerators - values[:, None] * denominators) / total).mean(0)
    return float(values.mean()) + resampled_deviations(influences, seed=seed, resamples=resamples)


def held_out_ratio(held_out: BoolArray, numerators: Array, denominators: Array, *, lowest: float = 0.0) -> Estimate:
    """Sum of (unit,) numerators over sum of (unit,) denominators on the held-out units, mean over selections.

    `held_out` is (selection, unit): the units on which one and the same candidate is scored, as it was selected on the
    others. The interval is that of the mean, from the mean influence of each unit, since the parts overlap.
    """
    parts = held_out.astype(np.float64)
    totals = parts @ denominators
    values = parts @ numerators / totals
    influences = ((1 / totals) @ parts * numerators - (values / totals) @ parts * denominators) / len(parts)
    measured = (denominators > 0) & held_out.any(0)
    return combine_splits(values, influences[None, measured], lowest=lowest)


def combine_splits(values: Array, influences: Array, *, lowest: float) -> Estimate:
    """The mean of (split,) values between `lowest` and 1, with an interval from (split, unit) influences.

    The influence of a unit is its part of the value's deviation (delta method). n is the number of units; with fewer
    than `MIN_UNITS` there is no interval. Where all units agree, the margin is that of Clopper and Pearson.
    """
    value, n = float(values.mean()), influences.shape[1]
    if n < MIN_UNITS:
        return Estimate(value, np.nan, np.nan, n, "t")
    errors = np.sqrt(np.square(influences).sum(1) * n / (n - 1))
    margins = np.where(errors > 1e-12, float(stdtrit(n - 1, (1 + LEVEL) / 2)) * errors, unanimous_margin(n))
    margin = float(margins.mean())
    return Estimate(value, max(lowest, value - margin), min(1.0, value + margin), n, "t")


def cross_fitted_p(differences: Array) -> float:
    """The p value of (split, unit) differences, NaN where a unit was not measured; see `paired_test`."""
    if np.isfinite(differences).any(0).sum() < MIN_UNITS:
        return np.nan
    log_p = np.log(np.maximum(np.nan_to_num(paired_test(differences.T), nan=1.0), np.finfo(np.float64).tiny))
    return min(1.0, float(np.exp(1 + log_p.mean())))
