"""Least squares equals NumPy's and SciPy's, finds planted effects, and says which columns cannot be told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from bertology.maths.regression import independent_columns, least_squares


def made(n: int = 200, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), generator.normal(size=(n, 2)), generator.integers(0, 2, n)])
    return design, design @ np.array([1.0, -2.0, 0.5, 0.0]) + generator.normal(size=n)


def test_it_equals_numpy() -> None:
    design, response = made()
    expected, *_ = np.linalg.lstsq(design, response, rcond=None)
    np.testing.assert_allclose(least_squares(design, response).coefficient, expected, rtol=1e-9)


def test_one_variable_equals_scipy_with_its_interval() -> None:
    design, response = made()
    found = least_squares(design[:, :2], response)
    line: Any = stats.linregress(design[:, 1], response)
    reach = stats.t.ppf(0.975, len(response) - 2)
    np.testing.assert_allclose(found.coefficient, [line.intercept, line.slope], rtol=1e-9)
    np.testing.assert_allclose(found.error, [line.intercept_stderr, line.stderr], rtol=1e-9)
    np.testing.assert_allclose(found.high[1], line.slope + reach * line.stderr, rtol=1e-9)
    np.testing.assert_allclose(found.explained, line.rvalue**2, rtol=1e-9)


def test_it_equals_statsmodels_where_installed() -> None:
    models: Any = pytest.importorskip("statsmodels.api")
    design, response = made()
    members = np.arange(len(response)) // 4
    plain = models.OLS(response, design).fit()
    np.testing.assert_allclose(least_squares(design, response).error, plain.bse, rtol=1e-7)
    robust = models.OLS(response, design).fit(cov_type="cluster", cov_kwds={"groups": members}, use_t=True)
    found = least_squares(design, response, clusters=members)
    np.testing.assert_allclose(found.error, robust.bse, rtol=1e-7)
    np.testing.assert_allclose(found.low, robust.conf_int()[:, 0], rtol=1e-7)


def test_clusters_of_one_are_the_heteroscedastic_errors() -> None:
    design, response = made(60)
    n, columns = design.shape
    found = least_squares(design, response, clusters=np.arange(n))
    inverse = np.linalg.inv(design.T @ design)
    residuals = response - design @ found.coefficient
    middle = sum(np.outer(row, row) * r**2 for row, r in zip(design, residuals, strict=True))
    expected = np.sqrt(np.diag(inverse @ middle @ inverse) * n / (n - columns))
    np.testing.assert_allclose(found.error, expected, rtol=1e-9)


def test_repeating_observations_is_no_evidence_once_clustered() -> None:
    design, response = made(50)
    again = np.repeat(np.arange(50), 10)
    clustered = least_squares(design[again], response[again], clusters=again)
    once = least_squares(design, response, clusters=np.arange(50))
    np.testing.assert_allclose(clustered.error, once.error, rtol=0.05)
    assert (least_squares(design[again], response[again]).error < 0.5 * clustered.error).all()


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    covered = np.mean(
        [
            (found.low <= [1, -2, 0.5, 0]) & (found.high >= [1, -2, 0.5, 0])
            for found in (least_squares(*made(40, seed)) for seed in range(400))
        ]
    )
    assert 0.93 < covered < 0.97


def test_a_column_determined_by_others_has_no_coefficient() -> None:
    design, response = made()
    doubled = np.column_stack([design, 3 * design[:, 1] - design[:, 3], np.zeros(len(design))])
    found = least_squares(doubled, response)
    assert independent_columns(doubled) == [0, 1, 2, 3]
    assert np.isnan(found.coefficient[4:]).all() and np.isnan(found.low[4:]).all()
    np.testing.assert_allclose(found.coefficient[:4], least_squares(design, response).coefficient, rtol=1e-9)


def test_too_few_observations_have_no_interval() -> None:
    design, response = made(3)
    found = least_squares(design[:, :3], response)
    assert np.isfinite(found.coefficient).all() and np.isnan(found.low).all()
    assert np.isnan(least_squares(*made(30), clusters=np.zeros(30, int)).low).all()
