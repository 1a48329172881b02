"""RSA and CKA equal SciPy and explicit matrices, have the right invariances, and their known bias on noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group, pearsonr, spearmanr

from bertology.analyses.geometry.representation_similarity import kernel_similarity as kernels
from bertology.analyses.geometry.representation_similarity.kernel_similarity import (
    cka,
    feature_kernel_sums,
    kernel_spearman,
    kernel_sums,
    pearson,
)
from bertology.arrays import FloatArray
from bertology.estimates.jackknife import GroupIndices, assign_groups

N, N_GROUPS = 240, 6


def make_data() -> tuple[FloatArray, FloatArray]:
    """Two noisy views of the same observations, of different width, far from the origin."""
    generator = np.random.default_rng(0)
    first = generator.normal(size=(N, 12)) + 2
    return first, first @ generator.normal(size=(12, 7)) + generator.normal(size=(N, 7))


def make_groups() -> GroupIndices:
    return assign_groups(np.arange(N) // 4, N_GROUPS, seed=0)


def one_group(count: int = N) -> GroupIndices:
    return np.zeros(count, np.intp)


def explicit_cka(first: FloatArray, second: FloatArray, *, unbiased: bool) -> float:
    """CKA of two kernel matrices, by its definition."""
    n = len(first)

    def hsic(k: FloatArray, m: FloatArray) -> float:
        if not unbiased:
            centring = np.eye(n) - 1 / n
            return float(np.trace(k @ centring @ m @ centring)) / (n - 1) ** 2
        k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
        ones = np.ones(n)
        total = np.trace(k @ m) + (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
        return float((total - 2 / (n - 2) * (ones @ k @ m @ ones)) / (n * (n - 3)))

    return hsic(first, second) / np.sqrt(hsic(first, first) * hsic(second, second))


@pytest.mark.parametrize("subset", range(N_GROUPS + 1))
def test_rsa_equals_pearsonr_over_pdist(subset: int) -> None:
    first, second = make_data()
    is_kept = make_groups() != subset - 1
    expected = pearsonr(pdist(first[is_kept], "cosine"), pdist(second[is_kept], "cosine"))[0]
    rows = kernels.unit_rows(first), kernels.unit_rows(second)
    for sums in (
        feature_kernel_sums(*rows, make_groups()),
        kernel_sums(kernels.inner_product(rows[0]), kernels.inner_product(rows[1]), make_groups()),
    ):
        assert pearson(sums)[subset] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("subset", [0, 3])
def test_euclidean_and_spearman_rsa_equal_scipy(subset: int) -> None:
    first, second = make_data()
    is_kept = make_groups() != subset - 1
    distances = pdist(first[is_kept]), pdist(second[is_kept])
    pair = kernels.negative_distance(first), kernels.negative_distance(second)
    sums = kernel_sums(*pair, make_groups())
    assert pearson(sums)[subset] == pytest.approx(pearsonr(*distances)[0], abs=1e-10)
    assert kernel_spearman(*pair, make_groups())[subset] == pytest.approx(spearmanr(*distances)[0], abs=1e-4)


@pytest.mark.parametrize("unbiased", [False, True])
def test_linear_cka_equals_explicit_matrices(unbiased: bool) -> None:
    first, second = make_data()
    values = cka(feature_kernel_sums(first, second, make_groups()), unbiased=unbiased)
    for subset in (0, 2):
        is_kept = make_groups() != subset - 1
        matrices = first[is_kept] @ first[is_kept].T, second[is_kept] @ second[is_kept].T
        assert values[subset] == pytest.approx(explicit_cka(*matrices, unbiased=unbiased), abs=1e-10)


@pytest.mark.parametrize("unbiased", [False, True])
def test_gaussian_cka_equals_explicit_matrices(unbiased: bool) -> None:
    pair: list[kernels.KernelRows] = []
    matrices: list[FloatArray] = []
    for vectors in make_data():
        width = 0.4 * kernels.median_distance(vectors)
        assert width == pytest.approx(0.4 * np.median(pdist(vectors)))
        pair.append(kernels.gaussian(vectors, width))
        matrices.append(np.exp(-squareform(pdist(vectors, "sqeuclidean")) / (2 * width**2)))
    value = cka(kernel_sums(pair[0], pair[1], make_groups()), unbiased=unbiased)[0]
    assert value == pytest.approx(explicit_cka(matrices[0], matrices[1], unbiased=unbiased), abs=1e-10)


def test_the_chunk_size_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make_data()
    pair = kernels.negative_distance(first), kernels.negative_distance(second)
    at_once = pearson(kernel_sums(*pair, make_groups()))
    monkeypatch.setattr(kernels, "CHUNK_CELLS", 7 * N)
    np.testing.assert_allclose(pearson(kernel_sums(*pair, make_groups())), at_once, atol=1e-12)


def test_similarities_are_invariant_to_rotation_and_scale_but_not_to_invertible_maps() -> None:
    first, _ = make_data()
    rotated = 3 * first @ ortho_group.rvs(12, random_state=0)
    skewed = first @ np.random.default_rng(1).normal(size=(12, 12))
    for second, is_same in ((rotated, True), (skewed, False)):
        rows = kernels.unit_rows(first), kernels.unit_rows(second)
        sums = feature_kernel_sums(first, second, one_group())
        rsa = pearson(feature_kernel_sums(*rows, one_group()))
        values = np.array([rsa, cka(sums), cka(sums, unbiased=True)])
        assert (values > 1 - 1e-9).all() == is_same
        assert is_same or (values < 0.95).all()


def test_noise_has_its_known_bias() -> None:
    """For independent Gaussians of p and q features, plain CKA is about sqrt(pq / ((n + p) (n + q)))."""
    n, p, q = 300, 100, 50
    values: list[list[float]] = []
    for seed in range(20):
        first, second = (np.random.default_rng([seed, size]).normal(size=(n, size)) for size in (p, q))
        sums = feature_kernel_sums(first, second, one_group(n))
        rows = kernels.unit_rows(first), kernels.unit_rows(second)
        rsa = pearson(feature_kernel_sums(*rows, one_group(n)))[0]
        values.append([cka(sums)[0], cka(sums, unbiased=True)[0], rsa])
    plain, unbiased, rsa = np.mean(values, 0)
    assert plain == pytest.approx(np.sqrt(p * q / ((n + p) * (n + q))), rel=0.03)
    assert abs(unbiased) < 0.005
    assert abs(rsa) < 0.005


def test_constant_kernels_have_no_similarity() -> None:
    first, _ = make_data()
    sums = feature_kernel_sums(np.ones((N, 3)), first, one_group())
    assert np.isnan(pearson(sums)).all() and np.isnan(cka(sums)).all() and np.isnan(cka(sums, unbiased=True)).all()
    constant = kernels.inner_product(np.ones((N, 3)))
    assert np.isnan(kernel_spearman(constant, kernels.inner_product(first), one_group())).all()
