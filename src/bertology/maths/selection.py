"""The best of many candidates: which others the data cannot tell from it, and intervals that hold for all at once.

Rates are hits over cases, pooled over units (sentences) that are resampled whole. A candidate is told from the best
where it lies further behind than the luckiest of all candidates gets ahead of it in 95 % of resamples (multiple
comparisons with the best, Hsu 1981, by bootstrap): the candidate that is truly best is the best found or one of its
rivals in 95 % of samples, however many were tried. Arrays in, arrays out; knows nothing of BERT.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.maths.resampling import LEVEL, RESAMPLES, resampled_ratios

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Best:
    """The candidate with the highest rate, the first of those alike.

    `low` and `high` bound its rate so that such bounds hold for all candidates at once; `rivals` are the other
    candidates that the data cannot tell from it.
    """

    place: int
    rate: float
    low: float
    high: float
    rivals: NDArray[np.intp]


def highest(hits: NDArray[np.number], cases: NDArray[np.number]) -> int | None:
    """The place of the highest rate, from (unit, candidate) hits and (unit,) cases; None where there are no cases."""
    if not len(cases) or not cases.sum() or not hits.shape[1]:
        return None
    return int(np.argmax(hits.sum(0, dtype=np.float64)))


def best_of(
    hits: NDArray[np.number],
    cases: NDArray[np.number],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Best | None:
    """The best candidate and its rivals, from (unit, candidate) hits and (unit,) cases; None without two units."""
    place = highest(hits, cases)
    if place is None or (cases > 0).sum() < 2:
        return None
    rates = hits.sum(0, dtype=np.float64) / cases.sum()
    drawn = resampled_ratios(hits, cases, seed=seed, resamples=resamples)
    drawn = drawn[np.isfinite(drawn).all(1)]
    # Not in standard errors: of candidates that differ in a few cases only, those of a bootstrap are far too small.
    luck = drawn - rates
    margins = np.quantile(luck.max(1, keepdims=True) - luck, level, axis=0)
    rivals = np.flatnonzero(rates[place] - rates <= margins + 1e-12)
    reach = float(np.quantile(np.abs(luck).max(1), level))
    low, high = max(0.0, rates[place] - reach), min(1.0, rates[place] + reach)
    return Best(place, float(rates[place]), low, high, rivals[rivals != place])
