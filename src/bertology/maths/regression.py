"""Linear regression by least squares with intervals; knows nothing of BERT.

Observations that belong together (all layers of one sentence) are no independent evidence: with `clusters` the
standard errors are robust to any dependence within a cluster (Liang & Zeger 1986), with the usual small-sample factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Floats = NDArray[np.float64]

LEVEL = 0.95
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Fit:
    """Coefficients in the order of the design's columns, each with its standard error and interval.

    NaN stands for a column that the columns before it already determine. `explained` is the share of the variance
    around the mean that the fit explains.
    """

    coefficient: Floats
    error: Floats
    low: Floats
    high: Floats
    explained: float


def least_squares(
    design: NDArray[np.floating],
    response: NDArray[np.floating],
    *,
    clusters: NDArray[np.integer] | None = None,
    level: float = LEVEL,
) -> Fit:
    """Regress the (n,) response on the (n, column) design, which holds its own column of ones if it wants one.

    There is no interval (NaN) with as many columns as observations, or with fewer than two clusters.
    """
    columns = design.shape[1]
    kept = independent_columns(design)
    x, y = design[:, kept].astype(np.float64), response.astype(np.float64)
    inverse = np.linalg.inv(x.T @ x).astype(np.float64)
    found = inverse @ (x.T @ y)
    residuals = y - x @ found
    covariance, freedom = _covariance(x, residuals, inverse, clusters)
    own = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    coefficient, error = np.full(columns, np.nan), np.full(columns, np.nan)
    coefficient[kept], error[kept] = found, own
    reach = error * (float(student.ppf((1 + level) / 2, freedom)) if freedom > 0 else np.nan)
    around = float(np.square(y - y.mean()).sum())
    explained = 1 - float(np.square(residuals).sum()) / around if around > 0 else float("nan")
    return Fit(coefficient, error, coefficient - reach, coefficient + reach, explained)


def independent_columns(design: NDArray[np.floating]) -> list[int]:
    """The columns that are no linear combination of those before them."""
    kept: list[int] = []
    basis = np.zeros((design.shape[0], 0))
    for place in range(design.shape[1]):
        column = design[:, place].astype(np.float64)
        length = float(np.linalg.norm(column))
        # Twice, for what rounding leaves the first time.
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        if length > 0 and float(np.linalg.norm(rest)) > TOLERANCE * length:
            kept.append(place)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return kept


def _covariance(
    x: Floats, residuals: Floats, inverse: Floats, clusters: NDArray[np.integer] | None
) -> tuple[Floats, int]:
    """The covariance of the coefficients and its degrees of freedom."""
    n, columns = x.shape
    freedom = n - columns
    if clusters is None:
        variance = float(np.square(residuals).sum()) / freedom if freedom > 0 else float("nan")
        return inverse * variance, freedom
    _, members = np.unique(clusters, return_inverse=True)
    count = int(members.max()) + 1
    if count < 2 or freedom <= 0:
        return np.full_like(inverse, np.nan), 0
    scores = np.zeros((count, columns))
    np.add.at(scores, members, x * residuals[:, None])
    factor = count / (count - 1) * (n - 1) / freedom
    return factor * inverse @ (scores.T @ scores) @ inverse, count - 1
