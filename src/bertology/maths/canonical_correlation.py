"""What two sets of features have in common up to any invertible map: CCA, SVCCA (raghu2017), PWCCA (morcos2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.maths.covariances import Covariances

Floats = NDArray[np.float64]

LEAST_VARIANCE = 1e-10
"""Of the largest: directions with less are rounding of single precision, and would correlate by chance."""
KEPT = 0.99


@dataclass(frozen=True)
class Canonical:
    """Canonical correlations from the highest, and what each variate of the first set weighs in its own features."""

    correlations: Floats
    weights: Floats


def canonical(given: Covariances, kept: float = 1.0) -> Canonical:
    """The canonical correlations between the directions that hold the share `kept` of each set's variance.

    A variate's weight is the sum of its absolute projections on the features of the first set: Morcos et al.'s alpha.
    """
    first, roots_first = _directions(given.first, kept)
    second, roots_second = _directions(given.second, kept)
    crossed = (first.T @ given.crossed @ second) / np.outer(roots_first, roots_second)
    if not crossed.size:
        return Canonical(np.zeros(0), np.zeros(0))
    left, values, _ = np.linalg.svd(crossed, full_matrices=False)
    projections = (left * roots_first[:, None]).T @ first.T
    return Canonical(np.clip(values, 0.0, 1.0), np.abs(projections).sum(1))


def svcca(given: Covariances, kept: float = KEPT) -> float:
    """Mean canonical correlation of the directions with 99 % of the variance: 0 to 1, well above 0 by chance."""
    found = canonical(given, kept).correlations
    return float(found.mean()) if len(found) else float("nan")


def pwcca(given: Covariances) -> float:
    """Canonical correlations weighted by what they weigh in the first set: 0 to 1; not the same both ways round."""
    found = canonical(given)
    total = found.weights.sum()
    return float(found.weights @ found.correlations / total) if total > 0 else float("nan")


def _directions(covariance: Floats, kept: float) -> tuple[Floats, Floats]:
    """(feature, direction) directions of most variance, and the root of the sum of squares along each."""
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    there = values > LEAST_VARIANCE * max(float(values[0]), 0.0)
    values, vectors = values[there], vectors[:, there]
    if kept < 1 and len(values):
        number = int(np.searchsorted(np.cumsum(values) / values.sum(), kept)) + 1
        values, vectors = values[:number], vectors[:, :number]
    return vectors, np.sqrt(values)
