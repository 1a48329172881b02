"""Ordinary least squares with intervals, optionally with cluster-robust standard errors.

Observations of one cluster (all layers of one sentence) are not independent. With `clusters` the standard errors are
robust to any dependence within a cluster (Liang & Zeger 1986), with the usual small-sample factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from bertology.arrays import FloatArray
from bertology.estimates.resampling import LEVEL

TOLERANCE = 1e-9


@dataclass(frozen=True)
class RegressionResult:
    """Coefficients in the order of the design's columns, each with its standard error and interval.

    A column that is a linear combination of earlier columns has NaN.
    """

    coefficients: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    r_squared: float


def least_squares(
    design: NDArray[np.floating],
    response: NDArray[np.floating],
    *,
    clusters: NDArray[np.integer] | None = None,
    level: float = LEVEL,
) -> RegressionResult:
    """Regress the (n,) response on the (n, column) design; an intercept must be a column of the design.

    The interval is NaN with as many columns as observations, or with fewer than two clusters.
    """
    n_columns = design.shape[1]
    independent = independent_columns(design)
    x, y = design[:, independent].astype(np.float64), response.astype(np.float64)
    inverse = np.linalg.inv(x.T @ x).astype(np.float64)
    solution = inverse @ (x.T @ y)
    residuals = y - x @ solution
    covariance, degrees_of_freedom = _covariance(x, residuals, inverse, clusters)
    coefficients, standard_errors = np.full(n_columns, np.nan), np.full(n_columns, np.nan)
    coefficients[independent] = solution
    standard_errors[independent] = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    quantile = float(student.ppf((1 + level) / 2, degrees_of_freedom)) if degrees_of_freedom > 0 else np.nan
    half_width = standard_errors * quantile
    total = float(np.square(y - y.mean()).sum())
    r_squared = 1 - float(np.square(residuals).sum()) / total if total > 0 else float("nan")
    return RegressionResult(
        coefficients, standard_errors, coefficients - half_width, coefficients + half_width, r_squared
    )


def independent_columns(design: NDArray[np.floating]) -> list[int]:
    """The columns that are not linear combinations of earlier columns."""
    independent: list[int] = []
    basis = np.zeros((design.shape[0], 0))
    for index in range(design.shape[1]):
        column = design[:, index].astype(np.float64)
        length = float(np.linalg.norm(column))
        # Orthogonalised twice: rounding leaves a remainder the first time.
        remainder = column - basis @ (basis.T @ column)
        remainder = remainder - basis @ (basis.T @ remainder)
        if length > 0 and float(np.linalg.norm(remainder)) > TOLERANCE * length:
            independent.append(index)
            basis = np.column_stack([basis, remainder / np.linalg.norm(remainder)])
    return independent


def _covariance(
    x: FloatArray, residuals: FloatArray, inverse: FloatArray, clusters: NDArray[np.integer] | None
) -> tuple[FloatArray, int]:
    """The covariance of the coefficients and its degrees of freedom."""
    n, n_columns = x.shape
    residual_freedom = n - n_columns
    if clusters is None:
        variance = float(np.square(residuals).sum()) / residual_freedom if residual_freedom > 0 else float("nan")
        return inverse * variance, residual_freedom
    _, members = np.unique(clusters, return_inverse=True)
    n_clusters = int(members.max()) + 1
    if n_clusters < 2 or residual_freedom <= 0:
        return np.full_like(inverse, np.nan), 0
    scores = np.zeros((n_clusters, n_columns))
    np.add.at(scores, members, x * residuals[:, None])
    factor = n_clusters / (n_clusters - 1) * (n - 1) / residual_freedom
    return factor * inverse @ (scores.T @ scores) @ inverse, n_clusters - 1
