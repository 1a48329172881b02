"""Two classes told apart by one number: the best threshold, and how well any threshold could do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def best_threshold(values: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """The number above which values are best taken for positive; the middle one where several are as good.

    Infinite where it is best to take all values for the same class.
    """
    levels = np.unique(values.astype(np.float64))
    if not len(levels):
        return float("nan")
    between = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
    place = np.searchsorted(levels, values)
    # Right above threshold t: positives from level t on, and negatives below it.
    gained = np.bincount(place, np.where(positive, -1, 1), minlength=len(levels))
    right = positive.sum() + np.concatenate([[0.0], np.cumsum(gained)])
    best = np.flatnonzero(right == right.max())
    return float(between[best[len(best) // 2]])


def area_under_curve(values: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """The share of pairs of a positive and a negative in which the positive is higher; 0.5 by chance, ties half."""
    from scipy.stats import rankdata

    many, few = int(positive.sum()), int((~positive).sum())
    if not many or not few:
        return float("nan")
    ranks = np.asarray(rankdata(values), np.float64)
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * few))
