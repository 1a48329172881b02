"""Least squares agrees with NumPy, SciPy and statsmodels, and refuses to separate dependent columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from bertology.estimates.regression import independent_columns, least_squares


def sample_data(n: int = 200, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), generator.normal(size=(n, 2)), generator.integers(0, 2, n)])
    return design, design @ np.array([1.0, -2.0, 0.5, 0.0]) + generator.normal(size=n)


def test_coefficients_agree_with_numpy() -> None:
    design, response = sample_data()
    expected, *_ = np.linalg.lstsq(design, response, rcond=None)
    np.testing.assert_allclose(least_squares(design, response).coefficients, expected, rtol=1e-9)


def test_one_variable_agrees_with_scipy_including_the_interval() -> None:
    design, response = sample_data()
    result = least_squares(design[:, :2], response)
    line: Any = stats.linregress(design[:, 1], response)
    quantile = stats.t.ppf(0.975, len(response) - 2)
    np.testing.assert_allclose(result.coefficients, [line.intercept, line.slope], rtol=1e-9)
    np.testing.assert_allclose(result.standard_errors, [line.intercept_stderr, line.stderr], rtol=1e-9)
    np.testing.assert_allclose(result.high[1], line.slope + quantile * line.stderr, rtol=1e-9)
    np.testing.assert_allclose(result.r_squared, line.rvalue**2, rtol=1e-9)


def test_standard_errors_agree_with_statsmodels() -> None:
    models: Any = pytest.importorskip("statsmodels.api")
    design, response = sample_data()
    clusters = np.arange(len(response)) // 4
    plain = models.OLS(response, design).fit()
    np.testing.assert_allclose(least_squares(design, response).standard_errors, plain.bse, rtol=1e-7)
    robust = models.OLS(response, design).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
    result = least_squares(design, response, clusters=clusters)
    np.testing.assert_allclose(result.standard_errors, robust.bse, rtol=1e-7)
    np.testing.assert_allclose(result.low, robust.conf_int()[:, 0], rtol=1e-7)


def test_clusters_of_one_observation_give_heteroscedastic_errors() -> None:
    design, response = sample_data(60)
    n, columns = design.shape
    result = least_squares(design, response, clusters=np.arange(n))
    inverse = np.linalg.inv(design.T @ design)
    residuals = response - design @ result.coefficients
    middle = sum(np.outer(row, row) * r**2 for row, r in zip(design, residuals, strict=True))
    expected = np.sqrt(np.diag(inverse @ middle @ inverse) * n / (n - columns))
    np.testing.assert_allclose(result.standard_errors, expected, rtol=1e-9)


def test_repeated_observations_add_no_evidence_when_clustered() -> None:
    design, response = sample_data(50)
    repeated = np.repeat(np.arange(50), 10)
    clustered = least_squares(design[repeated], response[repeated], clusters=repeated)
    once = least_squares(design, response, clusters=np.arange(50))
    np.testing.assert_allclose(clustered.standard_errors, once.standard_errors, rtol=0.05)
    assert (least_squares(design[repeated], response[repeated]).standard_errors < 0.5 * clustered.standard_errors).all()


def test_intervals_cover_the_truth_in_95_percent_of_samples() -> None:
    covered = np.mean(
        [
            (result.low <= [1, -2, 0.5, 0]) & (result.high >= [1, -2, 0.5, 0])
            for result in (least_squares(*sample_data(40, seed)) for seed in range(400))
        ]
    )
    assert 0.93 < covered < 0.97


def test_a_linearly_dependent_column_has_no_coefficient() -> None:
    design, response = sample_data()
    doubled = np.column_stack([design, 3 * design[:, 1] - design[:, 3], np.zeros(len(design))])
    result = least_squares(doubled, response)
    assert independent_columns(doubled) == [0, 1, 2, 3]
    assert np.isnan(result.coefficients[4:]).all() and np.isnan(result.low[4:]).all()
    np.testing.assert_allclose(result.coefficients[:4], least_squares(design, response).coefficients, rtol=1e-9)


def test_too_few_observations_have_no_interval() -> None:
    design, response = sample_data(3)
    result = least_squares(design[:, :3], response)
    assert np.isfinite(result.coefficients).all() and np.isnan(result.low).all()
    assert np.isnan(least_squares(*sample_data(30), clusters=np.zeros(30, int)).low).all()
