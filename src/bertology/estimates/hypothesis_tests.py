"""One-sided paired t tests, and Holm's correction for the number of tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bertology.arrays import FloatArray
from bertology.estimates.resampling import LEVEL, RESAMPLES, resampled_ratios


def paired_t_test(differences: NDArray[np.floating]) -> FloatArray:
    """(...) one-sided p of Student's t test that the mean over the first axis is above 0; NaN is ignored.

    Constant differences have p 0 if they are above 0 and 1 otherwise; p is NaN with fewer than two measurements.
    """
    measured = np.isfinite(differences)
    n = measured.sum(0)
    filled = np.where(measured, differences, 0.0).astype(np.float64)
    mean = filled.sum(0) / np.maximum(n, 1)
    squares = np.where(measured, (filled - mean) ** 2, 0.0).sum(0)
    standard_error = np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1))
    varies = standard_error > 1e-12
    t = np.divide(mean, standard_error, out=np.zeros_like(mean), where=varies)
    p = np.where(varies, stats.t.sf(t, np.maximum(n - 1, 1)), np.where(mean > 0, 0.0, 1.0))
    return np.where(n > 1, p, np.nan)


def holm(p: NDArray[np.floating]) -> FloatArray:
    """The p values adjusted for their number (Holm 1979); NaN marks hypotheses that were not tested."""
    flat = p.reshape(-1).astype(np.float64)
    tested = np.flatnonzero(np.isfinite(flat))
    order = tested[np.argsort(flat[tested], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted = np.full_like(flat, np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(flat[order] * factors)) if len(order) else []
    return adjusted.reshape(p.shape)


@dataclass(frozen=True)
class BestCandidate:
    """The candidate with the highest rate, the first one if there are ties.

    The interval from `low` to `high` is simultaneous: it holds for all candidates at once. `indistinguishable` are the
    other candidates that are not significantly worse.
    """

    index: int
    rate: float
    low: float
    high: float
    indistinguishable: NDArray[np.intp]


def argmax_rate(correct: NDArray[np.number], total: NDArray[np.number]) -> int | None:
    """The index of the highest rate, from (unit, candidate) correct and (unit,) total; None if the total is 0."""
    if not len(total) or not total.sum() or not correct.shape[1]:
        return None
    return int(np.argmax(correct.sum(0, dtype=np.float64)))


def compare_with_best(
    correct: NDArray[np.number],
    total: NDArray[np.number],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> BestCandidate | None:
    """The best candidate, from (unit, candidate) correct and (unit,) total; None with fewer than two units."""
    best = argmax_rate(correct, total)
    if best is None or (total > 0).sum() < 2:
        return None
    rates = correct.sum(0, dtype=np.float64) / total.sum()
    resampled = resampled_ratios(correct, total, seed=seed, resamples=resamples)
    resampled = resampled[np.isfinite(resampled).all(1)]
    # Deviations are not divided by standard errors: for candidates that differ in a few cases only, the bootstrap's
    # standard errors are far too small.
    deviations = resampled - rates
    margins = np.quantile(deviations.max(1, keepdims=True) - deviations, level, axis=0)
    not_worse = np.flatnonzero(rates[best] - rates <= margins + 1e-12)
    half_width = float(np.quantile(np.abs(deviations).max(1), level))
    low, high = max(0.0, rates[best] - half_width), min(1.0, rates[best] + half_width)
    return BestCandidate(best, float(rates[best]), low, high, not_worse[not_worse != best])
