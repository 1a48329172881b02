"""Similarity of two sets of features up to invertible linear maps: CCA, SVCCA (raghu2017), PWCCA (morcos2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertology.arrays import FloatArray
from bertology.numerics.covariances import Covariances

MIN_RELATIVE_VARIANCE = 1e-10
"""Relative to the largest: directions with less are rounding errors of single precision and correlate by chance."""
SVCCA_VARIANCE_FRACTION = 0.99


@dataclass(frozen=True)
class CanonicalCorrelations:
    """Canonical correlations in decreasing order, and the weight of each variate in the features of the first set."""

    correlations: FloatArray
    weights: FloatArray


def canonical_correlations(covariances: Covariances, variance_fraction: float = 1.0) -> CanonicalCorrelations:
    """Canonical correlations between the principal directions with this fraction of each set's variance.

    The weight of a variate is the sum of its absolute projections on the features of the first set: Morcos et al.'s
    alpha.
    """
    first, first_norms = _principal_directions(covariances.first, variance_fraction)
    second, second_norms = _principal_directions(covariances.second, variance_fraction)
    correlation_matrix = (first.T @ covariances.cross @ second) / np.outer(first_norms, second_norms)
    if not correlation_matrix.size:
        return CanonicalCorrelations(np.zeros(0), np.zeros(0))
    left, correlations, _ = np.linalg.svd(correlation_matrix, full_matrices=False)
    projections = (left * first_norms[:, None]).T @ first.T
    return CanonicalCorrelations(np.clip(correlations, 0.0, 1.0), np.abs(projections).sum(1))


def svcca(covariances: Covariances, variance_fraction: float = SVCCA_VARIANCE_FRACTION) -> float:
    """Mean canonical correlation of the directions with 99 % of the variance, 0 to 1; well above 0 by chance."""
    correlations = canonical_correlations(covariances, variance_fraction).correlations
    return float(correlations.mean()) if len(correlations) else float("nan")


def pwcca(covariances: Covariances) -> float:
    """Mean canonical correlation, weighted by the variates' weights in the first set, 0 to 1; not symmetric."""
    variates = canonical_correlations(covariances)
    total = variates.weights.sum()
    return float(variates.weights @ variates.correlations / total) if total > 0 else float("nan")


def _principal_directions(covariance: FloatArray, variance_fraction: float) -> tuple[FloatArray, FloatArray]:
    """(feature, direction) principal directions, and the norm of the data along each."""
    variances, directions = np.linalg.eigh(covariance)
    variances, directions = variances[::-1], directions[:, ::-1]
    is_significant = variances > MIN_RELATIVE_VARIANCE * max(float(variances[0]), 0.0)
    variances, directions = variances[is_significant], directions[:, is_significant]
    if variance_fraction < 1 and len(variances):
        n_kept = int(np.searchsorted(np.cumsum(variances) / variances.sum(), variance_fraction)) + 1
        variances, directions = variances[:n_kept], directions[:, :n_kept]
    return directions, np.sqrt(variances)
