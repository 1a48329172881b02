"""RSA and CKA: parity with scipy and with matrices written out, invariances, noise at its known bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group, pearsonr, spearmanr

from bertology.maths import kernel_sums
from bertology.maths.jackknife import Floats, dealt
from bertology.maths.kernel_similarity import cka, pearson
from bertology.maths.pair_ranks import spearman

N, GROUPS = 240, 6


def two(seed: int = 0) -> tuple[Floats, Floats]:
    """Two noisy views of the same observations, of different width, far from the origin."""
    generator = np.random.default_rng(seed)
    first = generator.normal(size=(N, 12)) + 2
    return first, first @ generator.normal(size=(12, 7)) + generator.normal(size=(N, 7))


def grouped() -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return dealt(np.arange(N) // 4, GROUPS, seed=0)


def whole(count: int = N) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.zeros(count, np.intp)


def written_out_cka(kernel: Floats, other: Floats, *, unbiased: bool) -> float:
    n = len(kernel)

    def hsic(k: Floats, m: Floats) -> float:
        if not unbiased:
            centring = np.eye(n) - 1 / n
            return float(np.trace(k @ centring @ m @ centring)) / (n - 1) ** 2
        k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
        one = np.ones(n)
        parts = np.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
        return float((parts - 2 / (n - 2) * (one @ k @ m @ one)) / (n * (n - 3)))

    return hsic(kernel, other) / np.sqrt(hsic(kernel, kernel) * hsic(other, other))


@pytest.mark.parametrize("left_out", range(GROUPS + 1))
def test_rsa_is_pearsonr_over_pdist(left_out: int) -> None:
    first, second = two()
    kept = grouped() != left_out - 1
    expected = pearsonr(pdist(first[kept], "cosine"), pdist(second[kept], "cosine"))[0]
    rows = kernel_sums.unit_rows(first), kernel_sums.unit_rows(second)
    for sums in (
        kernel_sums.of_features(*rows, grouped()),
        kernel_sums.of_kernels(kernel_sums.inner_product(rows[0]), kernel_sums.inner_product(rows[1]), grouped()),
    ):
        assert pearson(sums)[left_out] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("left_out", [0, 3])
def test_euclidean_and_spearman_match_scipy(left_out: int) -> None:
    first, second = two()
    kept = grouped() != left_out - 1
    distances = pdist(first[kept]), pdist(second[kept])
    kernels = kernel_sums.nearness(first), kernel_sums.nearness(second)
    sums = kernel_sums.of_kernels(*kernels, grouped())
    assert pearson(sums)[left_out] == pytest.approx(pearsonr(*distances)[0], abs=1e-10)
    assert spearman(*kernels, grouped())[left_out] == pytest.approx(spearmanr(*distances)[0], abs=1e-4)


@pytest.mark.parametrize("unbiased", [False, True])
def test_cka_is_that_of_matrices_written_out(unbiased: bool) -> None:
    first, second = two()
    found = cka(kernel_sums.of_features(first, second, grouped()), unbiased=unbiased)
    for left_out in (0, 2):
        kept = grouped() != left_out - 1
        kernels = first[kept] @ first[kept].T, second[kept] @ second[kept].T
        assert found[left_out] == pytest.approx(written_out_cka(*kernels, unbiased=unbiased), abs=1e-10)


@pytest.mark.parametrize("unbiased", [False, True])
def test_gaussian_cka_is_that_of_matrices_written_out(unbiased: bool) -> None:
    kernels, matrices = [], []
    for vectors in two():
        width = 0.4 * kernel_sums.median_distance(vectors)
        assert width == pytest.approx(0.4 * np.median(pdist(vectors)))
        kernels.append(kernel_sums.gaussian(vectors, width))
        matrices.append(np.exp(-squareform(pdist(vectors, "sqeuclidean")) / (2 * width**2)))
    found = cka(kernel_sums.of_kernels(kernels[0], kernels[1], grouped()), unbiased=unbiased)[0]
    assert found == pytest.approx(written_out_cka(matrices[0], matrices[1], unbiased=unbiased), abs=1e-10)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two()
    kernels = kernel_sums.nearness(first), kernel_sums.nearness(second)
    at_once = pearson(kernel_sums.of_kernels(*kernels, grouped()))
    monkeypatch.setattr(kernel_sums, "CELLS_AT_ONCE", 7 * N)
    np.testing.assert_allclose(pearson(kernel_sums.of_kernels(*kernels, grouped())), at_once, atol=1e-12)


def test_rotation_and_scale_change_nothing_and_an_invertible_map_does() -> None:
    first, _ = two()
    turned = 3 * first @ ortho_group.rvs(12, random_state=0)
    skewed = first @ np.random.default_rng(1).normal(size=(12, 12))
    for second, same in ((turned, True), (skewed, False)):
        rows = kernel_sums.unit_rows(first), kernel_sums.unit_rows(second)
        sums = kernel_sums.of_features(first, second, whole())
        found = [pearson(kernel_sums.of_features(*rows, whole())), cka(sums), cka(sums, unbiased=True)]
        assert (np.array(found) > 1 - 1e-9).all() == same
        assert same or (np.array(found) < 0.95).all()


def test_noise_is_at_its_known_bias() -> None:
    """Independent Gaussians of p and q features: the plain CKA is about sqrt(pq / ((n + p) (n + q)))."""
    n, p, q = 300, 100, 50
    found: list[list[float]] = []
    for seed in range(20):
        first, second = (np.random.default_rng([seed, size]).normal(size=(n, size)) for size in (p, q))
        sums = kernel_sums.of_features(first, second, whole(n))
        rows = kernel_sums.unit_rows(first), kernel_sums.unit_rows(second)
        rsa = pearson(kernel_sums.of_features(*rows, whole(n)))[0]
        found.append([cka(sums)[0], cka(sums, unbiased=True)[0], rsa])
    plain, unbiased, rsa = np.mean(found, 0)
    assert plain == pytest.approx(np.sqrt(p * q / ((n + p) * (n + q))), rel=0.03)
    assert abs(unbiased) < 0.005
    assert abs(rsa) < 0.005


def test_what_does_not_vary_has_no_similarity() -> None:
    first, _ = two()
    sums = kernel_sums.of_features(np.ones((N, 3)), first, whole())
    assert np.isnan(pearson(sums)).all() and np.isnan(cka(sums)).all() and np.isnan(cka(sums, unbiased=True)).all()
    flat = kernel_sums.inner_product(np.ones((N, 3)))
    assert np.isnan(spearman(flat, kernel_sums.inner_product(first), whole())).all()
