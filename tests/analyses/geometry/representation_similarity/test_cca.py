"""Canonical correlations equal those of a plain SVD and of scikit-learn, are invariant, and have a known bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.cross_decomposition import CCA

from bertology.analyses.geometry.representation_similarity.cca import canonical_correlations, pwcca, svcca
from bertology.arrays import FloatArray
from bertology.numerics.covariances import Covariances, covariances
from bertology.numerics.procrustes import procrustes

N = 400


def make_data() -> tuple[FloatArray, FloatArray]:
    """Two correlated sets of features of different width, far from the origin."""
    generator = np.random.default_rng(0)
    first = generator.normal(size=(N, 9)) * np.arange(1, 10) + 3
    return first, first[:, :4] @ generator.normal(size=(4, 6)) + 2 * generator.normal(size=(N, 6))


def covariance(first: FloatArray, second: FloatArray) -> Covariances:
    return next(covariances(first, second, None))


def basis(vectors: FloatArray, variance_fraction: float) -> FloatArray:
    """An orthonormal basis of the principal directions with this fraction of the variance."""
    left, values, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    return left[:, : int(np.searchsorted(np.cumsum(values**2) / (values**2).sum(), variance_fraction)) + 1]


def test_correlations_equal_those_of_bases_and_of_scikit_learn() -> None:
    first, second = make_data()
    expected = np.linalg.svd(basis(first, 1 - 1e-12).T @ basis(second, 1 - 1e-12), compute_uv=False)
    correlations = canonical_correlations(covariance(first, second)).correlations
    np.testing.assert_allclose(correlations, expected, atol=1e-9)
    left, right = CCA(n_components=3, max_iter=5000, tol=1e-10).fit(first, second).transform(first, second)
    sklearn_correlations = [np.corrcoef(left[:, k], right[:, k])[0, 1] for k in range(3)]
    np.testing.assert_allclose(sklearn_correlations, correlations[:3], atol=1e-3)


def test_svcca_and_pwcca_follow_their_definitions() -> None:
    first, second = make_data()
    expected = np.linalg.svd(basis(first, 0.99).T @ basis(second, 0.99), compute_uv=False)
    assert svcca(covariance(first, second)) == pytest.approx(expected.mean(), abs=1e-9)
    first_basis = basis(first, 1 - 1e-12)
    left, values, _ = np.linalg.svd(first_basis.T @ basis(second, 1 - 1e-12), full_matrices=False)
    alpha = np.abs((first_basis @ left).T @ (first - first.mean(0))).sum(1)
    assert pwcca(covariance(first, second)) == pytest.approx((alpha @ values) / alpha.sum(), abs=1e-9)
    assert pwcca(covariance(first, second)) != pytest.approx(pwcca(covariance(second, first)), abs=1e-3)


def test_canonical_correlations_are_invariant_to_invertible_maps() -> None:
    first, _ = make_data()
    rotated = covariance(first, 0.5 * first @ ortho_group.rvs(9, random_state=0))
    assert svcca(rotated) == pytest.approx(1) and pwcca(rotated) == pytest.approx(1)
    assert procrustes(rotated) == pytest.approx(1)
    skewed = covariance(first, first @ np.random.default_rng(2).normal(size=(9, 9)))
    assert pwcca(skewed) == pytest.approx(1, abs=1e-6)
    assert procrustes(skewed) < 0.95


def test_noise_has_its_known_bias() -> None:
    """The mean squared correlation of independent Gaussians with p and q features is max(p, q) / (n - 1)."""
    squared: list[FloatArray] = []
    for seed in range(20):
        first, second = (np.random.default_rng([seed, width]).normal(size=(N, width)) for width in (20, 40))
        squared.append(np.square(canonical_correlations(covariance(first, second)).correlations))
    assert np.mean(squared) == pytest.approx(40 / (N - 1), rel=0.05)


def test_directions_of_rounding_errors_do_not_count() -> None:
    generator = np.random.default_rng(0)
    flat = [generator.normal(size=(N, 3)) @ generator.normal(size=(3, 8)) for _ in range(2)]
    rounded = [vectors.astype(np.float32).astype(np.float64) for vectors in flat]
    assert len(canonical_correlations(covariance(rounded[0], rounded[1])).correlations) == 3
    constant = covariance(np.ones((N, 2)), flat[0])
    assert np.isnan(svcca(constant)) and np.isnan(procrustes(constant))
