"""Canonical correlations: parity with a plain SVD and scikit-learn, invariances, noise at its known bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes as scipy_procrustes
from scipy.stats import ortho_group
from sklearn.cross_decomposition import CCA

from bertology.maths.canonical_correlation import canonical, pwcca, svcca
from bertology.maths.covariances import Covariances, covariances
from bertology.maths.jackknife import Floats
from bertology.maths.procrustes import procrustes, rotated

N = 400


def two() -> tuple[Floats, Floats]:
    generator = np.random.default_rng(0)
    first = generator.normal(size=(N, 9)) * np.arange(1, 10) + 3
    return first, first[:, :4] @ generator.normal(size=(4, 6)) + 2 * generator.normal(size=(N, 6))


def of(first: Floats, second: Floats) -> Covariances:
    return next(covariances(first, second, None))


def basis(vectors: Floats, kept: float) -> Floats:
    left, values, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    return left[:, : int(np.searchsorted(np.cumsum(values**2) / (values**2).sum(), kept)) + 1]


def test_correlations_are_those_of_bases_and_of_scikit_learn() -> None:
    first, second = two()
    expected = np.linalg.svd(basis(first, 1 - 1e-12).T @ basis(second, 1 - 1e-12), compute_uv=False)
    found = canonical(of(first, second)).correlations
    np.testing.assert_allclose(found, expected, atol=1e-9)
    one, other = CCA(n_components=3, max_iter=5000, tol=1e-10).fit(first, second).transform(first, second)
    np.testing.assert_allclose([np.corrcoef(one[:, k], other[:, k])[0, 1] for k in range(3)], found[:3], atol=1e-3)


def test_svcca_and_pwcca_restated() -> None:
    first, second = two()
    kept = np.linalg.svd(basis(first, 0.99).T @ basis(second, 0.99), compute_uv=False)
    assert svcca(of(first, second)) == pytest.approx(kept.mean(), abs=1e-9)
    own = basis(first, 1 - 1e-12)
    left, values, _ = np.linalg.svd(own.T @ basis(second, 1 - 1e-12), full_matrices=False)
    alpha = np.abs((own @ left).T @ (first - first.mean(0))).sum(1)
    assert pwcca(of(first, second)) == pytest.approx((alpha @ values) / alpha.sum(), abs=1e-9)
    assert pwcca(of(first, second)) != pytest.approx(pwcca(of(second, first)), abs=1e-3)


def test_leaving_out_is_leaving_out() -> None:
    first, second = two()
    groups = np.arange(N) % 5
    for group, given in enumerate(list(covariances(first, second, groups))[1:]):
        kept = groups != group
        alone = of(first[kept], second[kept])
        np.testing.assert_allclose(given.first, alone.first, atol=1e-8)
        np.testing.assert_allclose(given.crossed, alone.crossed, atol=1e-8)
        assert given.count == alone.count


def test_an_invertible_map_changes_no_canonical_correlation() -> None:
    first, _ = two()
    turned = of(first, 0.5 * first @ ortho_group.rvs(9, random_state=0))
    assert svcca(turned) == pytest.approx(1) and pwcca(turned) == pytest.approx(1)
    assert procrustes(turned) == pytest.approx(1)
    skewed = of(first, first @ np.random.default_rng(2).normal(size=(9, 9)))
    assert pwcca(skewed) == pytest.approx(1, abs=1e-6)
    assert procrustes(skewed) < 0.95


def test_noise_is_at_its_known_bias() -> None:
    """The mean squared correlation of independent Gaussians with p and q features is the larger over n - 1."""
    squared = [
        np.square(canonical(of(*(np.random.default_rng([seed, p]).normal(size=(N, p)) for p in (20, 40)))).correlations)
        for seed in range(20)
    ]
    assert np.mean(squared) == pytest.approx(40 / (N - 1), rel=0.05)


def test_directions_that_are_rounding_do_not_count() -> None:
    generator = np.random.default_rng(0)
    flat = [generator.normal(size=(N, 3)) @ generator.normal(size=(3, 8)) for _ in range(2)]
    noisy = [f.astype(np.float32).astype(np.float64) for f in flat]
    assert len(canonical(of(noisy[0], noisy[1])).correlations) == 3
    assert np.isnan(svcca(of(np.ones((N, 2)), flat[0]))) and np.isnan(procrustes(of(np.ones((N, 2)), flat[0])))


def test_procrustes_is_that_of_scipy_and_turns_points_back() -> None:
    first, second = two()
    disparity = scipy_procrustes(first[:, :6], second)[2]
    assert procrustes(of(first[:, :6], second)) == pytest.approx(np.sqrt(1 - disparity), abs=1e-9)
    turned = first @ ortho_group.rvs(9, random_state=1) + 5
    np.testing.assert_allclose(rotated(turned, first), first - first.mean(0), atol=1e-9)
