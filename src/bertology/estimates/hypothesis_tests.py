"""One-sided paired tests, Holm's correction for the number of tests, and multiple comparisons with the best."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bertology.arrays import BoolArray, FloatArray
from bertology.estimates.resampling import LEVEL, RESAMPLES, resampled_ratios, unanimous_margin

TOLERANCE = 1e-12
CHUNK_COLUMNS = 512
"""Hypotheses whose combinations of signs are held in memory at once."""


MAX_EXACT_DIFFERENCES = 12
"""With at most this many differences other than 0, all combinations of their signs are tried."""
MIN_UNITS = 5
"""The fewest units (sentences, documents) with which a paired test can have p < 0.05, as 2 ** -5 is 0.03."""


def paired_test(differences: NDArray[np.floating]) -> FloatArray:
    """(...) one-sided p that the mean over the first axis is above 0; NaN is ignored.

    With up to `MAX_EXACT_DIFFERENCES` differences other than 0 this is the exact sign-flip test (Fisher's randomisation
    test; of counts, McNemar's). With more it is Student's t test, but p is never below 2 ** -n of n such differences,
    the lowest p of the exact test. p is NaN with fewer than two measurements.
    """
    shape = differences.shape[1:]
    flat = differences.reshape(len(differences), math.prod(shape)).astype(np.float64)
    measured = np.isfinite(flat)
    filled = np.where(measured, flat, 0.0)
    n, n_nonzero = measured.sum(0), (np.abs(filled) > TOLERANCE).sum(0)
    p = np.maximum(_t_test(filled, measured), 0.5 ** n_nonzero.astype(np.float64))
    exact = np.flatnonzero(n_nonzero <= MAX_EXACT_DIFFERENCES)
    for start in range(0, len(exact), CHUNK_COLUMNS):
        columns = exact[start : start + CHUNK_COLUMNS]
        p[columns] = _sign_flip_test(filled[:, columns])
    return np.where(n > 1, p, np.nan).reshape(shape)


def _t_test(filled: FloatArray, measured: BoolArray) -> FloatArray:
    n = measured.sum(0)
    mean = filled.sum(0) / np.maximum(n, 1)
    squares = np.where(measured, (filled - mean) ** 2, 0.0).sum(0)
    standard_error = np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1))
    varies = standard_error > TOLERANCE
    t = np.divide(mean, standard_error, out=np.zeros_like(mean), where=varies)
    return np.where(varies, stats.t.sf(t, np.maximum(n - 1, 1)), np.where(mean > 0, 0.0, 1.0))


def _sign_flip_test(filled: FloatArray) -> FloatArray:
    """The proportion of all combinations of signs whose sum is at least the observed one, which is among them."""
    largest = np.take_along_axis(filled, np.argsort(-np.abs(filled), axis=0)[:MAX_EXACT_DIFFERENCES], axis=0)
    combinations = np.arange(2 ** len(largest))[:, None] >> np.arange(len(largest)) & 1
    sums = (1 - 2 * combinations) @ np.abs(largest)
    return (sums >= largest.sum(0) - TOLERANCE).mean(0)


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
    if rates[best] in (0, 1):
        half_width = max(half_width, unanimous_margin(int((total > 0).sum()), level=level))
    low, high = max(0.0, rates[best] - half_width), min(1.0, rates[best] + half_width)
    return BestCandidate(best, float(rates[best]), low, high, not_worse[not_worse != best])
